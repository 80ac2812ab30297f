"""What people have reported about other systems, each report as a test that is named by its row.

A row's letter is its kind: A, run twice; B, duplicates at providers; C, the PostgreSQL ledger.
"""
