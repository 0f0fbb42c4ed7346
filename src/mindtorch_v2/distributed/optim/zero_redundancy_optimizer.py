"""`ZeroRedundancyOptimizer`: each rank keeps the optimizer's state for its share of the parameters, and updates them.

Invariant: parameters are shared out the same way on every rank, the largest first, to whoever has least; after a step
every rank holds every parameter's new value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...optim import Optimizer
from .. import distributed_c10d as dist
from .._reducer import _broadcast_coalesced
from ..algorithms.join import Join, Joinable, JoinHook

__all__ = ["ZeroRedundancyOptimizer"]

_BROADCAST_BYTES = 250 * 1024 * 1024


class _ZeROJoinHook(JoinHook):
    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self.zero = zero

    def main_hook(self) -> None:
        """A rank without inputs still updates its share."""
        self.zero.step()


def _bucket(params: list[Any]) -> Any:
    """A tensor that holds the values of parameters, which are views of it afterwards."""
    made = params[0].new_empty(sum(each.numel() for each in params)).detach()
    at = 0
    for each in params:
        part = made[at : at + each.numel()].view(each.shape)
        part.copy_(each.detach())
        each.data = part
        at += each.numel()
    return made


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer of `optimizer_class` over all parameters, of whose state each rank holds a part."""

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp=True is not served")
        given = list(params)
        if not given:
            raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
        self.initialized = False
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._buckets: list[list[Any]] = []
        Optimizer.__init__(self, given, defaults)
        Joinable.__init__(self)
        self.process_group = process_group if process_group is not None else dist._get_default_group()
        self.world_size = dist.get_world_size(self.process_group)
        self.rank = dist.get_rank(self.process_group)
        self.global_rank = dist.get_global_rank(self.process_group, self.rank)
        self._optim_constructor, self._optim_defaults = optimizer_class, defaults
        self._all_state_dicts: list[dict[str, Any]] = []
        self._share_out()
        self.initialized = True

    def _share_out(self) -> None:
        sizes = [0] * self.world_size
        self._shares: list[list[dict[str, Any]]] = [[] for _ in range(self.world_size)]
        self._owner: dict[int, int] = {}
        for group in self.param_groups:
            parts: list[list[Any]] = [[] for _ in range(self.world_size)]
            for each in sorted(group["params"], key=lambda param: param.numel(), reverse=True):
                rank = sizes.index(min(sizes))
                parts[rank].append(each)
                sizes[rank] += each.numel() if each.requires_grad else 0
                self._owner[id(each)] = rank
            for rank, mine in enumerate(parts):
                self._shares[rank].append({**group, "params": mine})
        mine = [group for group in self._shares[self.rank] if group["params"]]
        self._local: list[int] = [index for index, group in enumerate(self._shares[self.rank]) if group["params"]]
        self.optim: Any = self._optim_constructor(mine, **self._optim_defaults) if mine else None
        if self.optim is not None:
            for index, inner in zip(self._local, self.optim.param_groups):
                for key, value in inner.items():
                    self.param_groups[index].setdefault(key, value)

        if self.parameters_as_bucket_view:
            self._build_buckets()

    def _build_buckets(self) -> None:
        """Let the parameters of each share lie in one tensor for each dtype and device, which is sent as it is."""
        self._buckets = []
        for groups in self._shares:
            kinds: dict[Any, list[Any]] = {}
            for each in (param for group in groups for param in group["params"]):
                kinds.setdefault((each.dtype, each.device), []).append(each)
            self._buckets.append([_bucket(params) for params in kinds.values()])

    def _settings(self, to_inner: bool) -> None:
        """Learning rates and the like are changed in either place."""
        if self.optim is None:
            return
        for index, inner in zip(self._local, self.optim.param_groups):
            outer = self.param_groups[index]
            source, target = (outer, inner) if to_inner else (inner, outer)
            for key, value in source.items():
                if key != "params":
                    target[key] = value

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update this rank's share, and take the others' from them."""
        Join.notify_join_context(self)
        self._settings(to_inner=True)
        loss = None
        if self.optim is not None:
            loss = self.optim.step(closure=closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        elif closure is not None:
            loss = closure()
        for rank, groups in enumerate(self._shares):
            tensors = [each.detach() for group in groups for each in group["params"]]
            tensors = self._buckets[rank] if self._buckets else tensors
            _broadcast_coalesced(self.process_group, tensors, _BROADCAST_BYTES, rank)
        self._settings(to_inner=False)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        Optimizer.zero_grad(self, set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        Optimizer.add_param_group(self, param_group)
        if self.initialized:
            kept = None if self.optim is None else self.optim.state
            self._share_out()
            if kept is not None and self.optim is not None:
                mine = {id(each) for group in self.optim.param_groups for each in group["params"]}
                self.optim.state.update({each: state for each, state in kept.items() if id(each) in mine})

    # State.

    def _indices(self) -> dict[int, int]:
        params = [each for group in self.param_groups for each in group["params"]]
        return {id(each): index for index, each in enumerate(params)}

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring all ranks' state to one, which can then be asked for the whole."""
        self._settings(to_inner=True)
        place = self._indices()
        mine: dict[int, Any] = {}
        if self.optim is not None:
            mine = {place[id(each)]: state for each, state in self.optim.state.items()}
        every: list[Any] | None = [None] * self.world_size if self.rank == to else None
        dist.gather_object(mine, every, group_dst=to, group=self.process_group)
        self._all_state_dicts = every or []

    def state_dict(self) -> dict[str, Any]:
        """The whole state, on the rank that it was consolidated to."""
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global "
                "state."
            )
        place = self._indices()
        groups = [
            {
                **{key: value for key, value in group.items() if key != "params"},
                "params": [place[id(p)] for p in group["params"]],
            }
            for group in self.param_groups
        ]
        state = {index: found for part in self._all_state_dicts for index, found in part.items()}
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take this rank's share of a whole state."""
        Optimizer.load_state_dict(self, {**state_dict, "state": {}})
        params = [each for group in self.param_groups for each in group["params"]]
        if self.optim is not None:
            for index, found in state_dict["state"].items():
                each = params[int(index)]
                if self._owner[id(each)] == self.rank:
                    self.optim.state[each] = {
                        key: value.to(each.device) if hasattr(value, "to") and key != "step" else value
                        for key, value in found.items()
                    }
        self._settings(to_inner=True)

    # Joining.

    def join_hook(self, **kwargs: Any) -> JoinHook:
        return _ZeROJoinHook(self)

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The group of the shares."""
        return self.process_group
