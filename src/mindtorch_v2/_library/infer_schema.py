"""`torch._library.infer_schema`: schemas from annotations."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Any

from .infer import _PLAIN, _argument_type, _return_type
from .infer import infer_schema as infer_schema


def _parameter_types() -> dict[Any, str]:
    """What an argument may be annotated with, and the word for it in a schema."""
    single = [*_PLAIN, int | float | bool]
    lists = [form[t] for t in single for form in (Sequence, list)]
    lists += [form[_tensor() | None] for form in (Sequence, list)]
    known = [*single, *lists, *(t | None for t in [*single, *lists])]
    words = {t: _argument_type(t) for t in known}
    return {t: word for t, word in words.items() if word is not None}


def _tensor() -> Any:
    return next(t for t, word in _PLAIN.items() if word == "Tensor")


SUPPORTED_PARAM_TYPES = _parameter_types()
_RETURNED: tuple[Any, ...] = (_tensor(), list.__class_getitem__(_tensor()), int, float, bool, int | float | bool)
SUPPORTED_RETURN_TYPES = {t: word for t, word in ((t, _return_type(t)) for t in _RETURNED) if word is not None}


def tuple_to_list(tuple_type: Any) -> Any:
    """The list type for a tuple type: of the one type in it, or of their union."""
    inner = typing.get_args(tuple_type)
    if not inner:
        return list
    if len(inner) == 1 or (len(inner) == 2 and inner[1] is Ellipsis):
        return list[inner[0]]  # type: ignore[valid-type]
    return list[typing.Union[tuple(inner)]]  # type: ignore[misc]  # noqa: UP007
