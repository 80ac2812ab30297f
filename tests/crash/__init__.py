"""A process ends around every command of a pass: in memory, on SQLite, on PostgreSQL, and for real."""
