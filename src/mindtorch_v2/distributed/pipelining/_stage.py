"""A stage of a pipeline: a part of a model on one rank, with inputs from the stage before and gradients for it.

Invariant: what goes forward and what comes back have tags of their own between any two stages, so that messages never
wait for those of others; microbatches go each way in one order. Stages go around the ranks, or there and back again.
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
from ._split import Halves

__all__ = ["PipelineStage", "rank_of"]

# A tensor as the next stage must know it: shape, dtype, whether gradients come back.
Kind = tuple[tuple[int, ...], Any, bool]


def rank_of(stage: int, ranks: int, back: bool) -> int:
    """Where a stage is: stages go around the ranks, or (`back`) each round in the other direction."""
    at = stage % ranks
    return ranks - 1 - at if back and stage // ranks % 2 else at


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
        if self.group_rank not in (rank_of(stage_index, self.group_size, back) for back in (False, True)):
            raise NotImplementedError(
                f"PipelineStage(): stage {stage_index} of {num_stages} on rank {self.group_rank} of {self.group_size}: "
                "stages go around the ranks, or there and back again"
            )
        # What stages of this rank give each other, by tag; the schedule has one for all of them.
        self._mail: dict[int, deque[Any]] = {}
        self._halves: deque[Halves] = deque()
        self.arrange(False, self._mail)
        # What the stage before gives, and what the next one was told; with gradients and without.
        self._kinds: dict[bool, list[Kind]] = {}
        self._told: dict[bool, list[Kind]] = {}
        self._held: deque[tuple[list[Any], list[Any], Any]] = deque()  # inputs, outputs, loss
        self._works: list[tuple[Any, Any]] = []

    def arrange(self, back: bool, mail: dict[int, deque[Any]]) -> None:
        """Say where the stages before and after are, and where what goes between stages of one rank is put."""
        self._before = rank_of(max(0, self.stage_index - 1), self.group_size, back)
        self._after = rank_of(self.stage_index + 1, self.group_size, back)
        self._mail = mail

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
        if rank == self.group_rank:
            self._mail.setdefault(tag, deque()).append(tensor.detach())
            return
        sent = tensor.detach().contiguous()
        self._works.append((dist.isend(sent, group=self.group, tag=tag, group_dst=rank), sent))

    def _receive(self, kind: Kind, rank: int, tag: int) -> Any:
        if rank == self.group_rank:
            return self._mail[tag].popleft()
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
        inputs, outputs, grads = self._roots()
        autograd.backward(outputs, grads)
        self._send_grads(inputs)

    def backward_inputs(self) -> None:
        """The half of a backward that the stage before waits for."""
        inputs, outputs, grads = self._roots()
        halves = Halves(outputs, grads, [each for each in inputs if each.requires_grad])
        halves.of_inputs()
        self._halves.append(halves)
        self._send_grads(inputs)

    def backward_parameters(self) -> None:
        """The other half, of the oldest microbatch that waits for it."""
        self._halves.popleft().of_parameters()

    def _roots(self) -> tuple[list[Any], list[Any], list[Any] | None]:
        """Of the oldest microbatch: its inputs, what its gradients come from, and what comes to those."""
        inputs, outputs, value = self._held.popleft()
        if self.is_last:
            return inputs, [value], None
        wanted = [each for each in outputs if each.requires_grad]
        kinds: list[Kind] = [(tuple(each.shape), each.dtype, False) for each in wanted]
        return inputs, wanted, [self._receive(kind, self._after, self._tag(0, True)) for kind in kinds]

    def _send_grads(self, inputs: list[Any]) -> None:
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
