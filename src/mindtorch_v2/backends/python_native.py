"""`torch.backends.python_native`: operators that PyTorch replaces by kernels written in a language inside Python.

Invariant: none of those languages is here, so nothing is replaced; what is switched off is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# The languages that PyTorch knows, and those of them that can be used.
all_dsls = ["cutedsl", "triton"]
available_dsls: list[str] = []
_disabled: set[str] = set()


def get_dsl_operations(dsl_name: str) -> list[str]:
    """The operators that a language replaces."""
    return []


def is_operation_disabled(op_symbol: str) -> bool:
    """Whether an operator's replacement was switched off."""
    return op_symbol in _disabled


def disable_operations(*op_symbols: str) -> None:
    """Switch replacements of operators off."""
    _disabled.update(op_symbols)


def enable_operations(*op_symbols: str) -> None:
    """Switch replacements of operators on."""
    _disabled.difference_update(op_symbols)


@contextmanager
def operations_disabled(*op_symbols: str) -> Iterator[None]:
    """A context without replacements of some operators."""
    added = set(op_symbols) - _disabled
    disable_operations(*added)
    try:
        yield
    finally:
        enable_operations(*added)
