"""What compiled modules say to mypyc: `i64`, an integer of 64 bits, and `mypyc_attr`, options of a class; and whether
they are compiled.

Invariant: running needs nothing of mypy. Uncompiled, an `i64` is an int and options are nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import i64 as i64
    from mypy_extensions import mypyc_attr as mypyc_attr
else:
    i64 = int

    def mypyc_attr(**options):
        return lambda cls: cls


def is_compiled(function: object) -> bool:
    """Whether a function of a module is compiled: such code lets other threads run only where it calls Python."""
    return not hasattr(function, "__code__")
