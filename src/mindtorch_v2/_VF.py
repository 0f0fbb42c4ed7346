"""`torch._VF`: the functions of operators by their names, as PyTorch's own modules call them."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as _torch


def __getattr__(name: str) -> Any:
    if name == "unique_dim":  # of which `torch` itself has no function
        from ._c_names import row_function

        return row_function(name)
    if not name.startswith("__") and (name in _torch._FUNCTIONS or name in _torch._late.FUNCTIONS):
        return getattr(_torch, name)
    raise AttributeError(f"'torch._C._VariableFunctionsClass' object has no attribute '{name}'")
