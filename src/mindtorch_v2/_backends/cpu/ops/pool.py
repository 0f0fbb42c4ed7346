"""CPU lines of pooling."""

from __future__ import annotations

from typing import Any

from .... import _native
from ...._dispatch import registry
from ...._dispatch.keys import CPU
from ...._dispatch.op import FnKernel, PartsKernel
from ...._ops.kept import kept
from ...._ops.pool import Sliding, check_max_1d
from ...recorded import Whole
from ..kernels.dense import dense_as, fresh, operand, wide_dtype
from ..kernels.pool import Pool
from ..lines import cpu, into

Ints = tuple[int, ...]

for _rank in (2, 3):
    _pool = Pool(_rank)
    cpu(f"max_pool{_rank}d_with_indices", into(_pool.largest))
    cpu(f"max_pool{_rank}d_with_indices_backward", PartsKernel(_pool.largest_backward))
    cpu(f"avg_pool{_rank}d", into(_pool.mean))
    cpu(f"avg_pool{_rank}d_backward", into(_pool.mean_backward))
    cpu(f"adaptive_max_pool{_rank}d", into(_pool.adaptive_largest))
    cpu(f"adaptive_max_pool{_rank}d_backward", PartsKernel(_pool.adaptive_largest_backward))
    cpu(f"_adaptive_avg_pool{_rank}d", into(_pool.adaptive_mean))
    cpu(f"_adaptive_avg_pool{_rank}d_backward", into(_pool.adaptive_mean_backward))


# Nobody asks for the places of the largest where no gradient is wanted.
def _line_fits(self: Any, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> bool:
    return self._dtype.name in ("float32", "float64", "bfloat16", "float16")


@kept
def _line_plan(shape: Ints, dt: Any, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints,
               ceil_mode: bool) -> tuple[Ints, Ints]:
    """The shape of the result, and the native kernel's last arguments."""
    check_max_1d(shape, dt, kernel_size, stride, padding, dilation, ceil_mode)
    v = Sliding(tuple(kernel_size), tuple(stride or kernel_size), tuple(padding), tuple(dilation), ceil_mode)
    places = v.places(shape[-1:])[0]
    lines = 1
    for n in shape[:-1]:
        lines *= n
    steps = (v.kernel[0], v.stride[0], v.padding[0], v.dilation[0])
    return (*shape[:-1], places), (lines, shape[-1], places, *steps)


def _max_line(self: Any, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> Any:
    shape, walk = _line_plan(self._shape, self._dtype, kernel_size, stride, padding, dilation, ceil_mode)
    dt = wide_dtype(self._dtype)
    out = fresh(shape, dt)
    if walk[0]:
        _native.pool_line(*operand(dense_as(self, dt)), *operand(out), *walk)
    return dense_as(out, self._dtype)


cpu("max_pool1d", FnKernel(Whole(registry.get("max_pool1d"), int(CPU), _line_fits, _max_line, None)))
