"""A vision transformer on the same shapes as images.py.

A picture is cut into patches, each patch is a word, and a token in front collects what is seen.
"""

from __future__ import annotations

from common import SHAPES, arguments, shapes

import mindtorch_v2 as torch
from mindtorch_v2 import nn


class ViT(nn.Module):
    def __init__(self, size: int = 16, patch: int = 4, width: int = 32, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.cut = nn.Conv2d(1, width, patch, stride=patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, len(SHAPES))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        patches = self.cut(pictures).flatten(2).transpose(1, 2)
        words = torch.cat([self.token.expand(len(patches), -1, -1), patches], 1) + self.places
        return self.head(self.encoder(words)[:, 0])


def main() -> None:
    given = arguments(__doc__, steps=200)
    model = ViT().to(given.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, given.steps)
    for step in range(1, given.steps + 1):
        pictures, kinds = (t.to(given.device) for t in shapes(64))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(pictures), kinds)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % max(1, given.steps // 8) == 0:
            print(f"step {step:4}  loss {loss.item():.3f}")
    model.eval()
    pictures, kinds = shapes(400)
    with torch.no_grad():
        said = model(pictures.to(given.device)).argmax(1).cpu()
    print(f"accuracy {(said == kinds).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
