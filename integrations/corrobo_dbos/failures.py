"""What this package raises in workflow code, beside the errors of `corrobo_core`.

An error here may end up pickled in a workflow's row, so that names and arguments are never changed again.
"""

from __future__ import annotations

from corrobo_core import CorroboError

__all__ = ["CheckpointError", "GateClosedError", "GateExpiredError", "GateSupersededError"]


class CheckpointError(CorroboError):
    """A step's checkpoint does not belong to this call. Not retryable: the workflow's code or inputs changed.

    Nothing was sent, and no other effect's result was returned. Fork the workflow from this step, or run it
    with the code that it was started with.

    Args:
        step: the step's name.
        operation_id: the operation that this call is about.
        problem: what the checkpoint holds instead.
    """

    def __init__(self, step: str, operation_id: str, problem: str) -> None:
        super().__init__(step, operation_id, problem)
        self.step, self.operation_id, self.problem = step, operation_id, problem

    def __str__(self) -> str:
        return f"step {self.step!r}, operation {self.operation_id!r}: {self.problem}"


class GateClosedError(CorroboError):
    """Base of what ends a question without an answer. Not retryable: ask another question.

    Args:
        request_id: of the question.
        problem: what became of it.
    """

    def __init__(self, request_id: str, problem: str) -> None:
        super().__init__(request_id, problem)
        self.request_id, self.problem = request_id, problem

    def __str__(self) -> str:
        return f"request {self.request_id!r}: {self.problem}"


class GateExpiredError(GateClosedError):
    """Nobody answered before the deadline. Not retryable: ask another question."""


class GateSupersededError(GateClosedError):
    """A newer question took this one's place. Not retryable: wait for the answer to that one."""
