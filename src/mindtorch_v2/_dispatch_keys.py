"""`torch._C.DispatchKey` and `DispatchKeySet`: names and numbers of PyTorch's dispatch keys, for code that names them.

Invariant: these name keys of PyTorch's dispatcher; the one here has bits of its own (`_dispatch.keys`), so that a set
of these says nothing of a tensor. `torch.library` takes the names; a guard hides those that have a bit.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from typing import Any

from ._dispatch.keys import (
    AUTOCASTS,
    AUTOGRAD,
    BATCHED,
    CONJUGATE,
    DEVICE_BITS,
    FUNCTIONALIZE,
    INFERENCE,
    META,
    NEGATIVE,
    NESTED,
    SPARSE,
    TORCH_DISPATCH,
)
from ._dispatch.state import BELOW_AUTOGRAD, exclude, modes, set_modes
from ._numbered import Numbered

_BACKENDS = "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta".split()
_NUMBERS: dict[str, int] = {
    "Undefined": 0,
    "Dense": 1,
    "Quantized": 5,
    "Sparse": 8,
    "SparseCsr": 9,
    "NestedTensor": 10,
    "BackendSelect": 11,
    "Python": 13,
    "FuncTorchDynamicLayerBackMode": 14,
    "Functionalize": 15,
    "Conjugate": 16,
    "Negative": 17,
    "ZeroTensor": 18,
    "ADInplaceOrView": 19,
    "AutogradOther": 20,
    "AutogradFunctionality": 21,
    "AutogradNestedTensor": 22,
    "AutocastCPU": 24,
    "AutocastXPU": 27,
    "AutocastIPU": 28,
    "AutocastHPU": 29,
    "AutocastMPS": 31,
    "AutocastCUDA": 32,
    "AutocastPrivateUse1": 33,
    "FuncTorchBatched": 34,
    "FuncTorchVmapMode": 36,
    "FuncTorchGradWrapper": 39,
    "PythonTLSSnapshot": 41,
    "FuncTorchDynamicLayerFrontMode": 42,
    "PreDispatch": 45,
    "PythonDispatcher": 46,
    "Autograd": 150,
    "CompositeImplicitAutograd": 151,
    "FuncTorchBatchedDecomposition": 152,
    "CompositeImplicitAutogradNestedTensor": 153,
    "CompositeExplicitAutograd": 154,
    "CompositeExplicitAutogradNonFunctional": 155,
}
# A block of keys for every kind of tensor, one key per backend.
_KINDS = (
    ("Dense", ""),
    ("Quantized", "Quantized"),
    ("Sparse", "Sparse"),
    ("SparseCsr", "SparseCsr"),
    ("NestedTensor", "NestedTensor"),
    ("AutogradFunctionality", "Autograd"),
)
for _start, (_kind, _prefix) in zip(range(48, 134, 17), _KINDS):
    _NUMBERS[f"StartOf{_kind}Backends"] = _start
    _NUMBERS.update({_prefix + backend: _start + 1 + i for i, backend in enumerate(_BACKENDS)})
    _NUMBERS[f"EndOf{_kind}Backends"] = _start + len(_BACKENDS)
# What a set of PyTorch's holds for a key.
_RAW = {
    **{name: 1 << (15 + n) for name, n in _NUMBERS.items() if 0 < n < 47},
    **{
        prefix + backend: 1 << i | 1 << (15 + _NUMBERS[kind])
        for kind, prefix in _KINDS
        for i, backend in enumerate(_BACKENDS)
    },
}
for _kind, _ in _KINDS:
    _RAW.pop(_kind)


class _Key(Numbered):
    def __str__(self) -> str:
        # As C++ enums print.
        return f"DispatchKey.{self.name}"


_make: Any = _Key
DispatchKey: Any = _make("DispatchKey", _NUMBERS, module="torch")


class DispatchKeySet:
    """An immutable set of dispatch keys."""

    __module__ = "torch"

    def __init__(self, key: Any) -> None:
        if isinstance(key, str):
            key = _dispatch_key_parse(key)
        self._keys: frozenset[Any] = key._keys if isinstance(key, DispatchKeySet) else frozenset({DispatchKey(key)})

    @classmethod
    def _of(cls, keys: Iterable[Any]) -> DispatchKeySet:
        made = cls.__new__(cls)
        made._keys = frozenset(keys)
        return made

    def has(self, k: Any) -> bool:
        return k in self._keys

    def add(self, k: Any) -> DispatchKeySet:
        return self._of(self._keys | {DispatchKey(k)})

    def remove(self, k: Any) -> DispatchKeySet:
        return self._of(self._keys - {DispatchKey(k)})

    def raw_repr(self) -> int:
        """The set as PyTorch keeps it: a bit for each backend, and above them one for each kind of key."""
        return functools.reduce(operator.or_, (_RAW.get(k.name, 0) for k in self._keys), 0)

    @classmethod
    def from_raw_repr(cls, raw: int) -> DispatchKeySet:
        return cls._of(DispatchKey[name] for name, bits in _RAW.items() if bits and raw & bits == bits)

    def highestPriorityTypeId(self) -> Any:
        return max(self._keys, key=lambda k: _RAW.get(k.name, 0), default=DispatchKey.Undefined)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self._of(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self._of(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self._of(self._keys - other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(k.name for k in sorted(self._keys, key=lambda k: _RAW.get(k.name, 0)))})"


def _dispatch_key_parse(name: str) -> Any:
    if name not in DispatchKey.__members__:
        raise RuntimeError(f"could not parse dispatch key: {name}")
    return DispatchKey[name]


def _dispatch_key_name(key: Any) -> str:
    return str(DispatchKey(key).name)


# -- the keys of a tensor -----------------------------------------------------------------------------------------
def _dispatch_keys(t: Any) -> DispatchKeySet:
    """The keys that a tensor has in PyTorch."""
    keys, backend = t._keys, {"cpu": "CPU", "meta": "Meta", "npu": "PrivateUse1"}.get(t._device.type, "PrivateUse1")
    kind = ""
    if keys & NESTED:
        kind = "NestedTensor"
    elif keys & SPARSE:
        kind = "Sparse" if str(t.layout) == "torch.sparse_coo" else "SparseCsr"
    names = [kind + backend]
    if keys & NESTED:
        names.append("AutogradNestedTensor")
        if str(t.layout) == "torch.jagged":
            names += ["CPU" if backend == "CPU" else backend, "Python", "PythonTLSSnapshot"]
    if backend != "Meta":
        names.append(f"Autocast{backend}")
    if not keys & INFERENCE:
        names += ["ADInplaceOrView", f"Autograd{backend}"]
    for bit, shown in _SHOWN:
        if keys & bit:
            names += shown
    return DispatchKeySet._of(DispatchKey[name] for name in [*names, *getattr(t, "_extra_keys", ())])


def _dispatch_key_set(t: Any) -> str:
    return str(_dispatch_keys(t))


def _dispatch_isTensorSubclassLike(t: Any) -> bool:
    """Whether something else than a strided kernel of a device computes with `t`."""
    if modes() & TORCH_DISPATCH:
        return True
    jagged = t._keys & NESTED and str(t.layout) == "torch.jagged"
    return bool(t._keys & (META | TORCH_DISPATCH | BATCHED)) or bool(
        t._keys & SPARSE and (jagged or not t._keys & NESTED)
    )


_SHOWN: tuple[tuple[int, list[str]], ...] = (
    (CONJUGATE, ["Conjugate"]),
    (NEGATIVE, ["Negative"]),
    (TORCH_DISPATCH, ["Python", "PythonTLSSnapshot"]),
    (BATCHED, ["FuncTorchBatched"]),
)


# -- operators by their names -------------------------------------------------------------------------------------
def _dispatch_find_schema_or_throw(name: str, overload: str) -> Any:
    """The operator with this name and overload."""
    from ._operators import ops

    namespace, _, base = name.partition("::")
    found = getattr(getattr(ops, namespace), base, None)
    found = getattr(found, overload or "default", None)
    if found is None:
        raise RuntimeError(f"Could not find schema for {name}{'.' if overload else ''}{overload}.")
    return found


def has_kernel(op: Any, key: Any) -> bool:
    """Whether an operator was given a kernel for a key, as far as the key means something here."""
    name = key if isinstance(key, str) else _dispatch_key_name(key)
    if name == "CompositeImplicitAutograd":
        return op.composite is not None
    if name == "CompositeExplicitAutograd":
        return op.row is not None and getattr(op.row, "fallback", None) is not None
    if name.startswith("Autograd"):
        return op.composite is None and op.derivative is not None and op.derivative is not _unrecorded()
    device = "npu" if name == "PrivateUse1" else name.lower()
    return DEVICE_BITS.get(device, 0) in op.kernels


def _unrecorded() -> Any:
    """What stands for the derivative of an operator from outside to which nobody gave one."""
    from ._library.registrations import UNRECORDED

    return UNRECORDED


def _dispatch_has_kernel_for_dispatch_key(name: str, dispatch: Any) -> bool:
    """Whether the operator `namespace::name.overload` was given a kernel for a key."""
    base, _, overload = name.partition(".")
    return has_kernel(_dispatch_find_schema_or_throw(base, overload)._op, dispatch)


def _dispatch_has_kernel(name: str) -> bool:
    """Whether the operator can be called at all."""
    base, _, overload = name.partition(".")
    op = _dispatch_find_schema_or_throw(base, overload)._op
    return bool(op.kernels) or any(has_kernel(op, f"Composite{kind}Autograd") for kind in ("Implicit", "Explicit"))


def _dispatch_call_boxed(handle: Any, *args: Any, **kwargs: Any) -> Any:
    return handle(*args, **kwargs)


class _EnablePythonDispatcher:
    """Kernels that are written in Python are asked first; here all dispatch is Python's, so that nothing changes."""


# Keys of PyTorch's dispatcher that have a bit here; what such a key stands for is hidden with the bit.
_BITS: dict[str, int] = {
    "Python": TORCH_DISPATCH,
    "PythonTLSSnapshot": TORCH_DISPATCH,
    "Functionalize": FUNCTIONALIZE,
    "ADInplaceOrView": AUTOGRAD,
    "Autograd": AUTOGRAD,
    **{name: AUTOGRAD for name in _NUMBERS if name.startswith("Autograd")},
    **{name: AUTOCASTS for name in _NUMBERS if name.startswith("Autocast")},
}


# Backends that have no tensors here: hiding them changes nothing.
_FOREIGN = frozenset(_BACKENDS) - {"CPU", "Meta", "PrivateUse1"}


def _dispatch_tls_local_exclude_set() -> DispatchKeySet:
    """The keys that are hidden in this thread, as far as they have a bit here. `no_grad` hides none in PyTorch."""
    hidden = modes() >> 32
    if not modes() & BELOW_AUTOGRAD:
        hidden &= ~AUTOGRAD
    return DispatchKeySet._of(DispatchKey[name] for name, bit in _BITS.items() if hidden & bit)


class ExcludeDispatchKeyGuard:
    """Hides keys from where it is made, or entered, until it is left."""

    __module__ = "torch"

    def __init__(self, keys: DispatchKeySet) -> None:
        self._bits = 0
        if not isinstance(keys, DispatchKeySet):
            raise TypeError(
                "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
                "    1. torch._C.ExcludeDispatchKeyGuard(arg0: torch._C.DispatchKeySet)\n\n"
                f"Invoked with: {keys!r}"
            )
        for key in keys._keys:
            if key.name.removeprefix("Autograd") in _FOREIGN:
                continue
            if key.name not in _BITS:
                raise NotImplementedError(f"ExcludeDispatchKeyGuard: there is no key {key.name} in this dispatcher")
            self._bits |= _BITS[key.name]
        self._before: int | None = None

    def __enter__(self) -> None:
        self._before = exclude(self._bits)
        if self._bits & AUTOGRAD:
            set_modes(modes() | BELOW_AUTOGRAD)

    def __exit__(self, *exc: object) -> None:
        if self._before is not None:
            set_modes(self._before)
        self._before = None


_ExcludeDispatchKeyGuard = ExcludeDispatchKeyGuard
