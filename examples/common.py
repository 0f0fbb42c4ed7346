"""What the examples share: `--device` and `--steps`, and pictures of shapes to learn from."""

from __future__ import annotations

import argparse

import mindtorch_v2 as torch

SHAPES = ("disc", "square", "cross", "ring")


def use(device: str) -> bool:
    """Make a device usable. True if it is an NPU and, for want of one, the emulator has to stand for it."""
    emulated = device == "npu" and not torch.npu.is_available()
    if emulated:
        torch.npu.use_emulator()
    return emulated


def arguments(about: str | None, steps: int) -> argparse.Namespace:
    """`--device` and `--steps` of the command line; the device is ready for use."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--device", default="cpu", help="cpu or npu (default: cpu)")
    parser.add_argument("--steps", type=int, default=steps, help=f"steps of training (default: {steps})")
    given = parser.parse_args()
    use(given.device)
    torch.manual_seed(0)
    return given


def shapes(count: int, size: int = 16, noise: float = 0.1) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures (count, 1, size, size) of discs, squares, crosses and rings in random places and sizes; and which."""
    kind = torch.randint(len(SHAPES), (count,))
    radius = (torch.rand(count, 1, 1) * 0.15 + 0.2) * size
    centre = torch.rand(2, count, 1, 1) * (size - 2 * radius) + radius
    place = torch.arange(size) + 0.5
    x, y = (place - centre[0]).abs(), (place.unsqueeze(1) - centre[1]).abs()
    distance = torch.hypot(x, y)
    drawn = torch.stack(
        [
            distance < radius,
            torch.maximum(x, y) < radius * 0.8,
            (torch.minimum(x, y) < radius * 0.25) & (torch.maximum(x, y) < radius),
            (distance < radius) & (distance > radius * 0.55),
        ]
    )
    pictures = drawn[kind, torch.arange(count)].float().unsqueeze(1)
    return pictures + noise * torch.randn_like(pictures), kind
