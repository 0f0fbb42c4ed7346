"""Kernels every device gets from the row alone: views, in-place and `out=` forms, and results allocated from the rule.

Invariant: nothing is written before shapes, dtypes and overlaps were checked; an in-place form raises the version
by one.
"""

from __future__ import annotations

from typing import Any, Final, final

from ..._core_operators import CORE, HOOKS
from ..._device import device
from ..._dispatch.keys import BACKENDS, BATCHED, CPU, META
from ..._dispatch.op import Kernel, Op, Rule, Spec
from ..._dispatch.schema import Schema
from ..._dispatch.state import is_grad_enabled
from ..._mypyc import i64
from ..._ops.rules.layout import expand_strides
from ..._ops.rules.out import Target
from ..._sizes import numel_of, resized_bytes, strided_bytes
from ..._strides import contiguous_strides
from ..._tensor_base import MULTI_OUTPUT_NODE, TensorBase, alias, bump, make_view, numel, own_memory
from ..._warn import warn
from .overlap import (
    ALONE,
    APART,
    MARKS,
    REPEATS,
    check_no_internal_overlap,
    check_out,
    check_write,
    needs_copy,
    repeated_dim,
    warn_repeated,
)
from .runtime import copy_same_device, empty_spec


def no_memory(e: Any) -> RuntimeError:
    """PyTorch's exception for what NumPy or SciPy could not allocate for themselves."""
    wanted = ""
    shape = getattr(e, "shape", None)
    if shape is not None:
        wanted = f": you tried to allocate {numel_of(tuple(shape)) * e.dtype.itemsize} bytes"
    return RuntimeError(f"DefaultCPUAllocator: can't allocate memory{wanted}. Error code 12 (Cannot allocate memory)")


@final
class IntoKernel(Kernel):
    """`fn(out, *args)` writes into results that the rule described. `aliasing`: out may be one of the inputs."""

    def __init__(self, fn: Any, aliasing: bool, calls_ops: bool) -> None:
        self.fn: Final[Any] = fn
        self.aliasing: Final = aliasing
        self.calls_ops = calls_ops

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        spec = op.infer(args)
        fn = self.fn
        try:
            if isinstance(spec, Spec):
                out: Any = empty_spec(spec)
                given: tuple[Any, ...] = (out,) + args
                fn(*given)
                return out
            outs = tuple([empty_spec(s) for s in spec])
            fn(outs, *args)
            return outs
        except MemoryError as e:
            raise no_memory(e) from None

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        if not (self.aliasing and out._dtype is spec.dtype) and not stands_for(out, spec, args):
            return False
        self.fn(out, *args)
        return True

    def into_all(self, args: tuple[Any, ...], specs: list[Spec], outs: tuple[Any, ...]) -> bool:
        storages: list[Any] = []
        for i, spec in enumerate(specs):
            out = outs[i]
            if not isinstance(out, TensorBase) or not stands_for(out, spec, args) or out._storage in storages:
                return False
            storages.append(out._storage)
        self.fn(outs, *args)
        return True


def stands_for(out: TensorBase, spec: Spec, args: tuple[Any, ...]) -> bool:
    """Whether a tensor is what would be made for this result, and none of the arguments shares its memory: a kernel
    that reads its operands after it has begun to write may write to it. On the CPU alone: functions of other devices
    write by operators, each of which moves the version."""
    if (
        out._keys & CPU == 0
        or out._dtype is not spec.dtype
        or out._offset != 0
        or out._shape != spec.shape
        or out._stride != spec.stride
    ):
        return False
    for a in args:
        if isinstance(a, TensorBase):
            if a._storage is out._storage:
                return False
        elif isinstance(a, (tuple, list)):
            for x in a:
                if isinstance(x, TensorBase) and x._storage is out._storage:
                    return False
    return True


@final
class MetaKernel(Kernel):
    """The meta device: run the rule, allocate nothing."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        spec = op.infer(args)
        if isinstance(spec, Spec):
            return empty_spec(spec)
        return tuple([empty_spec(s) for s in spec])

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return True


@final
class ViewKernel(Kernel):
    """`layout(shape, stride, offset, *args)` gives the geometry; a list of geometries for several views at once."""

    def __init__(self, layout: Any) -> None:
        self.layout: Final[Any] = layout

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        got = self.layout(src._shape, src._stride, int(src._offset), *args[1:])
        if isinstance(got, list):
            outs: list[Any] = []
            recorded = is_grad_enabled()
            for g in got:
                t = make_view(src, g[0], g[1], g[2], op, args)
                if recorded:
                    t._cmeta = MULTI_OUTPUT_NODE
                outs.append(t)
            return tuple(outs)
        return make_view(src, got[0], got[1], got[2], op, args)


def bounds_checked(t: TensorBase, shape: tuple[int, ...], stride: tuple[int, ...], offset: i64) -> None:
    """A geometry given by the user must lie inside the storage."""
    check_bounds(shape, stride, offset, t._dtype.itemsize, t._storage.nbytes)


def check_bounds(
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: i64,
    itemsize: i64,
    nbytes: i64,
    shown: tuple[int, ...] | None = None,
) -> None:
    """`shown`: the strides as they were given, where others are said in the error."""
    need = strided_bytes(shape, stride, int(offset), int(itemsize))
    if need > nbytes:
        given = stride if shown is None else shown
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(given)}, storage offset {offset}, and itemsize "
            f"{itemsize} requiring a storage size of {need} are out of bounds for storage of size {nbytes}"
        )


def check_result(op: Op, spec: Spec, target: TensorBase, args: tuple[Any, ...]) -> None:
    """An in-place result must fit its target."""
    if spec.shape is not target._shape and spec.shape != target._shape:
        raise RuntimeError(
            f"output with shape {list(target._shape)} doesn't match the broadcast shape {list(spec.shape)}"
        )
    if spec.dtype is not target._dtype:
        targets_of(op, args)[0].check(spec.dtype, target._dtype)


def write_repeatedly(func: Op, kernel: Kernel, target: TensorBase, args: tuple[Any, ...], bits: i64) -> None:
    """A pointwise operator in place on an expanded tensor: several of its elements are one place in memory, so the
    elements along a repeated dimension are written one after the other, each with its part of the other operands."""
    dim = repeated_dim(target)
    if dim < 0:
        copy_same_device(target, kernel.run(func, args, bits))
        return
    shape = target._shape[:dim] + (1,) + target._shape[dim + 1 :]
    part = alias(target, shape, target._stride, target._offset)
    for i in range(target._shape[dim]):
        parts: list[Any] = [part]
        for a in args[1:]:
            if isinstance(a, TensorBase) and len(a._shape) > 0:
                steps = expand_strides(a, target._shape)
                parts.append(alias(a, shape, steps, a._offset + i * steps[dim]))
            else:
                parts.append(a)
        write_repeatedly(func, kernel, part, tuple(parts), bits)


@final
class InplaceKernel(Kernel):
    """`op_` from `op`: straight into the target where the kernel can, else through a temporary and a copy."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        target = args[0]
        func = op.functional
        assert isinstance(target, TensorBase) and func is not None
        kernel = func.below(keys & BACKENDS, args)
        check_write(func.overlap, target, args)
        spec = func.infer_inplace(args)
        check_result(op, spec, target, args)
        if func.overlap >= REPEATS:
            warn_repeated(func.title(), target)
        if func.overlap == REPEATS and repeated_dim(target) >= 0:
            write_repeatedly(func, kernel, target, args, keys & BACKENDS)
        elif keys & CPU == 0 and func.overlap == MARKS and repeated_dim(target) >= 0:
            # A vendor's function writes all that is shown, and the elements which are not filled would win.
            write_once(func, kernel, target, args, keys & BACKENDS)
        elif (func.overlap >= ALONE and needs_copy(func.overlap, target, args[1:])) or not kernel.into(
            func, args, spec, target
        ):
            if (func.overlap == APART or func.overlap == MARKS) and repeated_dim(target) >= 0:
                write_once(func, kernel, target, args, keys & BACKENDS)
            else:
                copy_same_device(target, kernel.run(func, args, keys & BACKENDS))
        bump(target)
        return target


def write_once(func: Op, kernel: Kernel, target: TensorBase, args: tuple[Any, ...], bits: i64) -> None:
    """A number to chosen places along a dimension of an expanded tensor: its memory has one place where the tensor
    shows many. What else would write to such a tensor through a temporary is refused: the untouched elements of a
    repeated one would win."""
    if func.overlap != MARKS:
        check_no_internal_overlap(target)
    dim: int = args[1] % len(target._shape)
    shape = tuple([1 if s == 0 else n for n, s in zip(target._shape, target._stride)])
    part = alias(target, shape, target._stride, target._offset)
    index: TensorBase = args[2]
    if shape[dim] != target._shape[dim]:
        index = HOOKS.from_data([0] if numel(index) > 0 else [], index._dtype, target)
    copy_same_device(part, kernel.run(func, (part, dim, index) + args[3:], bits))


@final
class OutKernel(Kernel):
    """`op(..., out=t)` from `op`: resizes `t` if needed, then as in place."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        func = op.functional
        assert func is not None
        n = len(func.schema.args)
        outs = args[n:]
        plain = args[:n]
        if overlap_first(func.rule):
            out = outs[0]
            assert isinstance(out, TensorBase)
            check_out(0, out, plain)
            specs = func.infer(plain)
            kernel = func.below(keys & BACKENDS, plain)
            if (
                isinstance(specs, Spec)
                and out._dtype is specs.dtype
                and (out._shape is specs.shape or out._shape == specs.shape)
            ):
                # Most fit as they are.
                out._shape = specs.shape
                if not kernel.into(func, plain, specs, out):
                    copy_same_device(out, kernel.run(func, plain, keys & BACKENDS))
                bump(out)
                return out
            targets = targets_of(op, plain)
        else:
            targets = targets_of(op, plain)
            if targets[0].looks:
                plain = targets[0].beside(plain, outs[0]._dtype)
            specs = func.infer(plain)
            kernel = func.below(keys & BACKENDS, plain)
            if targets[0].overlap_first:
                check_no_internal_overlap(outs[0])
        if isinstance(specs, Spec):
            out = outs[0]
            assert isinstance(out, TensorBase)
            if out._dtype is not specs.dtype:
                targets[0].check(specs.dtype, out._dtype)
            fits = out._shape is specs.shape or out._shape == specs.shape
            check_out(op.overlap, out, plain, fits)
            if not fits:
                check_resize(out, specs, plain)
                fit(out, specs, targets[0])
            if needs_copy(op.overlap, out, plain) or not kernel.into(func, plain, specs, out):
                copy_same_device(out, kernel.run(func, plain, keys & BACKENDS))
            bump(out)
            return out
        check_targets(targets, specs, outs)
        for i, s in enumerate(specs):
            check_out(op.overlap, outs[i], plain, outs[i]._shape == s.shape)
            check_resize(outs[i], s, plain)
        fit_all(outs, specs, targets)
        if isinstance(kernel, IntoKernel) and kernel.into_all(plain, specs, outs):
            for out in outs:
                bump(out)
            return outs
        results = kernel.run(func, plain, keys & BACKENDS)
        for i, r in enumerate(results):
            copy_same_device(outs[i], r)
            bump(outs[i])
        return outs


@final
class OutOfParts(Kernel):
    """`out=` of an operator written in terms of others: there is no rule to ask first, so the result comes first."""

    def __init__(self) -> None:
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        func = op.functional
        assert func is not None
        n = len(func.schema.args)
        bits = keys & BACKENDS
        outs = args[n:]
        kernel = func.below(bits, args[:n])
        for out in outs:
            if isinstance(out, TensorBase):
                own_memory(out)
        if len(outs) == 1 and isinstance(outs[0], TensorBase) and kernel.parts_into(args[:n], outs[0]):
            bump(outs[0])
            return outs[0]
        result = kernel.run(func, args[:n], bits)
        results = (result,) if isinstance(result, TensorBase) else result
        targets = targets_of(op, args[:n])
        if targets[0].overlap_first:
            check_no_internal_overlap(outs[0])
        specs = [spec_of(r, targets[i]) for i, r in enumerate(results)]
        check_targets(targets, specs, outs)
        for i in range(len(results)):
            check_out(op.overlap, outs[i], args[:n], outs[i]._shape == specs[i].shape)
        fit_all(outs, specs, targets)
        for i, r in enumerate(results):
            copy_same_device(outs[i], r)
            bump(outs[i])
        return outs[0] if isinstance(result, TensorBase) else outs


def overlap_first(rule: Rule | None) -> bool:
    """Whether PyTorch looks at overlaps with `out` before it looks at shapes."""
    return rule is not None and rule.overlap_first


def check_resize(out: TensorBase, spec: Spec, plain: tuple[Any, ...]) -> None:
    """An `out=` that is also read keeps its shape."""
    if out._shape != spec.shape:
        for a in plain:
            if a is out or (isinstance(a, (tuple, list)) and any([x is out for x in a])):
                raise RuntimeError(
                    f"output with shape {list(out._shape)} doesn't match the broadcast shape {list(spec.shape)}"
                )


def targets_of(op: Op, plain: tuple[Any, ...]) -> tuple[Target, ...]:
    """What each tensor that the operator writes to must be: from the table, which may ask the arguments."""
    func = op.functional
    assert func is not None
    if op.targets is None:
        from ..._ops.out_rules import find, find_in_place, memory

        op.targets = find(func) if op.is_out else find_in_place(func)
        op.overlap = memory(func)
    made: Any = op.targets if isinstance(op.targets, tuple) else op.targets(*plain)
    targets: tuple[Target, ...] = made
    return targets


def check_targets(targets: tuple[Target, ...], specs: list[Spec], outs: tuple[Any, ...]) -> None:
    for i, s in enumerate(specs):
        targets[i].check(s.dtype, outs[i]._dtype)


def spec_of(t: TensorBase, target: Target) -> Spec:
    """What an `out=` for this result will be like; how the parts of an operator leave their result is their affair."""
    stride = t._stride if target.order == "result" else contiguous_strides(t._shape)
    return Spec(t._shape, stride, t._dtype, t._dtype, t._device)


def fit_all(outs: tuple[Any, ...], specs: list[Spec], targets: tuple[Target, ...]) -> None:
    for last in (False, True):
        for i, s in enumerate(specs):
            if targets[i].last == last:
                fit(outs[i], s, targets[i])


def fit(out: TensorBase, spec: Spec, target: Target) -> None:
    """Resize an `out=` tensor to the result's shape, with PyTorch's warning when it held elements."""
    if out._shape == spec.shape:
        return
    if numel(out) != 0 and not target.quiet:
        warn(
            f"An output with one or more elements was resized since it had shape {target.show(out._shape)}, which does "
            f"not match the required output shape {target.show(spec.shape)}. This behavior is deprecated, and in a "
            "future PyTorch release "
            "outputs will not be resized unless they have zero elements. You can explicitly reuse an out tensor t by "
            "resizing it, inplace, to zero elements with t.resize_(0)."
        )
    resize(out, spec.shape, target.strides(spec.shape, spec.stride, numel(out) != 0))


def resize(t: TensorBase, shape: tuple[int, ...], stride: tuple[int, ...]) -> None:
    """Give a tensor another shape, growing its storage when needed."""
    numel_of(shape)
    need = resized_bytes(shape, stride, int(t._offset), t._dtype.itemsize)
    if need > t._storage.nbytes:
        if t._keys & BATCHED:
            raise RuntimeError("vmap: a tensor inside of vmap cannot be resized to more elements than it has")
        own_memory(t)
        t._storage.resize(need)
    t._shape = shape
    t._stride = stride
    t._numel = -1
    t._contig = 0


@final
class MixedKernel(Kernel):
    """Arguments on different devices."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        tensors = tensors_in(op.schema, args)
        home = tensors[0]
        scalars = not op.mutates
        for t in tensors:
            if len(t._shape) > 0:
                home = t
                scalars = False
                break
        if scalars:
            home = first_elsewhere(tensors)
            args = brought(args, home)
            tensors = tensors_in(op.schema, args)
        indexed = op.schema.index("index") >= 0
        for t in tensors:
            # A CPU scalar may stand beside tensors of any device, but is not indexed by one of another.
            scalar = t._keys & CPU != 0 and len(t._shape) == 0 and not (indexed and t is tensors[0])
            if t._device != home._device and not scalar:
                raise RuntimeError(_apart(home._device, t._device))
        if op.is_out and op.functional is not None:
            count = len(op.functional.schema.args)
            given = tensors_in(op.functional.schema, args[:count])
            if given and all([t._device != home._device for t in given]):
                # Scalars beside nothing but the result: an only one is refused, as in PyTorch.
                if len(given) == 1 or not isinstance(args[0], TensorBase):
                    raise RuntimeError(_apart(home._device, given[0]._device))
                if home._keys & META:
                    raise RuntimeError(
                        "Attempting to copy from device cpu to device meta, but cross-device copies are not allowed!"
                    )
                args = brought(args[:count], home) + args[count:]
            for out in args[count:]:
                if isinstance(out, TensorBase) and out._device != home._device:
                    # What is written is no scalar that stands beside others.
                    raise RuntimeError(
                        f"Expected out tensor to have device {home._device}, but got {out._device} instead"
                    )
        bits = home._keys & BACKENDS
        return op.backend(bits, args).run(op, args, bits)


def first_elsewhere(tensors: list[TensorBase]) -> TensorBase:
    """The first tensor that is not on the CPU."""
    for t in tensors:
        if not t._keys & CPU:
            return t
    return tensors[0]


def brought(args: tuple[Any, ...], home: TensorBase) -> tuple[Any, ...]:
    """CPU scalars as scalars of another device; below autograd, which sees those that were given."""
    out: list[Any] = []
    to_copy: Any = CORE.to_copy
    for given in args:
        if isinstance(given, TensorBase) and given._keys & CPU:
            move = (given, None, home._device, None, False)
            given = to_copy.backend(CPU, move).run(to_copy, move, CPU)
        out.append(given)
    return tuple(out)


def _apart(home: device, other: device) -> str:
    """PyTorch's words for two devices in one call; between real ones it names the accelerator first."""
    if home.type == "meta" or other.type == "meta":
        return f"Tensor on device {other} is not on the expected device {home}!"
    first, second = (other, home) if home.type == "cpu" else (home, other)
    return f"Expected all tensors to be on the same device, but found at least two devices, {first} and {second}!"


def tensors_in(schema: Schema, args: tuple[Any, ...]) -> list[TensorBase]:
    out: list[TensorBase] = []
    for i, a in enumerate(schema.args):
        if a.kind != "Tensor" or i >= len(args):
            continue
        v = args[i]
        if isinstance(v, TensorBase):
            out.append(v)
        elif isinstance(v, (tuple, list)):
            for t in v:
                if isinstance(t, TensorBase):
                    out.append(t)
    return out


INPLACE: Final[Kernel] = InplaceKernel()
OUT: Final[Kernel] = OutKernel()
OUT_OF_PARTS: Final = OutOfParts()
META_KERNEL: Final[Kernel] = MetaKernel()
MIXED: Final[Kernel] = MixedKernel()


def derived(op: Op, bits: i64) -> Kernel | None:
    """The kernel a device gets without a line of its own."""
    if op.row is not None and op.row.view_kernel is not None:
        k: Kernel = op.row.view_kernel
        return k
    if op.functional is not None:
        if op.row is not None and op.row.fallback is not None:
            # Said for this form, and for every device.
            own: Kernel = op.row.fallback
            return own
        if op.is_out:
            return OUT if op.functional.rule is not None else OUT_OF_PARTS
        if op.mutates:
            return INPLACE
    if bits == META and op.rule is not None:
        return META_KERNEL
    if op.row is not None and op.row.fallback is not None:
        f: Kernel = op.row.fallback
        return f
    return None
