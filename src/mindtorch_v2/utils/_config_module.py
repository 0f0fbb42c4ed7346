"""`torch.utils._config_module`: modules made of settings."""

from __future__ import annotations

import os
from types import FunctionType, ModuleType
from typing import Any

from .._dynamo._settings import Settings as ConfigModule
from .._dynamo._settings import become

__all__ = ["Config", "ConfigModule", "install_config_module"]

_WORDS = {"1": True, "true": True, "0": False, "false": False}


class _Config:
    """A setting with its default, and the names of environment variables that change it."""

    def __init__(
        self,
        default: Any = None,
        alias: str | None = None,
        env_name_force: Any = None,
        env_name_default: Any = None,
        value_type: Any = None,
        justknob: str | None = None,
        deprecated: bool = False,
        deprecation_message: str | None = None,
    ) -> None:
        if alias is not None and any(x is not None for x in (default, justknob, env_name_default, env_name_force)):
            raise AssertionError("if alias is set, none of {default, justknob and env var} can be set")
        self.default, self.alias, self.value_type, self.justknob = default, alias, value_type, justknob
        self.env_name_force, self.env_name_default = env_name_force, env_name_default
        self.deprecated, self.deprecation_message = deprecated, deprecation_message

    def value(self) -> Any:
        """What the setting begins with: an environment variable that forces or replaces the default, or the default."""
        for names in (self.env_name_force, self.env_name_default):
            for name in [names] if isinstance(names, str) else names or ():
                if name in os.environ:
                    return _WORDS.get(os.environ[name].lower(), os.environ[name])
        return self.default


def Config(*args: Any, **kwargs: Any) -> Any:
    """Describe a setting in a module that becomes one of settings."""
    return _Config(*args, **kwargs)


def _taken(space: dict[str, Any], prefix: str, values: dict[str, Any], aliases: dict[str, str]) -> list[str]:
    """Read the settings of a module or of a class in it."""
    names: list[str] = []
    for name, value in list(space.items()):
        if name.startswith("_") or isinstance(value, (ModuleType, FunctionType, classmethod, staticmethod)):
            continue
        if isinstance(value, _Config) and value.alias is not None:
            aliases[prefix + name] = value.alias
        elif isinstance(value, type):
            if value.__module__ != space.get("__name__", value.__module__) or value is _Config:
                continue
            _taken(dict(vars(value)), f"{prefix}{name}.", values, aliases)
        elif isinstance(value, _Config):
            values[prefix + name] = value.value()
        elif value is None or isinstance(value, (bool, int, float, str, list, tuple, set, dict)):
            values[prefix + name] = value
        else:
            continue
        names.append(name)
    return names


def install_config_module(module: ModuleType) -> None:
    """Make a module's values settings: known by name, patched for a while, never added to by accident."""
    values: dict[str, Any] = {}
    aliases: dict[str, str] = {}
    for name in _taken(vars(module), "", values, aliases):
        delattr(module, name)
    become(module.__name__, lambda: dict(values), aliases)
