"""The `out=` overloads of `torch.ops.aten`, made of functional ones when somebody asks for them.

Invariant: a form computes nothing. Where the row has an `out=` of its own, the form is that under PyTorch's name;
otherwise it is what PyTorch generates for its operators: the result comes first, and is copied to a tensor of its
dtype.
"""

from __future__ import annotations

from typing import Any

from .._autograd.inplace import OUT_DERIVATIVE
from .._backends.common.kernels import fit, spec_of
from .._dispatch.op import FnKernel, Op
from .._ops.rules.out import Target
from .._ops.table import Row
from .._tensor_base import TensorBase
from . import overloads
from .out_names import OUTS

# What the generated forms ask of the tensor that is given.
_SAME = Target("same", "Expected out tensor to have dtype {c_want}, but got {c_got} instead")
_MADE: dict[str, Op] = {}


def _key(base: str, overload: str) -> str:
    return base if overload == "default" else f"{base}.{overload}"


def add(base: str, found: dict[str, Op]) -> None:
    """Add the forms of the overloads of one operator, and take away rows that only have a name of ours."""
    for overload, op in list(found.items()):
        said = None if op.is_out else OUTS.get(_key(base, overload))
        if said is None:
            continue
        own = op.row.out_op
        # The overload for tensors comes first: the row's own form is the one for them.
        if own is not None and overloads.names_of(op)[0] == overload:
            name = own.name.partition(".")[2]
            if found.get(name) is own and name != said[0]:
                del found[name]
        if said[0] not in found:
            found[said[0]] = _made(base, overload, op, said)


def name_for(op: Op, args: tuple[Any, ...]) -> str | None:
    """What PyTorch calls a row's form with `out=` for these arguments, where it has another name for it."""
    row = op.functional
    if row is None or not op.is_out:
        return None
    if not row.ready:
        row.prepare()
    said = OUTS.get(_key(overloads.base_of(row.name), overloads.name_for(row, args[: len(row.schema.args)])))
    return None if said is None else said[0]


def _made(base: str, overload: str, op: Op, said: tuple[str, tuple[str, ...]]) -> Op:
    name = f"{base}.{said[0]}"
    made = _MADE.get(name)
    if made is None or made.functional is not op:
        made = _MADE[name] = _form(name, op, said[1])
    return made


def _form(name: str, op: Op, results: tuple[str, ...]) -> Op:
    returns = op.schema.returns
    names = results or (("out",) if len(returns) == 1 else tuple(f"out{i}" for i in range(len(returns))))
    marks = [f"Tensor({chr(97 + i)}!){'[]' if r.is_list else ''}" for i, r in enumerate(returns)]
    listed = any(r.is_list for r in returns)
    given = op.schema_text[op.schema_text.index("(") + 1 : op.schema_text.rindex("->")].strip()[:-1]
    star = [] if any(a.kwonly for a in op.schema.args) else ["*"]
    arguments = ", ".join([*([given] if given else []), *star, *(f"{m} {n}" for m, n in zip(marks, names))])
    answer = "()" if listed else marks[0] if len(marks) == 1 else f"({', '.join(marks)})"
    form = Op(name, f"{name}({arguments}) -> {answer}")
    form.functional = op
    form.is_out = form.mutates = True
    form.numbers = op.numbers
    form.derivative = OUT_DERIVATIVE
    form.row = Row("out", form, False, False)
    own = op.row.out_op
    if own is not None:
        form.composite = FnKernel(lambda *args: own.call(_together(op, args)))
    else:
        form.row.fallback = FnKernel(lambda *args: _copied(op, args))
    return form


def _together(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, if what is written is where the first tensor that is read is."""
    n = len(op.schema.args)
    read = next((a for a in args[:n] if isinstance(a, TensorBase) and a._shape), None)
    for out in args[n:]:
        if read is not None and isinstance(out, TensorBase) and out._device != read._device:
            raise RuntimeError(f"Expected out tensor to have device {read._device}, but got {out._device} instead")
    return args


def _copied(op: Op, args: tuple[Any, ...]) -> Any:
    """Compute, then give every tensor that was passed its result."""
    n = len(op.schema.args)
    plain, outs = args[:n], args[n:]
    result = op.call(plain)
    results = (result,) if isinstance(result, TensorBase) or op.schema.returns[0].is_list else tuple(result)
    pairs = [
        pair
        for r, o in zip(results, outs)
        for pair in ([(r, o)] if isinstance(r, TensorBase) else zip(r, o, strict=True))
    ]
    for r, o in pairs:
        _SAME.check(r._dtype, o._dtype)
        if r._device != o._device:
            raise RuntimeError(f"Expected out tensor to have device {r._device}, but got {o._device} instead")
    for r, o in pairs:
        fit(o, spec_of(r, _SAME), _SAME)
        o.copy_(r)
    if any(r.is_list for r in op.schema.returns):
        return None
    return outs[0] if len(outs) == 1 else outs
