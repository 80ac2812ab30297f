from tests.engines.dbos.conftest import local  # noqa: F401
from tests.engines.temporal.conftest import engine  # noqa: F401
from tests.support.fixtures import *  # noqa: F403  # that is what they are for
