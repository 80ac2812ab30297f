"""Every interleaving of small worlds, breadth first and to exhaustion, over the real lifecycle.

Passes are the library's own generators, driven by its own drivers' books; the ledger is the memory ledger, the desk
and the hooks are the real ones. The outside system, the clock and everything that goes wrong are the explorer's.
"""
