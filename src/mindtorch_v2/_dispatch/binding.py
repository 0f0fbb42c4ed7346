"""From what a user passed to an operator's arguments in schema order: conversions, defaults, overloads, and the errors.

Invariant: what reaches `Op.call` has the types the schema names: ints are Python ints, lists are tuples, dtypes and
devices are objects, numbers are Python numbers.
"""

from __future__ import annotations

from operator import index
from typing import Any, Final, final

from .._device import as_device, device
from .._dtype import dtype_or_none
from .._layout import layout, memory_format
from .._numbers import checked_number, is_number, is_numpy_scalar, no_number
from .._size import Size
from .._sizes import SHORT, is_long, is_ragged, long, not_concrete
from .._tensor_base import TensorBase, numel, requires_grad
from .op import Op, plain_name
from .schema import Arg, Schema

# NumPy's names for PyTorch's parameters.
_ALIASES: Final[dict[str, str]] = {
    "axis": "dim",
    "keepdims": "keepdim",
    "x": "input",
    "a": "input",
    "x1": "input",
    "x2": "other",
}


def refuse(fname: str, a: Arg, position: int, value: object) -> TypeError:
    """PyTorch's complaint about an argument, from the call it came with where that is a public function's."""
    from .complaint import kind_text, of_call

    where = f" (position {position})" if position > 0 else ""
    name = "input" if a.name == "self" and not a.is_list else a.name
    text = kind_text(a)
    if a.is_list and isinstance(value, (tuple, list)):
        for i, v in enumerate(value):
            if not _element_fits(a, v):
                return of_call(
                    fname,
                    TypeError(
                        f"{fname}(): argument '{name}'{where} must be {text}, but found "
                        f"element of type {plain_name(v)} at pos {i}"
                    ),
                )
    return of_call(fname, TypeError(f"{fname}(): argument '{name}'{where} must be {text}, not {plain_name(value)}"))


def _element_fits(a: Arg, v: object) -> bool:
    if a.kind == "int":
        return is_element(v)
    if a.kind == "Tensor":
        return isinstance(v, TensorBase)
    return isinstance(v, (int, float))


def is_index(v: object) -> bool:
    """Ints, NumPy's integers, and integer tensors without dimensions; elsewhere than in a list no other object."""
    if isinstance(v, TensorBase):
        return len(v._shape) == 0 and not v._dtype.is_inexact and v._dtype.name != "bool"
    if isinstance(v, int):
        return not isinstance(v, bool)
    return is_numpy_scalar(v) and _has_index(v)


def need_tensor(fname: str, name: str, position: int, v: object) -> None:
    """Refuse what is no tensor in a function that no schema binds."""
    if not isinstance(v, TensorBase):
        raise TypeError(f"{fname}(): argument '{name}' (position {position}) must be Tensor, not {plain_name(v)}")


def need_int(fname: str, name: str, position: int, v: Any) -> int:
    """The int that is given to a function that no schema binds; position 0 is of what comes by name alone."""
    if not is_index(v):
        where = f" (position {position})" if position else ""
        raise TypeError(f"{fname}(): argument '{name}'{where} must be int, not {plain_name(v)}")
    n: Any = index(v)
    if not is_long(n):
        raise ValueError("Overflow when unpacking long long")
    return int(n)


def is_size(v: object) -> bool:
    """What stands for a symbolic int besides: any object that says which int it is."""
    return not isinstance(v, (bool, TensorBase)) and not hasattr(v, "__len__") and _has_index(v)


def is_element(v: object) -> bool:
    """What stands for an int in a list of them: besides, whatever has one element."""
    if isinstance(v, int):
        return not isinstance(v, bool)
    if isinstance(v, TensorBase):
        return numel(v) == 1 and not v._dtype.is_inexact
    return _has_index(v)


def _has_index(v: object) -> bool:
    """Whether `v` says which int it is: what raises or answers something else is none, as PyTorch has it."""
    if not hasattr(v, "__index__"):
        return False
    try:
        index(v)
    except Exception:
        return False  # also an array of several elements, or with dimensions
    return True


_tuple_new: Final[Any] = tuple.__new__


@final
class Bad:
    """Marks an argument that does not fit."""


BAD: Final = Bad()
NOT_INTEGRAL: Final = (
    "Expected scalar.isIntegral( false) to be true, but got false.  (Could this error message be improved?  If so, "
    "please report an enhancement request to PyTorch.)"
)


@final
class Types:
    """Types that this module cannot import, entered by those that define them."""

    def __init__(self) -> None:
        self.generator: type = Bad


TYPES: Final = Types()


class Unpack(Exception):
    """An element of a list of ints that is none, after a first one that is, or that 64 bits do not hold; whoever knows
    the function's name says so."""

    def __init__(self, name: str, position: int, reason: str = "Overflow when unpacking long long") -> None:
        self.name: Final = name
        self.position: Final = position
        self.reason: Final = reason

    def named(self, fname: str) -> TypeError:
        return TypeError(
            f"{fname}(): argument '{self.name}' failed to unpack the object at pos {self.position} with error "
            f'"{self.reason}"'
        )


_NUMBERS: Final = frozenset(("float", "bool", "Scalar", "number"))


def convert(a: Arg, v: Any) -> Any:
    """The value in the schema's type, or BAD."""
    if v is None:
        if a.is_list and a.default == ():
            return a.default  # PyTorch's parser writes an empty list as None
        return None if a.optional else BAD
    kind = a.kind
    if a.is_list:
        if kind == "Tensor":
            if isinstance(v, (tuple, list)):
                t = held(v)
                return t if _all_tensors(t, a) else BAD
            return BAD
        if kind == "int":
            return _ints(a, v)
        return _values(a, v) if kind in _NUMBERS else _others(a, v)
    if kind == "Tensor":
        if isinstance(v, TensorBase):
            return v
        return checked_number(v) if is_number(v) else BAD
    if kind == "int":
        if is_ragged(v):
            raise no_number()
        if isinstance(v, int):
            return long(int(v)) if not isinstance(v, bool) else BAD
        return long(index(v)) if is_index(v) or (a.symbolic and is_size(v)) else BAD
    if kind == "bool":
        return v if isinstance(v, bool) else BAD
    if kind == "float":
        if is_ragged(v):
            raise no_number()
        if isinstance(v, (float, int)) and not isinstance(v, bool):
            return float(v)
        if isinstance(v, TensorBase):
            single: Any = v
            return float(single) if len(v._shape) == 0 and not v._dtype.is_complex and not requires_grad(v) else BAD
        return float(v) if is_number(v) and not isinstance(v, complex) else BAD
    if kind == "Scalar":
        if isinstance(v, (int, float, complex)):
            return checked_number(v)
        x: Any = v
        if isinstance(v, TensorBase):
            return x.item() if len(v._shape) == 0 and not requires_grad(v) else BAD
        return x.item() if is_number(v) else BAD
    if kind == "str":
        if isinstance(v, bytes):
            return v.decode(errors="replace")
        return v if isinstance(v, str) else BAD
    if kind == "ScalarType":
        d = dtype_or_none(v)
        return d if d is not None else BAD
    if kind == "Device":
        if isinstance(v, (device, str, int)) and not isinstance(v, bool):
            return as_device(v)
        return as_device(v.decode(errors="replace")) if isinstance(v, bytes) else BAD
    if kind == "MemoryFormat":
        return v if isinstance(v, memory_format) else BAD
    if kind == "Layout":
        return v if isinstance(v, layout) else BAD
    if kind == "Generator":
        return v if isinstance(v, TYPES.generator) else BAD
    return v


def held(v: Any) -> tuple[Any, ...]:
    """What a tuple or list holds, whatever its class says of its length and elements."""
    if type(v) is tuple or type(v) is Size:
        t: tuple[Any, ...] = v
        return t
    kind: Any = tuple if isinstance(v, tuple) else list
    return tuple(kind.__getitem__(v, slice(None)))


def _all_tensors(items: tuple[Any, ...], a: Arg) -> bool:
    for t in items:
        if not isinstance(t, TensorBase) and not (t is None and a.holes):
            return False
    return True


def _others(a: Arg, v: Any) -> Any:
    """A list of texts, dtypes, layouts or devices."""
    if not isinstance(v, (list, tuple)):
        return BAD
    one = Arg(a.name, a.kind, False, False, 0, "", False, a.kwonly, False, None)
    out: list[Any] = []
    for x in held(v):
        got = convert(one, x)
        if got is BAD:
            return BAD
        out.append(got)
    return tuple(out)


def _values(a: Arg, v: Any) -> Any:
    """A list of floats, bools or numbers."""
    if not isinstance(v, (list, tuple)):
        return (v,) if a.size > 0 and a.kind != "bool" and is_number(v) else BAD
    given = held(v)
    for x in given:
        if a.kind == "bool":
            fits = isinstance(x, bool)
        else:
            fits = _is_zero_dim(x) or (is_number(x) and (a.kind != "float" or not isinstance(x, complex)))
        if not fits:
            return BAD
    if a.kind == "bool" and a.size > 0 and len(given) != a.size:
        raise RuntimeError(f"Tried to convert a List with {len(given)} elements to a fixed-size array of size {a.size}")
    return given


def _is_zero_dim(v: object) -> bool:
    return isinstance(v, TensorBase) and len(v._shape) == 0


def _ints(a: Arg, v: Any) -> Any:
    if isinstance(v, (tuple, list)):
        # A list is read where it is: an element may shorten it while it is asked.
        given: Any = v if type(v) is list else held(v)
        if type(given) is not list and (not given or plain_ints(given)):
            return given
        out: list[int] = []
        for x in given:
            if is_ragged(x):
                out.append(_ragged(a, x))
            elif is_element(x):
                if a.symbolic and isinstance(x, TensorBase) and x._dtype.name == "bool":
                    raise RuntimeError(NOT_INTEGRAL)
                out.append(index(x))
            elif isinstance(x, bool) and len(out) > 0:
                out.append(int(x))  # only the first element is looked at closely
            elif len(out) > 0:
                raise Unpack(a.name, len(out) + 1, f"type must be tuple of ints,but got {plain_name(x)}")
            else:
                return BAD
        for i, n in enumerate(out):
            if not is_long(n):
                raise Unpack(a.name, i + 1)
        return tuple(out)
    if is_ragged(v):
        return (_ragged(a, v),) if a.size > 0 else BAD
    if isinstance(v, int) and not isinstance(v, bool):
        return (long(v),) if a.size > 0 else BAD
    if a.size > 0 and is_element(v):
        return (long(index(v)),)
    return BAD


def _ragged(a: Arg, n: Any) -> int:
    """A ragged size among ints: its value where shapes stand, which nested tensors know and others refuse."""
    if not a.symbolic:
        raise no_number()
    if a.name not in ("size", "shape", "sizes", "normalized_shape"):
        raise not_concrete()
    return index(n)


def fitted(fname: str, a: Arg, v: Any) -> Any:
    """The value in the schema's type, or BAD; the function named is the one that refuses ints too large."""
    try:
        return convert(a, v)
    except Unpack as e:
        raise e.named(fname) from None


def need(fname: str, a: Arg, position: int, v: Any) -> Any:
    """Convert or raise PyTorch's TypeError."""
    got = fitted(fname, a, v)
    if got is BAD:
        raise refuse(fname, a, position, v)
    return got


def need_all(schema: Schema, *values: Any) -> None:
    """Raise PyTorch's TypeError for the first value, in schema order, that is of another type than its argument."""
    for i, (a, v) in enumerate(zip(schema.args, values)):
        position = 0 if a.kwonly else i + 1
        if a.kind == "Tensor" and not a.is_list and is_number(v):
            raise refuse(schema.name, a, position, v)  # rows make tensors of numbers
        need(schema.name, a, position, v)


def checked(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments in schema order, given from Python's side of the package, in the schema's types."""
    out: list[Any] | None = None
    for i, a in enumerate(op.schema.args):
        if i >= len(args):
            break
        v = args[i]
        if a.kind == "Tensor" or _is_plain(a, v):
            continue
        if out is None:
            out = list(args)
        out[i] = need(op.title(), a, 0 if a.kwonly else i + 1, v)
    return args if out is None else tuple(out)


@final
class Checked:
    """A row that looks at its arguments."""

    def __init__(self, op: Op) -> None:
        self.op: Final = op

    def call(self, args: tuple[Any, ...]) -> Any:
        return self.op.call(checked(self.op, args))


def _is_plain(a: Arg, v: object) -> bool:
    """The usual types, which need no conversion."""
    if v is None:
        return a.optional
    if a.is_list:
        return type(v) is tuple and a.kind == "int" and plain_ints(v)
    if a.kind == "bool":
        return v is True or v is False
    if a.kind == "int":
        return type(v) is int and is_long(v)
    if a.kind == "float":
        return type(v) is float
    return a.kind == "str" and type(v) is str


def plain_ints(given: tuple[Any, ...]) -> bool:
    """Whether these are one or more Python ints that need no closer look."""
    for x in given:
        if type(x) is not int:
            return False
        n: int = x
        if n > SHORT or n < -SHORT:
            return False
    return len(given) > 0


def collect(fname: str, a: Arg, given: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    """Ints given one by one, as one list, or by keyword."""
    if len(given) == 1:
        first = given[0]
        if type(first) is not int and (isinstance(first, (tuple, list)) or not is_element(first)):
            return need(fname, a, 1, first)
    elif len(given) == 0:
        if a.name in kw:
            value = need(fname, a, 0, kw[a.name])
            del kw[a.name]
            return value
        if not a.has_default:
            from .complaint import of_call

            raise of_call(fname, TypeError(f'{fname}() missing 1 required positional arguments: "{a.name}"'))
    return given if not given or plain_ints(given) else need(fname, a, 1, given)


def bind(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], varargs: bool) -> tuple[Any, ...] | None:
    """Arguments in schema order, or None when they do not fit this overload."""
    schema = op.schema.args
    n = len(args)
    positional = op.schema.positional
    if n > positional:
        # `x.view(2, 3)`: ints given one by one where the only positional argument is a list of ints.
        last = schema[positional - 1] if positional >= 1 else None
        if not varargs or last is None or not last.is_list or last.kind != "int":
            return None
        head = positional - 1
        args = args[:head] + (args[head:],)
        n = positional
    out: list[Any] = []
    used = 0
    for i, a in enumerate(schema):
        if i < n and not a.kwonly:
            value = args[i]
            if a.is_tensor:
                if isinstance(value, TensorBase):
                    out.append(value)
                    continue
                if _stray_number(op, i, value):
                    return None
            if value is None and not a.optional:
                return None
            got = convert(a, value)
            if got is BAD:
                if (
                    varargs
                    and i == n - 1
                    and a.is_list
                    and a.kind == "int"
                    and not isinstance(value, (list, tuple))
                    and is_element(value)
                ):
                    got = convert(a, (value,))
                else:
                    return None
        else:
            key = a.name
            if key not in kwargs and key == "self":
                key = "input"
            if key in kwargs:
                used += 1
                if a.is_tensor and _stray_number(op, i, kwargs[key]):
                    return None
                got = convert(a, kwargs[key])
                if got is BAD:
                    return None
            elif a.has_default:
                got = a.default
            else:
                return None
        out.append(got)
    return tuple(out) if used == len(kwargs) else None


def _stray_number(op: Op, i: int, value: Any) -> bool:
    """Whether something that is no tensor, however large, stands where the operator takes no number."""
    return value is not None and not isinstance(value, TensorBase) and not (op.numbers >> i) & 1


def renamed(kwargs: dict[str, Any], op: Op) -> dict[str, Any]:
    """Accept NumPy's parameter names."""
    foreign = False
    for k in kwargs:
        if k in _ALIASES:
            foreign = True
    if not foreign:
        return kwargs
    out: dict[str, Any] = {}
    names = [a.name for a in op.schema.args]
    for k, v in kwargs.items():
        other = _ALIASES.get(k)
        out[other if other is not None and k not in names and (other in names or other == "input") else k] = v
    return out


@final
class Overloads:
    """The operators behind one public name; the first whose schema fits the arguments is called."""

    def __init__(self, name: str, ops: list[Op], varargs: list[bool], method: bool) -> None:
        self.name: Final = name
        self.method: Final = method
        self.ops: Final = ops
        self.varargs: Final = varargs
        # How many arguments the first operator takes if all of them are tensors, else -1: then nothing is to be bound.
        self.tensors: Final = len(ops[0].schema.args) if all([a.is_tensor for a in ops[0].schema.args]) else -1

    def invoke(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not kwargs and len(args) == self.tensors and only_tensors(args):
            return named(self.ops[0], self.ops[0].call(args))
        out: Any = None
        given = kwargs
        if "out" in kwargs:
            if self.method:
                raise self.mismatch(args, given)
            kwargs = dict(kwargs)
            out = kwargs.pop("out")
        for i, op in enumerate(self.ops):
            if len(args) > op.schema.positional and not self.varargs[i]:
                continue
            if kwargs is not given and not takes_out(op, out):
                continue
            try:
                got = bind(op, args, renamed(kwargs, op) if kwargs else kwargs, self.varargs[i])
            except Unpack as e:
                raise e.named(op.title()) from None
            if got is not None:
                if out is not None:
                    return call_out(op, got, out)
                return named(op, op.call(got))
        raise self.mismatch(args, given)

    def mismatch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
        """PyTorch's account of what was given and what would have been accepted."""
        from .complaint import complaint

        return complaint(self.name, self.ops, self.method, args[1:] if self.method else args, kwargs)


def only_tensors(args: tuple[Any, ...]) -> bool:
    for a in args:
        if not isinstance(a, TensorBase):
            return False
    return True


def has_one_out(op: Op) -> bool:
    returns = op.schema.returns
    return len(returns) == 1 and not returns[0].is_list


def takes_out(op: Op, out: Any) -> bool:
    """Whether there is a form with `out=`, for one tensor or for a tuple of them."""
    if op.row is None or op.row.public_out is None:
        return False
    if has_one_out(op):
        return out is None or isinstance(out, TensorBase)
    return out is None or isinstance(out, (tuple, list))


def call_out(op: Op, args: tuple[Any, ...], out: Any) -> Any:
    """`out=`: one tensor, or a tuple of them."""
    known = op.out_form
    if known is not None:
        if isinstance(out, TensorBase):
            if op.out_count == 1:
                return known.call(args + (out,))
        elif isinstance(out, tuple) and len(out) == op.out_count and only_tensors(out):
            return named(known, known.call(args + out))
    form: Op | None = op.row.out_op if op.row is not None else None
    if form is None:
        raise TypeError(f"{op.title()}() got an unexpected keyword argument 'out'")
    n = len(op.schema.returns)
    if not takes_out(op, out):
        from .complaint import of_call

        raise of_call(
            op.title(),
            TypeError(
                f"{op.title()}(): argument 'out' must be "
                f"{'Tensor' if has_one_out(op) else 'tuple of Tensors'}, not {plain_name(out)}"
            ),
        )
    outs = (out,) if has_one_out(op) else tuple(out)
    is_list = n == 1 and op.schema.returns[0].is_list
    if len(outs) != n and not is_list and only_tensors(outs):
        raise TypeError(f"expected tuple of {n} elements but got {len(outs)}")
    for i, o in enumerate(outs):
        if not isinstance(o, TensorBase):
            raise TypeError(f"expected Tensor as element {i} in argument {len(args)}, but got {plain_name(o)}")
    if is_list:
        return form.call((*args, outs))
    if n > 1 or form.result_type is None:
        op.out_form = form
        op.out_count = n
    return named(form, form.call(args + outs))


def named(op: Op, result: Any) -> Any:
    """Several results with names come as one of `torch.return_types`."""
    if op.result_type is None or type(result) is not tuple:
        return result
    return _tuple_new(op.result_type, result)
