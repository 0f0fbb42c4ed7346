"""Kernels that move values: copies within a device and between devices, casts, and filling. They need nothing of a
device but its runtime, so every device has them.

Invariant: what is written has the shape its rule agreed to; memory of a device is touched only through that device's
runtime, and between two devices only through a registered transfer.
"""

from __future__ import annotations

from typing import Any, Final, final

from ... import _native
from ..._device import CPU as CPU_DEVICE
from ..._dispatch.keys import BACKENDS, CPU, LAZY, META
from ..._dispatch.op import Kernel, Op, Spec
from ..._mypyc import i64
from ..._ops.rules.layout import expand_strides
from ..._ops.rules.pointwise import broadcast_shapes
from ..._ops.rules.shape import check_copy, check_fill, check_value, skipped
from ..._strides import contiguous_strides, extent, may_overlap
from ..._tensor_base import LAZY_CLONES, TensorBase, alias, bump, is_contiguous, numel, own_memory
from ..._warn import warn, warn_once
from .kernels import resize
from .lazy import apply, bare, differing, fill_from
from .overlap import COPIES, FILLS, check_no_internal_overlap, check_write, is_dense
from .pinning import empty_pinned
from .runtime import empty, empty_spec, runtime_of

_Storage: Final[Any] = _native.Storage

# Transfers between two devices by (destination bit << 8 | source bit): functions of two tensors whose elements lie
# without gaps in the same order and have the same dtype, and of whether the copy may be late: still running when the
# function returns.
TRANSFERS: Final[dict[int, Any]] = {}


def add_transfer(to: int, source: int, fn: Any) -> None:
    """A device registers how raw memory comes to it and leaves it."""
    TRANSFERS[(to << 8) | source] = fn


def backend_of(t: TensorBase) -> i64:
    return t._keys & BACKENDS


def move(dst: TensorBase, src: TensorBase, non_blocking: bool) -> None:
    """Copy values into `dst`, casting and broadcasting, whatever the two devices are."""
    if src._dtype is not dst._dtype:
        note_lost_parts(dst, src)
    to = backend_of(dst)
    source = backend_of(src)
    if to == source and (dst._device is src._device or dst._device == src._device):
        runtime_of(dst).copy(dst, src)
    elif to == META:
        return
    elif source == META:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    else:
        between(dst, src, to, source, non_blocking)


def note_lost_parts(dst: TensorBase, src: TensorBase) -> None:
    """Complex numbers that become real ones; whether they are zero needs both parts."""
    if src._dtype.is_complex and not dst._dtype.is_complex and not dst._dtype.is_bool:
        if numel(dst) > 0 and backend_of(dst) != META and backend_of(src) != META:
            warn_once("Casting complex values to real discards the imaginary part")


def between(dst: TensorBase, src: TensorBase, to: i64, source: i64, non_blocking: bool) -> None:
    """Cast on the source's side, move raw memory, spread on the destination's side."""
    fn = TRANSFERS.get(int((to << 8) | source))
    if fn is None:
        raise RuntimeError(f"no transfer is registered from device '{src._device}' to device '{dst._device}'")
    if src._dtype is dst._dtype and src._shape == dst._shape and src._stride == dst._stride and is_dense(src):
        fn(dst, src, non_blocking)
        return
    packed = src
    if not is_contiguous(src) or src._dtype is not dst._dtype:
        packed = empty(src._shape, contiguous_strides(src._shape), dst._dtype, src._device)
        runtime_of(src).copy(packed, src)
    if is_contiguous(dst) and dst._shape == src._shape:
        fn(dst, packed, non_blocking)
        return
    landed = empty(packed._shape, packed._stride, dst._dtype, dst._device)
    # The CPU goes on with what landed at once; other devices do so in the order of their streams.
    fn(landed, packed, non_blocking and to != CPU)
    spread = alias(landed, dst._shape, expand_strides(landed, dst._shape), 0)
    runtime_of(dst).copy(dst, spread)


def put(out: TensorBase, value: Any, non_blocking: bool) -> None:
    """Write a tensor's values, or a number everywhere."""
    if isinstance(value, TensorBase):
        if value is not out:
            move(out, value, non_blocking)
    else:
        runtime_of(out).fill(out, value)


@final
class CloneKernel(Kernel):
    """A copy with the layout its rule chose."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        s = op.infer(args)
        assert isinstance(s, Spec)
        out = empty_spec(s)
        if src._keys & LAZY:
            if not fill_from(out, src, s):
                runtime_of(out).copy(out, bare(src))
                apply(out, src._keys & LAZY)
            return out
        runtime_of(out).copy(out, src)
        return out


@final
class LazyCloneKernel(Kernel):
    """A copy that is made by the first write to either tensor; at once where the memory cannot be shared."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        storage = src._storage
        shared: Any = storage.lazy_clone() if isinstance(storage, _Storage) else None
        if shared is None:
            s = op.infer(args)
            assert isinstance(s, Spec)
            out = empty_spec(s)
            runtime_of(out).copy(out, src)
            return out
        LAZY_CLONES.made = True
        lazy = alias(src, src._shape, src._stride, src._offset)
        lazy._storage = shared
        lazy._vc = None
        return lazy


@final
class ToCopyKernel(Kernel):
    """A copy of another dtype, on another device, or in another memory format."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        s = op.infer(args)
        assert isinstance(s, Spec)
        if backend_of(src) == META and s.device.type != "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        late: bool = args[4]
        if late and s.device is CPU_DEVICE and backend_of(src) != CPU:
            # Only page-locked memory can be written later.
            out = empty_pinned(s)
        else:
            out = empty_spec(s)
        move(out, src, late)
        return out


@final
class CopyKernel(Kernel):
    """copy and, through `into`, copy_."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = op.infer(args)
        assert isinstance(s, Spec)
        out = empty_spec(s)
        put(out, args[1], args[2])
        return out

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        put(out, args[1], args[2])
        return True


@final
class FillKernel(Kernel):
    """fill and zero, and their in-place forms through `into`."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = op.infer(args)
        assert isinstance(s, Spec)
        out = empty_spec(s)
        put(out, args[1] if len(args) > 1 else 0, False)
        return out

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        put(out, args[1] if len(args) > 1 else 0, False)
        return True


@final
class FillInplaceKernel(Kernel):
    """fill_ and zero_: nothing to shape, so the rule is not asked; writing a place twice does no harm."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        target = args[0]
        assert isinstance(target, TensorBase)
        check_write(FILLS, target, args)
        if len(args) == 1:
            runtime_of(target).fill(target, 0)
        else:
            value = args[1]
            if isinstance(value, TensorBase):
                check_fill(value)
            else:
                check_value(value, target._dtype)
            put(target, value, False)
        bump(target)
        return target


@final
class CopyInplaceKernel(Kernel):
    """copy_: any dtype goes into any other."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        target = args[0]
        src = args[1]
        assert isinstance(target, TensorBase)
        check_write(COPIES, target, args)
        if isinstance(src, TensorBase) and src._shape != target._shape:
            check_copy(target._shape, src._shape)
        if target._keys & LAZY or (isinstance(src, TensorBase) and src._keys & LAZY):
            plain, lazy = differing(target, src)
            place = bare(target)
            put(place, plain, args[2])
            apply(place, lazy)
        else:
            put(target, src, args[2])
        bump(target)
        return target


@final
class CreateKernel(Kernel):
    """New tensors filled with one number: `value`, or the argument at position `at`; None leaves the memory as is."""

    def __init__(self, value: Any, at: int) -> None:
        self.value: Final[Any] = value
        self.at: Final = at

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = op.infer(args)
        assert isinstance(s, Spec)
        out = empty_spec(s)
        value = args[self.at] if self.at >= 0 else self.value
        if value is not None:
            runtime_of(out).fill(out, value)
        return out

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        value = args[self.at] if self.at >= 0 else self.value
        if value is not None:
            runtime_of(out).fill(out, value)
        return True


@final
class CreateOutKernel(Kernel):
    """`out=` of a factory: dtype and device are those of `out`, and may be named only if they agree.

    sequence: an `out` with the right number of elements keeps its shape. warns: so says a warning when it is resized.
    """

    def __init__(self, at: int, sequence: bool = False, warns: bool = False) -> None:
        self.at: Final = at
        self.sequence: Final = sequence
        self.warns: Final = warns

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        func = op.functional
        out = args[len(args) - 1]
        assert func is not None and isinstance(out, TensorBase)
        plain = list(args[: len(args) - 1])
        dt = plain[self.at]
        if dt is not None and dt is not out._dtype:
            raise RuntimeError(
                f"dtype {dt.scalar_name} does not match dtype of out parameter ({out._dtype.scalar_name})"
            )
        dev = plain[self.at + 2]
        if dev is not None and (dev.type != out._device.type or (dev.index is not None and dev != out._device)):
            raise RuntimeError(f"device {dev} does not match device of out parameter ({out._device})")
        own_memory(out)
        plain[self.at] = out._dtype
        plain[self.at + 2] = out._device
        given = tuple(plain)
        spec = func.infer(given)
        assert isinstance(spec, Spec)
        kernel = func.below(backend_of(out), given)
        if self.sequence and out._shape != spec.shape and numel(out) == spec.shape[0]:
            check_no_internal_overlap(out)
            made = kernel.run(func, given, backend_of(out))
            runtime_of(out).copy(out, alias(made, out._shape, contiguous_strides(out._shape), made._offset))
            bump(out)
            return out
        if out._shape != spec.shape:
            if self.warns and numel(out) != 0:
                warn(
                    f"The number of elements in the out tensor of shape {list(out._shape)} is {numel(out)} which does "
                    f"not match the computed number of elements {spec.shape[0]}. Note that this may occur as a result "
                    f"of rounding error. The out tensor will be resized to a tensor of shape ({spec.shape[0]},)."
                )
            resize(out, spec.shape, spec.stride)
        check_no_internal_overlap(out)
        if not kernel.into(func, given, spec, out):
            runtime_of(out).copy(out, kernel.run(func, given, backend_of(out)))
        bump(out)
        return out


@final
class ScatterKernel(Kernel):
    """Backward of a view: zeros of the input's shape with the gradient written where the view lies.

    `layout` is the view's own layout function; the row's arguments are (grad, input sizes, the view's arguments...).
    """

    def __init__(self, layout: Any) -> None:
        self.layout: Final[Any] = layout

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        g = args[0]
        assert isinstance(g, TensorBase)
        s = op.infer(args)
        assert isinstance(s, Spec)
        out = empty_spec(s)
        device_runtime = runtime_of(out)
        device_runtime.fill(out, 0)
        where = self.layout(s.shape, s.stride, 0, *args[2:])
        place = alias(out, where[0], where[1], where[2])
        if g._shape != place._shape and broadcast_shapes(place._shape, g._shape) != place._shape:
            raise RuntimeError(
                f"output with shape {list(place._shape)} doesn't match the broadcast shape "
                f"{list(broadcast_shapes(place._shape, g._shape))}"
            )
        device_runtime.copy(place, g)
        return out


@final
class EmbedKernel(Kernel):
    """Zeros with the input written where a view of the result lies; the arguments are (self, the view's own...)."""

    def __init__(self, layout: Any) -> None:
        self.layout: Final[Any] = layout

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        s = op.infer(args)
        assert isinstance(s, Spec)
        out = empty_spec(s)
        device_runtime = runtime_of(out)
        device_runtime.fill(out, 0)
        where = self.layout(s.shape, s.stride, 0, *args[1:])
        device_runtime.copy(alias(out, where[0], where[1], where[2]), t)
        return out


@final
class RepeatKernel(Kernel):
    """Each dimension of the result is seen as (copies, elements); the input does not move along the copies."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        repeats: tuple[int, ...] = args[1]
        s = op.infer(args)
        assert isinstance(s, Spec)
        out = empty_spec(s)
        lead = len(repeats) - len(t._shape)
        shape: list[int] = []
        target: list[int] = []
        source: list[int] = []
        for i, r in enumerate(repeats):
            n = 1 if i < lead else t._shape[i - lead]
            shape.append(r)
            target.append(s.stride[i] * n)
            source.append(0)
            shape.append(n)
            target.append(s.stride[i])
            source.append(0 if i < lead else t._stride[i - lead])
        both = tuple(shape)
        runtime_of(out).copy(alias(out, both, tuple(target), 0), alias(t, both, tuple(source), t._offset))
        return out


@final
class PadKernel(Kernel):
    """constant_pad_nd(self, pad, value): negative padding cuts."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        pad: tuple[int, ...] = args[1]
        s = op.infer(args)
        assert isinstance(s, Spec)
        out = empty_spec(s)
        surround(out, t, pad, args[2])
        return out


def surround(out: TensorBase, t: TensorBase, pad: tuple[int, ...], value: Any) -> None:
    """Fills `out` with a number and copies what is left of `t` to its place there."""
    device_runtime = runtime_of(out)
    device_runtime.fill(out, value)
    n = len(t._shape)
    kept = list(t._shape)
    source = t._offset
    target: i64 = 0
    for k in range(len(pad) // 2):
        d = n - 1 - k
        before, after = pad[2 * k], pad[2 * k + 1]
        if before < 0:
            source += -before * t._stride[d]
        else:
            target += before * out._stride[d]
        kept[d] += min(before, 0) + min(after, 0)
    shape = tuple(kept)
    device_runtime.copy(alias(out, shape, out._stride, target), alias(t, shape, t._stride, source))


@final
class JoinKernel(Kernel):
    """cat, and stack when `new_dim`: every tensor is copied to its place in the result."""

    def __init__(self, new_dim: bool) -> None:
        self.new_dim: Final = new_dim

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = op.infer(args)
        assert isinstance(s, Spec)
        out = empty_spec(s)
        self.place(out, args)
        return out

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        for t in args[0]:
            if t._storage is out._storage:
                return False
        self.place(out, args)
        return True

    def place(self, out: TensorBase, args: tuple[Any, ...]) -> None:
        n = len(out._shape)
        dim: i64 = args[1]
        if dim < 0:
            dim += n
        step: i64 = out._stride[dim]
        at = out._offset
        stride = out._stride
        if self.new_dim:
            left = list(stride)
            del left[dim]
            stride = tuple(left)
        device_runtime = runtime_of(out)
        for x in args[0]:
            t: TensorBase = x
            if self.new_dim:
                device_runtime.copy(alias(out, t._shape, stride, at), t)
                at += step
            elif not skipped(t):
                device_runtime.copy(alias(out, t._shape, stride, at), t)
                length: i64 = t._shape[dim]
                at += step * length


# -- one flat memory seen through two geometries ---------------------------------------------------------------------


def map_plain(
    out: TensorBase,
    src: TensorBase,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: i64,
    to_size: tuple[int, ...],
    to_stride: tuple[int, ...],
    to_offset: i64,
) -> None:
    """Values at one geometry, zeros elsewhere, read at another; neither visits a place twice."""
    low = offset if offset < to_offset else to_offset
    end = offset + extent(size, stride)
    other = to_offset + extent(to_size, to_stride)
    if other > end:
        end = other
    flat = empty((int(end - low),), (1,), src._dtype, src._device)
    runtime = runtime_of(flat)
    runtime.fill(flat, 0)
    runtime.copy(alias(flat, size, stride, offset - low), src)
    runtime.copy(out, alias(flat, to_size, to_stride, to_offset - low))


@final
class StridedMapKernel(Kernel):
    """For geometries without overlap; a device that can add repeated places has a line of its own."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        s = op.infer(args)
        assert isinstance(s, Spec)
        if may_overlap(args[1], args[2]) or may_overlap(args[4], args[5]):
            raise NotImplementedError(
                f"the gradient of as_strided with overlapping memory is not implemented for device '{src._device}'"
            )
        out = empty_spec(s)
        map_plain(out, src, args[1], args[2], args[3], args[4], args[5], args[6])
        return out


CLONE: Final = CloneKernel()
LAZY_CLONE: Final = LazyCloneKernel()
TO_COPY: Final = ToCopyKernel()
COPY: Final = CopyKernel()
FILL: Final = FillKernel()
FILL_INPLACE: Final = FillInplaceKernel()
COPY_INPLACE: Final = CopyInplaceKernel()
STRIDED_MAP: Final = StridedMapKernel()
REPEAT: Final = RepeatKernel()
PAD: Final = PadKernel()
CAT: Final = JoinKernel(False)
STACK: Final = JoinKernel(True)


def across(op: Op, kernel: Kernel) -> None:
    """Let an operator take tensors of two different devices."""
    for a in range(8):
        for b in range(a):
            op.kernels[(1 << a) | (1 << b)] = kernel
    op.forget()


def everywhere(op: Op, kernel: Kernel) -> None:
    """Serve an operator on every device with one kernel (also on meta, where the rule alone would do)."""
    op.row.fallback = kernel
    op.kernels[int(CPU)] = kernel
    op.kernels[int(META)] = kernel
    op.forget()
