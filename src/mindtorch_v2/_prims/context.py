"""`torch._prims.context`: PyTorch's mode that calls references in place of operators."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import mindtorch_v2 as torch


class TorchRefsMode(torch.overrides.TorchFunctionMode):
    """Calls what was called: a reference is the operator itself here.

    So there is nothing that a strict mode would forbid, and nothing to fall back from.
    """

    def __init__(
        self, strict: bool = False, should_fallback_fn: Any = lambda *_: False, prims_mode_cls: Any = nullcontext
    ) -> None:
        super().__init__()
        self.strict = strict
        self.should_fallback_fn = should_fallback_fn
        self.prims_mode_cls = prims_mode_cls

    def __torch_function__(self, orig_func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with self.prims_mode_cls():
            return orig_func(*args, **(kwargs or {}))
