"""`torch.utils._config_module`: modules made of settings."""

from __future__ import annotations

import io
import os
import tokenize
from inspect import getsource
from types import FunctionType, ModuleType
from typing import Any

from .._dynamo._settings import UNSET as _UNSET_SENTINEL
from .._dynamo._settings import Entry, turn
from .._dynamo._settings import Settings as ConfigModule
from .._dynamo._settings import _Group as SubConfigProxy

__all__ = [
    "Config",
    "ConfigModule",
    "SubConfigProxy",
    "get_assignments_with_compile_ignored_comments",
    "get_tristate_env",
    "install_config_module",
]

COMPILE_IGNORED_MARKER = "@compile_ignored"
_WORDS = {"1": True, "true": True, "0": False, "false": False}


class _Config:
    """A setting with its default, and the names of environment variables that change it."""

    def __init__(
        self,
        default: Any = _UNSET_SENTINEL,
        justknob: str | None = None,
        env_name_default: Any = None,
        env_name_force: Any = None,
        value_type: Any = None,
        alias: str | None = None,
        deprecated: bool = False,
        deprecation_message: str | None = None,
    ) -> None:
        if alias is not None and (
            default is not _UNSET_SENTINEL or any(x is not None for x in (justknob, env_name_default, env_name_force))
        ):
            raise AssertionError("if alias is set, none of {default, justknob and env var} can be set")
        self.default, self.alias, self.value_type, self.justknob = default, alias, value_type, justknob
        self.env_name_force, self.env_name_default = _names(env_name_force), _names(env_name_default)
        self.deprecated, self.deprecation_message = deprecated, deprecation_message


def _names(given: Any) -> list[str] | None:
    return [given] if isinstance(given, str) else given


def _read(names: list[str] | None) -> Any:
    """What the first of these environment variables that there is says."""
    for name in names or ():
        if name in os.environ:
            return _WORDS.get(os.environ[name].lower(), os.environ[name])
    return _UNSET_SENTINEL


def get_tristate_env(name: str, default: Any = None) -> Any:
    """An environment variable as a truth value, or the default."""
    return {"1": True, "0": False}.get(os.environ.get(name, ""), default)


def Config(*args: Any, **kwargs: Any) -> Any:
    """Describe a setting in a module that becomes one of settings."""
    return _Config(*args, **kwargs)


class _ConfigEntry(Entry):
    """A setting as a module keeps it."""

    def __init__(self, config: _Config, name: str) -> None:
        known = (config.default, config.value_type, config.justknob, config.alias)
        super().__init__(name, *known, config.deprecated, config.deprecation_message)
        if config.env_name_force is not None or config.env_name_default is not None:
            self.from_environment(_read(config.env_name_force), _read(config.env_name_default))


def _taken(space: dict[str, Any], prefix: str, entries: dict[str, Entry]) -> list[str]:
    """Read the settings of a module or of a class in it."""
    names: list[str] = []
    types = space.get("__annotations__", {})
    for name, value in list(space.items()):
        known = value is None or isinstance(value, (_Config, bool, int, float, str, list, tuple, set, dict))
        if name.startswith("__") or name in types and isinstance(types[name], str) and "ClassVar" in types[name]:
            continue
        if isinstance(value, type) and value.__module__ == space.get("__name__", value.__module__):
            if value is _Config:
                continue
            _taken(dict(vars(value)), f"{prefix}{name}.", entries)
        elif known or (isinstance(value, FunctionType) and name in types):
            config = value if isinstance(value, _Config) else _Config(default=value)
            if config.value_type is None:
                config.value_type = types.get(name)
            entries[prefix + name] = _ConfigEntry(config, prefix + name)
        else:
            continue
        names.append(name)
    return names


def get_assignments_with_compile_ignored_comments(module: ModuleType) -> set[str]:
    """Names that a module assigns below or beside a comment which says that compiled code does not depend on them."""
    found: set[str] = set()
    marked = False
    last: list[tokenize.TokenInfo] = []
    for token in tokenize.tokenize(io.BytesIO(getsource(module).encode()).readline):
        if token.type == tokenize.COMMENT:
            text = token.string.replace("[", "").strip("# ")
            if text.startswith(COMPILE_IGNORED_MARKER):
                marked = True
        elif token.type == tokenize.OP and token.string == "=" and last and last[0].type == tokenize.NAME:
            if marked and last[0].start[1] == 0:
                found.add(last[0].string)
            marked = False
        if token.type in (tokenize.NEWLINE, tokenize.NL):
            last = []
        elif token.type != tokenize.COMMENT:
            last.append(token)
    return found


def install_config_module(module: ModuleType) -> None:
    """Make a module's values settings: known by name, patched for a while, never added to by accident."""
    entries: dict[str, Entry] = {}
    try:
        ignored = get_assignments_with_compile_ignored_comments(module)
    except (OSError, TypeError):
        ignored = set()  # a module without a file
    for name in _taken(vars(module), "", entries):
        delattr(module, name)
    turn(module, entries, ignored)
