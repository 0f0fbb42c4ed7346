"""Threads of the BLAS libraries that NumPy and SciPy bring: not more than `torch.set_num_threads` allows.

Invariant: a library is told before linear algebra uses it, when the number has changed since. One that is not the
OpenBLAS of their wheels keeps its own number.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ... import _native

_told: dict[str, int] = {}  # by package
_most: dict[str, int] = {}  # what its library began with: that is never exceeded


def share_threads() -> None:
    count = _native.get_num_threads()
    for package in ("numpy", "scipy"):
        if package in sys.modules and _told.get(package) != count:
            _told[package] = count
            _tell(package, count)


def _tell(package: str, count: int) -> None:
    import ctypes

    root = Path(str(sys.modules[package].__file__)).parent.parent
    for path in sorted((root / f"{package}.libs").glob("*openblas*")):
        library: Any = ctypes.CDLL(str(path))
        for end in ("64_", ""):
            ask = getattr(library, f"scipy_openblas_get_num_threads{end}", None)
            tell = getattr(library, f"scipy_openblas_set_num_threads{end}", None)
            if ask is not None and tell is not None:
                tell(min(count, _most.setdefault(str(path), int(ask()))))
