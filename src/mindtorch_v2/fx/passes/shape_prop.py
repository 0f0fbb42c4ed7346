"""Noting shape and dtype of every value by running the graph."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

import mindtorch_v2 as torch

from .._compatibility import compatibility
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


@compatibility(is_backward_compatible=True)
class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: torch.Size
    dtype: torch.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: torch.memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: torch.Tensor, include_contiguity: bool = True) -> TensorMetadata:
    known = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d) if include_contiguity else ()
    found = next((f for f in known if _has_rank(result, f) and result.is_contiguous(memory_format=f)), None)
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), found, False, {})


def _has_rank(t: torch.Tensor, memory_format: torch.memory_format) -> bool:
    wanted = {torch.channels_last: 4, torch.channels_last_3d: 5}.get(memory_format)
    return wanted is None or t.dim() == wanted


@compatibility(is_backward_compatible=True)
class ShapeProp(Interpreter):
    """Runs a module and notes in `node.meta["tensor_meta"]` what each node gives."""

    def __init__(self, gm: GraphModule, fake_mode: Any = None) -> None:
        super().__init__(gm)
        from ..._guards import detect_fake_mode

        self.fake_mode = detect_fake_mode() if fake_mode is None else fake_mode
        self.real_module = self.module
        self.fake_module: Any = None
        if self.fake_mode is not None:
            from ..._subclasses.fake_tensor import deepcopy_to_fake_tensor

            self.fake_module = deepcopy_to_fake_tensor(self.module, self.fake_mode)

    def run_node(self, n: Node) -> Any:
        try:
            if self.fake_mode is None:
                result = super().run_node(n)
            else:
                self.module = self.fake_module
                try:
                    with self.fake_mode:
                        result = super().run_node(n)
                finally:
                    self.module = self.real_module
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        seen: list[Any] = []

        def described(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            seen.append(value)
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, described)
        if seen:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the module with `args`; with a fake mode, without values."""
        if self.fake_mode is not None:
            args = tuple(self.fake_mode.from_tensor(t) if isinstance(t, torch.Tensor) else t for t in args)
        return super().run(*args)
