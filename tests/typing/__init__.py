"""Right and wrong uses of the public API: each wrong line is an error to mypy, basedpyright and pyright."""
