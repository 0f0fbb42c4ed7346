"""Functions of the package that a trace records as a whole, with the arguments as the program gave them.

A public function finds out that an argument is a proxy when it fails, and does not know by then what was given by name.
So while a program is traced, functions that are written in Python run other code, which looks at the arguments first.

Invariant: a function is the same object inside and outside, and a program that traces nothing pays nothing.
"""

from __future__ import annotations

import functools
import inspect
import os
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mindtorch_v2 as torch

from .. import _creation, _native, _random
from .._api import public
from .._overrides import ask, given_values
from ._names import is_ours, package, public_module

_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Functions of which PyTorch names another one where indices are wanted too.
_WITH_INDICES = frozenset(
    """max_pool1d max_pool2d max_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
    fractional_max_pool2d fractional_max_pool3d""".split()
)
# Factories that take sizes: a proxy may be one.
_FACTORIES = (frozenset(_creation.__all__) - {"scalar_tensor"}) | {
    name for name in _random.__all__ if name.startswith("rand") or name in ("bernoulli", "normal")
}
# Of `torch.nn.init`: what PyTorch hands to handlers, all of it by name.
_INITIALIZERS = ("uniform_", "normal_", "constant_", "kaiming_uniform_")


def is_own_file(name: str) -> bool:
    """Whether code stands in the package."""
    return name.startswith((_FOLDER, "<torch."))


def completed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A call as PyTorch hands it to handlers: what has a default by name, the rest by position."""
    try:
        bound = _signature(func).bind(*args, **kwargs)
    except TypeError:
        return func, args, kwargs
    bound.apply_defaults()
    positional: list[Any] = []
    named: dict[str, Any] = {}
    by_name = func.__name__ in _INITIALIZERS and "init" in func.__module__
    for name, p in bound.signature.parameters.items():
        value = bound.arguments[name]
        if p.kind is p.VAR_POSITIONAL:
            positional.extend(value)
        elif p.kind is p.VAR_KEYWORD:
            named.update(value)
        elif p.default is p.empty and not by_name:
            positional.append(value)
        elif name not in _LEFT_OUT.get(func.__name__, ()):
            named[name] = value
    if func.__name__ in _WITH_INDICES and named.get("return_indices"):
        func = getattr(package().nn.functional, f"{func.__name__}_with_indices")
    return func, tuple(positional), named


def _norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None
) -> None:
    """`torch.norm`, which takes several forms here, has this one in PyTorch."""


def _cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> None:
    """`torch.cdist`."""


def _signature(func: Any) -> inspect.Signature:
    leaf = _LEAVES.found.get(func)
    same = _SAME.get(func.__name__) if is_ours(func.__module__) else None
    return inspect.signature(same or (func if leaf is None else leaf.inner))


_SAME: dict[str, Any] = {"norm": _norm, "cdist": _cdist}
_LEFT_OUT = {"l1_loss": ("weight",), "chain_matmul": ("out",)}


# -- other code for a function --------------------------------------------------------------------------------------
def _template() -> types.CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        space: dict[str, Any] = {}
        # By the file's name tracebacks and errors of devices know it for code of the package.
        source = "def leaf(*args, **kwargs):\n    return 'serve'(args, kwargs)"
        exec(compile(source, "<torch.fx.leaf>", "exec"), space)
    code: types.CodeType = space["leaf"].__code__
    return code


_CODE = _template()
_NATIVE = (_native.Function, _native.Method)


class _Leaf:
    """What a function runs while programs are traced."""

    def __init__(self, public: Any) -> None:
        self.fn = public
        fn: types.FunctionType = public.written if isinstance(public, _NATIVE) else public
        self.plain = fn.__code__
        self.inner = types.FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
        self.inner.__kwdefaults__ = fn.__kwdefaults__
        self.inner.__annotations__ = fn.__annotations__
        self.code = _CODE.replace(
            co_consts=tuple(self.serve if c == "serve" else c for c in _CODE.co_consts), co_name=fn.__name__
        )
        # A native function has no code of its own, and runs another function instead.
        self.instead = types.FunctionType(self.code, {}, fn.__name__)

    def is_on(self) -> bool:
        if isinstance(self.fn, _NATIVE):
            return self.fn.instead is self.instead
        return bool(self.fn.__code__ is self.code)

    def switch(self, on: bool) -> None:
        if isinstance(self.fn, _NATIVE):
            self.fn.instead = self.instead if on else None
        else:
            self.fn.__code__ = self.code if on else self.plain

    def serve(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if has_proxy(args, kwargs):
            return ask(self.fn, args, kwargs)
        return self.inner(*args, **kwargs)


def has_proxy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    from .proxy import Proxy

    return any(isinstance(v, Proxy) for v in given_values(args, kwargs))


class _Leaves:
    """Which functions are changed at the moment."""

    def __init__(self) -> None:
        self.depth = 0
        self.for_good = False
        self.found: dict[Any, _Leaf] = {}
        self.changed: list[_Leaf] = []

    def change(self, fn: Any) -> None:
        if not isinstance(fn, _NATIVE) and (
            not isinstance(fn, types.FunctionType) or fn.__closure__ is not None or fn.__code__.co_freevars
        ):
            return
        leaf = self.found.get(fn)
        if leaf is None:
            leaf = self.found[fn] = _Leaf(fn)
        if not leaf.is_on():
            leaf.switch(True)
            self.changed.append(leaf)

    def back(self) -> None:
        while self.changed:
            self.changed.pop().switch(False)


_LEAVES = _Leaves()


def as_written(fn: Any) -> Any:
    """A function with the code that it was written with."""
    leaf = _LEAVES.found.get(fn) if isinstance(fn, types.FunctionType) else None
    return fn if leaf is None else leaf.inner


def _functional() -> list[Any]:
    """The functions of `torch.nn.functional` that do not ask handlers themselves, and those of `torch.nn.init`."""
    found = [
        fn
        for name, fn in vars(torch.nn.functional).items()
        if isinstance(fn, types.FunctionType)
        and fn.__closure__ is None
        and not name.startswith("_")
        and public_module(fn.__module__) == "torch.nn.functional"
    ]
    return found + [getattr(torch.nn.init, n) for n in _INITIALIZERS]


@contextmanager
def recorded() -> Iterator[None]:
    """Inside, calls with proxies are recorded as they are written."""
    _LEAVES.depth += 1
    replaced: dict[str, Any] = {}
    if _LEAVES.depth == 1:
        for fn in (*_functional(), *public.BUILT):
            _LEAVES.change(fn)
        public.ON_BUILT.append(_LEAVES.change)
        space = vars(package())
        for name in _FACTORIES:
            replaced[name] = getattr(package(), name)
            space[name] = _factory(replaced[name])
    try:
        yield
    finally:
        _LEAVES.depth -= 1
        if _LEAVES.depth == 0:
            vars(package()).update(replaced)
            public.ON_BUILT.remove(_LEAVES.change)
            _LEAVES.back()
            if _LEAVES.for_good:
                _change_for_good()


def _factory(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A factory that looks for proxies; compiled ones have no code that could be changed."""

    @functools.wraps(fn)
    def made(*args: Any, **kwargs: Any) -> Any:
        return ask(fn, args, kwargs) if has_proxy(args, kwargs) else fn(*args, **kwargs)

    return made


def need() -> None:
    """A proxy is made: by a trace, or by hand, and then functions of `torch.nn.functional` look for it from now on."""
    if _LEAVES.depth == 0 and not _LEAVES.for_good:
        _LEAVES.for_good = True
        _change_for_good()


def _change_for_good() -> None:
    for fn in _functional():
        if not hasattr(fn, "__signature__"):
            setattr(fn, "__signature__", inspect.signature(fn))
        leaf = _LEAVES.found.get(fn) or _LEAVES.found.setdefault(fn, _Leaf(fn))
        leaf.switch(True)
