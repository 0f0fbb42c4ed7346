"""From a function's type annotations to a schema.

Invariant: what cannot be said in a schema is refused with PyTorch's text, which shows the function's signature.
"""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, NoReturn

from .._device import device
from .._dtype import dtype
from .._tensor import Tensor


def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: Any, op_name: str | None = None) -> str:
    """`(Tensor x, SymInt n=1) -> Tensor` from `def f(x: Tensor, n: int = 1) -> Tensor`.

    mutates_args: the names of the arguments that are written to, or "unknown".
    """
    signature = _signature(prototype_function)

    def fail(what: str) -> NoReturn:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated or the "
            "string 'unknown'. "
        )
    parts: list[str] = []
    seen: set[str] = set()
    star = False
    for i, (name, p) in enumerate(signature.parameters.items()):
        if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            fail("We do not support positional-only args, varargs, or varkwargs.")
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        if p.annotation is p.empty:
            fail(f"Parameter {name} must have a type annotation.")
        kind = _argument_type(p.annotation)
        if kind is None:
            fail(
                f"Parameter {name} has unsupported type {p.annotation}. The valid types are: Tensor, int, float, "
                "bool, str, torch.dtype, torch.device, numbers (int | float | bool), lists of them, and Optional of "
                "these."
            )
        seen.add(name)
        written = kind.startswith("Tensor") if mutates_args == "unknown" else name in mutates_args
        if written:
            if not kind.startswith("Tensor"):
                fail(f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated")
            kind = f"Tensor(a{i}!)" + kind[len("Tensor") :]
        parts.append(f"{kind} {name}" if p.default is p.empty else f"{kind} {name}={_default(name, p.default, fail)}")
    if mutates_args != "unknown":
        unknown = set(mutates_args) - seen
        if unknown:
            fail(
                f"{unknown} in mutates_args were not found in the custom op's signature. mutates_args should contain "
                "the names of all args that the custom op mutates, or just the string 'unknown' if you don't know."
            )
    if signature.return_annotation is inspect.Signature.empty:
        fail("No return type annotation was provided. Please add one.")
    return f"{op_name or ''}({', '.join(parts)}) -> {_returns(signature.return_annotation, fail)}"


def _signature(fn: Callable[..., Any]) -> inspect.Signature:
    """With annotations that are text turned into types."""
    try:
        return inspect.signature(fn, eval_str=True)
    except NameError as e:
        raise ValueError(f"infer_schema(func): Unsupported type annotation: {e}. It is not a type.") from e


# A schema's word for the type of one value.
_PLAIN: dict[Any, str] = {
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    Tensor: "Tensor",
    dtype: "ScalarType",
    device: "Device",
}
_SEQUENCES = (list, collections.abc.Sequence)
_NUMBER = frozenset({int, float, bool})


def _argument_type(annotation: Any) -> str | None:
    """A schema's word for an annotation; None where it has none."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        if frozenset(inner) == _NUMBER:
            return "Scalar"
        rest = [a for a in inner if a is not type(None)]
        if len(rest) == len(inner):
            return None
        whole = _argument_type(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)])  # noqa: UP007
        return None if whole is None or whole.endswith("?") else whole + "?"
    if origin in _SEQUENCES and len(inner) == 1:
        word = _argument_type(inner[0])
        if word is None or "[" in word or (word.endswith("?") and word != "Tensor?"):
            return None
        return word + "[]"
    return None


def _default(name: str, value: Any, fail: Callable[[str], NoReturn]) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dtype):
        return value.name
    if isinstance(value, device):
        return f'"{value}"'
    fail(
        f"Parameter {name} has an unsupported default value type {type(value)}. Please file an issue on GitHub so we "
        "can prioritize this."
    )


_RETURNS = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool"}


def _returns(annotation: Any, fail: Callable[[str], NoReturn]) -> str:
    if annotation is None or annotation is type(None):
        return "()"
    word = _return_type(annotation)
    if word is not None:
        return word
    if typing.get_origin(annotation) is tuple:
        words = [_return_type(a) for a in typing.get_args(annotation)]
        if all(w is not None for w in words):
            return f"({', '.join(w for w in words if w is not None)})"
    fail(
        f"Return has unsupported type {annotation}. The valid types are: Tensor, list[Tensor], int, float, bool, "
        "numbers (int | float | bool), and tuples of them."
    )


def _return_type(annotation: Any) -> str | None:
    if annotation in _RETURNS:
        return _RETURNS[annotation]
    word = _argument_type(annotation)
    return word if word in ("Tensor[]", "Scalar") else None
