"""`torch.utils.weak`: weak references that compare and hash by identity, and a dictionary with such keys.

Tensors compare elementwise, so Python's own weak dictionaries cannot hold them. Invariant: a key that dies leaves the
dictionary, but never while somebody iterates over it.
"""

from __future__ import annotations

import copy as _copy
import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any
from weakref import ref

from .._tensor_base import TensorBase

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]

WeakRef = ref


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that is equal to another when both refer to the very same living object."""

    __slots__ = ("_id",)

    _id: int

    def __new__(cls, key: Any, callback: Callable[[Any], Any] | None = None) -> WeakIdRef:
        made = super().__new__(cls, key, callback)
        # Taken now: a dead object has none, and the reference must still be found in its dictionary.
        made._id = id(key)
        return made

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        a, b = self(), other() if callable(other) else None
        return a is b if a is not None and b is not None else self is other


class _WeakHashRef(weakref.ref[Any]):
    """A weak reference that hashes as its object does, and compares with others while both objects live."""

    __slots__ = ("_id",)

    _id: int

    def __new__(cls, key: Any, callback: Callable[[Any], Any] | None = None) -> _WeakHashRef:
        made = super().__new__(cls, key, callback)
        made._id = hash(key)
        return made

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        a, b = self(), other() if callable(other) else None
        return bool(a == b) if a is not None and b is not None else self is other


class _IterationGuard:
    """While one of these lives, keys that die are only noted."""

    def __init__(self, weakcontainer: WeakIdKeyDictionary) -> None:
        self.weakcontainer = ref(weakcontainer)

    def __enter__(self) -> _IterationGuard:
        container = self.weakcontainer()
        if container is not None:
            container._iterating.add(self)
        return self

    def __exit__(self, *exc: object) -> None:
        container = self.weakcontainer()
        if container is not None:
            container._iterating.remove(self)
            if not container._iterating:
                container._commit_removals()


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary whose keys are held weakly and compared by identity."""

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        self._pending_removals: list[Any] = []
        self._iterating: set[_IterationGuard] = set()

        holder = ref(self)

        def remove(key: Any) -> None:
            found = holder()
            if found is None:
                return
            if found._iterating:
                found._pending_removals.append(key)
            else:
                found.data.pop(key, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def _commit_removals(self) -> None:
        while self._pending_removals:
            self.data.pop(self._pending_removals.pop(), None)

    def __len__(self) -> int:
        self._pending_removals = [k for k in self._pending_removals if k in self.data]
        return len(self.data) - len(self._pending_removals)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # some objects have no weak references
            return False

    def _living(self) -> Iterator[tuple[Any, Any]]:
        with _IterationGuard(self):
            for reference, value in self.data.items():
                key = reference()
                if key is not None:
                    yield key, value

    def __iter__(self) -> Iterator[Any]:
        for key, _ in self._living():
            yield key

    keys = __iter__  # type: ignore[assignment]

    def items(self) -> Any:
        return self._living()

    def values(self) -> Any:
        return (value for _, value in self._living())

    def keyrefs(self) -> list[Any]:
        """The references themselves; those of dead keys may be among them."""
        return list(self.data)

    def get(self, key: Any, default: Any = None) -> Any:
        return self.data.get(self.ref_type(key), default)

    def pop(self, key: Any, *args: Any) -> Any:
        return self.data.pop(self.ref_type(key), *args)

    def popitem(self) -> tuple[Any, Any]:
        while True:
            reference, value = self.data.popitem()
            key = reference()
            if key is not None:
                return key, value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        return self.data.setdefault(self.ref_type(key, self._remove), default)

    def update(self, dict: Any = None, **kwargs: Any) -> None:  # type: ignore[override]
        if dict is not None:
            for key, value in dict.items() if hasattr(dict, "items") else dict:
                self[key] = value
        if kwargs:
            self.update(kwargs)

    def copy(self) -> WeakIdKeyDictionary:
        new = WeakIdKeyDictionary()
        for key, value in self._living():
            new[key] = value
        return new

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> WeakIdKeyDictionary:
        """The same keys with copies of the values."""
        new = type(self)()
        for key, value in self._living():
            new[key] = _copy.deepcopy(value, memo)
        return new

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        new = self.copy()
        new.update(other)
        return new

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        new = type(self)()
        new.update(other)
        new.update(self)
        return new

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor."""

    ref: WeakRef[Any]

    def __init__(self, tensor: Any) -> None:
        if not isinstance(tensor, TensorBase):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Any:
        """The tensor, or None once it is gone."""
        return self.ref()
