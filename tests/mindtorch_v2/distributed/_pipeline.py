"""What ranks do as stages of a pipeline."""

from __future__ import annotations

import importlib
from typing import Any


def whole(torch: Any, stages: int) -> Any:
    """A model of as many parts."""
    nn = torch.nn
    parts = [nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 6)) for _ in range(stages)]
    model = nn.Sequential(*parts)
    with torch.no_grad():
        for at, parameter in enumerate(model.parameters()):
            wave = (torch.arange(parameter.numel(), dtype=torch.float32) * 1.3 + at).sin()
            parameter.copy_(wave.reshape(parameter.shape) * 0.4)
    return model


def batch(torch: Any) -> tuple[Any, Any]:
    rows = (torch.arange(8 * 6, dtype=torch.float32).reshape(8, 6) * 0.37).sin()
    return rows, rows.flip(0) * 0.5


def loss(torch: Any) -> Any:
    return torch.nn.functional.mse_loss


def alone(torch: Any, stages: int) -> Any:
    """One process: the loss, and gradients by part."""
    model = whole(torch, stages)
    rows, targets = batch(torch)
    out = model(rows)
    value = loss(torch)(out, targets)
    value.backward()
    return float(value), [[p.grad.flatten().tolist() for p in part.parameters()] for part in model], out.tolist()


def staged(torch: Any, dist: Any, rank: int, size: int, name: str, count: int) -> Any:
    """Two steps of a schedule: the losses of the second, this rank's gradients, and what the model gives."""
    home = importlib.import_module(f"{torch.__name__}.distributed.pipelining")
    part, (rows, targets) = whole(torch, size)[rank], batch(torch)
    stage = home.PipelineStage(part, rank, size, rows.device)
    schedule = getattr(home, name)(stage, count, loss_fn=loss(torch))
    losses: list[Any] = []
    out = schedule.eval(*([rows] if rank == 0 else []))  # which leaves nothing behind for the steps
    for _ in range(2):
        part.zero_grad()
        if rank == 0:
            out = schedule.step(rows)
        elif rank == size - 1:
            out = schedule.step(target=targets, losses=losses)
        else:
            out = schedule.step()
    told = None if out is None else out.tolist()
    return [float(each) for each in losses], [p.grad.flatten().tolist() for p in part.parameters()], told


def interleaved(torch: Any, dist: Any, rank: int, size: int, name: str, count: int) -> Any:
    """The same of a schedule with two stages on each rank."""
    home = importlib.import_module(f"{torch.__name__}.distributed.pipelining")
    model, (rows, targets) = whole(torch, 2 * size), batch(torch)
    parts = [model[rank], model[rank + size]]
    stages = [home.PipelineStage(part, rank + at * size, 2 * size, rows.device) for at, part in enumerate(parts)]
    schedule = getattr(home, name)(stages, count, loss_fn=loss(torch))
    losses: list[Any] = []
    for _ in range(2):
        for part in parts:
            part.zero_grad()
        given = {"target": targets, "losses": losses} if rank == size - 1 else {}
        out = schedule.step(*([rows] if rank == 0 else []), **given)
    told = None if out is None else out.tolist()
    return (
        [float(each) for each in losses],
        [[p.grad.flatten().tolist() for p in part.parameters()] for part in parts],
        told,
    )
