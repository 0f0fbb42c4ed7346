"""Parts of PyTorch that are importable and not served: each name raises when it is used, and says what to do instead.

Invariant: a class can be named in annotations and in `isinstance`, where nothing is an instance; a function can be
imported. Neither pretends to work.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn


class _Nothing(type):
    """Of classes that nothing is an instance of."""

    _text: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(cls._text)


def offer(module: str, functions: str, classes: str, why: str) -> None:
    """Put names into a module: `why` is a sentence with the place of `{name}`."""
    space: dict[str, Any] = vars(sys.modules[module])
    title = "torch." + space["__spec__"].name.partition(".")[2]
    for name in functions.split():
        space[name] = _function(module, name, why.replace("{name}", f"{title}.{name}"))
    for name in classes.split():
        text = why.replace("{name}", f"{title}.{name}")
        space[name] = _Nothing(name, (), {"__module__": module, "__doc__": text, "_text": text})
    space["__all__"] = sorted({*space.get("__all__", ()), *functions.split(), *classes.split()})


def offer_module(parent: str, name: str, functions: str, classes: str, why: str) -> None:
    """Put a module into a package that has no file for it; its names are as those of `offer`."""
    full = f"{parent}.{name}"
    made = ModuleType(full, "Importable, and refused by name.")
    made.__spec__, made.__package__ = ModuleSpec(full, None), parent
    sys.modules[full] = made
    offer(full, functions, classes, why)
    setattr(sys.modules[parent], name, made)


def _function(module: str, name: str, text: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(text)

    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = module, text
    return function
