"""The few things of the SDK that have no public name, in one place."""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable
from typing import Any

from temporalio import activity

__all__ = ["activity_name", "replace_heartbeat"]

Heartbeat = Callable[..., None]

# A thread of the SDK that has just brought a reply may still be letting go of the interpreter; if the interpreter
# ends meanwhile, the process dies with SIGABRT although all its work is done (temporalio/sdk-python issue 300).
_LETTING_GO_SECONDS = 0.05
atexit.register(time.sleep, _LETTING_GO_SECONDS)


def activity_name(fn: Callable[..., Any]) -> str | None:
    """The name that ``@activity.defn`` gave a function or method; None if it was not decorated, or is dynamic."""
    definition = activity._Definition.from_callable(fn)
    return None if definition is None else definition.name


def replace_heartbeat(wrap: Callable[[Heartbeat], Heartbeat]) -> None:
    """Put something before ``activity.heartbeat``, for the activity that runs here and no other."""
    context = activity._Context.current()
    if context.heartbeat is not None:
        context.heartbeat = wrap(context.heartbeat)
