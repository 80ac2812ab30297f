"""Benchmarks: ``make bench``. Everything that is compared runs side by side in one run."""
