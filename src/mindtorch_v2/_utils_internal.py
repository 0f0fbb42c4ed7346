"""`torch._utils_internal`: where PyTorch puts what differs between its builds; this is the answer of a plain one."""

from __future__ import annotations

import functools
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

IS_FBSOURCE = False
TEST_MASTER_ADDR = "127.0.0.1"
TEST_MASTER_PORT = 29500


def get_file_path(*path_components: str) -> str:
    """A file of the package."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), *path_components[1:])


def get_file_path_2(*path_components: str) -> str:
    return os.path.join(*path_components)


def deprecated() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of a private function: its module gets the public name as well, which warns when it is called."""

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        if not func.__name__.startswith("_"):
            raise ValueError(
                "@deprecate must decorate a function whose name starts with a single leading underscore (e.g. '_foo') "
                "as the api should be considered internal for deprecation."
            )
        public = func.__name__[1:]
        module = sys.modules[func.__module__]
        if hasattr(module, public):
            raise RuntimeError(
                f"Cannot create alias '{public}' -> symbol already exists in {module.__name__}. Please rename it or "
                "consult a pytorch developer on what to do"
            )
        text = f"{public} is DEPRECATED, please consider using an alternative API(s). "

        @functools.wraps(func)
        def alias(*args: Any, **kwargs: Any) -> Any:
            warnings.warn(text, UserWarning, stacklevel=2)
            return func(*args, **kwargs)

        alias.__name__ = public
        setattr(module, public, alias)
        return func

    return decorate


def get_writable_path(path: str) -> str:
    """The path, if it can be written to; otherwise a new folder that can."""
    return path if os.access(path, os.W_OK) else tempfile.mkdtemp(suffix=os.path.basename(path))


def prepare_multiprocessing_environment(path: str) -> None:
    """Nothing is to be prepared."""


def resolve_library_path(path: str) -> str:
    return os.path.realpath(path)


def justknobs_check(name: str, default: bool = True) -> bool:
    """There is no service that turns features off."""
    return default


def justknobs_getval_int(name: str) -> int:
    return 0


def signpost_event(category: str, name: str, parameters: dict[str, object]) -> None:
    """Written to the log of this module, as PyTorch's own build does."""
    import logging

    logging.getLogger(__name__).info("%s %s: %r", category, name, parameters)


def is_fb_unit_test() -> bool:
    return False
