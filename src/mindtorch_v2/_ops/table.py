"""The vocabulary of the operator tables: `op`, `view`, `composite`, and what a row may say.

Invariant: a row is checked when it is declared. From it come the operator, its in-place and `out=` forms, its autograd
node, its meta kernel and its public functions; nothing about an operator is said elsewhere except its device lines.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import return_types
from .._autograd.inplace import FACTORY_OUT_DERIVATIVE, OUT_DERIVATIVE, InplaceDerivative
from .._autograd.record import NO_GRADIENT, Formulas, camel
from .._backends.common.kernels import ViewKernel
from .._dispatch import registry
from .._dispatch.op import FnKernel, Kernel, Op, PartsKernel, Rule
from .rules.base import PyRule
from .rules.out import Target
from .rules.pointwise import BOOL_TO_LONG, COMPLEX_TO_FLOAT, DEFAULT, INT_TO_FLOAT, TO_BOOL, Pointwise

_KINDS = {"default": DEFAULT, "float": INT_TO_FLOAT, "bool": TO_BOOL, "real": COMPLEX_TO_FLOAT, "long": BOOL_TO_LONG}


# The table that is being loaded; `load.py` and `late.py` say which. What creates and copies comes before all others.
LOADING: list[str] = ["create"]


# What `out=` must be: one for all results, one for each, or what depends on the arguments.
Out = Target | tuple[Target, ...] | Callable[..., Target | tuple[Target, ...]]


class Row:
    """What was declared, for documentation, tests and the support matrix."""

    def __init__(self, kind: str, op: Op, function: bool, method: bool) -> None:
        self.kind = kind
        self.op = op
        self.function = function
        self.method = method
        self.family = LOADING[0]
        self.inplace_op: Op | None = None
        self.out_op: Op | None = None
        self.out_in_ops = False
        self.out_needs_dim = False
        self.out_target: Out | None = None
        self.view_kernel: Kernel | None = None
        self.fallback: Kernel | None = None
        self.doc = ""

    @property
    def public_out(self) -> Op | None:
        """The form with `out=` of the public function; of a few operators only `torch.ops` has it."""
        return None if self.out_in_ops else self.out_op


class PointwiseRule:
    """`pointwise("self", "other", kind="bool")` before it is bound to a schema."""

    def __init__(self, names: Sequence[str], kind: str) -> None:
        self.names = names
        self.kind = kind

    def bind(self, op: Op) -> Rule:
        schema = op.schema
        names = self.names or [a.name for a in schema.args if a.is_tensor]
        positions = []
        for n in names:
            i = schema.index(n)
            if i < 0:
                raise ValueError(f"row {op.name}: pointwise names {n!r}; arguments: {[a.name for a in schema.args]}")
            positions.append(i)
        return Pointwise(positions, _KINDS[self.kind])


def pointwise(*names: str, kind: str = "default") -> PointwiseRule:
    """The rule of pointwise operators over the named operands (default: every tensor argument).

    kind: "default" promotes; "float" turns integers into the default float; "bool" gives bool; "real" gives the real
    dtype of a complex result; "long" turns bool into int64.
    """
    return PointwiseRule(names, kind)


def op(schema: str, *, meta: Any = None, grad: Mapping[Any, Callable[..., Any] | None] | None = None,
       inplace: bool | str = False, overlap: int = 0, out: bool | str | Out = False, numbers: Sequence[str] = (),
       node: Any = None,
       nondifferentiable: bool = False, nondiff: Sequence[str] = (), function: bool | None = None,
       method: bool | None = None, kernel: Callable[..., Any] | None = None) -> Op:
    """Declare an operator that makes new results.

    meta: shape rule. grad: formulas by argument name (or tuple of names); a formula's parameters name what it needs.
    inplace, out: also declare `name_` and `name(out=)`; inplace="function" makes `name_` a function too, not a method
    alone. `out` says what that tensor must be (`rules/out.py`) where True, castable to, is not it; for rows that are
    loaded with the package `out_rules.py` says so. out="ops": that form is in `torch.ops` alone;
    out="dim": in the one of PyTorch's two signatures that has `dim`.
    overlap: which memory `name_` may write, a constant of `_backends.common.overlap`.
    numbers: tensor arguments that may be Python numbers.
    node: the autograd node's name where PyTorch's differs. nondifferentiable: no gradient, on purpose.
    nondiff: results without gradient. kernel: Python in terms of other operators,
    for devices with no line of their own.
    """
    o = registry.declare(_new(schema, numbers))
    o.overlap = overlap
    row = _row("op", o, function, method)
    if meta is not None:
        o.rule = meta.bind(o) if isinstance(meta, PointwiseRule) else meta if isinstance(meta, Rule) else PyRule(meta)
    formulas = None
    if grad is not None:
        formulas = Formulas(o.name, o.schema, dict(grad), node, tuple(nondiff))
        formulas.elementwise = isinstance(meta, PointwiseRule)
        o.derivative = formulas
    elif nondifferentiable:
        o.derivative = NO_GRADIENT
    if kernel is not None:
        row.fallback = PartsKernel(kernel)
    if inplace:
        row.inplace_op = _inplace(o, row, formulas, inplace == "function")
    if out:
        row.out_op = _out(o, row)
        row.out_in_ops = out == "ops"
        row.out_needs_dim = out == "dim"
        row.out_target = None if isinstance(out, (bool, str)) else out
    return o


def view(schema: str, *, layout: Callable[..., Any], grad: Mapping[Any, Callable[..., Any] | None] | None = None,
         node: Any = None, function: bool | None = None, method: bool | None = None) -> Op:
    """Declare an operator whose result shares memory: `layout(shape, stride, offset, *args)` gives its geometry."""
    o = registry.declare(_new(schema, ()))
    o.is_view = True
    row = _row("view", o, function, method)
    row.view_kernel = ViewKernel(layout)
    if grad is not None:
        o.derivative = Formulas(o.name, o.schema, dict(grad), node, ())
    else:
        o.derivative = NO_GRADIENT
    return o


def composite(schema: str, fn: Callable[..., Any] | Kernel, *, numbers: Sequence[str] = (),
              out: bool = False, function: bool | None = None, method: bool | None = None) -> Op:
    """Declare an operator written in terms of others; it runs, and differentiates, wherever its parts do."""
    o = registry.declare(_new(schema, numbers))
    o.composite = fn if isinstance(fn, Kernel) else FnKernel(fn)
    row = _row("composite", o, function, method)
    if out:
        row.out_op = _out(o, row)
    return o


def _new(schema: str, numbers: Sequence[str]) -> Op:
    from .._dispatch.schema import split_name

    base, overload = split_name(schema)
    o = Op(f"{base}.{overload}" if overload else base, schema)
    for n in numbers:
        i = o.schema.index(n)
        if i < 0:
            raise ValueError(f"row {o.name}: numbers names {n!r}; arguments: {[a.name for a in o.schema.args]}")
        o.numbers |= 1 << i
    return o


def _row(kind: str, o: Op, function: bool | None, method: bool | None) -> Row:
    args = o.schema.args
    if method is None:
        method = bool(args) and args[0].name == "self"
    row = Row(kind, o, True if function is None else function, method)
    o.row = row
    fields = tuple(r.name for r in o.schema.returns)
    if return_types.named(fields):
        o.result_type = return_types.make(o.title(), fields)
    return row


def _split(name: str) -> tuple[str, str]:
    base, _, overload = name.partition(".")
    return base, "." + overload if overload else ""


def _inplace(o: Op, row: Row, formulas: Formulas | None, function: bool) -> Op:
    base, overload = _split(o.name)
    inside = o.schema_text[o.schema_text.index("(") + 1: o.schema_text.rindex("->")].strip()[:-1]
    first, _, rest = inside.partition(",")
    target = first.split(" ", 1)[1]
    text = f"{base}_{overload}(Tensor(a!) {target}{',' + rest if rest else ''}) -> Tensor(a!)"
    p = registry.declare(Op(f"{base}_{overload}", text))
    p.functional = o
    p.mutates = True
    p.numbers = o.numbers & ~1
    p.derivative = InplaceDerivative(formulas)
    p.row = Row("inplace", p, function, row.method)
    return p


def grad_when_written(o: Op, **grad: Callable[..., Any]) -> None:
    """Formulas of the in-place form where PyTorch gives it its own, most often to keep the result and not a copy of
    what was there before."""
    named = getattr(o.derivative, "node_name", None)
    node = f"{named[:-1]}1" if isinstance(named, str) else f"{camel(o.title())}Backward1"
    o.row.inplace_op.derivative = InplaceDerivative(Formulas(o.name, o.schema, dict(grad), node, ()))


def out_names(o: Op) -> tuple[str, ...]:
    """What the tensors are called that the form with `out=` writes to: as the results, where those have names."""
    returns = o.schema.returns
    if len(returns) == 1:
        return ("out",)
    taken = {a.name for a in o.schema.args}
    if any(r.name in taken or r.name == f"result{i}" for i, r in enumerate(returns)):
        return tuple(f"out{i}" for i in range(len(returns)))
    return tuple(r.name for r in returns)


def _reads(o: Op) -> bool:
    """Whether an operator is given tensors."""
    return any(a.kind == "Tensor" for a in o.schema.args)


def _out(o: Op, row: Row) -> Op:
    base, overload = _split(o.name)
    inside = o.schema_text[o.schema_text.index("(") + 1: o.schema_text.rindex("->")].strip()[:-1]
    names = out_names(o)
    outs = ", ".join(f"Tensor({chr(97 + i)}!) {n}" for i, n in enumerate(names))
    star = "" if any(a.kwonly for a in o.schema.args) else "*, "
    named = len(names) > 1 and names[0] != "out0"
    returns = ", ".join(f"Tensor({chr(97 + i)}!)" + (f" {n}" if named else "") for i, n in enumerate(names))
    text = f"{base}.{overload[1:] + '_' if overload else ''}out({inside}, {star}{outs}) -> " + (
        returns if len(names) == 1 else f"({returns})")
    p = registry.declare(Op(f"{base}.{overload[1:] + '_' if overload else ''}out", text))
    p.functional = o
    p.is_out = True
    p.mutates = True
    p.numbers = o.numbers
    # What has no gradient may be written to a tensor that asks for one.
    p.derivative = (OUT_DERIVATIVE if o.derivative is not NO_GRADIENT else NO_GRADIENT if _reads(o)
                    else FACTORY_OUT_DERIVATIVE)
    p.row = Row("out", p, False, False)
    if o.result_type is not None:
        p.result_type = return_types.make(o.title() + "_out", tuple(r.name for r in o.schema.returns))
    return p


