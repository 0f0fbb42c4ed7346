"""`torch.return_types`: the named tuples that operators with several named results give.

Invariant: a type's fields are the names in the operator's schema; there is one type per public name, made when first
used.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from ._dispatch import registry

_MADE: dict[str, type] = {}


class ReturnType(tuple[Any, ...]):
    """A tuple whose elements also have names; printed as PyTorch prints it."""

    __slots__ = ()
    n_fields: int
    n_sequence_fields: int
    n_unnamed_fields = 0
    _names: tuple[str, ...]

    def __new__(cls, sequence: Any = (), dict: Any = None) -> ReturnType:
        if not hasattr(sequence, "__len__"):
            raise TypeError("constructor requires a sequence")
        if len(sequence) != cls.n_fields:
            raise TypeError(
                f"torch.return_types.{cls.__name__}() takes a {cls.n_fields}-sequence ({len(sequence)}-sequence given)"
            )
        return tuple.__new__(cls, sequence)

    def __repr__(self) -> str:
        fields = ",\n".join(f"{n}={v!r}" for n, v in zip(self._names, self))
        return f"torch.return_types.{type(self).__name__}(\n{fields})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self), {})


def make(name: str, fields: tuple[str, ...]) -> type:
    """The type for the results of operator `name`."""
    made = _MADE.get(name)
    if made is None:
        body: dict[str, Any] = {f: property(itemgetter(i)) for i, f in enumerate(fields)}
        body.update(
            __slots__=(), __module__=__name__, _names=fields, n_fields=len(fields), n_sequence_fields=len(fields)
        )
        made = type(name, (ReturnType,), body)
        _MADE[name] = made
    return made


def named(fields: tuple[str, ...]) -> bool:
    """Whether an operator with these results gives a named tuple; `result`, `result0`, ... stand for unnamed ones."""
    return len(fields) > 1 and not all([f.startswith("result") for f in fields])


def __getattr__(name: str) -> type:
    base = name.removesuffix("_out")
    if not name.startswith("__"):
        registry.find(base)  # its table may not be loaded yet
    for op in registry.overloads(base):
        fields = tuple(r.name for r in op.schema.returns)
        if named(fields):
            globals()[name] = make(name, fields)
            return make(name, fields)
    raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")
