"""The kernel behind an NPU line: the row's rule gives the results, the line says which vendor function fills them.

A call runs in the dtype the rule computes in. Where the vendor function is not documented for it, operands are cast on
the device to the nearest dtype that holds every value of theirs and the result is cast back; where there is none, the
error names what is accepted.

Invariant: no element of a device tensor is read by the host here, and no memory is given to a vendor function both as
input and as output, except to the in-place functions that are made for it.
"""

from __future__ import annotations

from typing import Any, Final, final

from ... import _native
from ..._autograd.record import run_hidden
from ..._core_operators import CORE
from ..._device import CPU as CPU_DEVICE
from ..._device import device
from ..._dispatch.keys import BACKENDS, CPU, NPU
from ..._dispatch.op import Kernel, Op, Spec
from ..._dtype import ALL, dtype
from ..._mypyc import i64
from ..._ops.rules.layout import expand_strides
from ..._strides import contiguous_strides
from ..._tensor_base import TensorBase, alias, is_contiguous, numel
from ..common.kernels import brought, first_elsewhere, tensors_in
from ..common.runtime import empty, empty_spec
from . import launch, quirks, table
from .launch import Function

_item: Final[Any] = _native.item

# How many dimensions vendor functions take.
MOST_DIMS: Final = 8

# Where a vendor parameter's value comes from: an argument's position, or one of these.
LITERAL: Final[i64] = -1
EXPRESSION: Final[i64] = -2
# -3 - k is result k.
RESULT: Final[i64] = -3

# For each dtype the dtypes that hold all its values and compute alike, nearest first. Integers stay integers: a float
# holds the operands but not what wraps around.
_WIDER: Final[dict[str, tuple[str, ...]]] = {
    "bool": ("uint8", "int8", "int16", "int32", "int64"),
    "uint8": ("int16", "int32", "int64"),
    "int8": ("int16", "int32", "int64"),
    "int16": ("int32", "int64"),
    "int32": ("int64",),
    "int64": (),
    "float16": ("float32",),
    "bfloat16": ("float32",),
    "float32": ("float64",),
    "float64": (),
    "complex64": ("complex128",),
    "complex128": (),
    "uint16": ("int32", "int64"),
    "uint32": ("int64",),
    "uint64": (),
    "float8_e5m2": (),
    "float8_e4m3fn": (),
    "float8_e5m2fnuz": (),
    "float8_e4m3fnuz": (),
    "float8_e8m0fnu": (),
    "complex32": (),
}
_BY_NAME: Final[dict[str, dtype]] = {d.name: d for d in ALL}
_NOTHING: Final[Any] = (None, None, None)


def nearest(dt: dtype, mask: int) -> dtype | None:
    """`dt` if the set has it, else the nearest dtype in the set that holds all its values. An empty set is any."""
    if mask == 0 or mask >> dt.code & 1:
        return dt
    for name in _WIDER[dt.name]:
        wider = _BY_NAME[name]
        if mask >> wider.code & 1:
            return wider
    return None


@final
class Expression:
    """`helper(name, ...)` in a line: a Python function of the call's arguments and results."""

    def __init__(self, fn: Any, sources: list[int], literals: list[Any], nested: list[Any]) -> None:
        self.fn: Final[Any] = fn
        self.sources: Final = sources
        self.literals: Final = literals
        self.nested: Final = nested
        self.count: Final = len(sources)

    def value(self, args: tuple[Any, ...], outs: list[Any]) -> Any:
        n = self.count
        # Calls with few arguments go without a tuple.
        if n == 2:
            return self.fn(self.one(0, args, outs), self.one(1, args, outs))
        if n == 1:
            return self.fn(self.one(0, args, outs))
        if n == 0:
            return self.fn()
        if n == 3:
            return self.fn(self.one(0, args, outs), self.one(1, args, outs), self.one(2, args, outs))
        return self.fn(*[self.one(i, args, outs) for i in range(n)])

    def one(self, i: int, args: tuple[Any, ...], outs: list[Any]) -> Any:
        s = self.sources[i]
        if s >= 0:
            return args[s]
        if s == LITERAL:
            return self.literals[i]
        if s == EXPRESSION:
            inner: Expression = self.nested[i]
            return inner.value(args, outs)
        return outs[-3 - s]


@final
class Call:
    """One vendor call in terms of a row's arguments and results."""

    def __init__(
        self,
        name: str,
        sources: list[int],
        literals: list[Any],
        promoted: list[bool],
        expanded: list[bool],
        inplace: Call | None,
    ) -> None:
        self.name: Final = name
        self.sources: Final = sources
        # Literals and expressions, where the source is one.
        self.literals: Final = literals
        # Tensor parameters that are cast to the dtype of the computation, and those that get the result's shape.
        self.promoted: Final = promoted
        self.expanded: Final = expanded
        # The call that writes into its first operand instead of a result.
        self.inplace: Final = inplace
        self.sig: Final = table.signature(name)
        self.masks: Final[list[int]] = [p.mask for p in self.sig.params]
        self.kinds: Final[list[int]] = [p.kind for p in self.sig.params]
        self.dense: Final[list[bool]] = [p.dense for p in self.sig.params]
        self.optional: Final[list[bool]] = [p.optional for p in self.sig.params]
        self.common: int = 0
        first = True
        for i, p in enumerate(self.sig.params):
            if promoted[i] and p.mask:
                self.common = p.mask if first else self.common & p.mask
                first = False
        self.function: Function | None = None
        # What each dtype is computed in, by dtype code; None where nothing accepted holds its values. The last answer
        # by itself: (dtype, dtype of the result, answer).
        self.computed: dict[int, dtype | None] = {}
        self.last: Any = _NOTHING

    def compute_dtype(self, dt: dtype, result: dtype) -> dtype | None:
        """The dtype in which the vendor computes `dt`, if it can, and can give a result of dtype `result`."""
        last: tuple[Any, Any, Any] = self.last
        if last[0] is dt and last[1] is result:
            answer: dtype | None = last[2]
            return answer
        key = int(dt.code << 8 | result.code)
        if key in self.computed:
            known = self.computed[key]
            self.last = (dt, result, known)
            return known
        found = nearest(dt, self.common)
        if found is not None:
            for i, s in enumerate(self.sources):
                if s == RESULT and nearest(found if result is dt else result, self.masks[i]) is None:
                    found = None
                    break
        self.computed[key] = found
        return found

    def resolved(self) -> Function:
        f = self.function
        if f is None:
            f = launch.resolve(self.name)
            self.function = f
        return f


def not_accepted(op: Op, call: Call, dt: dtype) -> RuntimeError:
    accepted = [f"'{p.name}': {' '.join([d.name for d in table.dtypes_of(p.mask)])}" for p in call.sig.params if p.mask]
    return RuntimeError(
        f"{op.title()}: {dt.name} is not available on NPU, and no dtype that {call.name} accepts holds "
        f"every {dt.name}; accepted: {'; '.join(accepted)}"
    )


def number_tensor(value: Any, dt: dtype, dev: device) -> TensorBase:
    """A 0-dim device tensor that holds a number."""
    from . import creation

    t = empty((), (), dt, dev)
    creation.fill(t, value)
    return t


def cast(t: TensorBase, dt: dtype, op: str) -> TensorBase:
    """A tensor's values in another dtype, on the device; row-major."""
    if t._dtype.is_complex and not dt.is_complex:
        raise RuntimeError(
            f"{op}: {t._dtype.name} is not available on NPU: the vendor computes it in {dt.name}, which "
            "has no imaginary parts"
        )
    from . import creation

    out = empty(t._shape, contiguous_strides(t._shape), dt, t._device)
    creation.cast_into(out, t, op)
    return out


def same_geometry(a: TensorBase, b: TensorBase) -> bool:
    return a is b or (
        a._storage is b._storage and a._offset == b._offset and a._shape == b._shape and a._stride == b._stride
    )


@final
class Line(Kernel):
    """Serves an operator with one vendor call, chosen by which arguments are numbers."""

    def __init__(
        self,
        slots: list[int],
        call: Call,
        by_number: list[tuple[int, Call]],
        start: int,
        empty_value: Any,
        lists: bool,
        otherwise: Kernel | None,
        absent: Kernel | None,
    ) -> None:
        # Positions of tensor arguments; calls for a number at a position, the first that fits.
        self.slots: Final = slots
        self.call: Final = call
        self.by_number: Final = by_number
        # The operand that the result equals before the call; -1 where the call writes all of it.
        self.start: Final = start
        # What the results hold when an operand has no element; None lets the vendor decide.
        self.empty_value: Final[Any] = empty_value
        self.lists: Final = lists
        # Serves dtypes that the vendor function does not, and chips and libraries that lack the function.
        self.otherwise: Final = otherwise
        self.absent: Final = absent
        self.calls_ops = otherwise is not None or absent is not None
        self.guarded = True
        self.asked: bool = False
        self.other: Kernel | None = None

    def replacement(self, op: Op) -> Kernel | None:
        """What serves this operator on this chip instead; asked once."""
        if not self.asked:
            self.other = quirks.replacement(op.name, self.call.name)
            if (
                self.other is None
                and self.absent is not None
                and (quirks.lacks(self.call.name) or not launch.available(self.call.name))
            ):
                self.other = self.absent
            self.asked = True
        return self.other

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        if not self.asked or self.other is not None:
            other = self.replacement(op)
            if other is not None:
                return run_other(other, op, args, keys)
        spec = op.infer(args)
        first = spec if isinstance(spec, Spec) else spec[0]
        assert isinstance(first, Spec)
        if first.device is CPU_DEVICE:
            # The rule took its device from a CPU scalar that stands beside tensors of this one.
            return self.run(op, brought(args, first_elsewhere(tensors_in(op.schema, args))), keys)
        local = self.local(args)
        call = self.pick(local)
        inner = call.compute_dtype(first.compute, first.dtype)
        if inner is None:
            if self.otherwise is not None:
                return run_other(self.otherwise, op, tensors_again(op, args, local, first.device), keys)
            raise not_accepted(op, call, first.compute)
        if isinstance(spec, Spec):
            out = empty_spec(spec)
            if numel(out) > 0:
                self.fill(op, call, local, spec, inner, [out])
            return out
        outs: list[Any] = [empty_spec(s) for s in spec]
        for t in outs:
            if numel(t) > 0:
                self.fill(op, call, local, first, inner, outs)
                break
        return tuple(outs)

    def fill(self, op: Op, call: Call, args: tuple[Any, ...], spec: Spec, inner: dtype, outs: list[Any]) -> None:
        """Compute into fresh results."""
        if self.start >= 0:
            self.change(op, call, args, spec, inner, outs[0])
            return
        if self.empty_value is not None and self.has_empty(args):
            from . import creation

            for t in outs:
                creation.fill(t, self.empty_value)
            return
        compute(op, call, args, spec, inner, outs)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        if not self.asked or self.other is not None:
            other = self.replacement(op)
            if other is not None:
                return other.into(op, args, spec, out)
        if out._dtype is not spec.dtype or (self.lists and self.start < 0):
            return False
        if numel(out) == 0:
            return True
        local = self.local(args)
        call = self.pick(local)
        if self.start >= 0:
            return self.change_into(op, call, local, spec, out)
        if call.compute_dtype(spec.compute, spec.dtype) is not spec.compute or (
            self.empty_value is not None and self.has_empty(local)
        ):
            return False
        shared = 0
        for i in self.slots:
            a = local[i]
            if isinstance(a, TensorBase) and a._storage is out._storage:
                shared += 1
        if shared == 0:
            compute(op, call, local, spec, spec.compute, [out])
            return True
        first = local[0]
        inplace = call.inplace
        if inplace is None or shared != 1 or not isinstance(first, TensorBase) or not same_geometry(first, out):
            return False
        if inplace.compute_dtype(spec.compute, spec.dtype) is not spec.compute or first._dtype is not spec.compute:
            return False
        values, _ = arrange(op, inplace, local, spec, spec.compute, [out])
        if len(spec.shape) > MOST_DIMS:
            values = fewer_dims(op, inplace, values, spec.shape)
        launch.launch(inplace.resolved(), values, op.title() + "_")
        return True

    def change(self, op: Op, call: Call, args: tuple[Any, ...], spec: Spec, inner: dtype, out: TensorBase) -> None:
        """Give `out` the values it starts with, then let the vendor change them."""
        from . import creation

        start = args[self.start]
        assert isinstance(start, TensorBase)
        if nothing_to_do(args, self.start):
            creation.copy(out, start)
            return
        values, results = arrange(op, call, args, spec, inner, [out])
        creation.copy(results[0], start)
        launch.launch(call.resolved(), values, op.title())
        if results[0] is not out:
            creation.copy(out, results[0])

    def change_into(self, op: Op, call: Call, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        inner = call.compute_dtype(spec.compute, spec.dtype)
        if inner is None or reads_elsewhere(args, self.start, out):
            return False
        start = args[self.start]
        assert isinstance(start, TensorBase)
        if start._storage is out._storage and not same_geometry(start, out):
            return False
        self.change(op, call, args, spec, inner, out)
        return True

    def has_empty(self, args: tuple[Any, ...]) -> bool:
        for i in self.slots:
            a = args[i]
            if isinstance(a, TensorBase) and numel(a) == 0:
                return True
        return False

    def local(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with CPU scalars as numbers."""
        for i in self.slots:
            a = args[i]
            if isinstance(a, TensorBase) and a._keys & CPU:
                return self.begun(on_device(args, self.slots), args)
        return args

    def begun(self, local: tuple[Any, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
        """What the result begins as is a tensor, even where all of it is a CPU scalar."""
        i = self.start
        if i < 0 or isinstance(local[i], TensorBase):
            return local
        dev = [a._device for a in args if isinstance(a, TensorBase) and a._keys & NPU][0]
        return (*local[:i], number_tensor(local[i], args[i]._dtype, dev), *local[i + 1 :])

    def pick(self, args: tuple[Any, ...]) -> Call:
        for pair in self.by_number:
            a = args[pair[0]]
            if a is not None and not isinstance(a, TensorBase) and exact_number(a):
                return pair[1]
        return self.call


def run_other(kernel: Kernel, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
    """What serves in a line's place. Its operators record nothing: the row's own derivative is recorded, if any."""
    return run_hidden(kernel, op, args, keys) if kernel.calls_ops else kernel.run(op, args, keys)


def nothing_to_do(args: tuple[Any, ...], start: int) -> bool:
    """Whether an operand besides the one at `start` has no element."""
    for i, a in enumerate(args):
        if isinstance(a, TensorBase):
            if i != start and numel(a) == 0:
                return True
        elif isinstance(a, (tuple, list)):
            for t in a:
                if isinstance(t, TensorBase) and numel(t) == 0:
                    return True
    return False


def reads_elsewhere(args: tuple[Any, ...], start: int, out: TensorBase) -> bool:
    """Whether an operand besides the one at `start` lies in the memory that is written."""
    for i, a in enumerate(args):
        if isinstance(a, TensorBase):
            if i != start and a._storage is out._storage:
                return True
        elif isinstance(a, (tuple, list)):
            for t in a:
                if isinstance(t, TensorBase) and t._storage is out._storage:
                    return True
    return False


def exact_number(x: Any) -> bool:
    """Whether a number survives as a vendor scalar: integers beyond 2**24 may lose digits on the device."""
    return not isinstance(x, int) or -0x100_0000 <= x <= 0x100_0000


def on_device(args: tuple[Any, ...], slots: list[int]) -> tuple[Any, ...]:
    new = list(args)
    for i in slots:
        a = new[i]
        if isinstance(a, TensorBase) and a._keys & CPU and len(a._shape) == 0:
            new[i] = _item(a._storage, int(a._offset), a._dtype.code)
    return tuple(new)


def tensors_again(op: Op, given: tuple[Any, ...], local: tuple[Any, ...], dev: device) -> tuple[Any, ...]:
    """CPU scalars that became numbers, as tensors on the device where the row takes no numbers: what is written in
    terms of other operators may rely on it."""
    if given is local:
        return given
    new = list(local)
    for i, a in enumerate(given):
        if isinstance(a, TensorBase) and not isinstance(local[i], TensorBase) and op.numbers >> i & 1 == 0:
            new[i] = number_tensor(local[i], a._dtype, dev)
    return tuple(new)


def compute(op: Op, call: Call, args: tuple[Any, ...], spec: Spec, inner: dtype, outs: list[Any]) -> None:
    """Launch, and copy results that the vendor writes in another dtype or layout."""
    values, results = arrange(op, call, args, spec, inner, outs)
    if len(spec.shape) > MOST_DIMS:
        values = fewer_dims(op, call, values, spec.shape)
    launch.launch(call.resolved(), values, op.title())
    if results is not outs:
        from . import creation

        i = 0
        for out in outs:
            got = results[i]
            if got is not out:
                creation.copy(out, got)
            i += 1


def arrange(
    op: Op, call: Call, args: tuple[Any, ...], spec: Spec, inner: dtype, outs: list[Any]
) -> tuple[list[Any], list[Any]]:
    """The vendor's arguments, and the tensors it will write the results to."""
    results = outs
    kinds = call.kinds
    masks = call.masks
    values: list[Any] = []
    i: i64 = 0
    for s in call.sources:
        if s >= 0:
            v = args[s]
            kind = kinds[i]
            if kind == table.TENSOR:
                if isinstance(v, TensorBase):
                    if call.promoted[i]:
                        if v._dtype is not inner:
                            v = cast(v, inner, op.title())
                    elif masks[i] != 0 and not masks[i] >> v._dtype.code & 1:
                        v = widened(op, call, v, int(i))
                    if call.expanded[i] and v._shape != spec.shape:
                        v = alias(v, spec.shape, expand_strides(v, spec.shape), v._offset)
                    if call.dense[i] and not is_contiguous(v):
                        v = packed(v)
                elif v is not None:
                    v = number_tensor(v, inner, spec.device)
            elif kind == table.SCALAR:
                v = number_in(v, inner)
            values.append(v)
        elif s == LITERAL:
            values.append(call.literals[i])
        elif s == EXPRESSION:
            e: Expression = call.literals[i]
            values.append(e.value(args, outs))
        else:
            k = -3 - s
            t = outs[k]
            if call.optional[i] and numel(t) == 0:
                # Not asked for.
                values.append(None)
                i += 1
                continue
            want = result_dtype(op, call, t._dtype, spec, inner, int(i))
            if want is not t._dtype or call.dense[i] and not is_contiguous(t):
                if results is outs:
                    results = list(outs)
                t = empty(t._shape, contiguous_strides(t._shape), want, t._device)
                results[k] = t
            values.append(t)
        i += 1
    return values, results


def fewer_dims(op: Op, call: Call, values: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """The arguments of a pointwise call with neighbouring dimensions joined where all tensors move through them alike:
    vendor functions count to eight."""
    tensors: list[TensorBase] = [v for v in values if isinstance(v, TensorBase)]
    if table.INTS in call.kinds or table.I64 in call.kinds:
        return values
    strides = [expand_strides(t, shape) for t in tensors]
    kept: list[int] = []
    steps: list[list[int]] = [[] for _ in tensors]
    for d, n in enumerate(shape):
        if n == 1:
            continue
        joins = len(kept) > 0
        for i, s in enumerate(strides):
            if joins and steps[i][-1] != s[d] * n:
                joins = False
        if joins:
            kept[-1] *= n
        else:
            kept.append(n)
        for i, s in enumerate(strides):
            if joins:
                steps[i][-1] = s[d]
            else:
                steps[i].append(s[d])
    if len(kept) > MOST_DIMS:
        raise RuntimeError(
            f"{op.title()}: tensors of {len(shape)} dimensions that cannot be joined to {MOST_DIMS} are "
            f"not available on NPU: {call.name} takes at most {MOST_DIMS}"
        )
    new: list[Any] = []
    at = 0
    for v in values:
        if isinstance(v, TensorBase):
            v = alias(v, tuple(kept), tuple(steps[at]), v._offset)
            at += 1
        new.append(v)
    return new


def number_in(v: Any, inner: dtype) -> Any:
    """A number beside operands of a dtype: bool and integer computations take no fractions."""
    if inner.is_bool:
        return v if v is None else bool(v)
    if inner.is_integer and isinstance(v, float):
        return int(v)
    return v


def packed(t: TensorBase) -> TensorBase:
    from . import creation

    return creation.compact(t)


def result_dtype(op: Op, call: Call, dt: dtype, spec: Spec, inner: dtype, i: int) -> dtype:
    """The dtype in which the vendor writes a result of dtype `dt`."""
    if inner is not spec.compute and dt is spec.compute:
        dt = inner
    found = nearest(dt, call.masks[i])
    if found is None:
        raise not_accepted(op, call, dt)
    return found


def widened(op: Op, call: Call, t: TensorBase, i: int) -> TensorBase:
    """An operand that keeps its own dtype, in one that its parameter accepts."""
    want = nearest(t._dtype, call.masks[i])
    if want is None:
        raise not_accepted(op, call, t._dtype)
    return cast(t, want, op.title())


def run_chosen(kernel: Kernel, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
    return kernel.run(op, args, keys) if kernel.guarded else run_other(kernel, op, args, keys)


@final
class Missing(Kernel):
    """An operator that NPUs do not offer, and why."""

    def __init__(self, reason: str) -> None:
        self.reason: Final = reason

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        raise NotImplementedError(f"'{op.name}' is not available on NPU: {self.reason}")


@final
class ByArgument(Kernel):
    """One of several kernels, by the value of an argument."""

    def __init__(self, position: int, kernels: dict[Any, Kernel]) -> None:
        self.position: Final = position
        self.kernels: Final = kernels
        self.calls_ops = any([k.calls_ops for k in kernels.values()])
        self.guarded = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        return run_chosen(self.pick(op, args), op, args, keys)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return self.pick(op, args).into(op, args, spec, out)

    def pick(self, op: Op, args: tuple[Any, ...]) -> Kernel:
        kernel = self.kernels.get(args[self.position])
        if kernel is None:
            # The rule knows which values exist, and how to say so.
            op.infer(args)
            raise NotImplementedError(f"'{op.name}' has no NPU kernel for {args[self.position]!r}")
        return kernel


@final
class ByFunction(Kernel):
    """One of several kernels; `fn(*args)` gives the key."""

    def __init__(self, fn: Any, kernels: dict[Any, Kernel]) -> None:
        self.fn: Final[Any] = fn
        self.kernels: Final = kernels
        self.calls_ops = True
        self.guarded = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        return run_chosen(self.kernels[self.fn(*args)], op, args, keys)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return self.kernels[self.fn(*args)].into(op, args, spec, out)


@final
class IndicesFromHost(Kernel):
    """Indexing with tensors of the CPU: they may index tensors of any device, and go to it first."""

    def __init__(self) -> None:
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        home = args[0]
        assert isinstance(home, TensorBase)
        indices: list[Any] = []
        for t in args[1]:
            if isinstance(t, TensorBase) and t._device != home._device:
                if not t._keys & CPU:
                    raise RuntimeError(
                        f"indices should be either on cpu or on the same device as the indexed tensor ({home._device})"
                    )
                t = CORE.to_copy.call((t, None, home._device, None, False))
            indices.append(t)
        bits = home._keys & BACKENDS
        moved = (home, tuple(indices)) + args[2:]
        return op.backend(bits, moved).run(op, moved, bits)


INDICES_FROM_HOST: Final[Kernel] = IndicesFromHost()
