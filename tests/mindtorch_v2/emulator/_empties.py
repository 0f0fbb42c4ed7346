"""Calls with nothing in them, made of right ones: sizes that are 0 where they were not.

The first call of each function that a test makes with success is made again (`_kernels.call`) with each of its sizes
0 wherever it stands, and with each tensor empty by itself. Invariant: such a call is computed or refused with a
sentence; nobody's process ends, and no kernel gives up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ._kernels import Call, In, Out, Refused, Reuse, as_numpy, facts
from ._mistakes import Phase1, collective

# Computed; refused by its description; or by what an index in it says.
ANSWERS = (161001, 161002, 561103, 507015)


def shape_of(value: Any) -> tuple[int, ...]:
    array = value.array if isinstance(value, In) else value
    return tuple(array.shape if isinstance(array, Out) else as_numpy(array).shape)


def with_shape(value: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(value, Out):
        return Out(shape, value.dtype, format=value.format)
    array = as_numpy(value.array if isinstance(value, In) else value)
    empty = np.resize(array, shape).astype(array.dtype)
    return In(empty, value.format) if isinstance(value, In) else empty


def tensors_of(name: str, values: dict[str, Any]) -> dict[str, list[Any]]:
    kinds = {p["name"]: p["type"] for p in facts()[name]["params"]}
    found: dict[str, list[Any]] = {}
    for key, value in values.items():
        if kinds[key] not in ("aclTensor*", "aclTensorList*") or value is None or isinstance(value, Reuse):
            continue
        parts = value if isinstance(value, list) else [value]
        if parts and not any(isinstance(v, In) and (v.view is not None or v.format == "FRACTAL_NZ") for v in parts):
            found[key] = parts
    return found


def without(shape: tuple[int, ...], size: int | None, axis: int | None) -> tuple[int, ...]:
    return tuple(0 if n == size or d == axis else n for d, n in enumerate(shape))


def empties(name: str, values: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    tensors = tensors_of(name, values)

    def changed(keys: Any, size: int | None = None, axis: int | None = None) -> dict[str, Any]:
        result = dict(values)
        for key in keys:
            parts = [v if 0 in shape_of(v) else with_shape(v, without(shape_of(v), size, axis)) for v in tensors[key]]
            result[key] = parts if isinstance(values[key], list) else parts[0]
        return result

    for size in sorted({n for parts in tensors.values() for v in parts for n in shape_of(v) if n}):
        yield f"0 for {size}", changed(tensors, size)
    for key in tensors:
        for axis in range(max(len(shape_of(v)) for v in tensors[key])):
            yield f"{key} without axis {axis}", changed([key], None, axis)


def try_empties(name: str, values: dict[str, Any]) -> None:
    for what, changed in empties(name, values):
        code, text = Phase1().answer(name, changed)
        if code == 0 and not collective(name):
            try:
                Call().run(name, changed)
            except Refused as refusal:
                code, text = refusal.code, str(refusal)
        assert code in (0, *ANSWERS) and (code == 0 or name in text), f"{name}, {what}: answered {code}: {text}"
