"""`torch.npu.compare_with_cpu`: every operator also on the CPU, up to the first result that differs.

Invariant: the program goes on with the NPU's results. The CPU's are made from copies of the same arguments, compared,
and dropped, so that a difference is that of one operator and never the sum of several.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._backends.npu.errors import here
from .._torch_dispatch import TorchDispatchMode
from ..testing._comparison import default_tolerances
from ..utils._pytree import tree_leaves, tree_map

# Results of which nothing is promised: fresh memory, and numbers that each device draws from a generator of its own.
_UNDEFINED = ("empty", "new_empty", "_empty", "resize", "native_dropout", "dropout", "alpha_dropout")


class DifferenceError(AssertionError):
    """An operator gave another result on the NPU than on the CPU."""


class compare_with_cpu(TorchDispatchMode):
    """`with torch.npu.compare_with_cpu():` runs each operator on NPU tensors on the CPU too. It raises
    `DifferenceError` at the first result beyond the tolerance: by default that of `torch.testing.assert_close`."""

    def __init__(self, rtol: float | None = None, atol: float | None = None) -> None:
        if (rtol is None) != (atol is None):
            raise ValueError("compare_with_cpu(): 'rtol' and 'atol' go together")
        super().__init__()
        self.rtol, self.atol = rtol, atol
        self.compared = 0
        self.skipped: dict[str, str] = {}  # operators that could not be compared, and why

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = str(func)
        if not any(_on_npu(leaf) for leaf in tree_leaves((args, kwargs))):
            return func(*args, **kwargs)
        why = _undefined(func)
        other_args, other_kwargs = ((), {}) if why else _on_cpu(args, kwargs)
        result = func(*args, **kwargs)
        if not why:
            try:
                expected = func(*other_args, **other_kwargs)
            except (NotImplementedError, RuntimeError) as error:
                why = f"the CPU refused it: {error}"
        if why:
            self.skipped[name] = why
            return result
        self.compared += 1
        for got, want in zip(tree_leaves(result), tree_leaves(expected)):
            text = self._difference(got, want)
            if text:
                shown = ", ".join([*map(_shown, args), *(f"{k}={_shown(v)}" for k, v in kwargs.items())])
                raise DifferenceError(f"{name} differs between npu and cpu: {text}\n  {name}({shown})\n  at {here()}")
        return result

    def _difference(self, got: Any, want: Any) -> str:
        if not isinstance(got, torch.Tensor) or not isinstance(want, torch.Tensor):
            return "" if got == want or got != got else f"{got} instead of {want}"
        if got.dtype != want.dtype or got.shape != want.shape:
            return f"{_shown(got)} instead of {_shown(want)}"
        rtol, atol = default_tolerances(want) if self.rtol is None or self.atol is None else (self.rtol, self.atol)
        here_too = got.cpu()
        near = torch.isclose(here_too, want, rtol=rtol, atol=atol, equal_nan=True)
        if bool(near.all()):
            return ""
        place = tuple(int(i) for i in (~near).nonzero()[0])
        return (
            f"{int((~near).sum())} of {near.numel()} elements beyond rtol {rtol:g}, atol {atol:g}; "
            f"the first at {place}: {here_too[place].item()} instead of {want[place].item()}"
        )


def _on_npu(leaf: Any) -> bool:
    return (isinstance(leaf, torch.Tensor) and leaf.device.type == "npu") or (
        isinstance(leaf, torch.device) and leaf.type == "npu"
    )


def _undefined(func: Any) -> str:
    base = str(func._schema.name).rpartition("::")[2].rstrip("_")
    if base in _UNDEFINED or base.startswith("empty"):
        return "its result is not defined, or random"
    if any(argument.name == "generator" for argument in func._schema.arguments):
        return "its result is random"
    return ""


def _on_cpu(args: Any, kwargs: Any) -> Any:
    """The same arguments on the CPU; a tensor that is given twice is one copy."""
    copies: dict[int, Any] = {}

    def moved(leaf: Any) -> Any:
        if isinstance(leaf, torch.device):
            return torch.device("cpu") if leaf.type == "npu" else leaf
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if id(leaf) not in copies:
            copies[id(leaf)] = leaf.detach().cpu() if leaf.device.type == "npu" else leaf.detach().clone()
        return copies[id(leaf)]

    return tree_map(moved, (args, kwargs))


def _shown(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.device.type} {str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    return repr(value)
