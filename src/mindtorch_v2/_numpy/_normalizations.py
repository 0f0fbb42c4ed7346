"""What turns functions of tensors into functions of arrays: arguments are converted by their annotations.

Invariant: inside a function marked with `normalizer` there are tensors, tensor dtypes and plain values; outside there
are arrays. An argument annotated as not implemented must have its default.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import mindtorch_v2 as torch

from ._dtypes import CASTINGS, dtype, is_scalar
from ._util import apply_keepdims, coerce_to_tensor

ArrayLike: TypeAlias = Any
ArrayLikeOrScalar: TypeAlias = Any
SequenceOfArrays: TypeAlias = Any
DTypeLike: TypeAlias = Any
AxisLike: TypeAlias = Any
NDArray: TypeAlias = Any
OutArray: TypeAlias = Any
CastingModes: TypeAlias = Any
KeepDims: TypeAlias = Any
NotImplementedType: TypeAlias = Any


def array_like(x: Any, parm: Any = None) -> Any:
    """A tensor of anything."""
    return coerce_to_tensor(x)


def array_like_or_scalar(x: Any, parm: Any = None) -> Any:
    """A tensor of anything but Python's numbers, which stay."""
    return x if is_scalar(x) else coerce_to_tensor(x)


def sequence_of_arrays(x: Any, parm: Any = None) -> Any:
    """Tensors of the items of a sequence."""
    return tuple(coerce_to_tensor(value) for value in x)


def dtype_like(given: Any, parm: Any = None) -> Any:
    """A tensor dtype."""
    return None if given is None else dtype(given).torch_dtype


def axis_like(arg: Any, parm: Any = None) -> Any:
    """Axes as Python's integers."""
    from ._ndarray import ndarray

    return operator.index(arg) if isinstance(arg, ndarray) else arg


def casting_mode(arg: Any, parm: Any = None) -> Any:
    """One of NumPy's rules of casting."""
    if arg not in CASTINGS:
        raise ValueError(f"casting must be one of 'no', 'equiv', 'safe', 'same_kind', or 'unsafe' (got '{arg}')")
    return arg


def _array(arg: Any, parm: Any) -> Any:
    from ._ndarray import ndarray

    if not isinstance(arg, ndarray):
        raise TypeError(f"'{parm.name if parm else 'out'}' must be an array")
    return arg.tensor


def out_array(arg: Any, parm: Any = None) -> Any:
    """An array to write into, checked and left as it is."""
    _array(arg, parm)
    return arg


def not_implemented(arg: Any, parm: Any) -> Any:
    """The default, or refused."""
    if arg is not parm.default and (type(arg) is not type(parm.default) or arg != parm.default):
        raise NotImplementedError(f"'{parm.name}' parameter is not supported.")
    return arg


_CONVERTERS: dict[str, Callable[..., Any]] = {
    "ArrayLike": array_like,
    "ArrayLikeOrScalar": array_like_or_scalar,
    "SequenceOfArrays": sequence_of_arrays,
    "DTypeLike": dtype_like,
    "AxisLike": axis_like,
    "NDArray": _array,
    "OutArray": out_array,
    "CastingModes": casting_mode,
    "NotImplementedType": not_implemented,
}


def _converter(parm: inspect.Parameter) -> Callable[[Any], Any] | None:
    name = str(parm.annotation)
    optional = name.endswith(" | None")
    found = _CONVERTERS.get(name.removesuffix(" | None"))
    if found is None:
        return None

    def convert(arg: Any) -> Any:
        return None if optional and arg is None else found(arg, parm)

    return convert


def wrap_tensors(result: Any) -> Any:
    """Tensors replaced by arrays, in tuples and lists too."""
    from ._ndarray import ndarray

    if isinstance(result, torch.Tensor):
        return ndarray(result)
    if isinstance(result, (tuple, list)):
        make = getattr(type(result), "_make", type(result))
        return make([wrap_tensors(x) for x in result])
    return result


def copy_to(out: Any, result: Any, promote_scalar_result: bool = False) -> Any:
    """The result, or `out` after it was written there."""
    if out is None:
        return result
    if isinstance(result, torch.Tensor):
        if tuple(result.shape) != tuple(out.shape):
            if not (result.numel() == 1 and out.size == 1 and promote_scalar_result):
                raise ValueError(
                    f"Bad size of the out array: out.shape = {out.shape} while result.shape = {result.shape}."
                )
            result = result.reshape(out.shape)
        out.tensor.copy_(result)
        return out
    return type(result)(copy_to(o, r, promote_scalar_result) for o, r in zip(out, result, strict=True))


def normalizer(function: Any, promote_scalar_result: bool = False) -> Any:
    """Convert the arguments of a function of tensors by their annotations, write its result to `out` and wrap it."""
    parameters = inspect.signature(function).parameters
    positional = [p for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p for p in parameters.values() if p.kind is p.VAR_POSITIONAL), None)
    converters = {name: convert for name, p in parameters.items() if (convert := _converter(p))}
    by_position = [converters.get(p.name) for p in positional]
    rest_converter = converters.get(rest.name) if rest else None
    keeps = "keepdims" in parameters and str(parameters["keepdims"].annotation) == "KeepDims"
    writes = "out" in parameters and "OutArray" in str(parameters["out"].annotation)

    places = {p.name: i for i, p in enumerate(positional)}

    def value(name: str, given: list[Any], named: dict[str, Any]) -> Any:
        place = places.get(name, len(given))
        return named[name] if name in named else given[place] if place < len(given) else parameters[name].default

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given = [
            convert(arg) if convert else arg
            for arg, convert in zip(
                args, [*by_position, *([rest_converter] * (len(args) - len(by_position)))], strict=False
            )
        ]
        named = {name: converters[name](value) if name in converters else value for name, value in kwargs.items()}
        result = function(*given, **named)
        if keeps and value("keepdims", given, named):
            source = given[0] if given else next(iter(named.values()))
            result = apply_keepdims(result, value("axis", given, named), source.dim())
        if writes:
            out = value("out", given, named)
            if out is not None:
                return copy_to(out, result, promote_scalar_result)
        return wrap_tensors(result)

    return wrapped


def scalar_normalizer(function: Any) -> Any:
    """`normalizer` of a function whose only element may be written into an array of another shape."""
    return normalizer(function, promote_scalar_result=True)


def array_or_scalar(values: Any, py_type: type = float, return_scalar: bool = False) -> Any:
    """An array, or a Python number."""
    return py_type(values.item()) if return_scalar else wrap_tensors(values)
