"""What compiled modules say to mypyc: `i64`, an integer of 64 bits, and `mypyc_attr`, options of a class; whether they
are compiled, and what of it is hidden from users.

Invariant: running needs nothing of mypy. Uncompiled, an `i64` is an int and options are nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64 as i64
    from mypy_extensions import mypyc_attr as mypyc_attr
else:
    i64 = int

    def mypyc_attr(**options):
        return lambda cls: cls


_SETUP: Final = "__internal_mypyc_setup"


def is_compiled(function: object) -> bool:
    """Whether a function of a module is compiled: such code lets other threads run only where it calls Python."""
    return not hasattr(function, "__code__")


def hide_setup(*classes: type) -> None:
    """Take mypyc's way to make an object, which trusts what it is given, off classes whose objects users hold. It is
    found by the table of methods, not by its name.
    """
    for cls in classes:
        if _SETUP in cls.__dict__:
            type.__delattr__(cls, _SETUP)
