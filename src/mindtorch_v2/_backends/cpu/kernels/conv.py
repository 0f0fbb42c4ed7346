"""Launches of convolutions: the native kernel for floats; columns (im2col) times weights for what it does not take.

Invariant: a transposed convolution is the gradient of a plain one with respect to its input, and is computed as that;
columns are made for as many images at a time as fit `_COLUMNS` bytes.
"""
from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._dtype import complex128, dtype
from ...._sizes import numel_of
from ...._tensor_base import TensorBase
from ..numpy_view import np_view
from . import conv_last
from .dense import deliver, dense, dense_as, fresh, is_last, operand, target, triple, wide_dtype

Ints = tuple[int, ...]
_COLUMNS: Final = 1 << 25
_conv: Final[Any] = _native.conv
_conv_input: Final[Any] = _native.conv_input
_conv_weight: Final[Any] = _native.conv_weight
_bgemm: Final[Any] = _native.bgemm
_im2col: Final[Any] = _native.im2col
_col2im: Final[Any] = _native.col2im
_plane_sums: Final[Any] = _native.plane_sums
_NONE: Final[tuple[Any, int, int]] = (None, 0, 0)
_HALVES: Final = ("bfloat16", "float16")
_FLOATS: Final = ("float32", "float64", *_HALVES)


@final
class Window:
    """The geometry of a plain convolution from `inner` to `outer` places; all of length three."""

    def __init__(self, inner: Ints, outer: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints,
                 groups: int) -> None:
        self.inner: Final = inner
        self.outer: Final = outer
        self.kernel: Final = kernel
        self.stride: Final = stride
        self.padding: Final = padding
        self.dilation: Final = dilation
        self.groups: Final = groups
        # Whether the columns are the planes themselves.
        self.pointwise: Final = kernel == (1, 1, 1) and stride == (1, 1, 1) and padding == (0, 0, 0)
        # Whether there is one place, whose kernel covers its whole image: images are rows of one product.
        self.covers: Final = (outer == (1, 1, 1) and inner == kernel and padding == (0, 0, 0) and groups == 1
                              and inner != (1, 1, 1))

    def geometry(self) -> tuple[Ints, ...]:
        """What the native kernels are told of it."""
        return self.inner, self.outer, self.kernel, self.stride, self.padding, self.dilation


def _size(values: Ints) -> int:
    return values[0] * values[1] * values[2]


# Layers ask for the same geometry again and again.
_WINDOWS: Final[dict[Any, Window]] = {}
_MOST: Final = 512


@final
class Last:
    """What was asked last, which most often is asked again, and the answer behind it."""

    def __init__(self) -> None:
        self.parts: tuple[Any, ...] = ()


_LAST: Final = Last()


def window(large: Ints, small: Ints, weight: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Window:
    """The geometry between two shapes of images: `large` is what a plain convolution reads, `small` what it gives."""
    last = _LAST.parts
    if (
        len(last) == 8
        and large is last[0]
        and small is last[1]
        and weight is last[2]
        and stride is last[3]
        and padding is last[4]
        and dilation is last[5]
        and groups == last[6]
    ):
        kept: Window = last[7]
        return kept
    inner, outer, kernel = large[2:], small[2:], weight[2:]
    key = (inner, outer, kernel, stride, padding, dilation, groups)
    found = _WINDOWS.get(key)
    if found is None:
        found = Window(triple(inner, 1), triple(outer, 1), triple(kernel, 1), triple(stride, 1), triple(padding, 0),
                       triple(dilation, 1), groups)
        if len(_WINDOWS) >= _MOST:
            _WINDOWS.clear()
        _WINDOWS[key] = found
    _LAST.parts = (large, small, weight, stride, padding, dilation, groups, found)
    return found


def _columns(x: TensorBase, first: int, images: int, v: Window, buffer: Any) -> tuple[Any, int]:
    """Storage and offset of (images, channels * kernel places, out places)."""
    channels = x._shape[1]
    storage, offset, code = operand(x)
    start = offset + first * channels * _size(v.inner)
    if v.pointwise:
        return storage, start
    _im2col(storage, start, code, *operand(buffer), images, channels, *v.geometry())
    return buffer._storage, 0


def _chunk(channels: int, images: int, v: Window, itemsize: int) -> int:
    per = max(1, channels * _size(v.kernel) * _size(v.outer) * itemsize)
    return max(1, min(images, _COLUMNS // per))


def _room(channels: int, images: int, v: Window, like: TensorBase) -> Any:
    """Memory for the columns of so many images; none if the planes are the columns."""
    return None if v.pointwise else fresh((images * channels * _size(v.kernel) * _size(v.outer),), like._dtype)


def _sizes(weight: TensorBase, v: Window) -> tuple[int, int, int]:
    """The matrices of one group, results by columns and columns by places: results, columns, places."""
    return (weight._shape[0] // v.groups, weight._shape[1] * _size(v.kernel), _size(v.outer))


def _spread(images: int, groups: int) -> list[tuple[int, int, int]]:
    """(image, batch, whether the batch runs over images): one group has the same weight for every image."""
    return [(0, images, 1)] if groups == 1 else [(n, groups, 0) for n in range(images)]


def _direct(kernel: Any, a: TensorBase, b: TensorBase, bias: Any, out: TensorBase, weight: TensorBase,
            v: Window) -> bool:
    """Whether the native kernel computed it: floats, in proportions that it takes. One that only multiplies planes
    is left to a product of matrices, which reads them where they are."""
    if a._dtype.name not in _FLOATS or (
            v.pointwise and bias is None and v.groups == 1 and (a._dtype.itemsize > 2 or kernel is not _conv_weight)):
        return False
    given = _NONE if bias is None else operand(bias)
    return bool(kernel(
        a._storage, int(a._offset), a._dtype.code,
        b._storage, int(b._offset), b._dtype.code,
        given[0], given[1], given[2],
        out._storage, int(out._offset), out._dtype.code,
        a._shape[0], v.groups, weight._shape[1], weight._shape[0] // v.groups,
        v.inner, v.outer, v.kernel, v.stride, v.padding, v.dilation))


def _cover(a: TensorBase, b: TensorBase, out: TensorBase, sizes: Ints, turned: tuple[bool, bool]) -> None:
    """out = a @ b of so many rows, columns and terms; what is `turned` lies by columns."""
    m, n, k = sizes
    a_steps = (0, 1, m) if turned[0] else (0, k, 1)
    b_steps = (0, 1, k) if turned[1] else (0, n, 1)
    x, x_at, code = operand(a)
    y, y_at, _ = operand(b)
    z, z_at, _ = operand(out)
    _bgemm(x, x_at, a_steps, y, y_at, b_steps, z, z_at, (0, n, 1), code, 1, m, n, k, 1, 0)


def _add_bias(out: TensorBase, bias: Any) -> None:
    if bias is not None:
        values = np_view(out)
        values += np_view(bias).reshape((1, -1) + (1,) * (values.ndim - 2))


def _forward(x: TensorBase, weight: TensorBase, bias: Any, out: TensorBase, v: Window) -> None:
    """out = the convolution; all dense in one dtype."""
    if v.covers and x._dtype.is_inexact:
        m, k, _ = _sizes(weight, v)
        _cover(x, weight, out, (x._shape[0], m, k), (False, True))
        _add_bias(out, bias)
        return
    if _direct(_conv, x, weight, bias, out, weight, v):
        return
    images, channels = x._shape[:2]
    m, k, n = _sizes(weight, v)
    w, w_at, code = operand(weight)
    y, y_at, _ = operand(out)
    step = _chunk(channels, images, v, x._dtype.itemsize)
    buffer = _room(channels, step, v, x)
    for first in range(0, images, step):
        columns, at = _columns(x, first, min(step, images - first), v, buffer)
        for image, batch, over_images in _spread(min(step, images - first), v.groups):
            _bgemm(w, w_at, (0 if over_images else m * k, k, 1),
                          columns, at + image * v.groups * k * n, (k * n, n, 1),
                          y, y_at + (first + image) * v.groups * m * n, (m * n, n, 1), code, batch, m, n, k, 1, 0)
    _add_bias(out, bias)


def _input_gradient(grad: TensorBase, weight: TensorBase, bias: Any, out: TensorBase, v: Window) -> None:
    """out = what the places of the input received."""
    if v.covers and grad._dtype.is_inexact:
        m, k, _ = _sizes(weight, v)
        _cover(grad, weight, out, (grad._shape[0], k, m), (False, False))
        _add_bias(out, bias)
        return
    if _direct(_conv_input, grad, weight, bias, out, weight, v):
        return
    images, channels = out._shape[:2]
    m, k, n = _sizes(weight, v)
    w, w_at, code = operand(weight)
    g, g_at, _ = operand(grad)
    x, x_at, _ = operand(out)
    step = _chunk(channels, images, v, grad._dtype.itemsize)
    buffer = _room(channels, step, v, grad)
    for first in range(0, images, step):
        count = min(step, images - first)
        start = x_at + first * channels * _size(v.inner)
        columns, at = (x, start) if buffer is None else (buffer._storage, 0)
        for image, batch, over_images in _spread(count, v.groups):
            _bgemm(w, w_at, (0 if over_images else m * k, 1, k),
                          g, g_at + (first + image) * v.groups * m * n, (m * n, n, 1),
                          columns, at + image * v.groups * k * n, (k * n, n, 1), code, batch, k, n, m, 1, 0)
        if buffer is not None:
            _col2im(*operand(buffer), x, start, code, count, channels, *v.geometry())
    _add_bias(out, bias)


def _weight_gradient(grad: TensorBase, x: TensorBase, out: TensorBase, v: Window) -> None:
    if v.covers:
        m, k, _ = _sizes(out, v)
        _cover(grad, x, out, (m, k, grad._shape[0]), (True, False))
        return
    if _direct(_conv_weight, grad, x, None, out, out, v):
        return
    images, channels = x._shape[:2]
    m, k, n = _sizes(out, v)
    w, w_at, code = operand(out)
    g, g_at, _ = operand(grad)
    step = _chunk(channels, images, v, x._dtype.itemsize)
    buffer = _room(channels, step, v, x)
    for first in range(0, images, step):
        columns, at = _columns(x, first, min(step, images - first), v, buffer)
        for image in range(min(step, images - first)):
            _bgemm(g, g_at + (first + image) * v.groups * m * n, (m * n, n, 1),
                          columns, at + image * v.groups * k * n, (k * n, 1, n),
                          w, w_at, (m * k, k, 1), code, v.groups, m, k, n, 1, 0 if first + image == 0 else 1)


def _compute_dtype(dt: dtype) -> dtype:
    """Products of complex matrices are plain sums, which want more digits than complex64 has."""
    return complex128 if dt.is_complex else wide_dtype(dt)


def _conjugate(t: TensorBase) -> TensorBase:
    if not t._dtype.is_complex:
        return t
    import numpy

    out = fresh(t._shape, t._dtype)
    numpy.conjugate(np_view(t), out=np_view(out))
    return out


def _halves_forward(out: TensorBase, input: TensorBase, weight: TensorBase, bias: Any, stride: Ints, padding: Ints,
                    dilation: Ints, transposed: bool, groups: int) -> bool:
    """Whether planes of two-byte floats were computed as they lie, without a wide copy of all of them."""
    if 0 in input._shape or 0 in weight._shape or 0 in out._shape:
        return False
    dt = input._dtype
    x, w, y = dense(input), dense_as(weight, dt), target(out, dt)
    b = None if bias is None else dense_as(bias, dt)
    small, large = (x, y) if transposed else (y, x)
    v = window(large._shape, small._shape, w._shape, stride, padding, dilation, groups)
    if v.covers and b is None:
        (_input_gradient if transposed else _forward)(x, w, None, y, v)
    elif conv_last.by_way_of(x, w, b, y, v, transposed):
        pass
    elif v.pointwise and b is None and groups == 1:
        (_input_gradient if transposed else _forward)(x, w, None, y, v)
    elif not _direct(_conv_input if transposed else _conv, x, w, b, y, w, v):
        return False
    deliver(out, y)
    return True


def _halves_gradient(kernel: Any, a: TensorBase, b: TensorBase, out: TensorBase, weight: TensorBase, v: Window) -> bool:
    """The same of a gradient."""
    y = target(out, a._dtype)
    if v.covers:
        if kernel is _conv_weight:
            _weight_gradient(a, b, y, v)
        else:
            (_forward if kernel is _conv else _input_gradient)(a, b, None, y, v)
    elif kernel is not _conv_weight and conv_last.by_way_of(a, b, None, y, v, kernel is _conv_input):
        pass
    elif v.pointwise and v.groups == 1 and kernel is not _conv_weight:
        (_forward if kernel is _conv else _input_gradient)(a, b, None, y, v)
    elif not _direct(kernel, a, b, None, y, weight, v):
        return False
    deliver(out, y)
    return True


def convolution(out: Any, input: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints,
                 transposed: bool, output_padding: Ints, groups: int) -> None:
    dt = _compute_dtype(input._dtype)
    if not transposed and is_last(input) and conv_last.forward(
            out, input, weight, bias, window(input._shape, out._shape, weight._shape, stride, padding,
                                             dilation, groups)):
        return
    if input._dtype.itemsize == 2 and _halves_forward(out, input, weight, bias, stride, padding, dilation, transposed,
                                                       groups):
        return
    x, w, y = dense_as(input, dt), dense_as(weight, dt), target(out, dt)
    b = None if bias is None else dense_as(bias, dt)
    if 0 not in y._shape:
        small, large = (x, y) if transposed else (y, x)
        v = window(large._shape, small._shape, w._shape, stride, padding, dilation, groups)
        if 0 in x._shape or 0 in w._shape:
            np_view(y)[...] = 0
            _add_bias(y, b)
        elif transposed:
            _input_gradient(x, w, b, y, v)
        else:
            _forward(x, w, b, y, v)
    deliver(out, y)


def convolution_backward(outs: Any, grad_output: Any, input: Any, weight: Any, bias_sizes: Any, stride: Ints,
                          padding: Ints, dilation: Ints, transposed: bool, output_padding: Ints, groups: int,
                          output_mask: Any) -> None:
    dt = _compute_dtype(input._dtype)
    small, large = (input, grad_output) if transposed else (grad_output, input)
    v = window(large._shape, small._shape, weight._shape, stride, padding, dilation, groups)
    if not transposed and is_last(input):
        if conv_last.backward(outs, grad_output, input, weight, v, output_mask):
            return
        if output_mask[0] and conv_last.input_gradient(outs[0], grad_output, input, weight, v):
            output_mask = (False, output_mask[1], output_mask[2])
    nothing = 0 in grad_output._shape or 0 in input._shape or 0 in weight._shape
    if input._dtype.itemsize == 2 and not nothing:
        half = input._dtype
        gh, xh, wh = dense_as(grad_output, half), dense(input), dense_as(weight, half)
        a, b = (xh, gh) if transposed else (gh, xh)
        output_mask = (
            output_mask[0] and not _halves_gradient(_conv if transposed else _conv_input, gh, wh, outs[0], wh, v),
            output_mask[1] and not _halves_gradient(_conv_weight, a, b, outs[1], outs[1], v), output_mask[2])
        if not output_mask[0] and not output_mask[1] and not output_mask[2]:
            return
    g, x, w = dense_as(grad_output, dt), input, weight
    if output_mask[0] or output_mask[1]:
        x, w = dense_as(input, dt), dense_as(weight, dt)
    if output_mask[0]:
        y = target(outs[0], dt)
        if nothing:
            np_view(y)[...] = 0
        elif transposed:
            _forward(g, _conjugate(w), None, y, v)
        else:
            _input_gradient(g, _conjugate(w), None, y, v)
        deliver(outs[0], y)
    if output_mask[1]:
        y = target(outs[1], dt)
        if nothing:
            np_view(y)[...] = 0
        elif transposed:
            _weight_gradient(_conjugate(x), g, y, v)
        else:
            _weight_gradient(g, _conjugate(x), y, v)
        deliver(outs[1], y)
    if output_mask[2]:
        y = target(outs[2], dt)
        if 0 in g._shape:
            np_view(y)[...] = 0
        elif dt.name in ("float32", "float64"):
            _plane_sums(*operand(g), *operand(y), g._shape[0], g._shape[1], int(numel_of(g._shape[2:])))
        else:
            values = np_view(g)
            np_view(y)[...] = values.sum(axis=(0, *range(2, values.ndim)))
        deliver(outs[2], y)
