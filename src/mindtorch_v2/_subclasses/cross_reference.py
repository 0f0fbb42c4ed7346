"""`CrossRefFakeMode`: each operator runs on fake copies of its arguments too, and what they give is compared.

Invariant: what the program gets is what the real operator gave.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from .._tags import Tag
from ..utils import _pytree as pytree
from ..utils._python_dispatch import TorchDispatchMode
from .fake_tensor import FakeTensorMode, MetadataMismatchError, UnsupportedFakeTensorException
from .fake_utils import output_alias_each_other, outputs_alias_inputs, outputs_are_inputs

# What fake tensors cannot know, or what changes an argument's shape under it.
_APART = (Tag.dynamic_output_shape, Tag.inplace_view, Tag.data_dependent_output)
_LIFTS = frozenset(("lift_fresh", "lift_fresh_copy", "set_"))


class CrossRefFakeMode(TorchDispatchMode):
    """Inside, operators whose fake results have another shape, dtype, device or memory than their real ones raise.

    ignore_op_fn: says of an operator whether it is left out.
    """

    def __init__(
        self,
        ignore_op_fn: Callable[[Any], bool] | None = None,
        *,
        check_strides: bool = True,
        check_aliasing: bool = True,
        only_check_ops_with_meta: bool = True,
    ) -> None:
        super().__init__()
        self.ignore_op_fn: Callable[[Any], bool] = (lambda func: False) if ignore_op_fn is None else ignore_op_fn
        self.check_strides = check_strides
        self.check_aliasing = check_aliasing
        # Every operator has a rule for tensors without values here, so that none is left out for want of one.
        self.only_check_ops_with_meta = only_check_ops_with_meta

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = (args, kwargs or {})
        fake = None if self._left_out(func) else self._on_fakes(func, given)
        real = func(*args, **(kwargs or {}))
        if fake is not None and fake[1] is not None:
            self._compare(func, real, given, fake[1], fake[0])
        return real

    def _left_out(self, func: Any) -> bool:
        return func._opname in _LIFTS or self.ignore_op_fn(func) or any(tag in func.tags for tag in _APART)

    def _on_fakes(self, func: Any, given: Any) -> tuple[Any, Any] | None:
        """The fake arguments and what the operator gives for them; None where they cannot be made."""
        try:
            with FakeTensorMode() as mode:
                args, kwargs = pytree.tree_map_only(torch.Tensor, mode.from_tensor, given)
                return (args, kwargs), func(*args, **kwargs)
        except UnsupportedFakeTensorException:
            return None

    def _compare(self, func: Any, real: Any, given: Any, fake: Any, fakes: Any) -> None:
        context = f"When comparing the output of {func} on FakeTensor and concrete Tensors, found"
        reals, others = pytree.tree_leaves(real), pytree.tree_leaves(fake)
        if len(reals) != len(others):
            raise AssertionError(f"{context} mismatch in number of returns {len(others)} != {len(reals)}")
        if self.check_aliasing:
            for shares, what in (
                (outputs_alias_inputs, "outputs_alias_inputs"),
                (outputs_are_inputs, "outputs_are_inputs"),
            ):
                if shares(real, given) != shares(fake, fakes):
                    raise MetadataMismatchError(f"{context} mismatch in {what} check")
            if output_alias_each_other(real) != output_alias_each_other(fake):
                raise MetadataMismatchError(f"{context} mismatch in outputs_alias_each_other check")
        for i, (r, f) in enumerate(zip(reals, others)):
            if isinstance(r, torch.Tensor) != isinstance(f, torch.Tensor):
                raise AssertionError(f"{context} mismatched number of tensor outputs")
            different = self._different(r, f) if isinstance(r, torch.Tensor) else ""
            if different:
                place = "" if len(reals) == 1 else f" for output[{i}]"
                raise MetadataMismatchError(f"{context} mismatched tensor metadata{place}: {different}")

    def _different(self, r: Any, f: Any) -> str:
        """What of two tensors is not the same, in words."""
        questions = ["dtype", "device", "layout", "shape", "requires_grad"]
        for name in questions:
            if getattr(r, name) != getattr(f, name):
                return f"{name} {getattr(f, name)} is not {getattr(r, name)}"
        if r.layout is not torch.strided:
            return ""
        if (
            self.check_strides
            and r.numel()
            and [(n, s) for n, s in zip(r.shape, r.stride()) if n > 1]
            != [(n, s) for n, s in zip(f.shape, f.stride()) if n > 1]
        ):
            return f"strides {f.stride()} are not {r.stride()}"
        if r.storage_offset() != f.storage_offset():
            return f"storage_offset {f.storage_offset()} is not {r.storage_offset()}"
        return ""
