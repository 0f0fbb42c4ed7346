"""What a launch on the NPU costs the host, measured on the emulator with its kernels switched off.

    make bench                      prints it after the CPU's table
    make bench BENCH_ARGS="--check" fails when `a + b` costs more than LAUNCH_BUDGET beyond the library's own time

Invariant: nothing waits for the device in the measured loops, so that the calling thread's own time is measured, which
other processes do not change; and the library measures its own (ascendEmulatorTimeAdd: the same calls made from C).
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2 import _native

# Microseconds beyond the library's own time.
LAUNCH_BUDGET = 3.5
REPEATS, ROUNDS = 2000, 7
# Steps of a model in a round, and rounds: short ones, which other processes let pass undisturbed now and then.
STEPS, SHORT_ROUNDS = 5, 150


def best(code: Callable[[], Any]) -> float:
    """Microseconds of one call: the best of several rounds."""
    for _ in range(200):
        code()
    found = float("inf")
    for _ in range(ROUNDS):
        start = time.thread_time()
        for _ in range(REPEATS):
            code()
        found = min(found, (time.thread_time() - start) / REPEATS)
        torch.npu.synchronize()
    return found * 1e6


def library_time() -> float:
    """Microseconds the emulator itself needs for the calls behind one `a + b`."""
    folder = Path(torch.__file__).parent / "_emulator" / "lib64"
    control = ctypes.CDLL(str(folder / "libascend_emulator.so"))
    base, ops = ctypes.CDLL(str(folder / "libnnopbase.so")), ctypes.CDLL(str(folder / "libopapi.so"))
    base.aclCreateScalar.restype = ctypes.c_void_p
    alpha = ctypes.c_void_p(base.aclCreateScalar(ctypes.byref(ctypes.c_int64(1)), 9))
    tensors = [torch.ones(16, device="npu") for _ in range(3)]
    torch.npu.synchronize()
    measure = control.ascendEmulatorTimeAdd
    measure.restype = ctypes.c_double
    pointers = [
        ctypes.cast(f, ctypes.c_void_p)
        for f in (base.aclCreateTensor, base.aclDestroyTensor, ops.aclnnAddGetWorkspaceSize, ops.aclnnAdd)
    ]
    data = [ctypes.c_void_p(t.data_ptr()) for t in tensors]
    times = [measure(*pointers, alpha, *data, ctypes.c_int64(16), REPEATS) for _ in range(ROUNDS)]
    base.aclDestroyScalar(alpha)
    return float(min(times)) / 1000


def lines() -> dict[str, Callable[[], Any]]:
    a, b = torch.ones(4, 4, device="npu"), torch.ones(4, 4, device="npu")
    c = torch.ones(2, 4, 4, device="npu")
    index = torch.zeros(4, dtype=torch.int64, device="npu")
    mask = a > 2
    weight = torch.ones(4, device="npu")
    softmax = torch.nn.functional.softmax
    return {
        "a + b": lambda: a + b,
        "a + 1.0": lambda: a + 1.0,
        "a * b": lambda: a * b,
        "a.add_(b)": lambda: a.add_(b),
        "a / b": lambda: a / b,
        "a == b": lambda: a == b,
        "relu": lambda: torch.relu(a),
        "exp": lambda: a.exp(),
        "tanh": lambda: a.tanh(),
        "gelu": lambda: torch.nn.functional.gelu(a),
        "where": lambda: torch.where(mask, a, b),
        "sum()": lambda: a.sum(),
        "sum(1)": lambda: a.sum(1),
        "mean(1)": lambda: a.mean(1),
        "amax(1)": lambda: a.amax(1),
        "mm": lambda: a @ b,
        "bmm": lambda: torch.bmm(c, c),
        "softmax": lambda: softmax(a, 1),
        "layer_norm": lambda: torch.nn.functional.layer_norm(a, (4,), weight, weight),
        "index_select": lambda: a.index_select(0, index),
        "cat": lambda: torch.cat((a, b)),
        "a.t() view": lambda: a.t(),
    }


class Block(torch.nn.Module):
    """A block of a small transformer: attention and a feed-forward part, each behind a norm."""

    def __init__(self, width: int, heads: int) -> None:
        nn = torch.nn
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        f = torch.nn.functional
        b, s, w = x.shape
        q, k, v = (t.view(b, s, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(w, 2))
        y = f.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, s, w))
        return x + self.down(f.gelu(self.up(self.norm2(x))))


def mlp() -> tuple[Any, Callable[[], Any]]:
    """A small network, and its loss."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4)).npu()
    x, y = torch.ones(8, 16, device="npu"), torch.ones(8, 4, device="npu")
    return model, lambda: nn.functional.mse_loss(model(x), y)


def transformer() -> tuple[Any, Callable[[], Any]]:
    """A transformer of four blocks over tokens, and its loss."""
    nn = torch.nn
    model = nn.Sequential(nn.Embedding(64, 32), *(Block(32, 4) for _ in range(4)), nn.LayerNorm(32), nn.Linear(32, 64))
    model = model.npu()
    tokens, targets = (torch.zeros(n, dtype=torch.int64, device="npu") for n in ((2, 16), (32,)))
    return model, lambda: nn.functional.cross_entropy(model(tokens).view(32, 64), targets)


def training_step(made: tuple[Any, Callable[[], Any]]) -> tuple[float, int]:
    """Microseconds of a step with AdamW, and how many launches it is."""
    model, loss = made
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    step()
    before = _native.vendor_launches()
    step()
    launches = _native.vendor_launches() - before
    found = float("inf")
    for _ in range(SHORT_ROUNDS):
        start = time.thread_time()
        for _ in range(STEPS):
            step()
        found = min(found, (time.thread_time() - start) / STEPS)
        torch.npu.synchronize()
    return found * 1e6, launches


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    torch.npu.use_emulator(noop=True)
    torch.ones(1, device="npu")
    print("host cost of a launch on npu (emulator, kernels off)")
    print(f"{'':16}{'us':>8}{'launches/s':>14}")
    costs: dict[str, float] = {}
    for name, code in lines().items():
        costs[name] = best(code)
        print(f"{name:16}{costs[name]:8.2f}{1e6 / costs[name]:14,.0f}")
    for name, made in (("step of an MLP", mlp), ("transformer's", transformer)):
        cost, launches = training_step(made())
        print(f"{name:16}{cost:8.2f}{launches * 1e6 / cost:14,.0f}   {launches} launches, with AdamW")
    own = library_time()
    beyond = costs["a + b"] - own
    print(f"a + b: {costs['a + b']:.2f} us, library {own:.2f}, beyond it {beyond:.2f} (at most {LAUNCH_BUDGET})")
    if options.check and beyond > LAUNCH_BUDGET:
        raise SystemExit(f"a launch costs {beyond:.2f} us beyond the library's own time, more than {LAUNCH_BUDGET}")


if __name__ == "__main__":
    main()
