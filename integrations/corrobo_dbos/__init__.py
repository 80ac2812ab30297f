"""Corrobo for DBOS: effects as steps."""
