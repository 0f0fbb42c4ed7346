"""`torch._library.infer_schema`: schemas from annotations."""

from __future__ import annotations

import typing
from typing import Any

from .infer import infer_schema as infer_schema


def tuple_to_list(tuple_type: Any) -> Any:
    """The list type for a tuple type: of the one type in it, or of their union."""
    inner = typing.get_args(tuple_type)
    if not inner:
        return list
    if len(inner) == 1 or (len(inner) == 2 and inner[1] is Ellipsis):
        return list[inner[0]]  # type: ignore[valid-type]
    return list[typing.Union[tuple(inner)]]  # type: ignore[misc]  # noqa: UP007
