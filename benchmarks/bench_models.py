"""How fast models are: steps of training and passes of inference, PyTorch and mindtorch_v2 in one process, in turns.

    make bench                                 the table, after those of the calls and the kernels
    bench_models.py --only "ViT|GPT"           only models whose name a pattern finds
    bench_models.py --threads 2 --json FILE    with two threads, and the figures written to a file
    bench_models.py --check                    fails when a promise below is not kept

Invariant: a model is written once, as code over a module called `t`; both libraries draw the same parameters and the
same batch, and their losses are compared before anything is timed. Steps of the two alternate and each one's best
counts; with one thread a step's time is what its thread ran. Ratios are PyTorch's time over ours: above 1, ours is
faster.
"""

from __future__ import annotations

import argparse
import importlib
import math
import re
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from bench_calls import Call, write_json
from bench_kernels import measure

# The promises that --check holds the library to, with room for what a busy machine adds: the mean and the worst line.
LEAST_MEAN, LEAST_LINE = 0.9, 0.6

Model = Callable[[Any], tuple[Any, Call]]  # the module, and what computes its loss


def mlp(sizes: tuple[int, ...], batch: int) -> Model:
    def make(t: Any) -> tuple[Any, Call]:
        layers: list[Any] = []
        for a, b in zip(sizes, sizes[1:]):
            layers += [t.nn.Linear(a, b), t.nn.ReLU()]
        net = t.nn.Sequential(*layers[:-1])
        x, y = t.randn(batch, sizes[0]), t.arange(batch) % sizes[-1]
        return net, lambda: t.nn.functional.cross_entropy(net(x), y)

    return make


def cnn(t: Any) -> tuple[Any, Call]:
    nn = t.nn
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(64, 10))  # fmt: skip
    x, y = t.randn(32, 3, 32, 32), t.arange(32) % 10
    return net, lambda: nn.functional.cross_entropy(net(x), y)


def resnet18(t: Any) -> tuple[Any, Call]:
    nn = t.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after))
            self.second = nn.Sequential(nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
            self.side = nn.Sequential() if stride == 1 and before == after else nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))  # fmt: skip

        def forward(self, x: Any) -> Any:
            return (self.second(self.first(x).relu()) + self.side(x)).relu()

    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    before = 64
    for after, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(Block(before, after, stride))
        before = after
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    x, y = t.randn(8, 3, 32, 32), t.arange(8) % 10
    return net, lambda: nn.functional.cross_entropy(net(x), y)


def recurrent(name: str) -> Model:
    def make(t: Any) -> tuple[Any, Call]:
        nn = t.nn
        table, layer, head = nn.Embedding(500, 128), getattr(nn, name)(128, 256, batch_first=True), nn.Linear(256, 500)
        net = nn.ModuleList([table, layer, head])
        ids = t.arange(16 * 33).reshape(16, 33) * 7 % 500

        def loss() -> Any:
            out = head(layer(table(ids[:, :-1]))[0])
            return nn.functional.cross_entropy(out.flatten(0, 1), ids[:, 1:].flatten())

        return net, loss

    return make


def transformer(width: int, heads: int, depth: int, length: int, batch: int, causal: bool, patches: bool) -> Model:
    """A stack of pre-norm blocks: over tokens, or over the patches of an image."""

    def make(t: Any) -> tuple[Any, Call]:
        nn, functional = t.nn, t.nn.functional

        class Block(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
                self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
                self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

            def forward(self, x: Any) -> Any:
                b, n, _ = x.shape
                q, k, v = self.qkv(self.norm1(x)).reshape(b, n, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
                a = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
                x = x + self.out(a.transpose(1, 2).reshape(b, n, width))
                return x + self.down(functional.gelu(self.up(self.norm2(x))))

        blocks, head = nn.Sequential(*[Block() for _ in range(depth)], nn.LayerNorm(width)), nn.Linear(width, 500)
        first = nn.Conv2d(3, width, 8, 8) if patches else nn.Embedding(500, width)
        place = nn.Parameter(t.randn(length, width) * 0.02)
        net = nn.ModuleList([blocks, head, first])
        net.register_parameter("place", place)
        side = 8 * math.isqrt(length)
        given = t.randn(batch, 3, side, side) if patches else t.arange(batch * length).reshape(batch, length) * 7 % 500

        def loss() -> Any:
            x = first(given)
            x = blocks((x.flatten(2).transpose(1, 2) if patches else x) + place)
            if patches:
                return functional.cross_entropy(head(x.mean(1)), t.arange(batch) % 10)
            return functional.cross_entropy(head(x).flatten(0, 1), given.flatten())

        return net, loss

    return make


MODELS: tuple[tuple[str, Model], ...] = (
    ("MLP 784-512-512-10, 128", mlp((784, 512, 512, 10), 128)),
    ("MLP 16-32-1, 8", mlp((16, 32, 4), 8)),
    ("CNN 32x32, 32", cnn),
    ("ResNet-18 32x32, 8", resnet18),
    ("LSTM 128-256, 16x32", recurrent("LSTM")),
    ("GRU 128-256, 16x32", recurrent("GRU")),
    ("GPT 4x256, 2x128", transformer(256, 8, 4, 128, 2, True, False)),
    ("BERT 4x256, 2x128", transformer(256, 8, 4, 128, 2, False, False)),
    ("ViT 4x192, 8x64", transformer(192, 3, 4, 64, 8, False, True)),
)


def training(t: Any, model: Model) -> Call:
    t.manual_seed(0)
    net, loss = model(t)
    optimizer = t.optim.AdamW(net.parameters(), lr=1e-4)

    def step() -> float:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return float(value.item())

    return step


def inference(t: Any, model: Model) -> Call:
    t.manual_seed(0)
    net, loss = model(t)
    net.eval()

    def step() -> float:
        with t.no_grad():
            return float(loss().item())

    return step


def run(torch: Any, ours: Any, only: str, budget: float, threads: int) -> list[Any]:
    results = []
    clock = time.thread_time if threads == 1 else time.perf_counter
    print(f"{'model':44}{'torch us':>12}{'ours us':>12}{'ratio':>8}")
    for name, model in MODELS:
        for kind, make in (("training", training), ("inference", inference)):
            line = f"{name}, {kind}"
            if not re.search(only, line):
                continue
            theirs, mine = make(torch, model), make(ours, model)
            losses = [(theirs(), mine()) for _ in range(2)]
            if any(abs(a - b) > 2e-3 * abs(a) + 1e-4 for a, b in losses):
                raise SystemExit(f"{line}: the losses differ: {losses}")
            result = measure(line, theirs, mine, budget, clock)
            results.append(result)
            print(f"{line:44}{result.theirs:12.1f}{result.ours:12.1f}{result.ratio:8.2f}", flush=True)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description="How fast models are, PyTorch against mindtorch_v2.")
    parser.add_argument("--check", action="store_true", help="exit with an error when a promise is not kept")
    parser.add_argument("--only", default="", metavar="PATTERN", help="only models whose name the pattern finds")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a line is measured")
    parser.add_argument("--json", default="", metavar="FILE", help="write the figures to a file")
    options = parser.parse_args()
    torch, ours = importlib.import_module("torch"), importlib.import_module("mindtorch_v2")
    for t in (torch, ours):
        t.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, mindtorch_v2 {ours.__version__}, {options.threads} thread(s)\n")
    results = run(torch, ours, options.only, options.seconds, options.threads)
    if not results:
        return 1
    ratios = [result.ratio for result in results]
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"\n{len(ratios)} lines, geometric mean {mean:.2f} (at least {LEAST_MEAN}), worst {min(ratios):.2f}")
    print(f"(at least {LEAST_LINE})")
    if options.json:
        write_json(options.json, results, options.threads)
    return 1 if options.check and (mean < LEAST_MEAN or min(ratios) < LEAST_LINE) else 0


if __name__ == "__main__":
    sys.exit(main())
