"""`torch.distributed.tensor.experimental`: functions on parts, and plain tensors among those of a mesh."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...device_mesh import DeviceMesh
from .._dispatch import _State
from .._dtensor_spec import normalized as _normalized
from .._strategies import register as _register
from ..placement_types import Placement

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Inside, plain tensors beside those of a mesh are taken to be the same on all ranks."""
    before = _State.implicit
    _State.implicit = True
    try:
        yield
    finally:
        _State.implicit = before


def _entered(value: Any, placements: Any, mesh: DeviceMesh, grads: Any, move: bool) -> Any:
    from .._api import DTensor

    if not isinstance(value, DTensor):
        if placements is not None:
            raise RuntimeError(f"expected a DTensor for placements {placements}, but got {type(value)}")
        return value
    if placements is None:
        raise AssertionError(f"input {value} expects placements but received {placements}!")
    then = _normalized(placements, value.dim(), mesh)
    if value.placements != then:
        if not move:
            raise ValueError(
                f"arg {value} in local_map has a mismatched placements: arg placements is {value.placements} but the "
                f"input placements is {then}! If redistribute_inputs is wanted, set redistribute_inputs=True."
            )
        value = value.redistribute(mesh, then)
    return value.to_local(grad_placements=grads)


def local_map(
    func: Callable[..., Any] | None = None,
    out_placements: Any = None,
    in_placements: Sequence[Any] | None = None,
    in_grad_placements: Sequence[Any] | None = None,
    device_mesh: DeviceMesh | None = None,
    *,
    redistribute_inputs: bool = False,
) -> Callable[..., Any]:
    """A function of plain tensors as one of tensors of a mesh: it runs on every rank's parts."""
    if func is None:
        return functools.partial(
            local_map,
            out_placements=out_placements,
            in_placements=in_placements,
            in_grad_placements=in_grad_placements,
            device_mesh=device_mesh,
            redistribute_inputs=redistribute_inputs,
        )
    inner = func

    @functools.wraps(inner)
    def run(*args: Any, **kwargs: Any) -> Any:
        from .._api import DTensor

        mesh = device_mesh or next((each.device_mesh for each in args if isinstance(each, DTensor)), None)
        if mesh is None:
            return inner(*args, **kwargs)
        given = []
        for at, value in enumerate(args):
            own = value.placements if isinstance(value, DTensor) else None
            placements = own if in_placements is None else in_placements[at]
            grads = None if in_grad_placements is None else in_grad_placements[at]
            given.append(_entered(value, placements, mesh, grads, redistribute_inputs))
        found = inner(*given, **kwargs)
        several = isinstance(found, (tuple, list))
        outs = list(found) if several else [found]
        single = not out_placements or isinstance(out_placements[0], Placement)
        wanted = [out_placements] * len(outs) if single else list(out_placements)
        wrapped = [
            value if places is None else DTensor.from_local(value, mesh, places, run_check=False)
            for value, places in zip(outs, wanted)
        ]
        return type(found)(wrapped) if several else wrapped[0]

    return run


def register_sharding(op: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Say by a function how an operator runs on parts: it is given the call's arguments, tensors as what is known of
    them, and gives pairs of placements, of the results and of the arguments (None for those that are no tensors)."""
    ops = op if isinstance(op, (list, tuple)) else [op]

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for each in ops:
            _register(each._op, function)
        _State.plans.clear()
        return function

    return register


def __getattr__(name: str) -> Any:
    if name == "context_parallel":  # what is asked for alone: it needs the functions of networks
        from ._attention import context_parallel

        return context_parallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
