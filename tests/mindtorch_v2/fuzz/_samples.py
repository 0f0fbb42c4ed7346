"""Calls that PyTorch accepts, from its own table of operators, as text.

Invariant: a sample is written only if it is short; what matters of a tensor is layout, dtype and, for small integers,
values.
"""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

PER_INFO = 4
LONGEST = 300


class Unwritable(Exception):
    """An argument that has no short text."""


def record(path: Path) -> None:
    """Write the samples of every operator that is called by a plain path from `torch`."""
    from .. import _oracle

    torch = _oracle.load()
    found: dict[str, Any] = {}
    for info in _oracle.load_op_db():
        for dtype in (torch.float32, torch.int64):
            if dtype in info.dtypes:
                for sample in _of(torch, info, dtype):
                    found.setdefault(json.dumps(sample), sample)
                break
    path.write_text(json.dumps(list(found.values())))


def _of(torch: Any, info: Any, dtype: Any) -> list[Any]:
    made: list[Any] = []
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            samples = info.sample_inputs_func(info, "cpu", dtype, False)
            for sample, _ in zip(samples, range(40)):
                try:
                    args = [_text(torch, value) for value in (sample.input, *sample.args)]
                    kwargs = [[name, _text(torch, value)] for name, value in sample.kwargs.items()]
                except Unwritable:
                    continue
                made.append([info.name.removeprefix("torch."), args, kwargs])
        except Exception:  # a generator that fails has nothing for us
            return []
    step = max(1, len(made) // PER_INFO)
    return made[::step][:PER_INFO]


def _text(torch: Any, value: Any) -> str:
    text = _tensor(torch, value) if isinstance(value, torch.Tensor) else _plain(torch, value)
    if len(text) > LONGEST:
        raise Unwritable
    return text


def _plain(torch: Any, value: Any) -> str:
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return str(value)
    if isinstance(value, torch.device):
        return repr(str(value))
    if isinstance(value, (list, tuple)):
        inside = "".join(_text(torch, item) + ", " for item in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    if value is None or value is ... or isinstance(value, (bool, int, str)):
        return "..." if value is ... else repr(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    raise Unwritable


def _tensor(torch: Any, value: Any) -> str:
    if value.layout != torch.strided or value.numel() > 5000:
        raise Unwritable
    shape, dtype = tuple(value.shape), str(value.dtype)
    if value.dtype.is_floating_point or value.dtype.is_complex:
        return f"torch.rand({shape})" if dtype == "torch.float32" else f"torch.ones({shape}, dtype={dtype})"
    if value.numel() <= 24:
        return f"torch.tensor({value.tolist()}, dtype={dtype})"
    if value.dtype == torch.bool:
        return f"torch.ones({shape}, dtype=torch.bool)"
    low, high = int(value.min()), int(value.max())
    return f"torch.randint({low}, {high + 1}, {shape}, dtype={dtype})"
