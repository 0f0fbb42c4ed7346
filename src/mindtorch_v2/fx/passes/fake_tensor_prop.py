"""Noting what every node gives, by running a module with fake tensors."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._compatibility import compatibility
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["FakeTensorProp"]


@compatibility(is_backward_compatible=False)
class FakeTensorProp(Interpreter):
    """Runs a module with fake tensors and keeps them in `node.meta["val"]`."""

    def __init__(self, module: GraphModule, mode: Any = None) -> None:
        super().__init__(module)
        from ..._subclasses.fake_tensor import FakeTensorMode

        self._mode = FakeTensorMode() if mode is None else mode

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        values: list[Any] = []

        def seen(v: Any) -> Any:
            if isinstance(v, torch.Tensor):
                values.append(v)
                with torch.no_grad():
                    return v.detach()
            return v

        meta = map_aggregate(result, seen)
        if values:
            n.meta["val"] = meta
        return result

    def fetch_attr(self, target: str) -> Any:
        found = super().fetch_attr(target)
        return self._mode.from_tensor(found) if isinstance(found, torch.Tensor) else found

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from ..._subclasses.fake_tensor import deepcopy_to_fake_tensor, unset_fake_temporarily

        with unset_fake_temporarily():
            module = deepcopy_to_fake_tensor(super().fetch_attr(target), self._mode)
        return module(*args, **kwargs)

    def propagate(self, *args: Any) -> Any:
        """Run the module with fake tensors like `args`."""
        return self.propagate_dont_convert_inputs(
            *(self._mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in args)
        )

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run the module with `args`, which are fake tensors."""
        with self._mode:
            return super().run(*args)
