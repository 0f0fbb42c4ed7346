"""Autocast: which device types are switched on in this thread, and the kernel that casts arguments when they are.

Invariant: a call is cast at most once. While an operator that was cast runs, autocast of its device is hidden from the
operators it is made of. With autocast off nothing here is looked at: the dispatch bits are modes of the thread.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ._device import device as _device
from ._dispatch.keys import AUTOCAST, AUTOCAST_NPU, CPU, NPU
from ._dispatch.op import RESOLVERS, Kernel, Op, Overrider, plain_name
from ._dispatch.state import LOCAL, drop, exclude, include, is_grad_enabled, set_modes
from ._dtype import bfloat16, dtype, float16, float32, float64
from ._ops.autocast_policy import BANNED, BANNED_TEXT, CAST_INSIDE, FP32, LOWER, POLICY, PROMOTE
from ._tensor_base import TensorBase
from ._warn import warn_once

# The device types PyTorch has autocast for, and the dtype each begins with. Only the first two have tensors here.
DTYPES: dict[str, dtype] = {
    "cpu": bfloat16,
    "npu": float16,
    **dict.fromkeys(("cuda", "xpu", "mps", "mtia", "ipu"), float16),
    **dict.fromkeys(("hpu", "xla", "maia"), bfloat16),
}
_BITS = {"cpu": int(AUTOCAST), "npu": int(AUTOCAST_NPU)}
_UNKNOWN = "unknown device type for autocast in get_autocast_dispatch_key_from_device_type"


class _Local:
    """This thread's switches."""

    def __init__(self) -> None:
        self.enabled: set[str] = set()
        self.dtypes = dict(DTYPES)
        self.cache = True
        self.nesting = 0


def _local() -> _Local:
    found: _Local | None = getattr(LOCAL, "autocast", None)
    if found is None:
        found = LOCAL.autocast = _Local()
    return found


# Casts of leaves, shared by all threads: by identity, with the leaf itself so that an identity that returns is noticed.
_CACHE: dict[int, tuple[weakref.ref[Any], Any]] = {}


# -- casting ------------------------------------------------------------------------------------------------------
def _eligible(t: Any, kind: str) -> bool:
    return isinstance(t, TensorBase) and t._device.type == kind and t._dtype.is_floating_point


def _cast(t: Any, to: dtype, kind: str, local: _Local) -> Any:
    """A tensor in the dtype `to`; what is on another device, no floating point number or float64 stays."""
    if not _eligible(t, kind) or t._dtype is to or t._dtype is float64:
        return t
    if not (
        local.cache
        and t._dtype is float32
        and to is local.dtypes[kind]
        and t.requires_grad
        and t.is_leaf
        and not t._is_view()
        and is_grad_enabled()
    ):
        return t.to(to)
    found = _CACHE.get(id(t))
    if found is not None and found[0]() is t:
        return found[1]
    result = t.to(to)
    _CACHE[id(t)] = (weakref.ref(t), result)
    return result


def _cast_all(op: Op, args: tuple[Any, ...], to: dtype, kind: str, local: _Local) -> tuple[Any, ...]:
    new = list(args)
    for i in op.slots:
        new[i] = _cast(new[i], to, kind, local)
    for i in op.list_slots:
        if new[i] is not None:
            new[i] = type(new[i])([_cast(t, to, kind, local) for t in new[i]])
    return tuple(new)


def _widest(op: Op, args: tuple[Any, ...], kind: str, lower: dtype) -> dtype:
    """The dtype that the arguments of an operator that promotes are cast to; float64 has no say."""
    given = [args[i] for i in op.slots if not op.schema.args[i].optional]
    for i in op.list_slots:
        given.extend(args[i])
    found = lower
    for t in given:
        if not _eligible(t, kind) or t._dtype is float64:
            continue
        if t._dtype is float32:
            found = float32
        elif found is not float32 and t._dtype is not lower:
            raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return found


class _Caster:
    """What runs for operators of one policy on one device type."""

    def __init__(self, policy: str, kind: str, wide: dtype = float32) -> None:
        self.policy = policy
        self.kind = kind
        self.wide = wide

    def __call__(self, op: Op, args: tuple[Any, ...], keys: int) -> Any:
        local, kind = _local(), self.kind
        if self.policy == BANNED:
            raise RuntimeError(BANNED_TEXT)
        before = exclude(_BITS[kind])
        try:
            if self.policy == _HIDDEN:
                pass
            elif self.policy == LOWER:
                args = _cast_all(op, args, local.dtypes[kind], kind, local)
            elif self.policy == FP32:
                args = _cast_all(op, args, self.wide, kind, local)
            elif self.policy == PROMOTE:
                args = _cast_all(op, args, _widest(op, args, kind, local.dtypes[kind]), kind, local)
            else:
                at = op.schema.index("dtype")
                if args[at] is None and _eligible(args[0], kind) and args[0]._dtype is not float64:
                    args = (*args[:at], float32, *args[at + 1 :])
            return op.call(args)
        finally:
            set_modes(before)


# The parts of an operator that PyTorch computes as a whole are not cast.
_HIDDEN = "hidden"
_KERNELS: dict[tuple[str, str], Kernel] = {
    (kind, policy): Overrider(_Caster(policy, kind))
    for kind, table in POLICY.items()
    for policy in {*table.values(), _HIDDEN}
}


def _kernel(op: Op, keys: int) -> Kernel | None:
    """The kernel that casts for a key set; None if the operator runs as it is."""
    kind = "npu" if keys & NPU and keys & AUTOCAST_NPU else "cpu" if keys & CPU and keys & AUTOCAST else None
    if kind is None:
        return None
    if "::" in op.name:
        to = _OUTSIDE.get((kind, op.name))
        return None if to is None else Overrider(_Caster(FP32, kind, to))
    policy = None if op.mutates else POLICY[kind].get(op.title())
    if policy is None and op.composite is None and op.title() not in CAST_INSIDE:
        whole = op.kernels.get(int(NPU if kind == "npu" else CPU)) or getattr(op.row, "fallback", None)
        if whole is not None and whole.calls_ops:
            policy = _HIDDEN
    return None if policy is None else _KERNELS[kind, policy]


RESOLVERS.autocast = _kernel

# What operators from outside are cast to, by device type and operator.
_OUTSIDE: dict[tuple[str, str], dtype] = {}


def register(op: Op, device_type: str, to: dtype) -> Callable[[], None]:
    """Cast the arguments of an operator from outside under autocast; returns what takes that back."""
    key = (_device(device_type).type, op.name)
    _OUTSIDE.setdefault(key, to)
    op.forget()

    def undo() -> None:
        _OUTSIDE.pop(key, None)
        op.forget()

    return undo


def as_listed(name: str, tensors: list[Any], run: Callable[[list[Any]], Any]) -> Any:
    """`run(tensors)` as autocast has it, for an operator of the lists that is a Python function here."""
    local = _local()
    for kind in ("npu", "cpu"):
        policy = POLICY[kind].get(name)
        if kind not in local.enabled or policy is None or not any(t._device.type == kind for t in tensors):
            continue
        before = exclude(_BITS[kind])
        try:
            to = local.dtypes[kind] if policy == LOWER else float32
            return run([_cast(t, to, kind, local) for t in tensors])
        finally:
            set_modes(before)
    return run(tensors)


# -- the switches -------------------------------------------------------------------------------------------------
def _kind(function: str, device_type: Any) -> str:
    if not isinstance(device_type, str):
        raise TypeError(f"{function}(): argument 'device_type' (position 1) must be str, not {plain_name(device_type)}")
    return device_type if device_type in DTYPES else _device(device_type).type


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast exists for a device type."""
    return _kind("_is_autocast_available", device_type) in DTYPES


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether this thread autocasts operators on a device type."""
    kind = device_type
    if type(kind) is not str or kind not in DTYPES:
        kind = _kind("is_autocast_enabled", device_type)
        if kind not in DTYPES:
            raise RuntimeError(_UNKNOWN)
    return kind in _local().enabled


def set_autocast_enabled(*args: Any) -> None:
    """`set_autocast_enabled(device_type, enabled)`: switch autocast of a device type in this thread."""
    if len(args) not in (1, 2):
        given = ", ".join(plain_name(a) for a in args)
        raise TypeError(
            f"set_autocast_enabled() received an invalid combination of arguments - got ({given}), but expected one "
            "of:\n * (str device_type, bool enabled)\n * (bool enabled)\n"
        )
    device_type = args[0] if len(args) == 2 else "cuda"
    enabled = args[-1]
    if not isinstance(enabled, bool):
        raise TypeError(
            f"set_autocast_enabled(): argument 'enabled' (position {len(args)}) must be bool, not {plain_name(enabled)}"
        )
    kind = _kind("set_autocast_enabled", device_type)
    if kind not in DTYPES:
        raise RuntimeError(_UNKNOWN)
    (_local().enabled.add if enabled else _local().enabled.discard)(kind)
    bit = _BITS.get(kind, 0)
    if bit:
        (include if enabled else drop)(bit)


def get_autocast_dtype(device_type: str) -> dtype:
    """The dtype that autocast of a device type casts to in this thread."""
    kind = _kind("get_autocast_dtype", device_type)
    if kind not in DTYPES:
        raise RuntimeError("unsupported scalarType")
    return _local().dtypes[kind]


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the dtype that autocast of a device type casts to in this thread."""
    kind = _kind("set_autocast_dtype", device_type)
    if not isinstance(dtype, type(float32)):
        raise TypeError(
            f"set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not {plain_name(dtype)}"
        )
    if kind in DTYPES:
        _local().dtypes[kind] = dtype


def is_autocast_cache_enabled() -> bool:
    """Whether casts of leaves are kept until the outermost autocast ends."""
    return _local().cache


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Switch the cache of casts in this thread."""
    _local().cache = _flag(enabled)


def enter(device_type: str, enabled: Any, fast: Any, cache: Any) -> tuple[bool, dtype, bool]:
    """What an autocast block sets, at once; what it found."""
    local = _local()
    kind = _kind("set_autocast_enabled", device_type)
    found = (kind in local.enabled, local.dtypes[kind], local.cache)
    _set(local, kind, enabled, fast, cache)
    local.nesting += 1
    return found


def leave(device_type: str, enabled: bool, fast: dtype, cache: bool) -> None:
    """What the block found, put back; the outermost one forgets the casts of leaves."""
    local = _local()
    local.nesting -= 1
    if local.nesting == 0:
        clear_autocast_cache()
    _set(local, _kind("set_autocast_enabled", device_type), enabled, fast, cache)


def _set(local: _Local, kind: str, enabled: Any, fast: Any, cache: Any) -> None:
    if enabled is not True and enabled is not False:
        set_autocast_enabled(kind, enabled)  # refuses it
    (local.enabled.add if enabled else local.enabled.discard)(kind)
    bit = _BITS.get(kind, 0)
    if bit:
        (include if enabled else drop)(bit)
    if isinstance(fast, type(float32)):
        local.dtypes[kind] = fast
    else:
        set_autocast_dtype(kind, fast)  # refuses it
    local.cache = _flag(cache)


def autocast_increment_nesting() -> int:
    """One more autocast block is entered; returns how many there are."""
    local = _local()
    local.nesting += 1
    return local.nesting


def autocast_decrement_nesting() -> int:
    """One autocast block is left; returns how many there are."""
    local = _local()
    local.nesting -= 1
    return local.nesting


def clear_autocast_cache() -> None:
    """Forget the casts of leaves."""
    _CACHE.clear()


# -- older spellings ----------------------------------------------------------------------------------------------
def _flag(enabled: Any) -> bool:
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {plain_name(enabled)})")
    return enabled


def _old(call: str, instead: str) -> None:
    warn_once(f"torch.{call} is deprecated. Please use torch.{instead} instead.", DeprecationWarning)


def _enabled_of(name: str, kind: str) -> tuple[Any, Any]:
    def is_enabled() -> bool:
        _old(f"is_autocast_{name}_enabled()", f"is_autocast_enabled('{kind}')")
        return is_autocast_enabled(kind)

    def set_enabled(enabled: bool) -> None:
        on = _flag(enabled)
        _old(f"set_autocast_{name}_enabled(enabled)", f"set_autocast_enabled('{kind}', enabled)")
        set_autocast_enabled(kind, on)

    is_enabled.__qualname__, set_enabled.__qualname__ = f"is_autocast_{name}_enabled", f"set_autocast_{name}_enabled"
    return is_enabled, set_enabled


def _dtype_of(name: str, kind: str) -> tuple[Any, Any]:
    def get_dtype() -> dtype:
        _old(f"get_autocast_{name}_dtype()", f"get_autocast_dtype('{kind}')")
        return get_autocast_dtype(kind)

    def set_dtype(dtype: dtype) -> None:
        if not isinstance(dtype, type(float32)):
            raise TypeError(f"dtype must be a torch.dtype (got {plain_name(dtype)})")
        _old(f"set_autocast_{name}_dtype(dtype)", f"set_autocast_dtype('{kind}', dtype)")
        set_autocast_dtype(kind, dtype)

    get_dtype.__qualname__, set_dtype.__qualname__ = f"get_autocast_{name}_dtype", f"set_autocast_{name}_dtype"
    return get_dtype, set_dtype


is_autocast_cpu_enabled, set_autocast_cpu_enabled = _enabled_of("cpu", "cpu")
is_autocast_ipu_enabled, set_autocast_ipu_enabled = _enabled_of("ipu", "ipu")
is_autocast_xla_enabled, set_autocast_xla_enabled = _enabled_of("xla", "xla")
get_autocast_cpu_dtype, set_autocast_cpu_dtype = _dtype_of("cpu", "cpu")
get_autocast_gpu_dtype, set_autocast_gpu_dtype = _dtype_of("gpu", "cuda")
get_autocast_ipu_dtype, set_autocast_ipu_dtype = _dtype_of("ipu", "ipu")
get_autocast_xla_dtype, set_autocast_xla_dtype = _dtype_of("xla", "xla")
