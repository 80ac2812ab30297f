"""What gates raise. Refusals of routers are values (G2); these are for arguments that cannot be right.

Arguments go raw to ``super().__init__``, so that the errors survive pickle and the engines' serializers.
"""

from __future__ import annotations

from typing import ClassVar

from corrobo_core.errors import CorroboError

__all__ = [
    "ApprovalSubjectError",
    "GateArgumentError",
    "GateConflictError",
    "GateDefinitionError",
    "GateError",
    "GateHistoryError",
    "GateValueError",
]


class GateError(CorroboError):
    """Base of what gates raise."""


class GateDefinitionError(GateError):
    """A gate cannot be asked as it is defined. Not retryable: change the definition.

    Args:
        gate_id: the gate, as given.
        field: which part, such as ``responseSchema/properties/when``.
        problem: what is wrong and what to do.
    """

    def __init__(self, gate_id: str, field: str, problem: str) -> None:
        super().__init__(gate_id, field, problem)
        self.gate_id, self.field, self.problem = gate_id, field, problem

    def __str__(self) -> str:
        return f"gate {self.gate_id!r}: {self.field}: {self.problem}"


class GateValueError(GateError):
    """A value has no exact JSON form. Not retryable: change the value.

    Args:
        path: where, such as ``response.items[2].price``.
        problem: the kind of value found and what to do; never the value.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class GateArgumentError(GateError):
    """An argument of a gate's client cannot be right. Not retryable. Nothing was recorded.

    Args:
        argument: its name.
        problem: what is wrong and what to do.
    """

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(argument, problem)
        self.argument, self.problem = argument, problem

    def __str__(self) -> str:
        return f"{self.argument}: {self.problem}"


class GateHistoryError(GateError):
    """A history does not replay. Not retryable: look at the history by hand.

    Args:
        where: which history, such as ``stream 'run-1', gate 'release-approval'``.
        position: number of the event, from 1.
        problem: what does not fit; never a claim token or an answer.
    """

    def __init__(self, where: str, position: int, problem: str) -> None:
        super().__init__(where, position, problem)
        self.where, self.position, self.problem = where, position, problem

    def __str__(self) -> str:
        return f"{self.where}: event {self.position}: {self.problem}"


class GateConflictError(GateError):
    """The request has another answer or subject already, and it stays (A4). Not retryable.

    Args:
        request_id: of the request.
        problem: what differs.
    """

    code: ClassVar[str] = "REVISION_CONFLICT"

    def __init__(self, request_id: str, problem: str) -> None:
        super().__init__(request_id, problem)
        self.request_id, self.problem = request_id, problem

    def __str__(self) -> str:
        return f"request {self.request_id!r}: {self.problem} ({self.code})"


class ApprovalSubjectError(GateError):
    """The subject is missing, is another one than the request names, or wants what the plan does not admit (A2).

    Args:
        request_id: of the request.
        problem: what differs. Not retryable.
    """

    code: ClassVar[str] = "SUBJECT_MISMATCH"

    def __init__(self, request_id: str, problem: str) -> None:
        super().__init__(request_id, problem)
        self.request_id, self.problem = request_id, problem

    def __str__(self) -> str:
        return f"request {self.request_id!r}: {self.problem} ({self.code})"
