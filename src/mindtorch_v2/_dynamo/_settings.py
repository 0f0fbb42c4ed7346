"""Modules of settings, as `torch._dynamo.config`: attributes of known names that can be read, set and patched.

Invariant: a setting is kept and given back; what it would steer in PyTorch's compiler is not here, so that none changes
what is computed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ContextDecorator
from types import ModuleType
from typing import Any


class Settings(ModuleType):
    """A module whose public attributes are the settings of a table."""

    _values: dict[str, Any]
    _defaults: dict[str, Any]
    _aliases: dict[str, str]

    def __getattr__(self, name: str) -> Any:
        values = self._values
        name = self._aliases.get(name, name)
        if name in values:
            return values[name]
        if any(key.startswith(name + ".") for key in values):
            return _Group(self, name)
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{self._title()}.{name} does not exist")

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_") or isinstance(value, ModuleType):
            super().__setattr__(name, value)
            return
        name = self._aliases.get(name, name)
        if name not in self._defaults:
            raise AttributeError(f"{self._title()}.{name} does not exist")
        self._values[name] = value

    def __delattr__(self, name: str) -> None:
        # A setting that was deleted can be set again: `unittest.mock.patch` deletes what it has set, and restores it.
        if name.startswith("_"):
            super().__delattr__(name)
            return
        name = self._aliases.get(name, name)
        if name not in self._values:
            raise AttributeError(f"{self._title()}.{name} does not exist")
        del self._values[name]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._values})

    def _title(self) -> str:
        return "torch." + self.__spec__.name.partition(".")[2] if self.__spec__ is not None else self.__name__

    def get_config_copy(self) -> dict[str, Any]:
        """All settings by name."""
        return dict(self._values)

    def get_type(self, name: str) -> type:
        """The type of a setting's default."""
        return type(self._defaults[name])

    def load_config(self, values: dict[str, Any]) -> None:
        """Set several at once."""
        for name, value in values.items():
            setattr(self, name, value)

    def patch(self, arg1: Any = None, arg2: Any = None, **kwargs: Any) -> _Patch:
        """`with config.patch(name=value)`, also as a decorator: settings for a while."""
        if arg1 is not None:
            kwargs = {arg1: arg2} if isinstance(arg1, str) else dict(arg1)
        return _Patch(self, kwargs)

    def to_dict(self) -> dict[str, Any]:
        return self.get_config_copy()


class _Group:
    """`config.triton`: settings whose names begin alike."""

    def __init__(self, owner: Settings, prefix: str) -> None:
        vars(self).update(_owner=owner, _prefix=prefix)

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_owner"], f"{vars(self)['_prefix']}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["_owner"], f"{vars(self)['_prefix']}.{name}", value)

    def __delattr__(self, name: str) -> None:
        delattr(vars(self)["_owner"], f"{vars(self)['_prefix']}.{name}")


class _Patch(ContextDecorator):
    def __init__(self, owner: Settings, values: dict[str, Any]) -> None:
        self.owner, self.values = owner, values
        for name in values:
            getattr(owner, name)

    def __enter__(self) -> None:
        self.before = {name: getattr(self.owner, name) for name in self.values}
        self.owner.load_config(self.values)

    def __exit__(self, *exc: object) -> None:
        self.owner.load_config(self.before)


def become(name: str, table: Callable[[], dict[str, Any]], aliases: dict[str, str] | None = None) -> None:
    """Make the module that is being loaded a module of settings."""
    module: Any = sys.modules[name]
    vars(module).update(_values=table(), _defaults=table(), _aliases=aliases or {})
    module.__class__ = Settings


def spelled(**kinds: str) -> dict[str, Any]:
    """A table from names in lines: `spelled(true="a b", false="c", none="d", int="e=1 f=2", str="g=x")`."""
    found: dict[str, Any] = {}
    fixed: dict[str, Any] = {"true": True, "false": False, "none": None}
    readers: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str}
    for kind, names in kinds.items():
        for name in names.split():
            if kind in fixed:
                found[name] = fixed[kind]
            else:
                key, _, value = name.partition("=")
                found[key] = readers[kind](value)
    return found
