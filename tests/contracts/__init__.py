"""The contract suite: what it passes, what it fails, and how it is run."""
