"""`torch._C.DispatchKey` and `DispatchKeySet`: names and numbers of PyTorch's dispatch keys, for code that names them.

Invariant: these name keys of PyTorch's dispatcher; the one here has bits of its own (`_dispatch.keys`), so that a set
of these says nothing of a tensor. `torch.library` takes the names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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


class ExcludeDispatchKeyGuard:
    """Hides keys of PyTorch's dispatcher, which is not here: making one says so."""

    __module__ = "torch"

    def __init__(self, keys: DispatchKeySet) -> None:
        raise NotImplementedError(
            "ExcludeDispatchKeyGuard: this dispatcher has no such keys; torch._C._AutoDispatchBelowAutograd and "
            "torch.no_grad switch recording off"
        )
