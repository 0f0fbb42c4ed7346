"""What a call costs: PyTorch and mindtorch_v2 run the same lines in one process, in turns.

    make bench                              the table and what follows it
    make bench BENCH_ARGS="--check"         fails when a promise below is not kept
    make bench BENCH_ARGS="--only index"    only the lines whose name contains a word
    make bench-check                        the few lines of SHORT, in half a minute: what CI asks

Invariant: every line is written once, as code over a module called `t`, so both libraries do the same work. Short
batches of the two alternate and each one's best counts, so what else the machine does touches neither. Ratios are
PyTorch's time over ours: above 1, ours is faster. PyTorch gets one thread for the small calls, which is its best case.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import call_lines

# The promises that --check holds the library to.
LEAST_MEAN, LEAST_LINE, LEAST_BIG_ADD, MOST_IMPORT, MOST_BYTES, MOST_CURVE = 3.2, 1.0, 2.0, 0.25, 400.0, 1.5
# The same mean over the lines of call_lines, many of which are mostly Python in both libraries.
LEAST_WIDE_MEAN = 1.9

Call = Callable[[], Any]
Line = tuple[str, Callable[[Any], Call]]


def with_no_grad(t: Any) -> Call:
    def run() -> None:
        with t.no_grad():
            pass

    return run


def unary(name: str, code: Callable[[Any, Any], Any], *, grad: bool = False) -> Line:
    def make(t: Any) -> Call:
        a = t.ones(4, 4, requires_grad=grad)
        return lambda: code(t, a)

    return name, make


def binary(name: str, code: Callable[[Any, Any, Any], Any], *, grad: bool = False, other: str = "float32") -> Line:
    def make(t: Any) -> Call:
        a = t.ones(4, 4, requires_grad=grad)
        b = t.ones(4, 4, dtype=getattr(t, other))
        return lambda: code(t, a, b)

    return name, make


def indexed(name: str, code: Callable[[Any, dict[str, Any]], Any]) -> Line:
    """Reading from, or writing to, an (8, 8) tensor with operands made beforehand."""

    def make(t: Any) -> Call:
        a = t.arange(64.0).reshape(8, 8)
        operands = {"row": t.zeros(8), "picked": t.tensor([1, 3, 5]), "mask": a > 31, "values": t.zeros(3, 8)}
        return lambda: code(a, operands)

    return name, make


def assign(key: Callable[[dict[str, Any]], Any], value: Callable[[dict[str, Any]], Any]) -> Callable[..., None]:
    def run(a: Any, operands: dict[str, Any]) -> None:
        a[key(operands)] = value(operands)

    return run


def chain(length: int) -> Callable[[Any], Call]:
    """Forward and backward through `length` multiplications."""

    def make(t: Any) -> Call:
        w = t.ones(4, requires_grad=True)
        b = t.ones(4)

        def run() -> None:
            x = w
            for _ in range(length):
                x = x * b
            x.sum().backward()
            w.grad = None

        return run

    return make


def module_call(build: Callable[[Any], Any], *shape: int) -> Callable[[Any], Call]:
    def make(t: Any) -> Call:
        module, x = build(t), t.ones(*shape)
        return lambda: module(x)

    return make


def mlp(t: Any) -> Any:
    return t.nn.Sequential(t.nn.Linear(16, 32), t.nn.ReLU(), t.nn.Linear(32, 1))


def training_step(t: Any) -> Call:
    t.manual_seed(0)
    model, x, y = mlp(t), t.ones(8, 16), t.zeros(8, 1)
    optimizer = t.optim.SGD(model.parameters(), lr=1e-6)

    def run() -> None:
        optimizer.zero_grad()
        t.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    return run


def layer_norm(t: Any) -> Call:
    x, w, b = t.ones(4, 8), t.ones(8), t.zeros(8)
    return lambda: t.nn.functional.layer_norm(x, (8,), w, b)


def linear(grad: bool) -> Callable[[Any], Call]:
    def make(t: Any) -> Call:
        x, w, b = t.ones(4, 4), t.ones(4, 4, requires_grad=grad), t.ones(4, requires_grad=grad)
        return lambda: t.nn.functional.linear(x, w, b)

    return make


def creation(code: Callable[[Any], Any]) -> Callable[[Any], Call]:
    return lambda t: lambda: code(t)


def cross_entropy(t: Any) -> Call:
    x, y = t.ones(4, 4), t.tensor([0, 1, 2, 3])
    return lambda: t.nn.functional.cross_entropy(x, y)


def embedding(t: Any) -> Call:
    table, picked = t.ones(16, 4), t.tensor([1, 5, 2])
    return lambda: t.nn.functional.embedding(picked, table)


def zero_grad(t: Any) -> Call:
    optimizer = t.optim.SGD(mlp(t).parameters(), lr=0.1)
    return optimizer.zero_grad  # type: ignore[no-any-return]


def sgd_step(t: Any) -> Call:
    model = mlp(t)
    model(t.ones(8, 16)).sum().backward()
    return t.optim.SGD(model.parameters(), lr=1e-9).step  # type: ignore[no-any-return]


def stepped(name: str, **options: Any) -> Callable[[Any], Call]:
    """A step of an optimiser and what clears up after it, with gradients that are there already."""

    def make(t: Any) -> Call:
        params = list(mlp(t).parameters())
        grads = [t.ones_like(param) for param in params]
        optimizer = getattr(t.optim, name)(params, lr=1e-9, **options)

        def run() -> None:
            for param, grad in zip(params, grads):
                param.grad = grad
            optimizer.step()
            optimizer.zero_grad()

        return run

    return make


def clipped(t: Any) -> Call:
    params = list(mlp(t).parameters())
    for param in params:
        param.grad = t.ones_like(param)
    return lambda: t.nn.utils.clip_grad_norm_(params, 1.0)


def scheduled(t: Any) -> Call:
    optimizer = t.optim.SGD(mlp(t).parameters(), lr=0.1)
    scheduler = t.optim.lr_scheduler.StepLR(optimizer, 1 << 60)
    optimizer.step()
    return scheduler.step  # type: ignore[no-any-return]


def blocks(t: Any) -> Any:
    layers = (t.nn.Sequential(t.nn.Linear(4, 4), t.nn.LayerNorm(4), t.nn.ReLU()) for _ in range(4))
    return t.nn.Sequential(*layers)


def of_module(code: Callable[[Any], Any]) -> Callable[[Any], Call]:
    def make(t: Any) -> Call:
        module = blocks(t)
        return lambda: code(module)

    return make


def hooked(t: Any) -> Call:
    module, x = t.nn.Identity(), t.ones(1)
    module.register_forward_hook(lambda module, args, result: None)
    return lambda: module(x)


LINES: list[Line] = [
    # operators: two tensors
    binary("a + b", lambda t, a, b: a + b),
    binary("a - b", lambda t, a, b: a - b),
    binary("a * b", lambda t, a, b: a * b),
    binary("a / b", lambda t, a, b: a / b),
    binary("a > b", lambda t, a, b: a > b),
    binary("torch.add(a, b)", lambda t, a, b: t.add(a, b)),
    binary("a.add(b, alpha=2)", lambda t, a, b: a.add(b, alpha=2)),
    binary("torch.add(a, b, out=c)", lambda t, a, b: t.add(a, b, out=a)),
    binary("a + b, float and int64", lambda t, a, b: a + b, other="int64"),
    binary("a + b[0], broadcast", lambda t, a, b: a + b[0]),
    binary("a @ b", lambda t, a, b: a @ b),
    binary("torch.maximum(a, b)", lambda t, a, b: t.maximum(a, b)),
    binary("torch.where(a > b, a, b)", lambda t, a, b: t.where(a > b, a, b)),
    # operators: a tensor and a number
    unary("a + 1.0", lambda t, a: a + 1.0),
    unary("a * 2", lambda t, a: a * 2),
    unary("1 - a", lambda t, a: 1 - a),
    unary("a / 3.0", lambda t, a: a / 3.0),
    unary("a ** 2", lambda t, a: a**2),
    unary("a > 0", lambda t, a: a > 0),
    # one tensor
    unary("-a", lambda t, a: -a),
    unary("a.exp()", lambda t, a: a.exp()),
    unary("torch.sqrt(a)", lambda t, a: t.sqrt(a)),
    unary("torch.relu(a)", lambda t, a: t.relu(a)),
    unary("a.clamp(0, 1)", lambda t, a: a.clamp(0, 1)),
    unary("a.sum()", lambda t, a: a.sum()),
    unary("a.sum(1)", lambda t, a: a.sum(1)),
    unary("a.mean()", lambda t, a: a.mean()),
    unary("a.max(1)", lambda t, a: a.max(1)),
    unary("a.argmax()", lambda t, a: a.argmax()),
    unary("a.clone()", lambda t, a: a.clone()),
    unary("a.to(float64)", lambda t, a: a.to(t.float64)),
    # in place
    binary("a.add_(b)", lambda t, a, b: a.add_(b)),
    unary("a.mul_(1.0)", lambda t, a: a.mul_(1.0)),
    unary("a.zero_()", lambda t, a: a.zero_()),
    # with grad
    binary("a + b, with grad", lambda t, a, b: a + b, grad=True),
    binary("a * b, with grad", lambda t, a, b: a * b, grad=True),
    unary("a * 2, with grad", lambda t, a: a * 2, grad=True),
    unary("torch.relu(a), with grad", lambda t, a: t.relu(a), grad=True),
    unary("a.view(16), with grad", lambda t, a: a.view(16), grad=True),
    # views
    unary("a.view(2, 8)", lambda t, a: a.view(2, 8)),
    unary("a.reshape(-1)", lambda t, a: a.reshape(-1)),
    unary("a.t()", lambda t, a: a.t()),
    unary("a.transpose(0, 1)", lambda t, a: a.transpose(0, 1)),
    unary("a.permute(1, 0)", lambda t, a: a.permute(1, 0)),
    unary("a.unsqueeze(0)", lambda t, a: a.unsqueeze(0)),
    unary("a.expand(3, 4, 4)", lambda t, a: a.expand(3, 4, 4)),
    unary("a.detach()", lambda t, a: a.detach()),
    unary("a.split(2)", lambda t, a: a.split(2)),
    # joining
    binary("torch.cat([a, b])", lambda t, a, b: t.cat([a, b])),
    binary("torch.stack([a, b])", lambda t, a, b: t.stack([a, b])),
    # indexing
    indexed("a[1]", lambda a, o: a[1]),
    indexed("a[1, 2]", lambda a, o: a[1, 2]),
    indexed("a[1:5]", lambda a, o: a[1:5]),
    indexed("a[::2]", lambda a, o: a[::2]),
    indexed("a[:, 1]", lambda a, o: a[:, 1]),
    indexed("a[None]", lambda a, o: a[None]),
    indexed("a[..., 0]", lambda a, o: a[..., 0]),
    indexed("a[[1, 3, 5]]", lambda a, o: a[[1, 3, 5]]),
    indexed("a[int tensor]", lambda a, o: a[o["picked"]]),
    indexed("a[mask]", lambda a, o: a[o["mask"]]),
    indexed("a[1:5, int tensor]", lambda a, o: a[1:5, o["picked"]]),
    indexed("a[1] = 0.0", assign(lambda o: 1, lambda o: 0.0)),
    indexed("a[1:2] = row", assign(lambda o: slice(1, 2), lambda o: o["row"])),
    indexed("a[mask] = 0.0", assign(lambda o: o["mask"], lambda o: 0.0)),
    indexed("a[int tensor] = values", assign(lambda o: o["picked"], lambda o: o["values"])),
    indexed("a[..., 1:3] = 1.0", assign(lambda o: (..., slice(1, 3)), lambda o: 1.0)),
    # leaving
    indexed("a[0, 0].item()", lambda a, o: a[0, 0].item()),
    unary("a.tolist()", lambda t, a: a.tolist()),
    unary("a.shape", lambda t, a: a.shape),
    # creation
    ("torch.empty(4, 4)", creation(lambda t: t.empty(4, 4))),
    ("torch.zeros(4, 4)", creation(lambda t: t.zeros(4, 4))),
    ("torch.full((4, 4), 2.0)", creation(lambda t: t.full((4, 4), 2.0))),
    ("torch.arange(10)", creation(lambda t: t.arange(10))),
    ("torch.tensor([1.0, 2.0, 3.0])", creation(lambda t: t.tensor([1.0, 2.0, 3.0]))),
    ("torch.randn(4, 4)", creation(lambda t: t.randn(4, 4))),
    unary("torch.zeros_like(a)", lambda t, a: t.zeros_like(a)),
    # networks
    unary("a.softmax(1)", lambda t, a: a.softmax(1)),
    unary("torch.log_softmax(a, 1)", lambda t, a: t.log_softmax(a, 1)),
    unary("F.gelu(a)", lambda t, a: t.nn.functional.gelu(a)),
    ("F.layer_norm(x)", layer_norm),
    ("F.linear(x, w, b)", linear(False)),
    ("F.linear(x, w, b), with grad", linear(True)),
    ("F.cross_entropy(x, y)", cross_entropy),
    ("F.embedding(i, w)", embedding),
    ("nn.Linear(4, 4)(x)", module_call(lambda t: t.nn.Linear(4, 4), 4, 4)),
    ("nn.LayerNorm(8)(x)", module_call(lambda t: t.nn.LayerNorm(8), 4, 8)),
    ("MLP(x)", module_call(mlp, 8, 16)),
    ("with torch.no_grad()", with_no_grad),
    ("optimizer.zero_grad()", zero_grad),
    ("SGD.step()", sgd_step),
    ("SGD step and zero_grad", stepped("SGD")),
    ("SGD step and zero_grad, momentum", stepped("SGD", momentum=0.9)),
    ("Adam step and zero_grad", stepped("Adam")),
    ("AdamW step and zero_grad", stepped("AdamW")),
    ("Adagrad step and zero_grad", stepped("Adagrad")),
    ("clip_grad_norm_(parameters, 1.0)", clipped),
    ("StepLR.step()", scheduled),
    ("module with a forward hook", hooked),
    ("list(module.parameters())", of_module(lambda module: list(module.parameters()))),
    ("list(module.named_parameters())", of_module(lambda module: list(module.named_parameters()))),
    ("module.zero_grad()", of_module(lambda module: module.zero_grad())),
    ("module.train()", of_module(lambda module: module.train())),
    ("module.state_dict()", of_module(lambda module: module.state_dict())),
    # autograd
    ("forward and backward, 1 operator", chain(1)),
    ("forward and backward, 10 operators", chain(10)),
    ("forward and backward, 100 operators", chain(100)),
    ("tiny MLP training step", training_step),
]


# What CI asks of a few lines: the ratio that was measured, less a third or more. Both libraries run on the same
# machine at the same time, so its speed cancels out; a line that is under its limit is measured again before it counts.
SHORT = {
    "a + b": 1.6,
    "a * 2": 4.2,
    "a.sum(1)": 1.9,
    "a + b, with grad": 1.3,
    "a.view(2, 8)": 1.7,
    "a[1:5]": 1.5,
    "torch.cat([a, b])": 0.9,
    "torch.zeros(4, 4)": 1.1,
    "F.linear(x, w, b), with grad": 1.5,
    "forward and backward, 10 operators": 2.9,
    "Adam step and zero_grad": 12.0,
    "tiny MLP training step": 3.7,
}


@dataclass
class Result:
    name: str
    theirs: float
    ours: float
    ratio: float


def seconds(call: Call, times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        call()
    return time.perf_counter() - start


def batch_size(call: Call, target: float) -> int:
    """How many calls take about `target` seconds; at least one."""
    times = 1
    while times < 1_000_000:
        spent = min(seconds(call, times) for _ in range(3))
        if spent >= target / 4:
            return max(1, int(times * target / spent))
        times *= 4
    return times


def measure(name: str, theirs: Call, ours: Call, rounds: int, target: float) -> Result:
    """Alternating rounds; the best of each."""
    sizes = batch_size(theirs, target), batch_size(ours, target)
    gc.collect()
    gc.disable()
    try:
        pairs = [(seconds(theirs, sizes[0]) / sizes[0], seconds(ours, sizes[1]) / sizes[1]) for _ in range(rounds)]
    finally:
        gc.enable()
    best_theirs, best_ours = min(a for a, _ in pairs), min(b for _, b in pairs)
    return Result(name, best_theirs * 1e6, best_ours * 1e6, best_theirs / best_ours)


def small_calls(
    torch: Any, ours: Any, lines: Iterable[Line], only: str, rounds: int, target: float
) -> tuple[list[Result], list[str]]:
    results: list[Result] = []
    missing: list[str] = []
    print(f"{'call':38}{'torch us':>10}{'ours us':>10}{'ratio':>8}")
    for name, make in lines:
        if only not in name:
            continue
        theirs = make(torch)
        try:
            mine = make(ours)
            mine()
        except Exception as error:  # whatever a function that does not exist yet raises
            missing.append(name)
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            print(f"{name:38}{'missing':>28}  {reason[:80]}")
            continue
        result = measure(name, theirs, mine, rounds, target)
        results.append(result)
        print(f"{name:38}{result.theirs:10.2f}{result.ours:10.2f}{result.ratio:8.2f}", flush=True)
    return results, missing


def short_check(torch: Any, ours: Any, rounds: int, target: float) -> int:
    """Whether the lines of SHORT keep their ratios; the exit code."""
    lines, slow = dict(LINES), 0
    print(f"{'call':38}{'ratio':>8}{'least':>8}")
    for name, least in SHORT.items():
        theirs, mine = lines[name](torch), lines[name](ours)
        ratio = 0.0
        for _ in range(4):
            ratio = max(ratio, measure(name, theirs, mine, rounds, target).ratio)
            if ratio >= least:
                break
        slow += ratio < least
        print(f"{name:38}{ratio:8.2f}{least:8.2f}{'' if ratio >= least else '  SLOW'}", flush=True)
    return 1 if slow else 0


def big_add(t: Any) -> Call:
    a, b = t.ones(10_000_000), t.ones(10_000_000)

    def run() -> None:
        a + b

    return run


def chain_seconds(t: Any, length: int) -> float:
    run = chain(length)(t)
    run()
    gc.collect()
    return min(seconds(run, 1) for _ in range(3))


def fresh(code: str) -> float:
    """What a program prints when it runs in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout)


def import_seconds(name: str) -> float:
    return fresh(f"import time; s = time.perf_counter(); import {name}; print(time.perf_counter() - s)")


def tensor_bytes(name: str) -> float:
    """Resident memory per live tensor of four floats."""
    return fresh(
        f"""
import gc, os, {name} as t
def resident():
    return int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGESIZE')
count = 200_000
keep = [t.ones(4) for _ in range(1000)]
keep = [None] * count
gc.collect()
before = resident()
for i in range(count):
    keep[i] = t.empty(4)
gc.collect()
print((resident() - before) / count)
"""
    )


def write_json(path: str, results: list[Result], threads: int = 1) -> None:
    """The figures of a table, for publish.py and for whoever compares two runs."""
    figures = [{"name": r.name, "torch_us": r.theirs, "ours_us": r.ours, "ratio": r.ratio} for r in results]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"threads": threads, "lines": figures}, file, indent=1)


def main() -> int:
    parser = argparse.ArgumentParser(description="What a call costs, PyTorch against mindtorch_v2.")
    parser.add_argument("--check", action="store_true", help="exit with an error when a promise is not kept")
    parser.add_argument("--short", action="store_true", help="only a few lines, each against a limit of its own")
    parser.add_argument("--only", default="", metavar="WORD", help="only small calls whose name contains WORD")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--batch", type=float, default=1.0, help="milliseconds per batch")
    parser.add_argument("--json", default="", metavar="FILE", help="write the figures to a file")
    options = parser.parse_args()

    torch = importlib.import_module("torch")
    ours = importlib.import_module("mindtorch_v2")
    compiled = any(name.startswith("_core__mypyc") for name in os.listdir(os.path.dirname(ours.__file__ or "")))
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, mindtorch_v2 {ours.__version__} ({'compiled' if compiled else 'UNCOMPILED'})\n")

    if options.short:
        return short_check(torch, ours, options.rounds, options.batch / 1000)
    broken: list[str] = []

    def promise(text: str, kept: bool) -> None:
        print(f"{text:70}{'' if kept else '  BROKEN'}", flush=True)
        if not kept:
            broken.append(text)

    every: list[Result] = []
    for lines, least in ((LINES, LEAST_MEAN), (call_lines.lines(), LEAST_WIDE_MEAN)):
        results, missing = small_calls(torch, ours, lines, options.only, options.rounds, options.batch / 1000)
        every += results
        if results:
            mean = math.exp(statistics.fmean(math.log(result.ratio) for result in results))
            under = [result.name for result in results if result.ratio < LEAST_LINE]
            print()
            promise(f"geometric mean of {len(results)} lines: {mean:.2f} (at least {least})", mean >= least)
            promise(f"lines under {LEAST_LINE}: {len(under)} {', '.join(under)}", not under)
        promise(f"lines that do not run yet: {len(missing)}", not missing)
        print()
    if options.json:
        write_json(options.json, every)
    if options.only:
        return 1 if options.check and broken else 0

    torch.set_num_threads(os.cpu_count() or 1)
    add = measure("add", big_add(torch), big_add(ours), 9, 0.0)
    promise(
        f"add of 1e7 floats, new result: torch {add.theirs / 1000:.1f} ms, ours {add.ours / 1000:.1f} ms, "
        f"ratio {add.ratio:.2f} (at least {LEAST_BIG_ADD})",
        add.ratio >= LEAST_BIG_ADD,
    )
    # In a process of its own: the collector would otherwise walk PyTorch's modules for us.
    code = (
        f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r}); "
        "import bench_calls, mindtorch_v2; print(bench_calls.chain_seconds(mindtorch_v2, {}))"
    )
    short, long = fresh(code.format(10_000)), fresh(code.format(100_000))
    curve = long / (10 * short)
    promise(
        f"chain forward and backward: 10 000 in {short * 1000:.0f} ms, 100 000 in {long * 1000:.0f} ms, "
        f"growth {curve:.2f} of linear (at most {MOST_CURVE})",
        curve <= MOST_CURVE,
    )
    print(f"  the same in torch: 100 000 in {chain_seconds(torch, 100_000) * 1000:.0f} ms")
    pairs = [(import_seconds("torch"), import_seconds("mindtorch_v2")) for _ in range(5)]
    share = statistics.median(b / a for a, b in pairs)
    promise(
        f"import: torch {statistics.median(a for a, _ in pairs) * 1000:.0f} ms, "
        f"ours {statistics.median(b for _, b in pairs) * 1000:.0f} ms, share {share:.3f} (at most {MOST_IMPORT})",
        share <= MOST_IMPORT,
    )
    size = tensor_bytes("mindtorch_v2")
    promise(
        f"bytes per live tensor of 4 floats: torch {tensor_bytes('torch'):.0f}, ours {size:.0f} "
        f"(at most {MOST_BYTES:.0f})",
        size <= MOST_BYTES,
    )
    return 1 if options.check and broken else 0


if __name__ == "__main__":
    sys.exit(main())
