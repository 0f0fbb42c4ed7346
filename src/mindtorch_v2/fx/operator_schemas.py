"""Signatures of functions that are made from schemas, and calls completed by them."""

from __future__ import annotations

import enum
import inspect
import numbers
import types
import typing
import warnings
from collections.abc import Callable
from inspect import Parameter
from typing import Any, NamedTuple

import mindtorch_v2 as torch

from .._operators import OpOverload, OpOverloadPacket, ops
from ._compatibility import compatibility
from ._names import is_ours, place

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]


@compatibility(is_backward_compatible=False)
class ArgsKwargsPair(NamedTuple):
    """Arguments by position and by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


_TYPES: dict[str, Any] = {
    **{name: getattr(typing, name) for name in ("Any", "List", "Optional", "Tuple", "Dict", "Union")},
    "Tensor": torch.Tensor,
    "Device": torch.device,
    "Layout": torch.layout,
    "number": numbers.Number,
    "AnyEnumType": enum.Enum,
    "NoneType": type(None),
    "Storage": torch.UntypedStorage,
    "Generator": torch.Generator,
    "Stream": torch.Stream,
    "Dimname": str,
    "SymInt": int,
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "complex": complex,
}


def _python_type(text: str) -> Any:
    try:
        return eval(text, {"__builtins__": {}}, _TYPES)
    except NameError:
        return Any


def _signature(schema: Any) -> inspect.Signature:
    parameters: list[Parameter] = []
    for arg in schema.arguments:
        name = "input" if arg.name == "self" else arg.name
        kind: Any = Parameter.KEYWORD_ONLY if arg.kwarg_only else Parameter.POSITIONAL_OR_KEYWORD
        if name == "from":
            # A word of Python's: by position only, and so is what stands before it.
            kind = Parameter.POSITIONAL_ONLY
            parameters = [p.replace(kind=Parameter.POSITIONAL_ONLY) for p in parameters]
        default = arg.default_value if arg.has_default_value() else Parameter.empty
        parameters.append(Parameter(name, kind, default=default, annotation=_python_type(arg.type)))
    given = [_python_type(r.type) for r in schema.returns]
    returned = None if not given else given[0] if len(given) == 1 else tuple(given)
    return inspect.Signature(parameters, return_annotation=returned)


def _schemas_of(op: Any) -> list[Any] | None:
    if isinstance(op, OpOverload):
        return [op._schema]
    if isinstance(op, OpOverloadPacket):
        return [getattr(op, name)._schema for name in op.overloads()]
    found = place(op)
    if found is None or getattr(op, "__overloads__", None) is None:
        return None
    try:
        packet = getattr(ops.aten, found[1])
    except AttributeError:
        return None
    # A row that takes numbers too serves several overloads with one schema.
    unique: dict[str, Any] = {}
    for name in packet.overloads():
        schema = getattr(packet, name)._schema
        unique.setdefault(str(_signature(schema)), schema)
    return list(unique.values())


@compatibility(is_backward_compatible=False)
def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """The signatures of an operator's overloads, with their schemas if wanted; None for other functions."""
    schemas = _schemas_of(op)
    if schemas is None:
        return (None, None) if return_schemas else None
    signatures = [_signature(schema) for schema in schemas]
    return (signatures, schemas) if return_schemas else signatures


def _fits(signature: inspect.Signature, args: Any, kwargs: Any) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


@compatibility(is_backward_compatible=False)
def check_for_mutable_operation(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a call that writes to an argument, where only one overload fits."""
    signatures, schemas = get_signature_for_torch_op(target, return_schemas=True)
    if not signatures:
        return
    fitting = [schema for s, schema in zip(signatures, schemas) if _fits(s, args, kwargs)]
    if len(fitting) == 1 and fitting[0].is_mutable:
        raise RuntimeError(
            f"Tried to trace mutable operation {fitting[0]}. FX only supports functional code, so operations that "
            "mutate operands in-place (e.g. via `out` arguments) are not supported"
        )


@compatibility(is_backward_compatible=False)
def create_type_hint(x: Any) -> Any:
    """The type of a list or tuple with elements of the given types."""
    try:
        if isinstance(x, (list, tuple)):
            made = _list_of if isinstance(x, list) else _tuple_of
            if not x:
                return made(Any)
            base = x[0]
            for t in x:
                if issubclass(t, base):
                    continue
                if not issubclass(base, t):
                    return made(Any)
                base = t
            return made(base)
    except Exception:
        warnings.warn(f"We were not able to successfully create type hint from the type {x}", stacklevel=2)
    return x


def _list_of(element: Any) -> Any:
    return types.GenericAlias(list, (element,))


def _tuple_of(element: Any) -> Any:
    return types.GenericAlias(tuple, (element, ...))


def _is_tuple_of(t: Any, element: Any) -> bool:
    if typing.get_origin(t) is not tuple:
        return False
    return all(c is Ellipsis or issubclass(c, element) for c in typing.get_args(t) if c != ())


@compatibility(is_backward_compatible=False)
def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of one type may stand where another is asked for."""
    if signature_type is argument_type:
        return True
    origin = getattr(signature_type, "__origin__", signature_type)
    if origin is typing.Union and signature_type != argument_type:
        return any(type_matches(c, argument_type) for c in typing.get_args(signature_type))
    if getattr(signature_type, "__origin__", None) is list:
        element = typing.get_args(signature_type)[0]
        if argument_type is int and element is int:
            return True
        if not inspect.isclass(element):
            warnings.warn(
                f"Does not support nested parametric types, got {signature_type}. Please file a bug.", stacklevel=2
            )
            return False
        if getattr(argument_type, "__origin__", None) is list:
            return issubclass(typing.get_args(argument_type)[0], element)
        return _is_tuple_of(argument_type, element)
    if signature_type is int and argument_type is torch.dtype:
        return True
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    if inspect.isclass(argument_type) and inspect.isclass(signature_type):
        return issubclass(argument_type, signature_type)
    return False


@compatibility(is_backward_compatible=False)
def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """A call completed with defaults, by the function's signature. Where several overloads fit, types decide."""
    kwargs = kwargs or {}
    signatures = get_signature_for_torch_op(target)
    if signatures is None:
        if type(target).__name__ in ("builtin_function_or_method", "type"):
            return None
        return _completed(_own_signature(target), args, kwargs, normalize_to_only_use_kwargs)
    fitting = [s for s in signatures if _fits(s, args, kwargs)]
    if not fitting:
        return None
    if len(fitting) == 1:
        return _completed(fitting[0], args, kwargs, normalize_to_only_use_kwargs)
    if arg_types is None and kwarg_types is None:
        shown = "\n".join(str(s) for s in fitting)
        raise RuntimeError(
            f"Tried to normalize arguments to {torch.typename(target)} but the schema match was ambiguous! Please "
            f"provide argument types to the normalize_arguments() call. Available schemas:\n{shown}"
        )
    for s in signatures:
        if _fits(s, arg_types or (), kwarg_types or {}):
            bound = s.bind(*(arg_types or ()), **(kwarg_types or {}))
            if all(type_matches(s.parameters[n].annotation, t) for n, t in bound.arguments.items()):
                return _completed(s, args, kwargs, normalize_to_only_use_kwargs)
    return None


def _own_signature(target: Any) -> inspect.Signature:
    if is_ours(getattr(target, "__module__", None)):
        from ._leaves import _signature as of_leaf

        return of_leaf(target)
    return inspect.signature(inspect.unwrap(target))


@compatibility(is_backward_compatible=False)
def normalize_module(
    root: torch.nn.Module,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """A call of a module of `torch.nn`, completed with defaults; None for other modules."""
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from error
    if getattr(torch.nn, type(module).__name__, None) is not type(module):
        return None
    signature = inspect.signature(inspect.unwrap(module.forward))
    return _completed(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def _completed(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], only_kwargs: bool
) -> ArgsKwargsPair | None:
    plain = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    if any(p.kind not in plain for p in signature.parameters.values()):
        if list(signature.parameters) != ["input", "from", "to", "generator"]:
            return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    named = [(name, bound.arguments[name]) for name in signature.parameters]
    count = 0 if only_kwargs else len(args)
    return ArgsKwargsPair(tuple(v for _, v in named[:count]), dict(named[count:]))
