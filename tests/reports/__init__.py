"""What people have reported about other systems, each report as a test that is named by its case.

A case's letter is its kind: A, run twice; B, duplicates at providers; C, the PostgreSQL ledger; E, libraries beside
others; F, damaged histories. `docs/explanation/what-people-report.md` lists all, with tests that stand elsewhere.
"""
