"""Ledgers: where operations and attempts are kept."""
