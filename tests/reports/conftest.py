from tests.support.fixtures import *  # noqa: F403  # that is what they are for
