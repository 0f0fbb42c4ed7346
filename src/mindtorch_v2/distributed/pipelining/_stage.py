"""A stage of a pipeline: a part of a model on one rank, with inputs from the stage before and gradients for it.

Invariant: what goes forward and what comes back have tags of their own between any two stages, so that messages never
wait for those of others; microbatches go each way in one order. Stages go around the ranks: `stage_index % ranks`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from ... import Tensor, autograd, empty, int64, is_grad_enabled, no_grad, uint8, zeros_like
from ... import device as _device
from ...nn import Module
from ...nn.parallel import DistributedDataParallel
from .. import distributed_c10d as dist

__all__ = ["PipelineStage"]

# A tensor as the next stage must know it: shape, dtype, whether gradients come back.
Kind = tuple[tuple[int, ...], Any, bool]


def _refuse(where: str, **arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise NotImplementedError(f"{where}: argument '{name}' must be None; shapes are told by the stage before")


def _tuple(value: Any, what: str) -> tuple[Any, ...]:
    found = value if isinstance(value, (list, tuple)) else (value,)
    for each in found:
        if not isinstance(each, Tensor):
            raise TypeError(f"a stage gives tensors to the next one; its {what} has a {type(each).__name__}")
    return tuple(found)


class PipelineStage:
    """A part of a model, and what its microbatches have on their way."""

    __module__ = "torch.distributed.pipelining.stage"

    def __init__(
        self,
        submodule: Module,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Any = None,
        output_args: Any = None,
        output_grads: Any = None,
        input_grads: Any = None,
        group: Any = None,
        dw_builder: Callable[[], Callable[..., None]] | None = None,
        get_mesh: Any = None,
    ) -> None:
        _refuse("PipelineStage()", output_grads=output_grads, input_grads=input_grads, dw_builder=dw_builder)
        _refuse("PipelineStage()", get_mesh=get_mesh, input_args=input_args, output_args=output_args)
        if not 0 <= stage_index < num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        if isinstance(submodule, DistributedDataParallel) or hasattr(submodule, "_fsdp_state"):
            raise NotImplementedError("PipelineStage(): argument 'submodule' must be neither DDP nor FSDP")
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.device = device if isinstance(device, _device) else _device(device)
        self.group = dist._group_or_default_group(group)
        self.group_size, self.group_rank = dist.get_world_size(self.group), dist.get_rank(self.group)
        if num_stages % self.group_size:
            raise NotImplementedError(
                f"PipelineStage(): stage {stage_index} of {num_stages} on rank {self.group_rank} of {self.group_size}: "
                "all ranks have as many stages"
            )
        if stage_index % self.group_size != self.group_rank or (self.group_size == 1 and num_stages > 1):
            raise NotImplementedError(
                f"PipelineStage(): stage {stage_index} of {num_stages} on rank {self.group_rank} of {self.group_size}: "
                "stages go around the ranks, of which there are at least two"
            )
        # Ranks of the stages before and after, and the tags of what is exchanged with them.
        self._before, self._after = (self.group_rank - 1) % self.group_size, (self.group_rank + 1) % self.group_size
        # What the stage before gives, and what the next one was told; with gradients and without.
        self._kinds: dict[bool, list[Kind]] = {}
        self._told: dict[bool, list[Kind]] = {}
        self._held: deque[tuple[list[Any], list[Any], Any]] = deque()  # inputs, outputs, loss
        self._works: list[tuple[Any, Any]] = []

    @property
    def is_first(self) -> bool:
        """Whether inputs come from the program."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether outputs are those of the model."""
        return self.stage_index == self.num_stages - 1

    # -- messages -------------------------------------------------------------------------------------------------
    def _send(self, tensor: Any, rank: int, tag: int) -> None:
        sent = tensor.detach().contiguous()
        self._works.append((dist.isend(sent, group=self.group, tag=tag, group_dst=rank), sent))

    def _receive(self, kind: Kind, rank: int, tag: int) -> Any:
        out = empty(kind[0], dtype=kind[1], device=self.device)
        work = dist.irecv(out, group=self.group, tag=tag, group_src=rank)
        assert work is not None
        work.wait()
        return out

    def _receive_inputs(self) -> list[Any]:
        kinds = self._kinds.get(is_grad_enabled())
        if kinds is None:
            length = self._receive(((1,), int64, False), self._before, self._tag(-1))
            data = self._receive(((int(length.item()),), uint8, False), self._before, self._tag(-1))
            kinds = self._kinds[is_grad_enabled()] = dist._tensor_to_object(data, length, self.group)
        return [self._receive(kind, self._before, self._tag(-1)).requires_grad_(kind[2]) for kind in kinds]

    def _tag(self, towards: int, back: bool = False) -> int:
        """The tag between this stage and the one before (-1) or after (0): forward, or back."""
        return 2 * (self.stage_index + towards) + 1 + back

    def _send_outputs(self, outputs: list[Any]) -> None:
        kinds = [(tuple(each.shape), each.dtype, each.requires_grad) for each in outputs]
        told = self._told.get(is_grad_enabled())
        if told is None:
            data, length = dist._object_to_tensor(kinds, self.device, self.group)
            self._send(length, self._after, self._tag(0))
            self._send(data, self._after, self._tag(0))
            told = self._told[is_grad_enabled()] = kinds
        if kinds != told:
            raise RuntimeError(
                f"stage {self.stage_index}: microbatches must have one shape, dtype and requires_grad, got {kinds} "
                f"after {told}"
            )
        for each in outputs:
            self._send(each, self._after, self._tag(0))

    # -- a microbatch ---------------------------------------------------------------------------------------------
    def forward(self, args: tuple[Any, ...], kwargs: dict[str, Any], loss: Callable[[Any], Any] | None) -> Any:
        """Run the stage; inputs of stages after the first come from the one before. What the stage gives, and its
        loss."""
        inputs = [] if self.is_first else self._receive_inputs()
        found = self.submod(*(args if self.is_first else inputs), **kwargs)
        value = loss(found) if self.is_last and loss is not None else None
        outputs = [] if self.is_last else list(_tuple(found, "output"))
        if not self.is_last:
            self._send_outputs(outputs)
        self._held.append((inputs, outputs, value))
        return found, value

    def forget(self) -> None:
        """Let go of the oldest microbatch: no backward comes."""
        self._held.popleft()

    def backward(self) -> None:
        """Backward of the oldest microbatch: gradients come from the next stage and go to the one before."""
        inputs, outputs, value = self._held.popleft()
        if self.is_last:
            value.backward()
        else:
            wanted = [each for each in outputs if each.requires_grad]
            kinds: list[Kind] = [(tuple(each.shape), each.dtype, False) for each in wanted]
            autograd.backward(wanted, [self._receive(kind, self._after, self._tag(0, True)) for kind in kinds])
        for each in inputs:
            if each.requires_grad:
                given = zeros_like(each) if each.grad is None else each.grad
                self._send(given, self._before, self._tag(-1, True))

    def finish(self) -> None:
        """Wait for what was sent."""
        for work, _ in self._works:
            if work is not None:
                work.wait()
        self._works.clear()

    def scale_grads(self, grad_scale_factor: int) -> None:
        """Divide all gradients."""
        with no_grad():
            for parameter in self.submod.parameters():
                if parameter.grad is not None and grad_scale_factor != 1:
                    parameter.grad.div_(grad_scale_factor)
