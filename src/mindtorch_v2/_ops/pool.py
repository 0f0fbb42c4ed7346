"""Pooling: the largest or the mean of windows, sliding or adapted to a number of results.

Invariant: a maximum's gradient goes to the place it came from, by the recorded places; a mean's to its whole window.
Both are rows of their own, linear in the gradient, so they can be differentiated again.
"""
from __future__ import annotations

import math
from typing import Any, NamedTuple

from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._dtype import int64
from .._dtype_names import cpp_name
from .composites.formulas import in_format, zeros_like
from .determinism import alert
from .kept import kept
from .rules.base import KeptRule, like, wrap_dim
from .rules.layout import in_format_of, suggested_format
from .table import composite, op

Ints = tuple[int, ...]
_COUNT = {2: "two", 3: "three"}
_UNSQUEEZE, _SQUEEZE = registry.get("unsqueeze"), registry.get("squeeze.dim")


class Sliding(NamedTuple):
    """The geometry of sliding windows, every field with one number for each dimension."""

    kernel: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    ceil: bool

    def places(self, sizes: Ints) -> Ints:
        out: list[int] = []
        for n, k, s, p, d in zip(sizes, self.kernel, self.stride, self.padding, self.dilation):
            count = (n + 2 * p - d * (k - 1) - 1 + (s - 1 if self.ceil else 0)) // s + 1
            # The last window must begin inside the input or the padding before it.
            if self.ceil and (count - 1) * s >= n + p:
                count -= 1
            out.append(count)
        return tuple(out)


def _full(values: Ints, rank: int, text: str) -> Ints:
    if len(values) not in (1, rank):
        raise RuntimeError(text)
    return tuple(values) * (rank if len(values) == 1 else 1)


_INT_MAX = 2**31 - 1


def _check_ints(values: Ints) -> None:
    """PyTorch counts within a window in ints of 32 bits."""
    if any(x > _INT_MAX or x < -_INT_MAX - 1 for x in values):
        raise RuntimeError("value cannot be converted to type int without overflow")


@kept
def sliding(name: str, rank: int, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints,
            ceil_mode: bool) -> Sliding:
    of = f"a tuple of {_COUNT[rank]} ints"
    kernel = _full(kernel_size, rank, f"{name}: kernel_size must either be a single int, or {of}")
    steps = kernel if len(stride) == 0 else _full(
        stride, rank, f"{name}: stride must either be omitted, a single int, or {of}")
    pads = _full(padding, rank, f"{name}: padding must either be a single int, or {of}")
    gaps = _full(dilation, rank, f"{name}: dilation must be either a single int, or {of}")
    _check_ints((*kernel, *steps, *pads, *gaps))
    return Sliding(kernel, steps, pads, gaps, ceil_mode)


_SIDES = {2: "HW", 3: "THW"}


def _check_numbers(v: Sliding, rank: int) -> None:
    if 0 in v.stride:
        raise RuntimeError("stride should not be zero")
    sides = _SIDES[rank]
    for p, k, d in zip(v.padding, v.kernel, v.dilation):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > int(((k - 1) * d + 1) / 2):
            raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} "
                               f"and dilation={d}")
    if any(k <= 0 for k in v.kernel):
        named = " ".join(f"k{side}: {k}" for side, k in zip(sides, v.kernel))
        raise RuntimeError(f"kernel size should be greater than zero, but got {named}")
    if any(s < 0 for s in v.stride):
        named = " ".join(f"d{side}: {s}" for side, s in zip(sides, v.stride))
        raise RuntimeError(f"stride should be greater than zero, but got {named}")
    if any(d <= 0 for d in v.dilation):
        named = " ".join(f"dilation{side}: {d}" for side, d in zip(sides, v.dilation))
        raise RuntimeError(f"dilation should be greater than zero, but got {named}")


def _pooled(x: Any, v: Sliding, rank: int) -> Ints:
    """The result's shape."""
    return _pooled_shape(x._shape, v, rank)


@kept
def _pooled_shape(shape: Ints, v: Sliding, rank: int) -> Ints:
    _check_numbers(v, rank)
    n = len(shape)
    if n not in (rank + 1, rank + 2):
        raise RuntimeError(f"non-empty {rank + 1}D or {rank + 2}D (batch mode) tensor expected for input")
    if 0 in shape[n - rank - 1:]:
        if rank == 3:
            # PyTorch counts wrong: it always names the first.
            raise RuntimeError("max_pool3d_with_indices_out_cpu_template(): Expected input's non-batch dimensions to "
                               f"have positive length, but input has a shape of {list(shape)} and non-batch "
                               "dimension 0 has length zero!")
        raise RuntimeError(f"Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with optional 0 dim batch size "
                           f"for input, but got:{list(shape)}")
    places = v.places(shape[n - rank:])
    if any(p < 1 for p in places):
        planes = shape[n - rank - 1]
        sizes = "x".join(map(str, (planes, *shape[n - rank:])))
        raise RuntimeError(f"Given input size: ({sizes}). Calculated output size: "
                           f"({'x'.join(map(str, (planes, *places)))}). Output size is too small")
    return tuple(shape[:n - rank]) + places


def _need(x: Any, name: str, integers: bool | str) -> None:
    """integers: whether whole numbers are pooled; "long": only those of eight bytes."""
    _need_dtype(x._dtype, name, integers)


def _need_dtype(dt: Any, name: str, integers: bool | str) -> None:
    fine = dt.is_floating_point or (dt.is_integer and (dt is int64 if integers == "long" else integers))
    if not fine:
        raise NotImplementedError(f"\"{name}\" not implemented for '{dt.scalar_name}'")


def _flat(t: Any, rank: int) -> Any:
    return t.contiguous().reshape((*t._shape[:len(t._shape) - rank], -1))


# -- by the recorded places -------------------------------------------------------------------------------------------
def sent(grad: Any, x: Any, indices: Any, rank: int) -> Any:
    """Each gradient added at its place."""
    if 0 in grad._shape:
        return zeros_like(x)
    flat = grad.new_zeros((*x._shape[:len(x._shape) - rank], math.prod(x._shape[len(x._shape) - rank:])))
    return in_format(flat.scatter_add(-1, _flat(indices, rank), _flat(grad, rank)).reshape(x._shape), x, rank)


def _fetched(g: Any, indices: Any, rank: int) -> Any:
    """What lies at the places."""
    if 0 in indices._shape:
        return g.new_zeros(indices._shape)
    return _flat(g, rank).gather(-1, _flat(indices, rank)).reshape(indices._shape)


def _declare_max(rank: int) -> None:
    name = f"max_pool{rank}d"
    numbers = f"int[{rank}] kernel_size, int[{rank}] stride=[], int[{rank}] padding=0, int[{rank}] dilation=1, " \
              "bool ceil_mode=False"

    @KeptRule
    def meta(self: Any, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> list[Spec]:
        shape = _pooled(self, sliding(name, rank, kernel_size, stride, padding, dilation, ceil_mode), rank)
        _need(self, name, True)
        return [in_format_of(self, shape, rank=rank), in_format_of(self, shape, int64, rank)]

    def kernel_backward(grad_output: Any, self: Any, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints,
                        ceil_mode: bool, indices: Any) -> Any:
        return sent(grad_output, self, indices, rank)

    def meta_backward(grad_output: Any, self: Any, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints,
                      ceil_mode: bool, indices: Any) -> Spec:
        shape = _pooled(self, sliding(name, rank, kernel_size, stride, padding, dilation, ceil_mode), rank)
        if grad_output._dtype is not self._dtype:
            raise RuntimeError(f"expected dtype {self._dtype.scalar_name} for `gradOutput` but got dtype "
                               f"{grad_output._dtype.scalar_name}")
        for t, what in ((grad_output, "grad_output"), (indices, "indices")):
            if tuple(t._shape) != shape:
                raise RuntimeError(f"{name}_with_indices_backward: expected {what} of shape {list(shape)}, got "
                                   f"{list(t._shape)}")
        return in_format_of(self, self._shape, rank=rank)

    backward = op(
        f"{name}_with_indices_backward(Tensor grad_output, Tensor self, int[{rank}] kernel_size, int[{rank}] stride, "
        f"int[{rank}] padding, int[{rank}] dilation, bool ceil_mode, Tensor indices) -> Tensor", meta=meta_backward,
        function=False, method=False, kernel=kernel_backward, out=True,
        grad=dict(grad_output=lambda g, indices: _fetched(g, indices, rank), self=lambda g: zeros_like(g)))
    both = op(
        f"{name}_with_indices(Tensor self, {numbers}) -> (Tensor result0, Tensor result1)", meta=meta, function=False,
        method=False, out=True, nondiff=("result1",),
        grad=dict(self=lambda g, self, kernel_size, stride, padding, dilation, ceil_mode, result1: backward.call(
            (g, self, kernel_size, stride, padding, dilation, ceil_mode, result1))))
    composite(f"{name}(Tensor self, {numbers}) -> Tensor", lambda *args: both.call(args)[0], method=False)


_declare_max(2)
_declare_max(3)
_MAX_2D = registry.get("max_pool2d_with_indices")


def _check_single(kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> None:
    for values, name in ((kernel, "kernel_size"), (stride, "stride"), (padding, "padding"), (dilation, "dilation")):
        if len(values) != 1 and not (name == "stride" and len(values) == 0):
            raise RuntimeError(f"max_pool1d() argument '{name}' should contain one int (got {len(values)})")


Rows = tuple[Ints, Ints, Ints, Ints]


@kept
def check_max_1d(shape: Ints, dt: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints,
                 ceil_mode: bool) -> Rows:
    """The windows as those of images that are one high."""
    n = len(shape)
    if n not in (2, 3) or 0 in shape[n - 2:]:
        raise RuntimeError("max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for "
                           f"input, but got:{list(shape)}")
    _check_single(kernel, stride, padding, dilation)
    k, p, d = kernel[0], padding[0], dilation[0]
    s = stride[0] if stride else k
    for value, name in ((k, "kernel_size"), (s, "stride")):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {value}")
    if p < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {p}")
    if p > k // 2:
        raise RuntimeError("max_pool1d() padding should be at most half of kernel size, but got "
                           f"padding={p} and kernel_size={k}")
    if d <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {d}")
    count = Sliding((k,), (s,), (p,), (d,), ceil_mode).places(shape[-1:])[0]
    if count <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {count}")
    _need_dtype(dt, "max_pool1d_impl", True)
    _check_ints((k, s, p, d))
    return (1, k), (1, s), (0, p), (1, d)


def _max_1d(self: Any, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> Any:
    if len(self._shape) not in (2, 3):
        raise RuntimeError(f"Expected 2 to 3 dimensions, but got {len(self._shape)}-dimensional tensor for argument #1 "
                           "'self' (while checking arguments for max_pool1d)")
    _check_single(kernel_size, stride, padding, dilation)
    out, places = _MAX_2D.call((self.unsqueeze(-2), (1, *kernel_size), (1, *(stride or kernel_size)), (0, *padding),
                                (1, *dilation), ceil_mode))
    return out.squeeze(-2), places.squeeze(-2)


def _max_1d_alone(self: Any, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> Any:
    rows = check_max_1d(self._shape, self._dtype, kernel_size, stride, padding, dilation, ceil_mode)
    return _SQUEEZE.call((_MAX_2D.call((_UNSQUEEZE.call((self, -2)), *rows, ceil_mode))[0], -2))


_ONE = "int[1] kernel_size, int[1] stride=[], int[1] padding=0"
composite(f"max_pool1d_with_indices(Tensor self, {_ONE}, int[1] dilation=1, bool ceil_mode=False) "
          "-> (Tensor, Tensor)", _max_1d, method=False)
composite(f"max_pool1d(Tensor self, {_ONE}, int[1] dilation=1, bool ceil_mode=False) -> Tensor", _max_1d_alone,
          method=False)


# -- means ------------------------------------------------------------------------------------------------------------
def _declare_mean(rank: int) -> None:
    name = f"avg_pool{rank}d"
    last = "bool ceil_mode{}, bool count_include_pad{}, int? divisor_override{}"

    def shape_of(x: Any, kernel_size: Ints, stride: Ints, padding: Ints, ceil_mode: bool, divisor: int | None) -> Ints:
        v = sliding(name, rank, kernel_size, stride, padding, (1,), ceil_mode)
        if divisor == 0:
            raise RuntimeError("divisor must be not zero")
        n = len(x._shape)
        if n < 3 and rank == 2:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{n}, {n - 1}], but got -3)")
        return _pooled(x, v, rank)

    @KeptRule
    def meta(self: Any, kernel_size: Ints, stride: Ints, padding: Ints, ceil_mode: bool, count_include_pad: bool,
             divisor_override: int | None) -> Spec:
        shape = shape_of(self, kernel_size, stride, padding, ceil_mode, divisor_override)
        _need(self, name if rank == 2 else "avg_pool3d_out_frame", "long")
        return _in_format_of_images(self, shape, rank)

    def meta_backward(grad_output: Any, self: Any, kernel_size: Ints, stride: Ints, padding: Ints, ceil_mode: bool,
                      count_include_pad: bool, divisor_override: int | None) -> Spec:
        shape = shape_of(self, kernel_size, stride, padding, ceil_mode, divisor_override)
        if tuple(grad_output._shape) != shape:
            raise RuntimeError(f"{name}_backward: expected grad_output of shape {list(shape)}, got "
                               f"{list(grad_output._shape)}")
        return _in_format_of_images(self, self._shape, rank)

    numbers = f"int[{rank}] kernel_size, int[{rank}] stride{{}}, int[{rank}] padding{{}}, " + last
    backward: Op = op(
        f"{name}_backward(Tensor grad_output, Tensor self, {numbers.format('', '', '', '', '')}) -> Tensor",
        meta=meta_backward, function=False, method=False, out=True,
        grad=dict(grad_output=lambda g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override:
                  forward.call((g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)),
                  self=lambda g: zeros_like(g)))
    forward: Op = op(
        f"{name}(Tensor self, {numbers.format('=[]', '=0', '=False', '=True', '=None')}) -> Tensor", meta=meta,
        function=False, method=False, out=True,
        grad=dict(self=lambda g, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override:
                  backward.call((g, self, kernel_size, stride, padding, ceil_mode, count_include_pad,
                                 divisor_override))))


_declare_mean(2)
_declare_mean(3)
_MEAN_2D = registry.get("avg_pool2d")


def _check_dims(x: Any, name: str, most: int) -> None:
    n = len(x._shape)
    if n < 2 or n > most:
        raise RuntimeError(f"Expected 2 to {most} dimensions, but got {n}-dimensional tensor for argument #1 'self' "
                           f"(while checking arguments for {name})")


@kept
def _rows_of_means(kernel_size: Ints, stride: Ints, padding: Ints) -> tuple[Ints, Ints, Ints]:
    """The windows as those of images that are one high."""
    if len(kernel_size) != 1 or len(stride) > 1 or len(padding) != 1:
        for values, name in ((kernel_size, "kernel_size"), (stride or (1,), "stride"), (padding, "padding")):
            if len(values) != 1:
                raise RuntimeError(f"avg_pool1d() argument '{name}' should contain one int (got {len(values)})")
    return (1, *kernel_size), (1, *(stride or kernel_size)), (0, *padding)


def _avg_1d(self: Any, kernel_size: Ints, stride: Ints, padding: Ints, ceil_mode: bool, count_include_pad: bool) -> Any:
    _check_dims(self, "avg_pool1d", 3)
    rows = _rows_of_means(kernel_size, stride, padding)
    out = _MEAN_2D.call((_UNSQUEEZE.call((self, -2)), *rows, ceil_mode, count_include_pad, None))
    return _SQUEEZE.call((out, -2))


composite(f"avg_pool1d(Tensor self, {_ONE}, bool ceil_mode=False, bool count_include_pad=True) -> Tensor", _avg_1d,
          method=False)


# -- as many windows as results ---------------------------------------------------------------------------------------
# Maxima are refused without channels too.
_WITH_CHANNELS = frozenset(("adaptive_max_pool2d", "adaptive_max_pool3d"))


def _adapted(x: Any, output_size: Ints, name: str, rank: int, colon: str) -> Ints:
    n = len(x._shape)
    if n not in (rank + 1, rank + 2):
        raise RuntimeError(f"{name}(): Expected {rank + 1}D or {rank + 2}D tensor, but got{colon} {list(x._shape)}")
    for i in range(1 if name in _WITH_CHANNELS else n - rank, n):
        if x._shape[i] == 0:
            raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input "
                               f"has sizes {list(x._shape)} with dimension {i} being empty")
    return tuple(x._shape[:n - rank]) + tuple(output_size)


def _in_format_of_images(t: Any, shape: Ints, rank: int, dt: Any = None) -> Spec:
    """Images keep their memory format. Volumes lose it here, though `max_pool3d` keeps it."""
    return in_format_of(t, shape, dt, rank) if rank < 3 else like(t, shape, dt)


def _need_gradient(grad_output: Any, name: str) -> None:
    for i, n in enumerate(grad_output._shape[1:], 1):
        if n == 0:
            raise RuntimeError(f"{name}_backward(): Expected grad_output to have non-zero size for non-batch "
                               f"dimensions, but grad_output has sizes {list(grad_output._shape)} with dimension "
                               f"{i} being empty")


def _negative(sizes: Ints) -> bool:
    for n in sizes:
        if n < 0:
            return True
    return False


def _declare_adaptive_mean(rank: int) -> None:
    mean, ones = f"adaptive_avg_pool{rank}d", (1,) * rank

    @KeptRule
    def mean_meta(self: Any, output_size: Ints) -> Spec:
        if len(output_size) != rank:
            raise RuntimeError(f"{mean}: output_size must be {rank}")
        shape = _adapted(self, output_size, mean, rank, "")
        _need(self, mean, False)
        return _in_format_of_images(self, shape, rank)

    def mean_backward_meta(grad_output: Any, self: Any) -> Spec:
        _need_gradient(grad_output, mean)
        if len(grad_output._shape) != len(self._shape):
            name = "grad_output" if rank == 2 else "gradOutput_"
            raise RuntimeError(f"{mean}_backward_out_cpu_template: Expected dimensions {len(self._shape)} for `{name}` "
                               f"but got dimensions {len(grad_output._shape)}")
        if rank == 2 and len(self._shape) not in (3, 4):
            raise RuntimeError(f"{mean}_backward_out_cpu_template: Expected 3D or 4D tensor, but got "
                               f"{list(self._shape)}")
        for d in range(-rank - 1, 0):
            wrap_dim(d, len(self._shape))
        if grad_output._dtype is not self._dtype:
            raise RuntimeError(f"{mean}_backward_out_cpu_template: Expected dtype {cpp_name(self._dtype)} for "
                               f"`grad_output` but got dtype {cpp_name(grad_output._dtype)}")
        return _in_format_of_images(self, self._shape, rank)

    mean_backward: Op = op(
        f"_{mean}_backward(Tensor grad_output, Tensor self) -> Tensor", meta=mean_backward_meta, function=False,
        method=False,
        grad=dict(grad_output=lambda g, grad_output_shape: forward.call((g, tuple(grad_output_shape[-rank:]))),
                  self=lambda g: zeros_like(g)))
    forward: Op = op(
        f"_{mean}(Tensor self, SymInt[{rank}] output_size) -> Tensor", meta=mean_meta, method=False,
        grad=dict(self=lambda g, self: mean_backward.call((g, self))))

    def adaptive_mean(self: Any, output_size: Ints) -> Any:
        if len(output_size) != rank:
            raise RuntimeError(f"{mean}: output_size must be {rank}")
        if _negative(output_size):
            raise RuntimeError(f"{mean}: elements of output_size must be greater than or equal to 0 but received "
                               # PyTorch's text lacks the space before the third.
                               f"{{{', '.join(map(str, output_size[:2]))}{''.join(f',{s}' for s in output_size[2:])}}}")
        if output_size == ones and len(self._shape) >= rank and 0 not in self._shape[-rank:]:
            _need(self, mean, False)
            _adapted(self, output_size, mean, rank, "")
            out = self.mean(tuple(range(-rank, 0)), True)
            if len(self._shape) == rank + 2 and suggested_format(self) is not None:
                n, c = out._shape[:2]
                out.as_strided_((n, c, *(1,) * rank), (c, 1, *(c,) * rank))
            return out
        return forward.call((self, tuple(output_size)))

    composite(f"{mean}(Tensor self, SymInt[{rank}] output_size) -> Tensor", adaptive_mean, function=False, method=False,
              out=True)


def _declare_adaptive_max(rank: int) -> None:
    largest = f"adaptive_max_pool{rank}d"

    @KeptRule
    def max_meta(self: Any, output_size: Ints) -> list[Spec]:
        if len(output_size) == 1:
            output_size = tuple(output_size) * rank
        if len(output_size) != rank:
            raise RuntimeError(f"{largest}(): internal error: output_size.size() must be {rank}")
        shape = _adapted(self, output_size, largest, rank, ":")
        if any(s < 0 for s in output_size):
            raise RuntimeError(f"Trying to create tensor with negative dimension {min(output_size)}: {list(shape)}")
        _need(self, largest, False)
        return [_in_format_of_images(self, shape, rank), _in_format_of_images(self, shape, rank, int64)]

    def max_backward_meta(grad_output: Any, self: Any, indices: Any) -> Spec:
        _need_gradient(grad_output, largest)
        if tuple(grad_output._shape) != tuple(indices._shape):
            name = "grad_output" if rank == 2 else "gradOutput"
            raise RuntimeError(f"expected sizes {list(indices._shape)} for `{name}` but got sizes "
                               f"{list(grad_output._shape)}")
        return _in_format_of_images(self, self._shape, rank)

    max_backward: Op = op(
        f"{largest}_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor", meta=max_backward_meta,
        function=False, method=False, out=True,
        kernel=lambda grad_output, self, indices: sent(grad_output, self, indices, rank),
        grad=dict(grad_output=lambda g, indices: _fetched(g, indices, rank), self=lambda g: zeros_like(g)))
    op(f"{largest}(Tensor self, int[{rank}] output_size) -> (Tensor result0, Tensor result1)", meta=max_meta,
       function=False, method=False, out=True, nondiff=("result1",),
       grad=dict(self=lambda g, self, result1: max_backward.call((g, self, result1))))


for _rank in (2, 3):
    _declare_adaptive_mean(_rank)
    _declare_adaptive_max(_rank)
_ADAPTIVE_MEAN = registry.get("adaptive_avg_pool2d")
_ADAPTIVE_MAX = registry.get("adaptive_max_pool2d")


def _one_size(output_size: Ints, name: str) -> None:
    if len(output_size) != 1:
        raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(output_size)})")


def _adaptive_avg_1d(self: Any, output_size: Ints) -> Any:
    _check_dims(self, "adaptive_avg_pool1d", 3)
    _one_size(output_size, "adaptive_avg_pool1d")
    return _SQUEEZE.call((_ADAPTIVE_MEAN.call((_UNSQUEEZE.call((self, -2)), (1, *output_size))), -2))


def _adaptive_max_1d(self: Any, output_size: Ints) -> Any:
    _check_dims(self, "adaptive_max_pool1d", 3)
    _one_size(output_size, "adaptive_max_pool1d")
    for i, n in enumerate(self._shape):
        if i > 0 and n == 0:
            raise RuntimeError("adaptive_max_pool1d(): Expected input to have non-zero size for non-batch dimensions, "
                               f"but input has sizes {list(self._shape)} with dimension {i} being empty")
    out, places = _ADAPTIVE_MAX.call((_UNSQUEEZE.call((self, -2)), (1, *output_size)))
    return _SQUEEZE.call((out, -2)), _SQUEEZE.call((places, -2))


composite("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", _adaptive_avg_1d, method=False)
composite("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)", _adaptive_max_1d, method=False)


# -- back to the places -----------------------------------------------------------------------------------------------
def _check_unpool_steps(stride: Ints, padding: Ints) -> None:
    for name, given in (("stride", stride), ("padding", padding)):
        if len(given) != 3:
            raise RuntimeError(f"There should be exactly three elements (depth, height, width) in {name}, but got: "
                               f"{len(given)} elements.")
    if min(stride) <= 0:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(stride)}")


def _declare_unpool(rank: int) -> None:
    name = f"max_unpool{rank}d"
    more = ", int[3] stride, int[3] padding" if rank == 3 else ""

    def meta(self: Any, indices: Any, output_size: Ints, *rest: Ints) -> Spec:
        if indices._dtype is not int64:
            raise RuntimeError(f"elements in indices should be type int64 but got: {indices._dtype.scalar_name}")
        n = len(self._shape)
        if n not in (rank + 1, rank + 2):
            raise RuntimeError(f"Input to max_unpooling{rank}d should be a {rank + 1}d or {rank + 2}d Tensor, but got "
                               f"a tensor with {n} dimensions.")
        if len(output_size) != rank:
            sides = "height, width" if rank == 2 else "depth, height, width"
            raise RuntimeError(f"There should be exactly {_COUNT[rank]} elements ({sides}) in output_size, but got "
                               f"{len(output_size)} elements.")
        if min(output_size) < 0 and 0 not in self._shape:
            raise RuntimeError(f"max_unpooling{rank}d(): output_size must contain non-negative spatial dimensions, but "
                               f"got output_size=({', '.join(map(str, output_size))})")
        if rank == 3:
            _check_unpool_steps(*rest)
        if self._shape != indices._shape:
            raise RuntimeError(f"Expected shape of indices to be same as that of the input tensor "
                               f"({list(self._shape)}) but got indices tensor with shape: {list(indices._shape)}")
        for i in range(1 if n == rank + 2 else 0, n):
            if self._shape[i] == 0:
                raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got "
                                   f"{list(self._shape)} with dimension {i} being empty.")
        alert(f"max_unpooling{rank}d_forward_out", self)
        shape = tuple(self._shape[:n - rank]) + tuple(output_size)
        return like(self, shape) if self._device.type == "meta" else in_format_of(self, shape, rank=rank)

    def kernel(self: Any, indices: Any, output_size: Ints, *rest: Ints) -> Any:
        shape = tuple(self._shape[:len(self._shape) - rank]) + tuple(output_size)
        if 0 in self._shape:
            return self.new_zeros(shape)
        places, volume = _flat(indices, rank), math.prod(output_size)
        wrong = places[(places < 0).logical_or(places >= volume)]
        if wrong.numel():
            raise RuntimeError(f"Found an invalid max index: {int(wrong[0])} (output volumes are of size "
                               f"{'x'.join(map(str, output_size))})")
        flat = self.new_zeros((*self._shape[:len(self._shape) - rank], volume))
        return in_format(flat.scatter(-1, places, _flat(self, rank)).reshape(shape), self, rank)

    op(f"{name}(Tensor self, Tensor indices, SymInt[{rank}] output_size{more}) -> Tensor", meta=meta, kernel=kernel,
       function=False, method=False, out=True, grad=dict(self=lambda g, indices: _fetched(g, indices, rank)))


_declare_unpool(2)
_declare_unpool(3)
