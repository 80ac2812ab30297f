"""The four situations in which writes are doubled; see docs for what other libraries do in them.

Each is met by a naive twin first, so that it is known to double; then by an effect on every ledger. What counts
is what the HTTP ledger itself has committed.
"""
