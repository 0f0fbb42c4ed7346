"""Launches of layer norm.

Invariant: the kernels read memory in one run, so operands that are not dense are copied first.
"""

from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._dispatch.op import Op, Spec
from ...._tensor_base import TensorBase, numel
from .base import OneResult, SeveralResults, count, need_float, new_storage
from .dense import dense

_layer_norm: Final[Any] = _native.layer_norm
_layer_norm_backward: Final[Any] = _native.layer_norm_backward


def layer_norm(args: tuple[Any, ...], outer: int, inner: int, mean: Any, rstd: Any, code: int) -> Any:
    """The output for (input, normalized_shape, weight, bias, eps); statistics go where `mean` and `rstd` are given."""
    x = args[0]
    assert isinstance(x, TensorBase)
    x = dense(x)
    w = args[2]
    wdata: Any = None
    woff = wcode = 0
    if isinstance(w, TensorBase):
        w = dense(w)
        wdata, woff, wcode = w._storage, int(w._offset), int(w._dtype.code)
    b = args[3]
    bdata: Any = None
    boff = bcode = 0
    if isinstance(b, TensorBase):
        b = dense(b)
        bdata, boff, bcode = b._storage, int(b._offset), int(b._dtype.code)
    return _layer_norm(
        x._storage, int(x._offset), (), x._dtype.code,
        wdata, woff, (), wcode,
        bdata, boff, (), bcode,
        None, 0, (), x._dtype.code,
        mean, 0, (), code,
        rstd, 0, (), code,
        outer, inner, args[4])


@final
class LayerNormOutput(OneResult):
    """(input, normalized_shape, weight, bias, eps)"""

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        need_float("LayerNormKernelImpl", s.dtype)
        inner = count(args[1])
        return layer_norm(args, count(s.shape) // inner if inner else 0, inner, None, None, 0)


@final
class LayerNorm(SeveralResults):
    """The same, with the statistics: output, mean, rstd"""

    def launch(self, op: Op, args: tuple[Any, ...], specs: list[Any]) -> list[Any]:
        o = specs[0]
        stat = specs[1]
        assert isinstance(o, Spec) and isinstance(stat, Spec)
        need_float("LayerNormKernelImpl", o.dtype)
        mean = new_storage(stat)
        rstd = new_storage(stat)
        return [layer_norm(args, count(stat.shape), count(args[1]), mean, rstd, stat.dtype.code), mean, rstd]


@final
class LayerNormBackward(SeveralResults):
    """(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)"""

    def launch(self, op: Op, args: tuple[Any, ...], specs: list[Any]) -> list[Any]:
        g = args[0]
        x = args[1]
        mean = args[3]
        rstd = args[4]
        w = args[5]
        mask = args[7]
        assert isinstance(g, TensorBase) and isinstance(x, TensorBase)
        assert isinstance(mean, TensorBase) and isinstance(rstd, TensorBase)
        g = dense(g)
        x = dense(x)
        mean = dense(mean)
        rstd = dense(rstd)
        wdata: Any = None
        woff = wcode = 0
        if isinstance(w, TensorBase):
            w = dense(w)
            wdata, woff, wcode = w._storage, int(w._offset), int(w._dtype.code)
        outs: list[Any] = [None, None, None]
        codes = [0, 0, 0]
        for i in range(3):
            if mask[i] and (i == 0 or args[4 + i] is not None):
                s = specs[i]
                assert isinstance(s, Spec)
                outs[i] = new_storage(s)
                codes[i] = s.dtype.code
        _layer_norm_backward(
            g._storage, int(g._offset), (), g._dtype.code,
            x._storage, int(x._offset), (), x._dtype.code,
            mean._storage, int(mean._offset), (), mean._dtype.code,
            rstd._storage, int(rstd._offset), (), rstd._dtype.code,
            wdata, woff, (), wcode,
            outs[0], 0, (), codes[0],
            outs[1], 0, (), codes[1],
            outs[2], 0, (), codes[2],
            int(numel(mean)), count(args[2]))
        return outs
