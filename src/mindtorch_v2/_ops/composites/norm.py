"""softmax, layer norm and losses in terms of the rows that compute them.

Invariant: a composite here passes the call's keys on to the row it ends in, so that it costs one more function call.
"""

from __future__ import annotations

from typing import Any, Final, final

from ..._dispatch.keys import AUTOGRAD, FORWARD, TORCH_DISPATCH
from ..._dispatch.op import Kernel, Op
from ..._mypyc import i64
from ..._tensor_base import TensorBase
from ..rules.norm import check_batch
from .rows import ROWS, below


@final
class SoftmaxOf(Kernel):
    """softmax(self, dim, dtype) and log_softmax."""

    def __init__(self, log: bool) -> None:
        self.calls_ops = True
        self.log: Final = log

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        row = ROWS.log_softmax if self.log else ROWS.softmax
        x = args[0]
        assert isinstance(x, TensorBase)
        if args[2] is None or args[2] is x._dtype:
            return below(row, (x, args[1], False), keys)
        return row.call((ROWS.to_copy.call((x, args[2], None, None, False)), args[1], False))


@final
class LayerNormOf(Kernel):
    """layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable)"""

    def __init__(self) -> None:
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        given = args[:5]
        if keys & (AUTOGRAD | FORWARD | TORCH_DISPATCH):
            # What handlers see is PyTorch's operator.
            return below(ROWS.layer_norm, given, keys)[0]
        return below(ROWS.plain_layer_norm, given, keys)


@final
class NllOf(Kernel):
    """nll_loss_nd(self, target, weight, reduction, ignore_index): matrices here, other ranks in the table."""

    def __init__(self) -> None:
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        x = args[0]
        t = args[1]
        assert isinstance(x, TensorBase) and isinstance(t, TensorBase)
        check_batch(x, t)
        if len(x._shape) > 2:
            return ROWS.nll_nd(x, t, args[2], args[3], args[4])
        return below(ROWS.nll_forward, args, keys)[0]


@final
class CrossEntropyOf(Kernel):
    """cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing)"""

    def __init__(self) -> None:
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        x = args[0]
        t = args[1]
        assert isinstance(x, TensorBase) and isinstance(t, TensorBase)
        if x._shape == t._shape or args[5] != 0.0 or len(x._shape) != 2 or len(t._shape) == 0:
            return ROWS.cross_entropy(x, t, args[2], args[3], args[4], args[5])
        logp = below(ROWS.log_softmax, (x, 1, False), keys)
        check_batch(x, t)
        return ROWS.nll_forward.call((logp, t, args[2], args[3], args[4]))[0]
