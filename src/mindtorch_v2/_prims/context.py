"""`torch._prims.context`: PyTorch's mode that calls references in place of operators."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch


class TorchRefsMode(torch.overrides.TorchFunctionMode):
    """Calls what was called: a reference is the operator itself here. A strict mode would forbid what has none."""

    def __init__(self, strict: bool = False, should_fallback_fn: Any = None, prims_mode_cls: Any = None) -> None:
        for name, value in (
            ("strict", strict or None),
            ("should_fallback_fn", should_fallback_fn),
            ("prims_mode_cls", prims_mode_cls),
        ):
            if value is not None:
                raise NotImplementedError(
                    f"TorchRefsMode(): argument '{name}' is not supported: references are the operators themselves"
                )
        super().__init__()

    def __torch_function__(self, orig_func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return orig_func(*args, **(kwargs or {}))
