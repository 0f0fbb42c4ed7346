"""A program in ordinary PyTorch style: data, model, autocast, schedule, checkpoints, workers, TensorBoard, profiler.

    ordinary.py FOLDER

Trains a small network on made-up pictures, stops after two epochs, goes on from its checkpoint, and prints the losses
as JSON. It knows nothing of this package: `torch` is whatever the interpreter finds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, Dataset, random_split

try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError:  # TensorBoard itself is not installed
    SummaryWriter = None


@dataclass
class Settings:
    """What the run is made of."""

    folder: str
    classes: int = 4
    size: int = 12
    examples: int = 96
    batch: int = 16
    epochs: int = 3
    rate: float = 3e-3
    workers: int = 2
    seed: int = 11


class Pictures(Dataset):
    """Stripes of a frequency and direction that the class decides, in noise."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def __len__(self) -> int:
        return self.settings.examples

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        label = index % self.settings.classes
        generator = torch.Generator().manual_seed(index)
        along = torch.linspace(0, math.pi * (1 + label // 2) * 2, self.settings.size)
        stripes = torch.sin(along).expand(self.settings.size, -1)
        picture = stripes.T if label % 2 else stripes
        noise = 0.3 * torch.randn(1, self.settings.size, self.settings.size, generator=generator)
        return picture.unsqueeze(0) + noise, label


class Block(nn.Module):
    """Two convolutions with a way around them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + self.layers(x))


class Net(nn.Module):
    """Convolutions, then attention over the places of the picture, then a head."""

    def __init__(self, classes: int, width: int = 8) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, stride=2, padding=1)
        self.blocks = nn.ModuleList(Block(width) for _ in range(2))
        self.places = nn.Parameter(torch.zeros(1, 36, width))
        self.attention = nn.TransformerEncoderLayer(
            width, 2, dim_feedforward=16, dropout=0.1, batch_first=True, norm_first=True
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Dropout(0.1), nn.Linear(width, classes))
        self.apply(self.initialize)

    @staticmethod
    def initialize(module: nn.Module) -> None:
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=0.1)
            nn.init.zeros_(module.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        x = x.flatten(2).transpose(1, 2) + self.places
        return self.head(self.attention(x).mean(1))


def everything_from(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)


def loaders(settings: Settings) -> tuple[DataLoader, DataLoader]:
    data = Pictures(settings)
    parts = random_split(data, [0.75, 0.25], generator=torch.Generator().manual_seed(settings.seed))
    common: dict[str, Any] = {"batch_size": settings.batch, "num_workers": settings.workers}
    drawn = torch.Generator().manual_seed(settings.seed)
    return DataLoader(parts[0], shuffle=True, drop_last=True, generator=drawn, **common), DataLoader(parts[1], **common)


def decay_groups(model: nn.Module, decay: float) -> list[dict[str, Any]]:
    """Weights decay, biases and scales do not."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    return [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]


def warm_cosine(step: int, warm: int = 3, total: int = 12) -> float:
    return (
        (step + 1) / warm if step < warm else 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warm) / (total - warm))))
    )


def train_epoch(
    model: nn.Module, loader: DataLoader, optimizer: Any, plan: Any, scaler: Any, watch: Any
) -> Iterator[float]:
    model.train()
    for pictures, labels in loader:
        optimizer.zero_grad(set_to_none=True)
        with record_function("forward"):
            loss = F.cross_entropy(model(pictures), labels, label_smoothing=0.05)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        plan.step()
        watch.step()
        yield loss.item()


@torch.inference_mode()
def evaluate(model: nn.Module, loader: DataLoader) -> dict[str, float]:
    """Loss and right answers, in float32 and with matrix products in bfloat16."""
    model.eval()
    total, right, coarse, count = 0.0, 0, 0.0, 0
    for pictures, labels in loader:
        out = model(pictures)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            half = model(pictures)
        total += F.cross_entropy(out, labels, reduction="sum").item()
        coarse += F.cross_entropy(half.float(), labels, reduction="sum").item()
        right += int((out.argmax(-1) == labels).sum())
        count += len(labels)
    assert abs(total - coarse) / count < 0.1, "autocast is far from float32"
    return {"loss": total / count, "right": right / count}


def run(settings: Settings, epochs: range, path: str, resume: bool) -> dict[str, Any]:
    everything_from(settings.seed)
    training, testing = loaders(settings)
    model = Net(settings.classes)
    optimizer = torch.optim.AdamW(decay_groups(model, 0.01), lr=settings.rate)
    plan = LambdaLR(optimizer, warm_cosine)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    parts = {"model": model, "optimizer": optimizer, "plan": plan, "scaler": scaler}
    if resume:
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        torch.set_rng_state(saved["random"])
    writer = SummaryWriter(os.path.join(settings.folder, "board")) if SummaryWriter is not None else None
    found: dict[str, Any] = {"losses": [], "tests": [], "rates": []}
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2, repeat=1)) as watch:
        for epoch in epochs:
            for loss in train_epoch(model, training, optimizer, plan, scaler, watch):
                found["losses"].append(loss)
                found["rates"].append(plan.get_last_lr()[0])
                if writer is not None:
                    writer.add_scalar("loss", loss, len(found["losses"]))
            found["tests"].append(evaluate(model, testing))
            saved = {name: part.state_dict() for name, part in parts.items()}
            torch.save({**saved, "epoch": epoch, "random": torch.get_rng_state()}, path)
    if writer is not None:
        writer.add_histogram("stem", model.stem.weight, 0)
        writer.close()
    found["profiled"] = any(event.key == "forward" for event in watch.key_averages())
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    settings = Settings(parser.parse_args().folder)
    path = os.path.join(settings.folder, "checkpoint.pt")
    first = run(settings, range(2), path, resume=False)
    second = run(settings, range(2, settings.epochs), path, resume=True)
    print(json.dumps({"first": first, "second": second}))


if __name__ == "__main__":
    main()
