"""`torch._C.DispatchKey` and `DispatchKeySet`: names and numbers of PyTorch's dispatch keys, for code that names them.

Invariant: these name keys of PyTorch's dispatcher; the one here has bits of its own (`_dispatch.keys`), so that a set
of these says nothing of a tensor. `torch.library` takes the names; a guard hides those that have a bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._dispatch.keys import AUTOCASTS, AUTOGRAD, FUNCTIONALIZE, TORCH_DISPATCH
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
# A block of keys for every kind of tensor: where it starts, and one key per backend.
for _start, _kind, _prefix in (
    (48, "Dense", ""),
    (65, "Quantized", "Quantized"),
    (82, "Sparse", "Sparse"),
    (99, "SparseCsr", "SparseCsr"),
    (116, "NestedTensor", "NestedTensor"),
    (133, "AutogradFunctionality", "Autograd"),
):
    _NUMBERS[f"StartOf{_kind}Backends"] = _start
    _NUMBERS.update({_prefix + backend: _start + 1 + i for i, backend in enumerate(_BACKENDS)})
    _NUMBERS[f"EndOf{_kind}Backends"] = _start + len(_BACKENDS)


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
        return f"DispatchKeySet({', '.join(k.name for k in sorted(self._keys))})"


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
        for key in keys._keys:
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
