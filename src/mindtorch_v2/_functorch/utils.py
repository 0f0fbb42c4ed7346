"""`torch._functorch.utils`: switches of transforms."""

from __future__ import annotations

from typing import NoReturn


def enable_single_level_autograd_function() -> NoReturn:
    """PyTorch's transforms record a Function of one level with it; here one record serves all levels."""
    raise NotImplementedError(
        "enable_single_level_autograd_function: a Function is recorded once for all levels here; call its apply()"
    )
