"""Public functions whose usual calls the native module binds (`csrc/kernels/function.cpp`).

Invariant: it is told what a schema says, and nothing else. A call that it cannot bind at sight goes, as it was made, to
the function that `public` writes for the same name when it is first needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from .. import _native
from .._device import device
from .._dispatch import registry
from .._dispatch.binding import _ALIASES, TYPES, Overloads, call_out, fitted, has_one_out, named
from .._dispatch.keys import PYTHON
from .._dispatch.op import Op
from .._dispatch.schema import Arg, Schema
from .._dispatch.state import FUNCTION_MODE, NO_TORCH_FUNCTION, current_default_device
from .._dtype import dtype
from .._layout import layout, memory_format

_ROOT = sys.modules[__package__.partition(".")[0]]
MOST_ARGUMENTS = 24
# As in function.cpp.
_TENSOR, _TENSORS, _INT, _INTS, _BOOL, _FLOAT, _SCALAR, _STR, _TYPED, _OTHER, _MAPPED = range(11)
_NO_OUT, _ONE_OUT, _OTHER_OUT, _SEVERAL_OUT = range(4)
# What a call gives: the operator's result, or that under names, or the list that was written to.
_PLAIN, _NAMED, _LIST = range(3)
_KINDS = {"Tensor": _TENSOR, "int": _INT, "bool": _BOOL, "float": _FLOAT, "Scalar": _SCALAR, "str": _STR}
_LISTS = {"Tensor": _TENSORS, "int": _INTS}
# As factories give it to their operators where nobody else does.
_PIN_MEMORY = Arg("pin_memory", "bool", True, False, 0, "", False, True, True, False)
# An operator, what is called with its arguments, and which of them that does without.
Signature = tuple[Op, Callable[[tuple[Any, ...]], Any]] | tuple[Op, Callable[[tuple[Any, ...]], Any], tuple[int, ...]]
_TYPES: dict[str, type] = {"ScalarType": dtype, "Device": device, "Layout": layout, "MemoryFormat": memory_format}


def _retold(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: BaseException) -> Exception | None:
    """What to say of a call of `fn` that failed, if not what `error` says: PyTorch's words where it fits no signature,
    and ours where Python complained of our own code."""
    overloads = getattr(fn, "__overloads__", None)
    if isinstance(fn, _native.Overridable):
        from .._dispatch.unforeseen import told_again

        return told_again(error, fn.__name__, [*_parameters(fn)], (*args, *kwargs.values()))
    if overloads is None:
        return None  # a factory, which has said it itself
    if isinstance(error, TypeError):
        if overloads.method and not args:
            return TypeError(f"unbound method TensorBase.{overloads.name}() needs an argument")
        from .._dispatch.complaint import misfit

        refusal = misfit(overloads.name, overloads.ops, overloads.method, args[overloads.method :], kwargs)
        if refusal is not None:
            return refusal
    from .._dispatch.unforeseen import told_again

    names = [a.name for a in overloads.ops[0].schema.args[: len(args)]]
    return told_again(error, overloads.name, [*names, *kwargs], (*args, *kwargs.values()))


def _parameters(fn: Any) -> tuple[str, ...]:
    """The names that a function written in Python gives its arguments, those by keyword last."""
    known: tuple[str, ...] | None = getattr(fn, "__arguments__", None)
    if known is not None:
        return known
    code = fn.__code__
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return names


_native.define_functions(
    call_out,
    named,
    current_default_device,
    frozenset((*_ALIASES, "self", "input", "requires_grad")),
    # Who overrides calls sees them as they were written, which only a function in Python can tell.
    int(PYTHON | FUNCTION_MODE | NO_TORCH_FUNCTION | (PYTHON << 32)),
    _retold,
)

for _cls in _TYPES.values():
    _native.add_silent(_cls)


def can_bind(ops: list[Op]) -> bool:
    return all(len(o.schema.args) <= MOST_ARGUMENTS and (o.schema.returns or writes_list(o)) for o in ops)


def writes_list(o: Op) -> bool:
    """A foreach operator that writes to the tensors of a list: its function gives the list back, and no other's."""
    return not o.schema.returns and o.name.startswith("_foreach_")


def has_options(o: Op) -> bool:
    """Whether it makes a tensor of a dtype, layout and device that the caller names."""
    kinds = {a.kind for a in o.schema.args}
    return "Layout" in kinds and "Device" in kinds


def bound(name: str, overloads: Overloads, is_method: bool, write: Callable[[Any], Any]) -> Callable[..., Any]:
    """The native function of these overloads; `write(fn)` makes the one in Python, whose public object is `fn`."""
    forms = tuple(_form(o, overloads.varargs[i], is_method, len(overloads.ops)) for i, o in enumerate(overloads.ops))
    kind: type[_native.Method] | type[_native.Function] = _native.Method if is_method else _native.Function
    fn: _native.Method | _native.Function = kind(forms, lambda: write(fn))
    fn.__name__ = fn.__qualname__ = name
    return fn


def factory(name: str, fn: Callable[..., Any], *signatures: Signature) -> Callable[..., Any]:
    """The native function of a factory that is written in Python, `fn`, which serves what is no usual call."""
    made = _native.Function(tuple(_factory_form(*signature) for signature in signatures), lambda: fn)
    made.__name__ = made.__qualname__ = name
    made.__module__ = _ROOT.__name__  # `torch` where the package bears that name
    made.__doc__ = fn.__doc__
    return made


def _factory_form(o: Op, call: Callable[[tuple[Any, ...]], Any], left_out: tuple[int, ...] = ()) -> tuple[Any, ...]:
    args = [(i, a) for i, a in enumerate(o.schema.args) if i not in left_out]
    kinds = [a.kind for _, a in args]
    like = args[0][1].is_tensor
    # Other layouts and generators are looked at in Python, as is the device of what is drawn like another tensor.
    seen = ("Layout", "Generator", "Device") if like and o.title().startswith("rand") else ("Layout", "Generator")
    slots = [_slot(o, i, a if a.name != "pin_memory" else _PIN_MEMORY, False) for i, a in args]
    return (
        o,
        call,
        tuple((slot[0], _OTHER, *slot[2:]) if kind in seen else slot for slot, kind in zip(slots, kinds)),
        0 if args[0][1].is_list and args[1][1].kwonly else -1,
        -1 if like else kinds.index("Device"),
        _ONE_OUT if o.row.out_op is not None and not left_out else _OTHER_OUT,
        _PLAIN,
    )


class Direct:
    """How a function written in Python comes to the operator of a row, where it only completes arguments: by the names
    of the row's arguments, which parameter they are if not the one of that name, what the values stand for, between
    which numbers they lie; how many ints one stands for; which tensor, by its place, has the shape of the first; which
    parameters may have any value. All others have to be left at their defaults."""

    def __init__(
        self,
        row: str,
        renamed: Mapping[str, str] | None = None,
        *,
        known: Mapping[str, dict[Any, Any]] | None = None,
        spans: Mapping[str, tuple[float, float]] | None = None,
        copies: int = 1,
        alike: int = -1,
        ignored: tuple[str, ...] = (),
        constants: Mapping[str, Any] | None = None,
    ) -> None:
        self.row = row
        self.renamed = renamed or {}
        self.known = known or {}
        self.spans = spans or {}
        self.copies = copies
        self.alike = alike
        self.ignored = ignored
        self.constants = constants or {}

    def form(self, fn: Callable[..., Any]) -> tuple[Any, ...]:
        """What the native module is told of it."""
        o = registry.find(self.row)
        assert o is not None, f"there is no row {self.row}"
        names = _parameters(fn)
        positional = names[: fn.__code__.co_argcount]
        late = fn.__defaults__ or ()
        defaults = {**dict(zip(positional[len(positional) - len(late) :], late)), **(fn.__kwdefaults__ or {})}
        slots = [self._slot(o, i, a, names, defaults) for i, a in enumerate(o.schema.args)]
        kept = len(slots)
        taken = [slot[0] for slot in slots]
        for name in names:
            if name not in taken:
                taken.append(name)
                fixed = name not in self.ignored
                slots.append((name, _OTHER, False, False, False, False, 0, fixed, defaults[name], None))
        places = tuple(taken.index(name) for name in positional)
        return (o, o.call, tuple(slots), -1, -1, _NO_OUT, _PLAIN, places, kept, self.alike)

    def _slot(self, o: Op, i: int, a: Arg, names: tuple[str, ...], defaults: Mapping[str, Any]) -> tuple[Any, ...]:
        _, kind, optional, _, number, holes, copies, has_default, default, cls = _slot(o, i, a, False)
        name = self.renamed.get(a.name, "input" if a.name == "self" else a.name)
        if a.name in self.constants or name not in names:  # no call gives it
            name, has_default, default = "", True, self.constants.get(a.name, default)
        elif a.name in self.known:
            kind, cls, has_default = _MAPPED, self.known[a.name], True
            default = self.known[a.name][defaults[name]]
        elif name not in defaults:
            has_default = False
        elif defaults[name] is not None or a.optional:
            has_default, default = True, fitted(o.name, a, defaults[name])
            if copies and isinstance(defaults[name], int):
                default *= abs(self.copies)
        low, high = self.spans.get(a.name, (-inf, inf))
        return name, kind, optional, False, number, holes, copies * self.copies, has_default, default, cls, low, high


def _form(o: Op, spread: bool, is_method: bool, count: int) -> tuple[Any, ...]:
    args = o.schema.args
    out = _OTHER_OUT
    if not is_method:
        plain = has_one_out(o) and not o.row.out_needs_dim
        out = _NO_OUT if o.row.public_out is None else _ONE_OUT if plain else _OTHER_OUT
        if out == _OTHER_OUT and len(o.schema.returns) > 1 and not o.row.out_needs_dim:
            out = _SEVERAL_OUT
    lists = [i for i, a in enumerate(args) if a.is_list and not a.kwonly]
    devices = [i for i, a in enumerate(args) if a.kind == "Device"]
    return (
        o,
        o.call,
        tuple(_slot(o, i, a, is_method) for i, a in enumerate(args)),
        lists[-1] if spread else -1,
        devices[0] if count == 1 and has_options(o) else -1,
        out,
        _LIST if writes_list(o) else _NAMED if o.result_type is not None else _PLAIN,
    )


def by_schema(o: Op, shown: Schema, numbers: bool) -> tuple[Any, ...]:
    """An operator called by its schema, as in `torch.ops`: its results have no names, and lists are not given back.
    Where the row takes tensors and numbers, the schema that is shown says which; in some, `numbers`, both."""
    form = _form(o, False, True, 1)
    kinds, defaults = {a.name: a.kind for a in shown.args if not a.is_list}, own_defaults(o, shown)
    sizes = {a.name for a in shown.args if a.is_list and a.symbolic}
    slots = []
    for slot in form[2]:
        name, kind, optional, kwonly, number, holes, copies, has_default, default, cls = slot
        if number and kinds.get(name) == "Scalar":
            kind, number = _SCALAR, False
        copies = 0 if name in sizes else copies
        default = defaults.get(name, default)
        slots.append((name, kind, optional, kwonly, number and numbers, holes, copies, has_default, default, cls))
    return (*form[:2], tuple(slots), *form[3:6], _PLAIN)


def own_defaults(o: Op, shown: Schema) -> dict[str, int]:
    """The ints that `torch.ops` has for arguments left out where the row has others: the losses' `reduction`."""
    rows = {a.name: a.default for a in o.schema.args if a.kind == "int" and not a.is_list}
    given = [a for a in shown.args if a.name in rows and a.kind == "int" and not a.is_list and a.has_default]
    return {a.name: a.default for a in given if isinstance(a.default, int) and a.default != rows[a.name]}


def _slot(o: Op, i: int, a: Arg, is_method: bool) -> tuple[Any, ...]:
    kind = _LISTS.get(a.kind, _OTHER) if a.is_list else _KINDS.get(a.kind, _TYPED if _type(a) is not None else _OTHER)
    return (
        "input" if a.name == "self" and not is_method else a.name,
        kind,
        a.optional,
        a.kwonly,
        bool(o.numbers >> i & 1),
        a.holes,
        int(a.size > 0),
        a.has_default,
        a.default,
        _type(a),
    )


def _type(a: Arg) -> type | None:
    return TYPES.generator if a.kind == "Generator" else _TYPES.get(a.kind)
