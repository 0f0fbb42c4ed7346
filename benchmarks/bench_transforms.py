"""How fast transforms are: small mapped and dual calls, gradients of each sample, sparse products; PyTorch and
mindtorch_v2 in one process, in turns.

    bench_transforms.py                    the table
    bench_transforms.py --only "vmap"      only lines whose name a pattern finds

Invariant: a line is written once, as code over a module called `t`; results of both libraries are compared before
anything is timed. Ratios are PyTorch's time over ours: above 1, ours is faster.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import time
from collections.abc import Callable
from typing import Any

from bench_calls import Call
from bench_kernels import measure

# What each kind of line is to reach; figures of a busy machine say less.
GOALS = {"small": 3.0, "samples": 1.0, "sparse": 0.9}
Line = tuple[str, str, Callable[[Any], Call]]


def _numbers(t: Any, *shape: int) -> Any:
    count = t.ones(shape).numel()
    return (t.arange(count) * 0.37).sin().reshape(shape)


def _small(name: str, make: Callable[[Any], Call]) -> Line:
    return f"small: {name}", "small", make


def _samples(t: Any, net: Any, *shape: int) -> Call:
    with t.no_grad():
        for p in net.parameters():
            p.copy_(_numbers(t, *p.shape) * 0.1)
    params = {name: p.detach() for name, p in net.named_parameters()}
    x, y = _numbers(t, *shape), t.arange(shape[0]) % 10

    def loss(given: Any, one: Any, label: Any) -> Any:
        found = t.func.functional_call(net, given, (one.unsqueeze(0),))
        return t.nn.functional.cross_entropy(found, label.unsqueeze(0))

    each = t.func.vmap(t.func.grad(loss), in_dims=(None, 0, 0))
    return lambda: each(params, x, y)


def _mlp(t: Any) -> Call:
    nn = t.nn
    return _samples(t, nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)), 64, 64)


def _cnn(t: Any) -> Call:
    nn = t.nn
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(392, 10))
    return _samples(t, net, 16, 3, 16, 16)


def _sparse(rows: int, columns: int) -> Callable[[Any], Call]:
    def make(t: Any) -> Call:
        dense = _numbers(t, rows, rows)
        matrix = (dense * (dense > 0.95)).to_sparse_csr()
        other = _numbers(t, rows, columns)
        return lambda: matrix @ other

    return make


def _jvp(fn: Callable[[Any, Any], Any]) -> Callable[[Any], Call]:
    def make(t: Any) -> Call:
        x, v = _numbers(t, 3, 3), _numbers(t, 3, 3) + 1
        return lambda: t.func.jvp(lambda a: fn(t, a), (x,), (v,))

    return make


def _mapped(fn: Callable[[Any, Any], Any]) -> Callable[[Any], Call]:
    def make(t: Any) -> Call:
        x = _numbers(t, 4, 3, 3)
        return lambda: t.func.vmap(lambda a: fn(t, a))(x)

    return make


def _called(wrap: Callable[[Any], Callable[[Any], Any]]) -> Callable[[Any], Call]:
    """A transform of a function of a small tensor."""

    def make(t: Any) -> Call:
        x = _numbers(t, 4, 3)
        fn = wrap(t)
        return lambda: fn(x)

    return make


LINES: list[Line] = [
    *(
        _small(f"{kind} of {name}", wrap(fn))
        for kind, wrap in (("vmap", _mapped), ("jvp", _jvp))
        for name, fn in {
            "sin": lambda t, a: a.sin(),
            "a product and a sum": lambda t, a: (a * a + 1).sum(),
            "a matrix product": lambda t, a: a @ a,
            "softmax": lambda t, a: a.softmax(-1),
            "the largest of rows": lambda t, a: a.amax(-1),
            "rows by number": lambda t, a: a[0] + a[1],
            "where": lambda t, a: t.where(a > 0, a, 0.0),
            "layer_norm": lambda t, a: t.nn.functional.layer_norm(a, (3,)),
            "views": lambda t, a: a.t().unsqueeze(0).reshape(9),
            "a stack": lambda t, a: t.stack([a, a]),
            "a norm": lambda t, a: t.linalg.vector_norm(a),
            "a write in place": lambda t, a: a.clone().mul_(2),
            "linear": lambda t, a: t.nn.functional.linear(a, a, a[0]),
        }.items()
    ),
    *(
        _small(name, _called(wrap))
        for name, wrap in {
            "vmap in vmap": lambda t: t.func.vmap(t.func.vmap(lambda a: a.sin() * 2)),
            "vmap of rows by tensor": lambda t: t.func.vmap(lambda a: a[t.tensor([0, 2])]),
            "vmap of grad": lambda t: t.func.vmap(t.func.grad(lambda a: (a * a).sum())),
            "grad": lambda t: t.func.grad(lambda a: (a * a).sum()),
            "grad of vmap": lambda t: t.func.grad(lambda x: t.func.vmap(lambda a: (a * a).sum())(x).sum()),
            "jacrev": lambda t: t.func.jacrev(lambda a: a.sin()),
            "jacfwd": lambda t: t.func.jacfwd(lambda a: a.sin()),
            "hessian": lambda t: t.func.hessian(lambda a: a.sin().sum()),
        }.items()
    ),
    ("gradients of each sample: MLP", "samples", _mlp),
    ("gradients of each sample: CNN", "samples", _cnn),
    ("sparse product 1000 x 1000 by 64 columns", "sparse", _sparse(1000, 64)),
    ("sparse product 200 x 200 by 8 columns", "sparse", _sparse(200, 8)),
]


def _leaves(found: Any) -> list[Any]:
    if isinstance(found, dict):
        return [x for v in found.values() for x in _leaves(v)]
    if isinstance(found, (tuple, list)):
        return [x for v in found for x in _leaves(v)]
    return [found]


def _alike(theirs: Call, ours: Call) -> bool:
    for a, b in zip(_leaves(theirs()), _leaves(ours())):
        pairs = zip(a.detach().flatten().tolist(), b.detach().flatten().tolist())
        if not all(abs(x - y) <= 1e-4 * max(1.0, abs(x)) for x, y in pairs):
            return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description="How fast transforms are, PyTorch against mindtorch_v2.")
    parser.add_argument("--only", default="", metavar="PATTERN", help="only lines whose name the pattern finds")
    parser.add_argument("--seconds", type=float, default=0.4, help="how long a line is measured")
    options = parser.parse_args()
    torch, ours = importlib.import_module("torch"), importlib.import_module("mindtorch_v2")
    for t in (torch, ours):
        t.set_num_threads(1)
    wrong = 0
    for name, kind, make in LINES:
        if not re.search(options.only, name):
            continue
        calls = make(torch), make(ours)
        if not _alike(*calls):
            print(f"{name:45} results differ")
            wrong += 1
            continue
        found = measure(name, *calls, options.seconds, time.thread_time)
        print(f"{name:45} {found.theirs:10.1f} us {found.ours:10.1f} us {found.ratio:6.2f} (goal {GOALS[kind]})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
