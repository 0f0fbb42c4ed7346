"""A convolutional network learns to tell four shapes apart.

Convolutions, batch normalization, SGD with momentum and a one-cycle schedule; then a table of what it confuses.
"""

from __future__ import annotations

from common import SHAPES, arguments, shapes

import mindtorch_v2 as torch
from mindtorch_v2 import nn


def network() -> nn.Module:
    def layer(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]

    return nn.Sequential(
        *layer(1, 8), nn.MaxPool2d(2), *layer(8, 16), nn.MaxPool2d(2), *layer(16, 32), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, len(SHAPES)),
    )  # fmt: skip


def main() -> None:
    given = arguments(__doc__, steps=80)
    model = network().to(given.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.2, total_steps=given.steps)
    for step in range(1, given.steps + 1):
        pictures, kinds = (t.to(given.device) for t in shapes(64))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(pictures), kinds, label_smoothing=0.05)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % max(1, given.steps // 8) == 0:
            print(f"step {step:4}  loss {loss.item():.3f}")

    model.eval()
    pictures, kinds = shapes(400)
    with torch.no_grad():
        said = model(pictures.to(given.device)).argmax(1).cpu()
    table = torch.zeros(len(SHAPES), len(SHAPES), dtype=torch.int64)
    table.index_put_((kinds, said), torch.tensor(1), accumulate=True)
    print(f"\n{'shown, said':12}" + "".join(f"{name:>8}" for name in SHAPES))
    for name, row in zip(SHAPES, table.tolist()):
        print(f"{name:12}" + "".join(f"{count:8}" for count in row))
    print(f"accuracy {table.diagonal().sum().item() / table.sum().item():.3f}")


if __name__ == "__main__":
    main()
