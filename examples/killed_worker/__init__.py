"""The demo: a worker is killed between its write and its checkpoint."""
