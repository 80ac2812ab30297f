"""A release that people approve, over Temporal signals."""
