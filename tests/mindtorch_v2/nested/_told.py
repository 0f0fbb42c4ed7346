"""Calls with nested tensors, written as text and told in plain values, so that two libraries can be compared.

Invariant: both libraries start from the same numbers; ragged sizes are told by the order in which they appear.
"""

from __future__ import annotations

import importlib
import re
import warnings
from typing import Any

TOLERANCE = 6


def split(text: str) -> list[str]:
    return [call for line in text.split("\n") for call in line.split("|") if call]


def world(torch: Any) -> dict[str, Any]:
    """Nested tensors of both layouts, and dense ones, under short names."""
    nested = importlib.import_module(torch.__name__ + ".nested")

    def some(*shape: int) -> Any:
        count = 1
        for n in shape:
            count *= n
        return ((torch.arange(count, dtype=torch.float64) * 7) % 11 / 4 - 1).reshape(shape)

    many = [some(2, 3), some(4, 3) * 2, some(1, 3) - 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jagged = nested.nested_tensor(many, layout=torch.jagged)
        strided = nested.nested_tensor(many)
    wide = nested.nested_tensor_from_jagged(some(7, 2, 4), jagged.offsets())
    holes = nested.nested_tensor_from_jagged(some(7, 3), jagged.offsets(), torch.tensor([1, 3, 1]))
    return {
        "torch": torch,
        "F": torch.nn.functional,
        "nested": nested,
        "many": many,
        "j": jagged,
        "g": jagged.clone().requires_grad_(),
        "w": wide,
        "h": holes,
        "s": strided,
        "r": strided.clone().requires_grad_(),
        "some": some,
        "words": nested.nested_tensor([torch.tensor([0, 2]), torch.tensor([1])], layout=torch.jagged),
    }


def told(value: Any) -> Any:
    """A value as plain lists, with dtype and whether it has a history."""
    kind = type(value)
    if getattr(value, "is_nested", False):
        parts = [told(t.detach()) for t in value.unbind()]
        return ("nested", str(value.layout), value.requires_grad, value.is_contiguous(), parts)
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        return ("tensor", str(value.dtype), tuple(value.shape), value.requires_grad, rounded(value.tolist()))
    if isinstance(value, (tuple, list)) and kind.__name__ != "Size":
        return [told(v) for v in value]
    if isinstance(value, (bool, int, float)) and kind.__module__ == "builtins":
        return value
    return numbered(str(value))


def rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [rounded(v) for v in value]
    # Adding zero turns -0.0 into 0.0.
    return round(value, TOLERANCE) + 0.0 if isinstance(value, float) else value


def numbered(text: str) -> str:
    """Ragged sizes by the order in which they appear."""
    seen: dict[str, str] = {}
    return re.sub(r"\bj\d+", lambda m: seen.setdefault(m[0], f"j<{len(seen)}>"), text)


def outcome(call: str, torch: Any, grad: str = "") -> Any:
    """What a call gives; with `grad`, the gradients of those names when all of its results are summed."""
    names = world(torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = eval(call, names)
            if grad:
                total(result).backward()
                return [[told(t) for t in names[n].grad.unbind()] for n in grad.split()]
            return told(result)
        except Exception as error:
            return refusal(error)


def total(result: Any) -> Any:
    """A number that every element counts in, each differently."""
    dense = result.values() if getattr(result, "is_nested", False) and "jagged" in str(result.layout) else result
    if getattr(dense, "is_nested", False):
        return sum([total(t) for t in dense.unbind()])
    return (dense * dense.detach().sin()).sum()


def refusal(error: Exception) -> Any:
    """Type and text of an error; of operators that are not there, the type."""
    text = numbered(str(error).split("\n")[0])
    kind = type(error).__name__
    return kind if kind == "NotImplementedError" else f"{kind}: {text}"
