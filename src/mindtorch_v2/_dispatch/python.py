"""`torch._dispatch.python`: switches of PyTorch's dispatcher in Python.

Every rule here is Python already, and the meta device runs the same ones whichever way it is asked, so the switches
change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def enable_python_dispatcher() -> Iterator[None]:
    """Rules written in Python decide, as they do outside."""
    yield


@contextmanager
def no_python_dispatcher() -> Iterator[None]:
    """The end of `enable_python_dispatcher` for a while."""
    yield


def enable_crossref_functionalize() -> NoReturn:
    """PyTorch compares its two kinds of functionalization inside; here is one."""
    raise NotImplementedError(
        "torch._dispatch.python.enable_crossref_functionalize: there is one functionalization here"
    )
