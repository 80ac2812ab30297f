"""Examples that run alone: ``python -m examples.NAME`` from the repository's folder."""
