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


BACK = ("ScheduleZBVZeroBubble", "ScheduleDualPipeV")


def stages_of(name: str, rank: int, size: int) -> list[int]:
    """The two stages that a rank has in a schedule."""
    return [rank, 2 * size - 1 - rank if name in BACK else rank + size]


def run_through(name: str, size: int, count: int, orders: list[list[tuple[int, int]]]) -> list[Any]:
    """What is left of the orders of all ranks when nobody can go on. Kinds are forward, backward, and its halves."""
    done: dict[tuple[int, str], int] = {}
    left = [list(each) for each in orders]
    moved = True
    while moved:
        moved = False
        for rank in range(size):
            while left[rank]:
                which, kind = left[rank][0]
                stage = stages_of(name, rank, size)[which]
                what = "FBBW"[kind]
                at = done.get((stage, what), 0)
                needs = {
                    "F": [(stage - 1, "F")] * (stage > 0),
                    "B": [(stage, "F"), *([(stage + 1, "B")] * (stage < 2 * size - 1))],
                    "W": [(stage, "B")],
                }[what]
                if any(done.get(each, 0) <= at for each in needs):
                    break
                done[stage, what] = at + 1
                if kind == 1:  # a whole backward has both halves
                    done[stage, "W"] = done.get((stage, "W"), 0) + 1
                left[rank].pop(0)
                moved = True
    counts = [done.get((stage, what), 0) for stage in range(2 * size) for what in "FBW"]
    return [each for each in left if each] + [counts] * (counts != [count] * len(counts))


def interleaved(torch: Any, dist: Any, rank: int, size: int, name: str, count: int) -> Any:
    """The same of a schedule with two stages on each rank."""
    home = importlib.import_module(f"{torch.__name__}.distributed.pipelining")
    model, (rows, targets) = whole(torch, 2 * size), batch(torch)
    places = stages_of(name, rank, size)
    parts = [model[at] for at in places]
    stages = [home.PipelineStage(part, at, 2 * size, rows.device) for at, part in zip(places, parts)]
    schedule = getattr(home, name)(stages, count, loss_fn=loss(torch))
    losses: list[Any] = []
    for _ in range(2):
        for part in parts:
            part.zero_grad()
        given = {"target": targets, "losses": losses} if 2 * size - 1 in places else {}
        out = schedule.step(*([rows] if rank == 0 else []), **given)
    told = None if out is None else out.tolist()
    return (
        [float(each) for each in losses],
        [[p.grad.flatten().tolist() for p in part.parameters()] for part in parts],
        told,
    )
