"""A variational autoencoder squeezes pictures of shapes into four numbers, and draws new ones from noise.

The loss is the bound on the likelihood, with torch.distributions for both of its parts. The last pictures are written
to vae.png: above what was shown, in the middle what came back, below what was dreamt.
"""

from __future__ import annotations

from pathlib import Path

from chart import png
from common import arguments, shapes

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.distributions import Bernoulli, Normal, kl_divergence

HIDDEN = 4


class VAE(nn.Module):
    def __init__(self, size: int = 16) -> None:
        super().__init__()
        pixels = size * size
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(pixels, 96), nn.SiLU(), nn.Linear(96, 2 * HIDDEN))
        self.decoder = nn.Sequential(
            nn.Linear(HIDDEN, 96), nn.SiLU(), nn.Linear(96, pixels), nn.Unflatten(1, (1, size, size))
        )

    def forward(self, pictures: torch.Tensor) -> tuple[Normal, Bernoulli]:
        mean, spread = self.encoder(pictures).chunk(2, 1)
        hidden = Normal(mean, nn.functional.softplus(spread) + 1e-4)
        return hidden, self.decode(hidden.rsample())

    def decode(self, hidden: torch.Tensor) -> Bernoulli:
        return Bernoulli(logits=self.decoder(hidden), validate_args=False)


def bound(model: VAE, pictures: torch.Tensor) -> torch.Tensor:
    """What a picture costs in nats: its surprise given the hidden numbers, and what those cost."""
    hidden, drawn = model(pictures)
    prior = Normal(torch.zeros_like(hidden.loc), torch.ones_like(hidden.scale))
    surprise = -drawn.log_prob(pictures).flatten(1).sum(1)
    return (surprise + kl_divergence(hidden, prior).sum(1)).mean()


def main() -> None:
    given = arguments(__doc__, steps=200)
    model = VAE().to(given.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    first = 0.0
    for step in range(1, given.steps + 1):
        pictures = (shapes(64, noise=0.0)[0]).to(given.device)
        optimizer.zero_grad()
        loss = bound(model, pictures)
        loss.backward()
        optimizer.step()
        first = first or loss.item()
        if step % max(1, given.steps // 8) == 0:
            print(f"step {step:4}  {loss.item():6.1f} nats per picture")
    with torch.no_grad():
        shown = pictures[:12]
        back = model(shown)[1].probs
        dreamt = model.decode(torch.randn(12, HIDDEN, device=given.device)).probs
        rows = [torch.cat(list(row[:, 0]), 1) for row in (shown, back, dreamt)]
        grid = torch.cat(rows, 0).cpu().repeat_interleave(4, 0).repeat_interleave(4, 1)
    Path("vae.png").write_bytes(png((255 * (1 - grid)).unsqueeze(2).expand(-1, -1, 3)))
    print(f"bound from {first:.1f} to {loss.item():.1f}; pictures in vae.png")


if __name__ == "__main__":
    main()
