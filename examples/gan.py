"""Two networks against each other: one draws points, one tells them from points on a ring of eight spots.

Two optimizers, gradients that stop at detach(), the loss on logits; at the end, how many points lie near a spot.
"""

from __future__ import annotations

import math

from common import arguments

import mindtorch_v2 as torch
from mindtorch_v2 import nn

SPOTS, NOISE = 8, 8


def real(count: int) -> torch.Tensor:
    angle = torch.randint(SPOTS, (count,)) * (2 * math.pi / SPOTS)
    return torch.stack([angle.cos(), angle.sin()], 1) * 2 + 0.05 * torch.randn(count, 2)


def network(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, outputs)
    )


def near(points: torch.Tensor, within: float = 0.35) -> tuple[float, int]:
    """The share of points near a spot, and how many spots have points."""
    angle = torch.arange(SPOTS) * (2 * math.pi / SPOTS)
    spots = torch.stack([angle.cos(), angle.sin()], 1) * 2
    distance, which = torch.cdist(points, spots).min(1)
    close = distance < within
    return close.float().mean().item(), len(which[close].unique())


def main() -> None:
    given = arguments(__doc__, steps=1500)
    generator, critic = network(NOISE, 2).to(given.device), network(2, 1).to(given.device)
    draws = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
    judges = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
    judge = nn.functional.binary_cross_entropy_with_logits
    yes, no = torch.ones(128, 1, device=given.device), torch.zeros(128, 1, device=given.device)
    for step in range(1, given.steps + 1):
        fake = generator(torch.randn(128, NOISE, device=given.device))
        judges.zero_grad()
        critic_loss = judge(critic(real(128).to(given.device)), yes) + judge(critic(fake.detach()), no)
        critic_loss.backward()
        judges.step()
        draws.zero_grad()
        loss = judge(critic(fake), yes)
        loss.backward()
        draws.step()
        if step % max(1, given.steps // 8) == 0:
            print(f"step {step:5}  generator {loss.item():.3f}  critic {critic_loss.item():.3f}")
    with torch.no_grad():
        points = generator(torch.randn(1000, NOISE, device=given.device)).cpu()
    share, spots = near(points)
    print(f"{share:.0%} of the points lie near a spot, {spots} of {SPOTS} spots are found")


if __name__ == "__main__":
    main()
