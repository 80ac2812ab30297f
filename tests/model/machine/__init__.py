"""Model-based tests: machines that drive every ledger at once, judged by what the tests themselves did.

See `tests.model.machine.operations` and `tests.model.machine.gates`; ``python -m tests.model.machine --quick``.
"""
