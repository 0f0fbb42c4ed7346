"""accelerate: the loop with `prepare`, gradient accumulation, saved state, models without memory."""

import tempfile
from typing import Any

from _stages import run, seeded


def importing(kept: dict[str, Any]) -> Any:
    import accelerate

    return accelerate.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    from accelerate import Accelerator

    kept["accelerator"] = accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    data = torch.utils.data.TensorDataset(torch.rand(24, 4), torch.randint(2, (24,)))
    loader = torch.utils.data.DataLoader(data, batch_size=6)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    kept["all"] = accelerator.prepare(model, optimizer, loader, schedule)
    return sum(p.sum() for p in model.parameters())


def training(kept: dict[str, Any]) -> Any:
    import torch

    model, optimizer, loader, schedule = kept["all"]
    losses = []
    for x, y in loader:
        with kept["accelerator"].accumulate(model):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            kept["accelerator"].backward(loss)
            kept["accelerator"].clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        losses.append(loss)
    return losses


def save(kept: dict[str, Any]) -> Any:
    import torch

    folder = tempfile.mkdtemp()
    kept["accelerator"].save_state(folder)
    model = kept["all"][0]
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
    kept["accelerator"].load_state(folder)
    return [p.sum() for p in model.parameters()]


def empty(kept: dict[str, Any]) -> Any:
    import torch
    from accelerate import init_empty_weights

    with init_empty_weights():
        model = torch.nn.Linear(1000, 1000)
    return str(model.weight.device)


run(importing, build, training, save, empty)
