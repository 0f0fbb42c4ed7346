"""The NPU as a place where tests that hold on every device run.

Invariant: tensors arrive and leave with their strides and offset; what the vendor does not have is refused in words
that `_rows.refusal` knows.
"""

from __future__ import annotations

from typing import Any

from .._subject import subject as torch
from ..parity._infos import Covered
from ..parity._place import Place
from . import _rows


class Npu(Place):
    def convert(self, value: Any) -> Any:
        return _rows.arguments(value)

    def arguments(self, case: Covered, args: Any) -> Any:
        return _rows.arguments_of(case, args)

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        """With the NPU as default device, so that factories make their results there."""
        torch.set_default_device("npu")
        try:
            return function(*args, **kwargs)
        finally:
            torch.set_default_device(None)

    def copied(self, t: Any) -> Any:
        if t.device.type != "npu":
            return super().copied(t)
        count = t.untyped_storage().nbytes() // t.element_size()
        whole = t.detach().as_strided((count,), (1,), 0).clone()
        return whole.as_strided(tuple(t.shape), t.stride(), t.storage_offset()).detach()

    def fetch(self, t: Any) -> Any:
        return _rows.to_cpu(t) if t.device.type == "npu" else t

    def first_dtype(self, case: Covered) -> str | None:
        return _rows.first_dtype(case)

    def refused(self, outcome: Any) -> bool:
        return _rows.refusal(outcome)


NPU = Npu()
