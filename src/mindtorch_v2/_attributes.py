"""What a user set on a tensor: its `__dict__`, where the package runs uncompiled.

Invariant: compiled, a tensor's fields lie in the object and its `__dict__` is the user's alone. Uncompiled, Python
keeps both in one dict; `Attributes` shows the user's part of it, and what is written there is written through.
"""

from __future__ import annotations

from typing import Any

from ._tensor_base import TensorBase

# Fields that lie in the instance's dict; none where the class is compiled.
FIELDS: frozenset[str] = frozenset(getattr(TensorBase, "__annotations__", ()))
_DICT: Any = vars(TensorBase).get("__dict__")


class Attributes(dict[str, Any]):
    """The attributes of one tensor without its fields."""

    def __init__(self, t: TensorBase) -> None:
        self._whole: dict[str, Any] = _DICT.__get__(t)
        super().__init__({k: v for k, v in self._whole.items() if k not in FIELDS})

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self._whole[name] = value

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        del self._whole[name]

    def update(self, *args: Any, **kwargs: Any) -> None:
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def pop(self, name: str, *default: Any) -> Any:
        if name in self:
            del self._whole[name]
        return super().pop(name, *default)

    def clear(self) -> None:
        for name in list(self):
            del self[name]

    def replace(self, new: dict[str, Any]) -> None:
        """What `t.__dict__ = new` does."""
        self.clear()
        self.update(new)
