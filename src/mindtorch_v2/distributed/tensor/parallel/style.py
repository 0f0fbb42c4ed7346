"""How a layer's weights, inputs and outputs lie on a mesh of one dimension.

Invariant: a style changes parameters once, when it is applied, and looks at inputs and outputs by hooks after that.
"""

from __future__ import annotations

from typing import Any

from ...device_mesh import DeviceMesh
from .._api import DTensor, distribute_module, distribute_tensor
from ..placement_types import Placement, Replicate, Shard

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
]


class ParallelStyle:
    """What all styles share."""

    src_data_rank: int | None = 0

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define _apply")


def laid_out(value: Any, mesh: DeviceMesh, now: Any, then: Any) -> Any:
    """A tensor as one of the mesh: a plain one is taken to lie as `now`; then it is brought to `then`."""
    if not isinstance(value, DTensor):
        value = DTensor.from_local(value, mesh, (now,), run_check=False)
    wanted = Shard(then.dim + value.dim()) if isinstance(then, Shard) and then.dim < 0 else then
    return value if value.placements == (wanted,) else value.redistribute(placements=(wanted,))


class _Layer(ParallelStyle):
    """A layer with weights: how they, the input and the output lie."""

    # By class of layer: the placement that the weights need, by name, and that of the input.
    _weights: dict[str, tuple[dict[str, Placement], Placement]] = {}

    input_layouts: tuple[Placement, ...]
    output_layouts: tuple[Placement, ...]
    desired_input_layouts: tuple[Placement, ...] = ()
    use_local_output: bool

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        from ....nn import Embedding, Linear

        kind = "Linear" if isinstance(module, Linear) else "Embedding" if isinstance(module, Embedding) else None
        if kind is None:
            raise NotImplementedError(f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!")
        weights, wanted = self._weights[kind]
        self.desired_input_layouts = (wanted,)

        def partition(name: str, owner: Any, mesh: DeviceMesh) -> None:
            for key, param in list(owner._parameters.items()):
                if param is not None:
                    _place(owner, key, param, mesh, weights[key], self.src_data_rank)

        def enter(owner: Any, inputs: Any, mesh: DeviceMesh) -> Any:
            return (laid_out(inputs[0], mesh, self.input_layouts[0], wanted), *inputs[1:])

        def leave(owner: Any, outputs: Any, mesh: DeviceMesh) -> Any:
            found = laid_out(outputs, mesh, None, self.output_layouts[0])
            return found.to_local() if self.use_local_output else found

        return distribute_module(module, device_mesh, partition, enter, leave)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


def _place(owner: Any, key: str, param: Any, mesh: DeviceMesh, placement: Placement, source: int | None) -> None:
    from ....nn import Parameter

    placed = distribute_tensor(param, mesh, [placement], src_data_rank=source)
    owner.register_parameter(key, Parameter(placed.detach(), param.requires_grad))


class ColwiseParallel(_Layer):
    """Each rank computes some of the outputs: the input is whole, the output is split."""

    _weights = {
        "Linear": ({"weight": Shard(0), "bias": Shard(0)}, Replicate()),
        "Embedding": ({"weight": Shard(1)}, Replicate()),
    }

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or Replicate(),)
        self.output_layouts = (output_layouts or Shard(-1),)
        self.desired_input_layouts = (Replicate(),)
        self.use_local_output = use_local_output


class RowwiseParallel(_Layer):
    """Each rank has some of the inputs: the outputs are summed."""

    _weights = {
        "Linear": ({"weight": Shard(1), "bias": Replicate()}, Shard(-1)),
        "Embedding": ({"weight": Shard(0)}, Replicate()),
    }

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or Shard(-1),)
        self.output_layouts = (output_layouts or Replicate(),)
        self.use_local_output = use_local_output


class SequenceParallel(ParallelStyle):
    """Weights are whole, activations are split along the sequence: for norms and dropout."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        split = self.sequence_sharding[0]

        def partition(name: str, owner: Any, mesh: DeviceMesh) -> None:
            for key, param in list(owner._parameters.items()):
                if param is not None:
                    # Every rank has these from its own start, as PyTorch's style has it.
                    _place(owner, key, param, mesh, Replicate(), None)

        def enter(owner: Any, inputs: Any, mesh: DeviceMesh) -> Any:
            from .... import Tensor

            if not isinstance(inputs[0], Tensor):
                raise ValueError(f"expecting input of {owner} to be a torch.Tensor or DTensor, but got {inputs[0]}")
            return (laid_out(inputs[0], mesh, split, split), *inputs[1:])

        def leave(owner: Any, outputs: Any, mesh: DeviceMesh) -> Any:
            return outputs.to_local() if self.use_local_output and isinstance(outputs, DTensor) else outputs

        return distribute_module(module, device_mesh, partition, enter, leave)

    def __repr__(self) -> str:
        dim = self.sequence_sharding[0].dim
        return f"SequenceParallel(sequence_dim={dim}, use_local_output={self.use_local_output})"


def _several(layouts: Any) -> Any:
    return (layouts,) if isinstance(layouts, Placement) else layouts


class PrepareModuleInput(ParallelStyle):
    """A module's inputs are brought to where it wants them."""

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts = _several(input_layouts)
        self.desired_input_layouts = _several(desired_input_layouts)
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        self.with_kwargs = input_kwarg_layouts is not None
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        if self.with_kwargs and len(self.input_kwarg_layouts) != len(self.desired_input_kwarg_layouts):
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have same length!")

    def _one(self, value: Any, mesh: DeviceMesh, now: Any, then: Any) -> Any:
        from .... import Tensor

        if now is None or not isinstance(value, Tensor):
            if now is not None:
                raise AssertionError("expecting input to be a torch.Tensor!")
            return value
        if then is None:
            then = now
        found = laid_out(value, mesh, now, then)
        return found.to_local() if self.use_local_output else found

    def _inputs(self, inputs: Any, mesh: DeviceMesh) -> Any:
        if self.input_layouts is None:
            return inputs
        given = inputs if isinstance(inputs, tuple) else (inputs,)
        if len(given) != len(self.input_layouts):
            raise ValueError("module inputs and input_layouts should have same length!")
        pairs = zip(given, self.input_layouts, self.desired_input_layouts)
        return tuple(self._one(value, mesh, now, then) for value, now, then in pairs)

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        if not self.with_kwargs:
            module.register_forward_pre_hook(lambda owner, inputs: self._inputs(inputs, device_mesh))
            return module

        def enter(owner: Any, inputs: Any, kwargs: dict[str, Any]) -> Any:
            given = {
                key: self._one(
                    value, device_mesh, self.input_kwarg_layouts.get(key), self.desired_input_kwarg_layouts.get(key)
                )
                for key, value in kwargs.items()
            }
            return self._inputs(inputs, device_mesh), given

        module.register_forward_pre_hook(enter, with_kwargs=True)
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleInput(input_layouts={self.input_layouts}, "
            f"desired_input_layouts={self.desired_input_layouts}, input_kwarg_layouts={self.input_kwarg_layouts}, "
            f"desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleOutput(ParallelStyle):
    """A module's outputs are brought to where its user wants them."""

    def __init__(self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True) -> None:
        self.output_layouts = _several(output_layouts)
        self.desired_output_layouts = _several(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        def leave(owner: Any, inputs: Any, outputs: Any) -> Any:
            given = outputs if isinstance(outputs, tuple) else (outputs,)
            if len(given) != len(self.output_layouts):
                raise ValueError("module outputs and output_layouts should have same length!")
            found = []
            for value, now, then in zip(given, self.output_layouts, self.desired_output_layouts):
                if now is not None:
                    value = laid_out(value, device_mesh, now, then)
                    value = value.to_local() if self.use_local_output else value
                found.append(value)
            return found[0] if len(found) == 1 else tuple(found)

        module.register_forward_hook(leave)
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleOutput(output_layouts={self.output_layouts}, "
            f"desired_output_layouts={self.desired_output_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleInputOutput(ParallelStyle):
    """Both."""

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Any,
        desired_output_layouts: Any,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        self.prepare_module_input._apply(module, device_mesh)
        self.prepare_module_output._apply(module, device_mesh)
        return module

    def __repr__(self) -> str:
        return f"PrepareModuleInputOutput({self.prepare_module_input}, {self.prepare_module_output})"
