"""Public functions and methods, made from schemas when somebody first asks for them. The native module binds the usual
calls (`bound`); what is written here serves all others.

Invariant: a public function binds as PyTorch's does and calls `Op.call` with arguments in schema order; it contains no
knowledge of any particular operator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from keyword import iskeyword
from typing import Any

from .._core_operators import CoreOperators
from .._dispatch import registry
from .._dispatch.binding import _ALIASES, Overloads, call_out, collect, named, need, plain_ints
from .._dispatch.op import Op
from .._dispatch.schema import Arg
from .._dispatch.state import current_default_device
from .._numbers import checked_number
from .._overrides import ask, can_answer, given_values
from .._tensor_base import TensorBase
from .bound import bound, can_bind, has_options, writes_list

_FAST = {
    # Python compares ints of this size without a call; `need` looks at larger ones.
    "int": "(type({n}) is not int or {n} > 1073741823 or {n} < -1073741823)",
    "bool": "{n} is not True and {n} is not False",
    "float": "type({n}) is not float",
    "Scalar": "type({n}) is not float and (type({n}) is not int or {n} > 1073741823 or {n} < -1073741823)",
    "str": "type({n}) is not str",
}
_MISSING = object()
_ROOT = sys.modules[__package__.partition(".")[0]]
_REQUIRES_GRAD = Arg("requires_grad", "bool", False, False, 0, "", False, True, True, False)
# Names that have orders of arguments from earlier versions (`old_forms`).
_OLD_FORMS = frozenset(
    name + form
    for name in "add sub subtract addmm addmv addr addbmm baddbmm addcmul addcdiv".split()
    for form in ("", "_")
)
# Functions and methods made so far, and who wants to see those that are made later (`torch.fx`).
BUILT: list[Callable[..., Any]] = []
ON_BUILT: list[Callable[[Any], None]] = []
# Parameters that NumPy calls otherwise.
_NUMPY = frozenset(("dim", "keepdim"))


def by_name() -> dict[str, list[Op]]:
    """Public base names and their overloads, in the order of declaration."""
    found = {name: registry.overloads(name) for name in registry.TITLES}
    return {name: ops for name, ops in found.items() if ops}


def function(name: str, ops: list[Op]) -> Callable[..., Any]:
    """`torch.<name>`."""
    return _build(name, [o for o in ops if o.row.function], False)


def method(name: str, ops: list[Op]) -> Callable[..., Any]:
    """`Tensor.<name>`."""
    return _build(name, [o for o in ops if o.row.method], True)


def build(name: str, ops: list[Op]) -> Callable[..., Any]:
    """A function of another module than `torch`."""
    return _build(name, ops, False)


def _build(name: str, ops: list[Op], is_method: bool) -> Callable[..., Any]:
    from . import describe  # not before a function is asked for

    overloads = Overloads(name, ops, [spreads(o, is_method) for o in ops], is_method)
    fn: Callable[..., Any]
    if can_bind(ops):
        fn = bound(name, overloads, is_method, lambda public: _written(name, overloads, is_method, public))
    else:
        fn = _written(name, overloads, is_method)
    fn.__module__ = _ROOT.__name__  # `torch` where the package bears that name
    fn.__doc__ = describe.text(name, ops, is_method)
    if _spelled(ops):
        fn.__signature__ = describe.LateSignature(ops[0], is_method)  # type: ignore[attr-defined]
    fn.__overloads__ = overloads  # type: ignore[attr-defined]
    for o in ops:
        if o.public is None or not is_method:
            o.public = fn
    BUILT.append(fn)
    for seen in ON_BUILT:
        seen(fn)
    return fn


def _written(name: str, overloads: Overloads, is_method: bool, public: Any = None) -> Callable[..., Any]:
    """The function in Python. `public` is what a user called, if that is another object."""
    ops = overloads.ops
    fn = _single(name, ops[0], is_method, overloads) if _spelled(ops) else _several(name, overloads, is_method)
    if public is not None:
        fn.__globals__[name] = public
        fn.__module__ = _ROOT.__name__
    return fn


def _spelled(ops: list[Op]) -> bool:
    """Whether there is one signature that Python can write: no parameter has the name of a keyword, as `from`."""
    return len(ops) == 1 and not any(iskeyword(a.name) for a in ops[0].schema.args)


def spreads(o: Op, is_method: bool) -> bool:
    """Whether ints may be given one by one: `x.view(2, 3)`, `torch.zeros(2, 3)`."""
    positional = [a for a in o.schema.args if not a.kwonly]
    if is_method:
        positional = positional[1:]
    # Where one int stands for a list of one, several never stand for a longer one.
    return len(positional) == 1 and positional[0].is_list and positional[0].kind == "int" and positional[0].size == 0


def _several(name: str, overloads: Overloads, is_method: bool) -> Callable[..., Any]:
    """Several signatures. Ints given one by one go straight to the overload that takes them."""
    space: dict[str, Any] = {"_invoke": overloads.invoke, "_call": overloads.ops[0].call, "_plain": plain_ints}
    fast = ""
    if is_method and overloads.varargs[0] and len(overloads.ops[0].schema.args) == 2:
        fast = "        if not kwargs and _plain(args):\n            return _call((self, args))\n"
    space.update(_can_answer=can_answer, _ask=ask, _values=given_values)
    head, given = ("self, *args", "(self, *args)") if is_method else ("*args", "args")
    source = (
        f"def {name}({head}, **kwargs):\n    try:\n{fast}        return _invoke({given}, kwargs)\n"
        "    except Exception as error:\n"
        f"        if not _can_answer(error, _values({given}, kwargs)):\n            raise\n"
        f"        return _ask({name}, {given}, kwargs)\n"
    )
    if writes_list(overloads.ops[0]):
        source = source.replace(
            f"return _invoke({given}, kwargs)",
            f"_invoke({given}, kwargs)\n        return args[0] if args else kwargs['self']",
        )
    exec(compile(source, f"<torch.{name}>", "exec"), space)
    fn: Callable[..., Any] = space[name]
    return fn


def _single(name: str, o: Op, is_method: bool, overloads: Overloads) -> Callable[..., Any]:
    """The public function of one signature, written as source and compiled once."""
    shown = [("input" if a.name == "self" and not is_method else a.name) for a in o.schema.args]
    space: dict[str, Any] = {**_SPACE, "_call": o.call, "_op": o, "_overloads": overloads}
    params, late, body = _parameters(name, o, is_method, shown, space)
    spread = spreads(o, is_method)
    names = list(shown)
    if o.row.public_out is not None and not is_method:
        late.append("out=None")
        names.append("out")
    if has_options(o):
        late.append("requires_grad=False")
        names.append("requires_grad")
    guard: list[str] = []
    fields = ", ".join(f"{n!r}: {n}" for n in names)
    again = f"    if kw:\n        return _again({name}, _overloads, {{{fields}}}, kw)"
    if spread:
        late.append("**kw")
        body.append(again)
    else:
        if late:
            guard.append(_surplus(name, is_method, params, late))
            late.insert(0, "_=_M")
        # Python's own words for an unknown keyword are PyTorch's where that has one signature. It has several where a
        # row takes numbers too.
        if _NUMPY.intersection(shown) or o.numbers:
            late.append("**kw")
            guard.append(again)
    if writes_list(o):
        guard.insert(0, f"    given = {shown[0]}")
    # A call that succeeds pays nothing for what follows `except`.
    lines = "\n".join(guard + body + _returns(name, o, is_method, shown)).replace("\n", "\n    ")
    fields += ", **kw" if spread else ""
    source = (
        f"def {name}({', '.join(params + late)}):\n    try:\n    {lines}\n    except Exception as error:\n"
        # Raised again here, by itself: a frame in the traceback that held the error would keep its tensors alive.
        f"        _given = {{{fields}}}\n"
        f"        if not _can_answer(error, _values((), _given)):\n            raise\n"
        f"        return _asked({name}, _op, {is_method}, _given)\n"
    )
    exec(compile(source, f"<torch.{name}>", "exec"), space)
    fn: Callable[..., Any] = space[name]
    space["_written"] = fn
    return fn


def _surplus(name: str, is_method: bool, params: list[str], late: list[str]) -> str:
    """The lines for a call with too many positional arguments, which may be in an order that was PyTorch's once."""
    refusal = f"_too_many({name!r}, {len(params)}, {is_method})"
    if name not in _OLD_FORMS:
        return f"    if _ is not _M:\n        raise {refusal}"
    values = ", ".join(p.partition("=")[0] for p in params)
    rest = ", ".join(p.partition("=")[0] for p in late if p.startswith(("beta=", "alpha=", "value=")))
    out = "out" if "out=None" in late else "None"
    return f"    if _ is not _M:\n        return _old({name}, {is_method}, ({values}, _), ({rest},), {out}, {refusal})"


def _old(
    fn: Callable[..., Any], is_method: bool, given: tuple[Any, ...], late: tuple[Any, ...], out: Any, refusal: TypeError
) -> Any:
    from . import old_forms

    # Numbers behind the last positional argument are defaults or keywords: no old form ends with one.
    return old_forms.call(fn, is_method, (*given, *(x for x in late if isinstance(x, TensorBase))), out, refusal)


def _parameters(
    name: str, o: Op, is_method: bool, shown: list[str], space: dict[str, Any]
) -> tuple[list[str], list[str], list[str]]:
    """The positional and the keyword-only parameters, and the lines that convert what they are given; what those lines
    speak of goes into `space`."""
    # Python looks every keyword-only default up in a dict at each call. So what is keyword-only in the schema stands
    # behind a parameter that nobody may fill, `_`, and is found like a positional one.
    params: list[str] = []
    late: list[str] = []
    body: list[str] = []
    spread = spreads(o, is_method)
    for i, (a, n) in enumerate(zip(o.schema.args, shown)):
        place = late if a.kwonly else params
        space[f"_a{i}"] = a
        if spread and a.is_list and not a.kwonly:
            params.append("*" + n)
            body.append(f"    _spread{i} = {n}; {n} = _varargs({name!r}, _a{i}, {n}, kw)")
            continue
        if a.has_default:
            space[f"_d{i}"] = a.default
            needed = n == "dim" and not is_method and o.row is not None and o.row.out_needs_dim
            place.append(f"{n}=_M" if needed else f"{n}=_d{i}")
            if needed:
                body.append(
                    f"    if {n} is _M:\n        {n} = _d{i}\n"
                    f"        if out is not None:\n            raise _missing(_overloads, {n!r})"
                )
        elif i > 0:
            # It may come under NumPy's name instead, or be missing: Python must not answer for us.
            place.append(f"{n}=_M")
            body.append(f"    if {n} is _M:\n        raise _missing(_overloads, {n!r})")
        elif is_method:
            place.append(n)
        else:
            # What is missing is no tensor either, so a call without it ends where other arguments are refused.
            place.append(f"{n}=_M")
        if a.is_tensor and (o.numbers >> i) & 1:
            body.append(f"    if type({n}) is not int and isinstance({n}, int):\n        _number({n})")
        body.extend(_convert(name, a, i, n, is_method))
    return params, late, body


def _returns(name: str, o: Op, is_method: bool, shown: list[str]) -> list[str]:
    """The lines that call the operator and return its result."""
    given = "(" + ", ".join(shown) + ("," if len(shown) == 1 else "") + ")"
    lines: list[str] = []
    options = has_options(o)
    if options:
        lines.append("    if device is None:\n        device = _default_device()")
    if o.row.public_out is not None and not is_method:
        lines.append(f"    if out is not None:\n        return _out(_op, {given}, out)")
    if options:
        lines.append(
            f"    if requires_grad is False:\n        return _call({given})\n"
            f"    _need({name!r}, _requires_grad, 0, requires_grad)\n"
            f"    result = _call({given})\n    result.requires_grad = requires_grad\n    return result"
        )
    elif writes_list(o):
        lines.append(f"    _call({given})\n    return given")
    elif o.result_type is None:
        lines.append(f"    return _call({given})")
    else:
        lines.append(f"    return _named(_op, _call({given}))")
    return lines


def _convert(fname: str, a: Arg, i: int, n: str, is_method: bool) -> list[str]:
    """Lines that bring one argument into the schema's type; its default and the usual type pass with one test."""
    if a.is_tensor:
        return []
    tests: list[str] = []
    if a.has_default:
        tests.append(f"{n} is not _d{i}")
    elif a.optional:
        tests.append(f"{n} is not None")
    if a.kind in _FAST and not a.is_list:
        tests.append(_FAST[a.kind].format(n=n))
    call = f"{n} = _need({fname!r}, _a{i}, {0 if a.kwonly else i if is_method else i + 1}, {n})"
    if a.is_list:
        call = f"_given{i} = {n}; {call}"  # one int for a list: who overrides the call sees what was written
    return [f"    if {' and '.join(tests)}:\n        {call}" if tests else f"    {call}"]


def _asked(fn: Any, o: Op, is_method: bool, given: dict[str, Any]) -> Any:
    """What a call answers that failed, and that an argument which is no tensor takes over."""
    positional: list[Any] = []
    kwargs: dict[str, Any] = {}
    for i, (name, value) in enumerate(given.items()):
        a = o.schema.args[i] if i < len(o.schema.args) else None
        if value is _MISSING or (value is (None if a is None or not a.has_default else a.default)):
            continue
        if a is None or a.kwonly or len(positional) < i:
            kwargs[name] = value
        elif spreads(o, is_method) and a.is_list:
            positional.extend(value if isinstance(value, tuple) else (value,))
        else:
            positional.append(value)
    return ask(fn, tuple(positional), kwargs)


def _too_many(fname: str, accepted: int, is_method: bool) -> TypeError:
    """More positional arguments than the schema has."""
    takes, given = accepted - is_method, accepted - is_method + 1
    return TypeError(
        f"{fname}() takes {takes} positional argument{'s' if takes != 1 else ''} but {given} "
        f"{'were' if given != 1 else 'was'} given"
    )


def _missing(overloads: Overloads, name: str) -> TypeError:
    """A required argument was left out. PyTorch names it where there is one signature, else shows what was given."""
    from .._dispatch.complaint import of_call

    return of_call(overloads.name, TypeError(f'{overloads.name}() missing 1 required positional arguments: "{name}"'))


def _again(fn: Callable[..., Any], overloads: Overloads, given: dict[str, Any], kw: dict[str, Any]) -> Any:
    """A call that used NumPy's parameter names, or names that do not exist."""
    values = dict(given)
    for k, v in kw.items():
        target = _ALIASES.get(k)
        if target is None or target not in values:
            from .._dispatch.complaint import of_call

            raise of_call(overloads.name, TypeError(f"{overloads.name}() got an unexpected keyword argument '{k}'"))
        values[target] = v
    return fn(**{k: v for k, v in values.items() if v is not _MISSING})


# What the source of every public function speaks of.
_SPACE: dict[str, Any] = {
    "_need": need,
    "_number": checked_number,
    "_again": _again,
    "_out": call_out,
    "_M": _MISSING,
    "_missing": _missing,
    "_default_device": current_default_device,
    "_varargs": collect,
    "_too_many": _too_many,
    "_old": _old,
    "_named": named,
    "_requires_grad": _REQUIRES_GRAD,
    "_asked": _asked,
    "_can_answer": can_answer,
    "_values": given_values,
}


class LazyMethod:
    """Stands in the Tensor class for a method nobody used yet; `ops_of(name)` finds its overloads."""

    def __init__(self, name: str, ops_of: Callable[[str], list[Op]]) -> None:
        self.name = name
        self.ops_of = ops_of

    def __get__(self, obj: Any, owner: Any = None) -> Any:
        fn = method(self.name, self.ops_of(self.name))
        from .._tensor import Tensor

        if Tensor.__dict__.get(self.name) is self:
            setattr(Tensor, self.name, fn)
        return fn if obj is None else fn.__get__(obj, owner)


def install_methods(cls: type) -> None:
    """Give the Tensor class a method for every row that has one; methods written by hand stay."""
    for name, ops in by_name().items():
        if name not in cls.__dict__ and any([o.row.method for o in ops]):
            setattr(cls, name, LazyMethod(name, registry.overloads))


def install_core(core: CoreOperators) -> None:
    """Fill in the rows that compiled code calls. A compiled class has descriptors where an interpreted one has
    annotations."""
    for name in set(dir(type(core))) | set(getattr(type(core), "__annotations__", ())):
        if not name.startswith("__"):
            setattr(core, name, registry.OPS[name])
