"""Corrobo for Temporal: effects as activities."""
