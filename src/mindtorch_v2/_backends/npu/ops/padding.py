"""NPU lines of padding modes.

Invariant: padding that cuts something away is composed; the vendor only adds.
"""
from __future__ import annotations

from typing import Any

from ...._dispatch import registry
from ...._tensor_base import numel
from ..lines import accepts_dtype, call, choose, fused, line, npu


def _cuts(self: Any, padding: tuple[int, ...]) -> bool:
    return any(p < 0 for p in padding)


def _cuts_backward(grad_output: Any, self: Any, padding: tuple[int, ...]) -> bool:
    return any(p < 0 for p in padding)


def _serve(name: str, question: Any, text: str) -> None:
    composed = registry.get(name).row.fallback
    npu(name, choose(question, {False: line(text, absent=composed), True: composed}))


for _kind in ("reflection", "replication"):
    for _rank in (1, 2, 3):
        _name, _vendor = f"{_kind}_pad{_rank}d", f"aclnn{_kind.capitalize()}Pad{_rank}d"
        _serve(_name, _cuts, f"{_vendor}(self, padding, out)")
        _serve(f"{_name}_backward", _cuts_backward, f"{_vendor}Backward(grad_output, self, padding, out)")


# -- circular padding ---------------------------------------------------------------------------------------------
def _goes_round(self: Any, pad: Any) -> bool:
    n, rank = len(self._shape), len(pad) // 2
    if rank not in (2, 3) or len(pad) != 2 * (n - 2) or any(p < 0 for p in pad) or numel(self) == 0:
        return False
    vendor = f"aclnnCircularPad{rank}d"
    return accepts_dtype(vendor, self) and accepts_dtype(vendor + "Backward", self, 1) and all(
        max(pad[2 * k], pad[2 * k + 1]) <= self._shape[n - 1 - k] for k in range(rank))


def _round(self: Any, pad: Any) -> Any:
    n, rank = len(self._shape), len(pad) // 2
    shape = [s + (pad[2 * (n - 1 - d)] + pad[2 * (n - 1 - d) + 1] if d > 1 else 0) for d, s in enumerate(self._shape)]
    out = self.new_empty(tuple(shape))
    call(f"aclnnCircularPad{rank}d", "pad", self, tuple(pad), out)
    return out, ()


def _round_back(grad: Any, needs: Any, args: Any, kept: Any) -> Any:
    self, pad = args
    out = self.new_empty(self._shape)
    call(f"aclnnCircularPad{len(pad) // 2}dBackward", "pad_backward", grad, self, tuple(pad), out)
    return out, None


npu("_pad_circular", fused(tuple(f"aclnnCircularPad{rank}d{back}" for rank in (2, 3) for back in ("", "Backward")),
                           _goes_round, _round, _round_back, saves=()))
