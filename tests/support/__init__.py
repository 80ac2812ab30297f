"""Real servers and real processes for the tests."""
