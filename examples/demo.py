"""Trains a small GPT to write fables, letter by letter; stops, reloads its checkpoint and goes on as if nothing was.

make demo                 on the CPU
make demo DEVICE=npu      on an Ascend NPU, or on the emulator of one (a smaller network and fewer steps)

The network: causal attention, pre-norm blocks, dropout, shared embedding. The training: AdamW, warm-up and a cosine
schedule, clipped gradients, bfloat16 by autocast, batches from worker processes. What comes out stands in build/demo/:
loss.png, checkpoint.pt, sample.txt, and with --trace a trace of one step (open it in https://ui.perfetto.dev).
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chart import BLUE, ORANGE, Chart, Curve
from common import use

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn import functional as F
from mindtorch_v2.profiler import record_function
from mindtorch_v2.utils.data import DataLoader, Dataset, Sampler

TEXT = Path(__file__).with_name("demo_text.txt")


@dataclass(frozen=True)
class Settings:
    """A run. The same settings and seed give the same losses, however often the run is interrupted."""

    device: str = "cpu"
    steps: int = 600
    batch: int = 24
    context: int = 64
    width: int = 96
    layers: int = 3
    heads: int = 4
    dropout: float = 0.1
    rate: float = 3e-3
    workers: int = 2
    seed: int = 7


ON_EMULATOR = dict(steps=30, batch=4, context=32, width=48, layers=2)


# ---------------------------------------------------------------------------------------------------------- the data
class Windows(Dataset):
    """Every stretch of `length + 1` letters of a text: the inputs, and the same moved on by one letter."""

    def __init__(self, letters: torch.Tensor, length: int) -> None:
        self.letters, self.length = letters, length

    def __len__(self) -> int:
        return len(self.letters) - self.length

    def __getitem__(self, at: int) -> tuple[torch.Tensor, torch.Tensor]:
        stretch = self.letters[at : at + self.length + 1]
        return stretch[:-1], stretch[1:]


class Batches(Sampler):
    """Which windows each step sees. A step's number alone decides, so a run can be taken up at any step."""

    def __init__(self, windows: int, settings: Settings, first: int, last: int) -> None:
        self.windows, self.settings, self.steps = windows, settings, range(first, last + 1)

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[list[int]]:
        for step in self.steps:
            generator = torch.Generator().manual_seed(self.settings.seed * 1_000_003 + step)
            yield torch.randint(self.windows, (self.settings.batch,), generator=generator).tolist()


# ------------------------------------------------------------------------------------------------------- the network
class Block(nn.Module):
    """Attention to earlier letters, then a network for each letter; both add to what goes through."""

    def __init__(self, s: Settings) -> None:
        super().__init__()
        self.heads, self.dropout = s.heads, s.dropout
        self.norm_1, self.norm_2 = nn.LayerNorm(s.width), nn.LayerNorm(s.width)
        self.qkv = nn.Linear(s.width, 3 * s.width)
        self.out = nn.Linear(s.width, s.width)
        self.mlp = nn.Sequential(
            nn.Linear(s.width, 4 * s.width), nn.GELU(), nn.Linear(4 * s.width, s.width), nn.Dropout(s.dropout)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        heads = self.qkv(self.norm_1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.dropout(self.out(seen.transpose(1, 2).reshape(batch, length, width)), self.dropout, self.training)
        return x + self.mlp(self.norm_2(x))


class GPT(nn.Module):
    def __init__(self, letters: int, s: Settings) -> None:
        super().__init__()
        self.context = s.context
        self.letters, self.places = nn.Embedding(letters, s.width), nn.Embedding(s.context, s.width)
        self.dropout = nn.Dropout(s.dropout)
        self.blocks = nn.Sequential(*[Block(s) for _ in range(s.layers)])
        self.norm = nn.LayerNorm(s.width)
        self.apply(self._start)

    @staticmethod
    def _start(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.06)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        places = torch.arange(letters.shape[1], device=letters.device)
        x = self.blocks(self.dropout(self.letters(letters) + self.places(places)))
        return F.linear(self.norm(x), self.letters.weight)

    @torch.no_grad()
    def write(self, start: torch.Tensor, length: int, temperature: float = 0.8) -> torch.Tensor:
        """`length` letters after those of `start`, each drawn from what the network expects."""
        self.eval()
        letters = start.unsqueeze(0)
        for _ in range(length):
            expected = self(letters[:, -self.context :])[0, -1].float() / temperature
            letters = torch.cat([letters, torch.multinomial(expected.softmax(0), 1).unsqueeze(0)], 1)
        return letters[0]


# ------------------------------------------------------------------------------------------------------ the training
class Run:
    """Everything that a checkpoint holds, and one step of it."""

    def __init__(self, text: str, settings: Settings) -> None:
        self.settings, s = settings, settings
        self.alphabet = sorted(set(text))
        letters = self.encode(text)
        cut = len(letters) * 9 // 10
        self.train_set, self.held_back = Windows(letters[:cut], s.context), Windows(letters[cut:], s.context)
        torch.manual_seed(s.seed)
        self.model = GPT(len(self.alphabet), s).to(s.device)
        decayed = [p for p in self.model.parameters() if p.dim() > 1]
        others = [p for p in self.model.parameters() if p.dim() == 1]
        groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=s.rate, betas=(0.9, 0.99))
        warm = max(1, s.steps // 20)
        self.schedule = torch.optim.lr_scheduler.SequentialLR(
            self.optimizer,
            [
                torch.optim.lr_scheduler.LinearLR(self.optimizer, 0.1, total_iters=warm),
                torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, s.steps - warm, eta_min=s.rate / 20),
            ],
            [warm],
        )
        self.step = 0

    def encode(self, text: str) -> torch.Tensor:
        places = {letter: place for place, letter in enumerate(self.alphabet)}
        return torch.tensor([places[letter] for letter in text])

    def decode(self, letters: torch.Tensor) -> str:
        return "".join(self.alphabet[place] for place in letters.tolist())

    def batches(self, last: int) -> DataLoader:
        """The batches of the next steps up to `last`, made by worker processes."""
        sampler = Batches(len(self.train_set), self.settings, self.step + 1, last)
        # A generator of its own: making an iterator draws from it, and the network's dropout must not notice.
        return DataLoader(
            self.train_set, batch_sampler=sampler, num_workers=self.settings.workers, generator=torch.Generator()
        )

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.autocast(self.settings.device, dtype=torch.bfloat16):
            expected = self.model(x.to(self.settings.device))
        return F.cross_entropy(expected.float().flatten(0, 1), y.to(self.settings.device).flatten())

    def advance(self, x: torch.Tensor, y: torch.Tensor) -> float:
        """One step of training; its loss."""
        self.model.train()
        self.optimizer.zero_grad()
        with record_function("forward"):
            loss = self.loss(x, y)
        with record_function("backward"):
            loss.backward()
        with record_function("clip"):
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.schedule.step()
        self.step += 1
        return loss.item()

    @torch.no_grad()
    def validate(self) -> float:
        """The loss on text that is never trained on, at evenly spaced places."""
        self.model.eval()
        stride = max(1, len(self.held_back) // (2 * self.settings.batch))
        x, y = zip(*[self.held_back[at] for at in range(0, len(self.held_back), stride)])
        return self.loss(torch.stack(x), torch.stack(y)).item()

    def random_state(self) -> dict[str, torch.Tensor]:
        return {"cpu": torch.get_rng_state()} | (
            {"npu": torch.npu.get_rng_state()} if self.settings.device == "npu" else {}
        )

    def save(self, path: Path) -> None:
        parts = {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}
        state = {name: part.state_dict() for name, part in parts.items()}
        torch.save(state | {"step": self.step, "random": self.random_state()}, path)

    def load(self, path: Path) -> None:
        state = torch.load(path, map_location=self.settings.device)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.step = state["step"]
        torch.set_rng_state(state["random"]["cpu"].cpu())
        if "npu" in state["random"]:
            torch.npu.set_rng_state(state["random"]["npu"].cpu())


class Progress:
    """A line that is rewritten in place on a terminal; in a log, a line now and then."""

    def __init__(self, steps: int, letters: int) -> None:
        self.steps, self.letters, self.start, self.done = steps, letters, time.perf_counter(), 0
        self.live = sys.stdout.isatty()

    @property
    def rate(self) -> float:
        return self.done * self.letters / max(time.perf_counter() - self.start, 1e-9)

    def show(self, loss: float, held_back: float) -> None:
        self.done += 1
        if not self.live and self.done % max(1, self.steps // 10) and self.done != 1:
            return
        seconds = (time.perf_counter() - self.start) / self.done * (self.steps - self.done)
        filled = 28 * self.done / self.steps
        bar = "█" * int(filled) + (" ▏▎▍▌▋▊▉"[int(filled % 1 * 8)] if filled % 1 else "")
        text = (
            f"  {bar:<28}▏{self.done:4}/{self.steps}  loss {loss:.3f}  held back {held_back:.3f}"
            f"  {self.rate:6,.0f} tokens/s  {seconds // 60:.0f}:{seconds % 60:02.0f} left"
        )
        sys.stdout.write(f"\r{text} " if self.live else f"{text}\n")
        sys.stdout.flush()

    def finish(self) -> None:
        sys.stdout.write("\n" if self.live else "")


# ---------------------------------------------------------------------------------------------------- what is shown
def train(run: Run, checkpoint: Path, saved_at: int) -> tuple[list[float], list[tuple[float, float]], Progress]:
    """All steps: their losses, and the losses on held back text with their steps. Saves once, on the way."""
    s = run.settings
    losses: list[float] = []
    held_back = [(0.0, run.validate())]
    progress = Progress(s.steps, s.batch * s.context)
    for x, y in run.batches(s.steps):
        losses.append(run.advance(x, y))
        if run.step % max(1, s.steps // 12) == 0:
            held_back.append((run.step, run.validate()))
        if run.step == saved_at:
            run.save(checkpoint)
        progress.show(sum(losses[-20:]) / len(losses[-20:]), held_back[-1][1])
    progress.finish()
    return losses, held_back, progress


def go_on(text: str, settings: Settings, checkpoint: Path, losses: list[float], steps: int) -> bool:
    """A fresh network, filled from the checkpoint, takes the next steps; are the losses those of the first run?"""
    run = Run(text, settings)
    run.load(checkpoint)
    first = run.step
    again = [run.advance(x, y) for x, y in run.batches(first + steps)]
    print(f"\nReloaded the checkpoint of step {first} and went on for {steps} steps:")
    for name, shown in ("first run", losses[first : first + steps]), ("continued", again):
        print(f"  {name}  " + " ".join(f"{loss:.6f}" for loss in shown[:5]) + " ..." * (steps > 5))
    equal = again == losses[first : first + steps]
    print(f"  all {steps} losses are equal, to the last bit." if equal else "  THE LOSSES DIFFER.")
    return equal


def picture(losses: list[float], held_back: list[tuple[float, float]], note: str) -> Chart:
    count = len(losses)
    near = [min(at, count - 1 - at, count // 50) for at in range(count)]  # as far to the left as to the right
    around = [losses[at - reach : at + reach + 1] for at, reach in enumerate(near)]
    smooth = [(float(step), sum(some) / len(some)) for step, some in enumerate(around, 1)]
    each = [(float(step), loss) for step, loss in enumerate(losses, 1)]
    return Chart(
        "a small gpt learns to write fables",
        "step",
        "loss, nats per letter",
        [
            Curve("each step", each, BLUE, 1.2, 0.35),
            Curve("training", smooth, BLUE),
            Curve("held back text", held_back, ORANGE, dots=True),
        ],
        note,
    )


def trace(run: Run, path: Path) -> None:
    """One more step, watched by the profiler."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if run.settings.device == "npu":
        activities.append(torch.profiler.ProfilerActivity.NPU)
    for x, y in run.batches(run.step + 1):
        with torch.profiler.profile(activities=activities, record_shapes=True) as profile:
            run.advance(x, y)
    profile.export_chrome_trace(str(path))
    print(f"\nOne step, watched by the profiler ({path}):")
    print(profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=8, max_name_column_width=36))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small GPT to write fables.")
    parser.add_argument("--device", default="cpu", choices=["cpu", "npu"])
    parser.add_argument("--steps", type=int, help="how many steps (default: 600, on the emulator 30)")
    parser.add_argument("--text", type=Path, default=TEXT, help="a text to learn instead of the fables")
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="where pictures and checkpoints go")
    parser.add_argument("--trace", action="store_true", help="also write trace.json, of one step")
    parser.add_argument("--small", action="store_true", help="the small network, as on the emulator")
    return parser.parse_args()


def main() -> int:
    given = options()
    emulated = use(given.device)
    chosen: dict[str, Any] = dict(ON_EMULATOR) if emulated or given.small else {}
    if given.steps:
        chosen["steps"] = given.steps
    settings = Settings(device=given.device, **chosen)
    given.out.mkdir(parents=True, exist_ok=True)
    text = given.text.read_text()
    run = Run(text, settings)
    parameters = sum(p.numel() for p in run.model.parameters())
    where = "the emulator of an NPU" if emulated else given.device
    print(
        f"{len(text):,} letters of fables; a GPT of {parameters:,} parameters in {settings.layers} layers, on {where}."
    )

    checkpoint = given.out / "checkpoint.pt"
    saved_at = settings.steps * 3 // 4
    losses, held_back, progress = train(run, checkpoint, saved_at)
    seconds = time.perf_counter() - progress.start
    print(
        f"  {settings.steps} steps in {seconds:.1f} s; a letter costs {math.exp(held_back[-1][1]):.1f} guesses, not "
        f"{len(run.alphabet)}."
    )

    torch.manual_seed(settings.seed)
    sample = run.decode(run.model.write(run.encode("THE ").to(given.device), 60 if emulated else 500).cpu())
    (given.out / "sample.txt").write_text(sample)
    print("\nIt writes:\n  " + sample.replace("\n", "\n  "))

    equal = go_on(text, settings, checkpoint, losses, steps=min(20, settings.steps - saved_at))
    note = f"{parameters:,} parameters on {given.device}, {progress.done * progress.letters / seconds:,.0f} letters/s"
    picture(losses, held_back, note).draw().save(given.out / "loss.png")
    print(f"\nThe loss curve is in {given.out / 'loss.png'}.")
    if given.trace:
        trace(run, given.out / "trace.json")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
