"""Modules of settings, as `torch._dynamo.config`: attributes of known names that can be read, set and patched.

Invariant: a setting is kept and given back, in the thread that set it; what it would steer in PyTorch's compiler is not
here, so that none changes what is computed.
"""

from __future__ import annotations

import copy
import hashlib
import pickle
import sys
import warnings
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from contextvars import ContextVar
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, get_args

UNSET = object()
_KINDS = (bool, str)
_SHARED = (list, set, dict)


class Entry:
    """A setting: its default, what the environment says of it, and what it was set to."""

    env_value_force: Any
    env_value_default: Any

    def __init__(
        self,
        name: str,
        default: Any = UNSET,
        value_type: Any = None,
        justknob: str | None = None,
        alias: str | None = None,
        deprecated: bool = False,
        deprecation_message: str | None = None,
    ) -> None:
        self.default = default
        self.value_type = type(default) if value_type is None else value_type
        self.justknob, self.alias = justknob, alias
        self.deprecated, self.deprecation_message = deprecated, deprecation_message
        self._deprecation_warned = False
        self._hidden = False
        # Of this thread, as in PyTorch; the object is asked for by name.
        self.user_override: ContextVar[Any] = ContextVar(name, default=UNSET)
        if justknob is not None and not isinstance(default, bool):
            raise AssertionError(f"justknobs only support booleans, {default} is not a boolean")

    def from_environment(self, forced: Any, default: Any) -> None:
        """Values of environment variables: one that nothing overrides, and one in the place of the default."""
        kinds = [k for k in get_args(self.value_type) if k is not type(None)] or [self.value_type]
        if not all(k in _KINDS for k in kinds):
            raise AssertionError(
                f"envvar configs only support (optional) booleans or strings, {self.value_type} is neither"
            )
        if forced is not UNSET:
            self.env_value_force = forced
        if default is not UNSET:
            self.env_value_default = default

    def own(self) -> Any:
        """The value, where the setting is no other's name."""
        if hasattr(self, "env_value_force"):
            return self.env_value_force
        value = self.user_override.get()
        if value is not UNSET:
            return value
        if hasattr(self, "env_value_default"):
            return self.env_value_default
        if not isinstance(self.default, _SHARED):
            return self.default
        # Who changes it in place changes the setting, and not its default.
        value = copy.deepcopy(self.default)
        self.user_override.set(value)
        return value

    def is_default(self) -> bool:
        value = self.user_override.get()
        if hasattr(self, "env_value_force") or hasattr(self, "env_value_default"):
            return False
        # What was set is kept apart even if it is the default; what reading has copied is not.
        return bool(value is UNSET or (isinstance(value, _SHARED) and value == self.default))


class Settings(ModuleType):
    """A module whose public attributes are the settings of a table."""

    _config: dict[str, Entry]
    _compile_ignored_keys: set[str]
    _hash_digest: Any

    def __getattr__(self, name: str) -> Any:
        entry = vars(self)["_config"].get(name)
        if entry is not None and not entry._hidden:
            self._warn(name, entry)
            return entry.own() if entry.alias is None else getattr(*self._aliased(entry))
        if any(key.startswith(name + ".") for key in self._config):
            return _Group(self, name)
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{self._title()}.{name} does not exist")

    def __setattr__(self, name: str, value: Any) -> None:
        entry = vars(self)["_config"].get(name)
        if entry is None:
            if name.startswith("_") or isinstance(value, ModuleType):
                super().__setattr__(name, value)
                return
            raise AttributeError(f"{self._title()}.{name} does not exist")
        self._warn(name, entry)
        if entry.alias is not None:
            setattr(*self._aliased(entry), value)
            return
        entry.user_override.set(value)
        entry._hidden = False
        vars(self)["_hash_digest"] = None

    def __delattr__(self, name: str) -> None:
        # A setting that was deleted can be set again: `unittest.mock.patch` deletes what it has set, and restores it.
        entry = vars(self)["_config"].get(name)
        if entry is None:
            if name not in vars(self):
                raise KeyError(name)
            super().__delattr__(name)
            return
        if entry._hidden:
            raise AttributeError(f"{self._title()}.{name} does not exist")
        entry.user_override.set(UNSET)
        entry._hidden = True

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._config})

    def _title(self) -> str:
        if self.__spec__ is None or not self.__spec__.name.startswith(__name__.partition(".")[0] + "."):
            return self.__name__
        return "torch." + self.__spec__.name.partition(".")[2]

    def _aliased(self, entry: Entry) -> tuple[Any, str]:
        """The module and the name that a setting stands for: one of this module, or of another by its whole name."""
        module, _, name = str(entry.alias).rpartition(".")
        return (self if not module else import_module(module)), name

    def _warn(self, name: str, entry: Entry) -> None:
        if entry.deprecated and not entry._deprecation_warned:
            entry._deprecation_warned = True
            why = f" and {entry.deprecation_message}" if entry.deprecation_message else ""
            warnings.warn(
                f"{self._title()}.{name} is deprecated{why}. It will be removed in a future version of PyTorch.",
                FutureWarning,
                stacklevel=3,
            )

    def _is_default(self, name: str) -> bool:
        return self._config[name].is_default()

    def _get_dict(
        self,
        ignored_keys: Iterable[str] | None = None,
        ignored_prefixes: Iterable[str] | None = None,
        skip_default: bool = False,
        readonly_values: bool = False,
    ) -> dict[str, Any]:
        """Settings by name, without those that stand for others; with `readonly_values` they are not copied."""
        found: dict[str, Any] = {}
        for name, entry in self._config.items():
            if entry.alias is not None or entry._hidden or name in (ignored_keys or ()):
                continue
            if name.startswith(tuple(ignored_prefixes or ())) or (skip_default and entry.is_default()):
                continue
            self._warn(name, entry)
            value = entry.own()
            found[name] = value if readonly_values else copy.deepcopy(value)
        return found

    def get_config_copy(self) -> dict[str, Any]:
        """All settings by name."""
        return self._get_dict()

    def to_dict(self) -> dict[str, Any]:
        return self._get_dict()

    def shallow_copy_dict(self) -> dict[str, Any]:
        return self._get_dict()

    def get_type(self, name: str) -> Any:
        """The type of a setting: as it is annotated, or that of its default."""
        return self._config[name].value_type

    def save_config(self) -> bytes:
        """The settings as bytes, without those that the module says are not saved."""
        saved = self._get_dict(ignored_keys=self._listed("_save_config_ignore"))
        return pickle.dumps(saved, protocol=2)

    def save_config_portable(
        self, *, ignore_private_configs: bool = True, readonly_values: bool = False
    ) -> dict[str, Any]:
        """The settings that mean the same elsewhere."""
        prefixes = [*self._listed("_cache_config_ignore_prefix"), *(["_"] if ignore_private_configs else [])]
        return self._get_dict(ignored_prefixes=prefixes, readonly_values=readonly_values)

    def _listed(self, name: str) -> list[str]:
        entry = self._config.get(name)
        return [] if entry is None else list(entry.own())

    def codegen_config(self) -> str:
        """Lines of Python that set what is not as it was."""
        imports: set[str] = set()
        lines = []
        for name, value in self._get_dict(self._listed("_save_config_ignore"), skip_default=True).items():
            if isinstance(value, list) and value and all(_is_function(v) for v in value):
                text = repr([_spelled(v, imports) for v in value])
            elif isinstance(value, set) and value and all(_is_function(v) for v in value):
                text = "{ " + ", ".join(_spelled(v, imports) for v in value) + " }"
            else:
                text = _spelled(value, imports)
            lines.append(f"{self._title()}.{name} = {text}")
        return "\n".join([*sorted(imports), *lines])

    def get_hash(self) -> bytes:
        """A digest of the settings that compiled code depends on."""
        if self._hash_digest is None:
            kept = self._get_dict(ignored_keys=self._compile_ignored_keys, readonly_values=True)
            return hashlib.md5(repr(sorted(kept.items())).encode(), usedforsecurity=False).digest()
        digest: bytes = self._hash_digest
        return digest

    def load_config(self, values: bytes | dict[str, Any]) -> None:
        """Set several at once; of a name that there is none of it is warned."""
        read = values if isinstance(values, dict) else pickle.loads(values)
        for name, value in read.items():
            if name in self._config:
                setattr(self, name, value)
            else:
                warnings.warn(f"key {name} with value {value} is not understood by this config", stacklevel=2)

    def patch(self, arg1: Any = None, arg2: Any = None, **kwargs: Any) -> _Patch:
        """`with config.patch(name=value)`, also as a decorator: settings for a while."""
        if arg1 is not None:
            if kwargs:
                raise AssertionError("cannot pass both positional and keyword arguments to patch")
            if arg2 is None and not isinstance(arg1, dict):
                raise AssertionError("first argument must be a dict when passing a single positional arg to patch")
            kwargs = dict(arg1) if arg2 is None else {arg1: arg2}
        return _Patch(self, kwargs)

    def _make_closure_patcher(self, **changes: Any) -> Callable[[], Callable[[], None]]:
        """A function that sets settings and gives one that sets them back."""

        def change() -> Callable[[], None]:
            before = {name: getattr(self, name) for name in changes}
            self._set(changes)
            return lambda: self._set(before)

        return change

    def _set(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            setattr(self, name, value)


def _is_function(value: Any) -> bool:
    return isinstance(value, (FunctionType, BuiltinFunctionType))


def _spelled(value: Any, imports: set[str]) -> str:
    """A value as Python; functions by their names, with what has to be imported for them."""
    if not _is_function(value):
        return repr(value)
    if value.__module__ == "builtins":
        return str(value.__name__)
    imports.add(f"import {value.__module__}")
    return f"{value.__module__}.{value.__name__}"


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
    """Settings for a while; may be entered again inside itself, and by several threads."""

    def __init__(self, owner: Settings, values: dict[str, Any]) -> None:
        self.owner, self.values = owner, values
        self.before: ContextVar[tuple[dict[str, Any], ...]] = ContextVar("before", default=())

    def __enter__(self) -> None:
        before = {name: getattr(self.owner, name) for name in self.values}
        self.before.set((*self.before.get(), before))
        self.owner._set(self.values)

    def __exit__(self, *exc: object) -> None:
        *outer, before = self.before.get()
        self.before.set(tuple(outer))
        self.owner._set(before)


def become(name: str, table: Callable[[], dict[str, Any]], aliases: dict[str, str] | None = None) -> None:
    """Make the module that is being loaded a module of settings."""
    entries = {key: Entry(key, value) for key, value in table().items()}
    entries.update({key: Entry(key, alias=other) for key, other in (aliases or {}).items()})
    turn(sys.modules[name], entries, set())


def turn(module: Any, entries: dict[str, Entry], ignored: set[str]) -> None:
    """Make a module one of these settings; the digest does not speak of the ignored ones."""
    vars(module).update(_config=entries, _compile_ignored_keys=ignored, _hash_digest=None)
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
