"""Convolutions of each rank in terms of the one row that computes them.

Invariant: a composite here completes arguments, one number for each dimension, and passes the call's keys on.
"""

from __future__ import annotations

from typing import Any, Final, final

from ..._dispatch.op import Kernel, Op
from ..._mypyc import i64
from ..._tensor_base import TensorBase
from .rows import ROWS, below

Ints = tuple[int, ...]


def expand(values: Ints, rank: int, name: str) -> Ints:
    if len(values) == rank:
        return values
    if len(values) == 1:
        return values * rank
    raise RuntimeError(
        f"expected {name} to be a single integer value or a list of {rank} values to match the "
        f"convolution dimensions, but got {name}={list(values)}"
    )


def is_batch(name: str, rank: int, x: TensorBase) -> bool:
    n = len(x._shape)
    if n != rank + 1 and n != rank + 2:
        raise RuntimeError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input "
            f"of size: {list(x._shape)}"
        )
    return n == rank + 2


def check_weight(w: TensorBase) -> None:
    if len(w._shape) < 3:
        raise RuntimeError("weight should have at least three dimensions")


def _other_rank(x: TensorBase, w: TensorBase, rank: int, batched: bool, how: tuple[Ints, Ints, Ints]) -> RuntimeError:
    """What PyTorch says of a weight of another rank."""
    check_weight(w)
    # It spreads them over the dimensions that the weight has.
    for values, what in zip(how, ("stride", "padding", "dilation")):
        expand(expand(values, rank, what), len(w._shape) - 2, what)
    return RuntimeError(
        f"Expected {len(w._shape)}-dimensional input for {len(w._shape)}-dimensional weight "
        f"{list(w._shape)}, but got {rank + 2}-dimensional input of size "
        f"{list(x._shape if batched else (1, *x._shape))} instead"
    )


@final
class ConvOf(Kernel):
    """conv2d(input, weight, bias, stride, padding, dilation, groups) and
    conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation)"""

    def __init__(self, convolution: Op, name: str, rank: int, transposed: bool) -> None:
        self.calls_ops = True
        self.convolution: Final = convolution
        self.name: Final = name
        self.rank: Final = rank
        self.transposed: Final = transposed

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        x, w = args[0], args[1]
        assert isinstance(x, TensorBase) and isinstance(w, TensorBase)
        rank = self.rank
        stride: Ints = args[3]
        padding: Ints = args[4]
        if self.transposed:
            more: Ints = args[5]
            groups: Any = args[6]
            dilation: Ints = args[7]
        else:
            more = (0,)
            groups = args[6]
            dilation = args[5]
        batched = is_batch(self.name, rank, x)
        if len(w._shape) != rank + 2:
            raise _other_rank(x, w, rank, batched, (stride, padding, dilation))
        stride = expand(stride, rank, "stride")
        padding = expand(padding, rank, "padding")
        dilation = expand(dilation, rank, "dilation")
        more = expand(more, rank, "output_padding")
        if batched:
            given = (x, w, args[2], stride, padding, dilation, self.transposed, more, groups)
            return below(self.convolution, given, keys)
        image = ROWS.unsqueeze.call((x, 0))
        out = self.convolution.call((image, w, args[2], stride, padding, dilation, self.transposed, more, groups))
        return out.squeeze(0)
