"""A module that reads the environment when it is imported, as some SDKs do."""

import os

HOME = os.environ["HOME"]
