"""`torch._C._SchemaInfo`: what a schema says of a call, once some of its arguments are known.

Invariant: arguments that share memory are one for every question: what one may alias or write, all may.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

from ._dispatch.schema import parse
from ._operators import FunctionSchema
from ._tensor_base import TensorBase

# Operators whose running statistics are written while training, which their schemas do not say; and the argument
# that tells.
_STATISTICS = {
    **dict.fromkeys(("aten::batch_norm", "aten::native_batch_norm", "aten::_batch_norm_impl_index"), "training"),
    **dict.fromkeys(("aten::cudnn_batch_norm", "aten::miopen_batch_norm"), "training"),
    "aten::instance_norm": "use_input_stats",
}


_VARARG = re.compile(r"(,\s*)?\.\.\.\s*\)")
_VARRET = re.compile(r"->\s*\.\.\.\s*$")


def parse_schema(schema: str, allow_typevars: bool = True) -> FunctionSchema:
    """A schema from its text."""
    from ._library import syntax

    syntax.check(schema)
    text = " ".join(schema.split()).partition("::")[2] if "::" in schema.partition("(")[0] else schema
    # Any number of arguments, and of results: what is read is the rest.
    fixed = _VARARG.sub(")", text)
    closed = _VARRET.sub("-> ()", fixed)
    name, _, overload = schema.partition("(")[0].strip().partition(".")
    return FunctionSchema(name, overload, parse(closed), fixed != text, closed != fixed)


class _SchemaArgType(Enum):
    """Which list of a schema an argument stands in."""

    input = 0
    output = 1


class _SchemaArgument:
    """An argument or a result of a schema, by its place."""

    def __init__(self, type: _SchemaArgType, index: int) -> None:
        self.type = type
        self.index = index


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, TensorBase):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _memory(value: Any) -> set[int]:
    """The storages of the tensors in a value; a tensor without one, as of a sparse layout, is known by itself."""
    found = set()
    for t in _tensors(value):
        try:
            found.add(t.untyped_storage()._cdata)
        except NotImplementedError:
            found.add(id(t))
    return found


def _overlaps(ival1: Any, ival2: Any) -> bool:
    """Whether two values hold tensors of one storage."""
    return not _memory(ival1).isdisjoint(_memory(ival2))


class _SchemaInfo:
    """A schema, and the values of arguments that are known."""

    def __init__(self, schema: Any) -> None:
        self._schema: FunctionSchema = schema
        self._values: dict[str, Any] = {}

    def add_argument_value(self, name: str, value: Any) -> None:
        """Say what an argument is; `input` is another name of `self`."""
        if not self.has_argument(name):
            raise RuntimeError(f"Schema has no argument named {name}")
        self._values[self._own(name)] = value

    def add_argument_values(self, values: dict[str, Any]) -> None:
        """Say what arguments are; names that the schema does not have are passed over."""
        for name, value in values.items():
            if value is not None and self.has_argument(name):
                self.add_argument_value(name, value)

    def _own(self, name: str) -> str:
        known = any(a.name == name for a in self._schema.arguments)
        return "self" if name == "input" and not known else name

    def has_argument(self, name: str) -> bool:
        """Whether the schema has an argument of this name."""
        return any(a.name == self._own(name) for a in self._schema.arguments)

    def _at(self, name: str) -> int:
        own = self._own(name)
        for i, a in enumerate(self._schema.arguments):
            if a.name == own:
                return i
        raise RuntimeError(f"Schema has no argument named {name}")

    def _group(self, index: int) -> set[int]:
        """The arguments that share memory with one, itself among them."""
        arguments = self._schema.arguments
        mine = _memory(self._values.get(arguments[index].name))
        shared = {i for i, a in enumerate(arguments) if not mine.isdisjoint(_memory(self._values.get(a.name)))}
        return shared | {index}

    def _writes(self, index: int) -> bool:
        argument = self._schema.arguments[index]
        if argument.alias_info is not None and argument.alias_info.is_write:
            return True
        training = _STATISTICS.get(self._schema.name)
        statistic = training is not None and argument.name in ("running_mean", "running_var")
        return statistic and bool(self._values.get(training or "", True))

    def is_mutable(self, argument: _SchemaArgument | str | None = None) -> bool:
        """Whether an argument may be written; without one, whether any may."""
        if argument is None:
            return any(self._writes(i) for i in range(len(self._schema.arguments)))
        if isinstance(argument, str):
            argument = _SchemaArgument(_SchemaArgType.input, self._at(argument))
        self._check(argument)
        if argument.type is _SchemaArgType.output:
            info = self._schema.returns[argument.index].alias_info
            return info is not None and info.is_write
        return any(self._writes(i) for i in self._group(argument.index))

    def _sets(self, argument: _SchemaArgument) -> set[str]:
        """The names of memory that an argument has in the schema, with those of arguments that are one with it."""
        if argument.type is _SchemaArgType.output:
            entries = [self._schema.returns[argument.index]]
        else:
            entries = [self._schema.arguments[i] for i in self._group(argument.index)]
        return {
            name
            for a in entries
            if a.alias_info is not None
            for name in a.alias_info.before_set | a.alias_info.elements
        }

    def _check(self, argument: _SchemaArgument) -> None:
        entries = self._schema.arguments if argument.type is _SchemaArgType.input else self._schema.returns
        if not 0 <= argument.index < len(entries):
            raise RuntimeError("Invalid index for schema.")

    def may_alias(self, lhs: _SchemaArgument, rhs: _SchemaArgument) -> bool:
        """Whether two of the call's values may share memory."""
        self._check(lhs)
        self._check(rhs)
        both = lhs.type is rhs.type is _SchemaArgType.input
        if both and rhs.index in self._group(lhs.index):
            return True
        mine, other = self._sets(lhs), self._sets(rhs)
        anything = "*" in mine and bool(other) or "*" in other and bool(mine)
        return anything or not mine.isdisjoint(other)

    def may_contain_alias(self, lhs: _SchemaArgument, rhs: _SchemaArgument, bidirectional: bool = True) -> bool:
        """Whether what two of the call's values hold may share memory."""
        return self.may_alias(lhs, rhs)
