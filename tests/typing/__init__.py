"""Right and wrong uses of the public API. Each wrong line must be an error to mypy, basedpyright and pyright."""
