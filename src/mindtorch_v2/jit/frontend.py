"""`torch.jit.frontend`: PyTorch's reader of source for scripts. Its errors can be named; nothing is read."""

from __future__ import annotations

from typing import Any, NoReturn


class FrontendError(Exception):
    """Source that cannot be made a script."""

    def __init__(self, source_range: Any, msg: str) -> None:
        super().__init__(source_range, msg)
        self.source_range = source_range
        self.msg = msg


class NotSupportedError(FrontendError):
    """A part of Python that scripts do not have."""


class UnsupportedNodeError(NotSupportedError):
    """A kind of statement that scripts do not have."""


class FrontendTypeError(FrontendError):
    """Source whose types do not fit."""


def get_jit_def(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError("torch.jit.frontend.get_jit_def: programs are not scripted here")


def get_jit_class_def(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError("torch.jit.frontend.get_jit_class_def: programs are not scripted here")
