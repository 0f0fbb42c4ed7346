"""Values kept for the backward pass, with the version each had when it was kept.

Invariant: a saved result never refers to the tensor that holds the node (that would be a reference cycle); it is rebuilt
with its history when it is unpacked.
"""
from __future__ import annotations

from typing import Any, final

from mypy_extensions import i64

from .._dispatch.keys import AUTOGRAD, INFERENCE
from .._tensor_base import TensorBase, alias, counter, set_history
from .node import FREED, Node
from .version_counter import VersionCounter


@final
class SavedTensor:
    """One kept tensor."""

    tensor: TensorBase | None
    counter: VersionCounter | None
    version: i64
    output_nr: i64
    shown: str

    def __init__(self, tensor: TensorBase, output_nr: i64) -> None:
        self.tensor = tensor
        self.output_nr = output_nr
        self.shown = ""
        vc = tensor._vc
        self.counter = vc
        self.version = vc.value if vc is not None else 0

    @property
    def saved_version(self) -> int:
        return self.version

    def unpack(self, node: Node) -> TensorBase:
        """The tensor, if nobody wrote to it since."""
        t = self.tensor
        if t is None:
            raise RuntimeError(FREED)
        vc = t._vc
        now: i64 = vc.value if vc is not None else 0
        if now != self.version:
            raise modified(t, node, self.version, now, self.output_nr)
        if self.output_nr >= 0:
            out = alias(t, t._shape, t._stride, t._offset)
            set_history(out, node, self.output_nr)
            return out
        return t

    def release(self) -> None:
        self.tensor = None


def modified(t: TensorBase, node: Node, saved: i64, now: i64, output_nr: i64) -> RuntimeError:
    """PyTorch's report of a saved value that was written in place."""
    kind = TYPE_NAMES.get(t._dtype.name, t._dtype.name)
    where = {"cpu": "", "npu": "npu."}.get(t._device.type, t._device.type + ".")
    sizes = ", ".join([str(s) for s in t._shape])
    text = (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{where}{kind} [{sizes}]]"
    )
    made_by: str | None = None
    nr: i64 = 0
    if output_nr >= 0:
        made_by, nr = node.name(), output_nr
    elif t._grad_fn is not None:
        made_by, nr = t._grad_fn.name(), t._output_nr
    if made_by is not None:
        text += f", which is output {nr} of {made_by},"
    text += (
        f" is at version {now}; expected version {saved} instead. Hint: enable anomaly detection to find the operation "
        "that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True)."
    )
    return RuntimeError(text)


TYPE_NAMES: dict[str, str] = {
    "float32": "FloatTensor", "float64": "DoubleTensor", "float16": "HalfTensor", "bfloat16": "BFloat16Tensor",
    "uint8": "ByteTensor", "int8": "CharTensor", "int16": "ShortTensor", "int32": "IntTensor", "int64": "LongTensor",
    "bool": "BoolTensor", "complex64": "ComplexFloatTensor", "complex128": "ComplexDoubleTensor",
}


def save_input(t: Any) -> Any:
    """Keep an input: the tensor itself, whose history lies behind the node and so makes no cycle."""
    if isinstance(t, TensorBase):
        return SavedTensor(t, -1)
    return t


def save_output(t: TensorBase, output_nr: i64) -> SavedTensor:
    """Keep a result of the node itself."""
    if t._keys & INFERENCE:
        return SavedTensor(t, -1)
    counter(t)
    return SavedTensor(alias(t, t._shape, t._stride, t._offset), output_nr)


def is_recorded(t: TensorBase) -> bool:
    return (t._keys & AUTOGRAD) != 0
