"""`torch.storage`: flat memory under tensors, as bytes or as elements of one dtype."""

from __future__ import annotations

from typing import Any as _Any

from ._dtype import dtype as _DType
from ._storage import UntypedStorage as UntypedStorage
from ._storage_classes import _LegacyStorage as _LegacyStorage
from ._storage_classes import _LegacyStorageMeta as _LegacyStorageMeta
from ._typed_storage import CLASSES as _CLASSES
from ._typed_storage import TypedStorage as TypedStorage
from ._typed_storage import _warn as _warn_typed_storage_removal  # noqa: F401 (PyTorch's name for it)
from ._typed_storage import _Warned

__all__ = ["TypedStorage", "UntypedStorage"]


def _load_from_bytes(b: bytes) -> _Any:
    """What pickles of storages call."""
    import io

    from .serialization import load

    return load(io.BytesIO(b), weights_only=False)


def _dtype_to_storage_type_map() -> dict[_DType, str]:
    """Names of the storage classes by dtype."""
    from . import _dtype

    return {getattr(_dtype, kind): f"{title}Storage" for kind, title in _CLASSES.items()}


def _storage_type_to_dtype_map() -> dict[str, _DType]:
    """Dtypes by the names of the storage classes."""
    return {name: dt for dt, name in _dtype_to_storage_type_map().items()}


def _get_dtype_from_pickle_storage_type(pickle_storage_type: str) -> _DType:
    """The dtype meant by a storage class that a pickle names."""
    found = _storage_type_to_dtype_map().get(pickle_storage_type)
    if found is None:
        raise KeyError(f'pickle storage type "{pickle_storage_type}" is not recognized')
    return found


def _get_always_warn_typed_storage_removal() -> bool:
    return _Warned.always


def _set_always_warn_typed_storage_removal(always_warn: bool) -> None:
    """Whether the warning that typed storages will go is given each time, not once."""
    if not isinstance(always_warn, bool):
        raise AssertionError(f"always_warn must be bool, got {type(always_warn).__name__}")
    _Warned.always = always_warn
