"""Moves the oracle's sample inputs to the NPU with their layout, and what the NPU is allowed to refuse.

Invariant: a refusal is an error that says what "is not available on NPU", and is listed; a listed one that no longer
happens fails too.
"""

from __future__ import annotations

from typing import Any

from .. import _oracle
from .._subject import subject as torch
from ..parity import _infos, _own
from ..parity._infos import Covered, Failure

# As `_own.SENSITIVE`, for NPUs alone: PyTorch's CPU rounds a number to a half before it subtracts from it, the vendor
# keeps it in float32, so either result may be the nearer one.
SENSITIVE: dict[str, float] = {"hinge_embedding_loss": 2.0, **_own.SENSITIVE}

DTYPES = ("float32", "float16", "bfloat16", "int64", "bool")
# Positions of arguments that PyTorch reads on the CPU.
HOST = {"tensor_split": (1,)}


def to_npu(t: Any) -> Any:
    """The tensor of the library under test on the NPU, in a storage of the same size and with the same geometry."""
    source = t.detach()
    count = source.untyped_storage().nbytes() // source.element_size()
    whole = source.as_strided((count,), (1,), 0).npu()
    moved = whole.as_strided(tuple(source.shape), source.stride(), source.storage_offset()).detach()
    return moved.requires_grad_() if t.requires_grad else moved


def to_cpu(t: Any) -> Any:
    """Back, with the same strides; places that overlap come once."""
    source = t.detach()
    shape, stride = tuple(source.shape), source.stride()
    reach = 1 + sum((n - 1) * s for n, s in zip(shape, stride)) if 0 not in shape else 0
    return source.as_strided((reach,), (1,), source.storage_offset()).cpu().as_strided(shape, stride)


def arguments(value: Any) -> Any:
    """An oracle argument as the library under test takes it: tensors, and devices that it names, become the NPU's."""
    moved = _oracle.tree_map(to_npu, _oracle.convert_argument(value), _oracle.is_subject_tensor)
    return _oracle.tree_map(
        lambda d: torch.device("npu:0"),
        moved,
        lambda v: isinstance(v, torch.device) and v.type == "cpu" or v == "cpu" and type(v) is str,
    )


def arguments_of(case: Covered, args: Any) -> Any:
    """A call's arguments; those that PyTorch wants on the CPU whatever the device stay there."""
    return tuple(
        _oracle.convert_argument(a) if i in HOST.get(case.row, ()) else arguments(a) for i, a in enumerate(args)
    )


def run(function: Any, args: Any, kwargs: Any) -> Any:
    """The call with the NPU as default device, so that factories make their results there."""
    torch.set_default_device("npu")
    try:
        return _infos.attempt(function, args, kwargs)
    finally:
        torch.set_default_device(None)


def settle() -> None:
    """Wait for the device, and let go of a failure that it reports late."""
    try:
        torch.npu.synchronize()
    except RuntimeError:
        pass


def results(value: Any, where: str) -> Any:
    """Results for comparison; tensors must have come from the NPU."""

    def fetch(t: Any) -> Any:
        assert t.device.type == "npu", f"{where}: the result is on {t.device}"
        return to_cpu(t)

    return _oracle.tree_map(fetch, value, _oracle.is_subject_tensor)


def cases() -> tuple[Covered, ...]:
    return _infos.covered()


def first_dtype(case: Covered) -> str | None:
    return next((name for name in (*DTYPES, "float64") if _infos.supported(case.info, name)), None)


def refusal(outcome: Any) -> bool:
    return isinstance(outcome, Failure) and "is not available on NPU" in outcome.text


# Rows that draw where they are not given what to draw: from PyTorch's sequence on the CPU alone.
DRAWN = ("fractional_max_pool2d", "fractional_max_pool3d")


def is_random(case: Covered) -> bool:
    return case.row in _own.RANDOM_ROWS or case.row in DRAWN


def is_tied(case: Covered) -> bool:
    return case.row in _own.TIES


class Account:
    """Whether what was refused is what the table says."""

    def __init__(self, listed: dict[str, Any], key: str, what: str) -> None:
        stated = listed.get(key, ())
        self.expected = stated == "all" or what in stated
        self.key = f"{key} {what}"
        self.refused = 0
        self.served = 0

    def add(self, outcome: Any) -> bool:
        """True when there is nothing to compare."""
        if refusal(outcome):
            assert self.expected, f"{self.key}: {outcome.text}"
            self.refused += 1
            return True
        self.served += 1
        return False

    def close(self) -> None:
        assert not self.expected or self.refused, f"{self.key} is listed as refused, but works"
