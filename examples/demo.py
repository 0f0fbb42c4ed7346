"""Trains a small classifier on three interleaved spirals, then takes the same step on `meta`, where it costs nothing.

make demo
"""

from __future__ import annotations

import math
import resource
import sys
import time

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn import functional as F

CLASSES, POINTS, STEPS = 3, 200, 1500


def spirals() -> tuple[torch.Tensor, torch.Tensor]:
    """POINTS points on each of CLASSES arms, with a little noise; and the arm each point is on."""
    points, labels = [], []
    for arm in range(CLASSES):
        radius = torch.arange(1, POINTS + 1) / POINTS
        angle = radius * 4 + 2 * math.pi * arm / CLASSES + 0.1 * torch.randn(POINTS)
        points.append(torch.stack([radius * torch.sin(angle), radius * torch.cos(angle)], 1))
        labels.append(torch.full((POINTS,), arm, dtype=torch.int64))
    return torch.cat(points), torch.cat(labels)


def classifier(width: int, device: str = "cpu") -> nn.Module:
    return nn.Sequential(
        nn.Linear(2, width, device=device),
        nn.ReLU(),
        nn.Linear(width, width, device=device),
        nn.ReLU(),
        nn.Linear(width, CLASSES, device=device),
    )


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def progress(done: int, loss: float, accuracy: float) -> None:
    bar = "#" * (30 * done // STEPS)
    text = f"  [{bar:<30}] step {done:4}/{STEPS}  loss {loss:.4f}  accuracy {accuracy:6.1%}"
    # On a terminal the line is rewritten in place; in a log every report is a line of its own.
    sys.stdout.write(f"\r{text}" if sys.stdout.isatty() else f"{text}\n")
    sys.stdout.flush()


def train() -> None:
    torch.manual_seed(0)
    x, y = spirals()
    model = classifier(64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"Three spirals, {len(x)} points; a network of {parameters} parameters, on cpu:")
    start = time.perf_counter()
    for done in range(1, STEPS + 1):
        loss = step(model, optimizer, x, y)
        if done == 1 or done % 150 == 0:
            with torch.no_grad():
                accuracy = (model(x).argmax(1) == y).to(torch.float32).mean().item()
            progress(done, loss.item(), accuracy)
    seconds = time.perf_counter() - start
    print(f"\n  final loss {loss.item():.4f}, accuracy {accuracy:.1%}; {seconds / STEPS * 1e6:.0f} us per step\n")


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def train_on_nothing(width: int = 20_000) -> None:
    """The same step where tensors have shapes and dtypes but no data."""
    model = classifier(width, device="meta")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.empty(4096, 2, device="meta")
    y = torch.empty(4096, dtype=torch.int64, device="meta")
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"The same step on meta, with {parameters:,} parameters ({parameters * 4 / 2**30:.1f} GiB, were they real):")
    before, start = megabytes(), time.perf_counter()
    loss = step(model, optimizer, x, y)
    seconds = time.perf_counter() - start
    shapes = {name: tuple(parameter.grad.shape) for name, parameter in model.named_parameters()}
    print(f"  loss {loss!r}")
    print(f"  gradients {shapes}")
    print(f"  {seconds * 1000:.1f} ms, {megabytes() - before:.1f} MiB of memory")


if __name__ == "__main__":
    train()
    train_on_nothing()
