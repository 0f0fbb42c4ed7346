"""Calls in the order of arguments that PyTorch had first: `t.add(alpha, other)`, `torch.addmm(beta, t, alpha, a, b)`.

Invariant: looked at only by a call that the signatures of today refuse because it has too many positional arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._numbers import is_number
from .._tensor_base import TensorBase
from .._warn import ALWAYS, warn

_SUMS = {
    "addmm": ("mat1", "mat2"),
    "addmv": ("mat", "vec"),
    "addr": ("vec1", "vec2"),
    "addbmm": ("batch1", "batch2"),
    "baddbmm": ("batch1", "batch2"),
}
_SCALED = {"addcmul": ("tensor1", "tensor2"), "addcdiv": ("tensor1", "tensor2")}
_PLAIN = {"add": ("other",), "sub": ("other",), "subtract": ("other",)}
_OPERANDS = {**_SUMS, **_SCALED, **_PLAIN}
_OUT_DTYPE = ("addmm", "baddbmm")
_SAID: list[str] = []


def call(fn: Callable[..., Any], is_method: bool, given: Sequence[Any], out: Any, refusal: TypeError) -> Any:
    """`fn` with the arguments where they stand today; `refusal` where they are in no order that ever was."""
    name = fn.__name__
    base = name.rstrip("_")
    kinds, numbers, order = _fit(base, is_method, given)
    if not order:
        raise refusal
    if not _SAID or ALWAYS[0]:
        # Once for all of them, as PyTorch does.
        _SAID.append(name)
        warn(_text(name, base, is_method, tuple(numbers), kinds))
    kwargs = {key: given[i] for key, i in numbers.items()}
    if out is not None:
        kwargs["out"] = out
    return fn(*(given[i] for i in order), **kwargs)


def _fit(base: str, is_method: bool, given: Sequence[Any]) -> tuple[str, dict[str, int], tuple[int, ...]]:
    """The kinds of the arguments, and where they stand. A tensor without dimensions may stand where a number stood."""
    kinds = "".join(_kind(x) for x in given)
    serves = _ANY if base in _PLAIN else _SERVES
    for pattern in _PATTERNS:
        if len(pattern) == len(kinds) and all(k in serves[p] for k, p in zip(kinds, pattern, strict=True)):
            numbers, order = _places(base, is_method, pattern)
            if order:
                return pattern, numbers, order
    return kinds, {}, ()


# By the arguments of the old orders: N a number, T a tensor. A tensor of one number (t) can be either.
_PATTERNS = ("NTTT", "NTNTT", "TNTT", "TNNTT", "TNT")
_SERVES = {"N": "Nt", "T": "Tt"}
# Sums and differences take numbers for tensors.
_ANY = {"N": "Nt", "T": "NTt"}


def _kind(x: Any) -> str:
    if isinstance(x, TensorBase):
        return "t" if not x._shape and not x.requires_grad else "T"
    return "N" if is_number(x) else "?"


def _places(base: str, is_method: bool, kinds: str) -> tuple[dict[str, int], tuple[int, ...]]:
    """Where the numbers and where the tensors stand among the arguments."""
    if base in _SUMS and not is_method:
        if kinds == "NTTT":
            return {"beta": 0}, (1, 2, 3)
        return ({"beta": 0, "alpha": 2}, (1, 3, 4)) if kinds == "NTNTT" else ({}, ())
    if base in _SUMS:
        if kinds == "TNTT":
            return {"beta": 1}, (0, 2, 3)
        return ({"beta": 1, "alpha": 2}, (0, 3, 4)) if kinds == "TNNTT" else ({}, ())
    if base in _SCALED:
        return ({"value": 1}, (0, 2, 3)) if kinds == "TNTT" else ({}, ())
    return ({"alpha": 1}, (0, 2)) if kinds == "TNT" else ({}, ())


def _text(name: str, base: str, is_method: bool, numbers: tuple[str, ...], kinds: str) -> str:
    tensors = ["input", *_OPERANDS[base]]
    old, names, values = [], iter(tensors), iter(numbers)
    for kind in kinds:
        old.append(f"Tensor {next(names)}" if kind == "T" else f"Number {next(values)}")
    now = [f"Tensor {n}" for n in tensors]
    keywords = [f"Number {n} = 1" for n in (("beta", "alpha") if base in _SUMS else numbers)]
    end = ["Tensor out = None"] if not is_method else []
    if is_method:
        old.remove("Tensor input")
        now.remove("Tensor input")
    forms = [f"{name}({', '.join([*now, '*', *keywords, *end])})"]
    if base in _OUT_DTYPE and not is_method:
        forms.append(f"{name}({', '.join([*now, 'torch.dtype out_dtype', '*', *keywords, *end])})")
    was = f"{name}({', '.join([*old, *(['*', *end] if end else [])])})"
    return (
        f"This overload of {name} is deprecated:\n\t{was}\n"
        "Consider using one of the following signatures instead:\n\t" + "\n\t".join(forms)
    )
