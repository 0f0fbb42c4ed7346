"""`torch._dynamo.exc`: exceptions of PyTorch's tracer, for programs that catch them."""

from __future__ import annotations


class TorchDynamoException(RuntimeError):
    """Anything that the tracer raises."""


class InternalTorchDynamoError(TorchDynamoException):
    """A defect of the tracer."""


class Unsupported(TorchDynamoException):
    """A part of a program that the tracer does not follow."""


class RestartAnalysis(TorchDynamoException):
    """The tracer begins again."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend that raised."""


class UserError(Unsupported):
    """A mistake of the program."""


class InvalidBackend(TorchDynamoException):
    """A backend's name that nobody registered."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.")


class ResetRequired(TorchDynamoException):
    """Something changed that compiled code relies on."""


class RecompileError(TorchDynamoException):
    """A program that is compiled again although that was forbidden."""


class FailOnRecompileLimitHit(Exception):
    """A program that is compiled again too often."""
