"""`torch.__future__`: how modules change their parameters when they are converted or loaded.

Invariant: both switches are off unless somebody turned them on.
"""

from __future__ import annotations


class _Switches:
    overwrite = False
    swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether converting a module makes new parameters instead of giving the old ones new data."""
    _Switches.overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    return _Switches.overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether converting or loading a module swaps parameters with `torch.utils.swap_tensors`."""
    _Switches.swap = value


def get_swap_module_params_on_conversion() -> bool:
    return _Switches.swap
