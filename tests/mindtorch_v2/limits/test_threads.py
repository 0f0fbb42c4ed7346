"""Threads that change tensors while kernels of others run on them: each call answers or raises, and no process dies.

Nothing is asked of the values, which race by the program's own fault.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import faulthandler, random, sys, threading, time, warnings
import mindtorch_v2 as torch
faulthandler.enable()
warnings.simplefilter("ignore")
sys.setswitchinterval(1e-5)
torch.set_num_threads(int(sys.argv[1]))
F, N = torch.nn.functional, int(sys.argv[2])
x, y, i, m, w = torch.rand(N), torch.rand(64, 64), torch.randint(0, N, (N,)), torch.rand(N) > 0.5, torch.rand(N, 8)
others = [torch.rand(n) for n in (1, 7, 64, N, N * 2)]
kernels = [
    lambda: x + x, lambda: x.sum(), lambda: x.exp_(), lambda: x.sort(), lambda: x[i], lambda: x.gather(0, i),
    lambda: x.cumsum(0), lambda: torch.cat([x, x]), lambda: x.masked_select(m), lambda: x.topk(3), lambda: y @ y,
    lambda: F.embedding(i, w), lambda: x.scatter_add_(0, i, x.clone()), lambda: x.unique(), lambda: x.copy_(x * 2),
    lambda: F.layer_norm(y, (64,)), lambda: torch.fft.fft(x), lambda: x.flip(0), lambda: x.normal_(),
    lambda: torch.searchsorted(x, x), lambda: F.pad(x, (3, 3)), lambda: x.index_put_((i,), x.clone(), accumulate=True),
    lambda: i.bincount(), lambda: x.take(i), lambda: F.gelu(x), lambda: x.tolist(), lambda: torch._foreach_add_([x], 1),
]
changes = [
    lambda: setattr(x, "data", random.choice(others)), lambda: x.set_(random.choice(others)),
    lambda: x.set_(others[3].untyped_storage(), random.randrange(N), (1,)),
    lambda: x.resize_(random.choice((0, 1, 100, N, N * 2))),
    lambda: x.untyped_storage().resize_(random.choice((0, 4, N * 4))), lambda: i.fill_(random.choice((0, 2**40, -1))),
    lambda: i.random_(0, max(1, x.numel())), lambda: setattr(i, "data", torch.randint(0, N, (random.choice((1, N)),))),
    lambda: setattr(w, "data", torch.rand(random.choice((2, N)), 8)),
    lambda: y.resize_(random.choice(((64, 64), (1, 64)))),
    lambda: setattr(m, "data", torch.rand(random.choice((2, N))) > 0.5), lambda: setattr(x, "data", torch.rand(N)),
]
end, done = time.time() + 3, [0, 0]

def work(calls, at):
    while time.time() < end:
        try:
            random.choice(calls)()
        except (RuntimeError, IndexError, ValueError, TypeError):
            pass
        done[at] += 1

threads = [threading.Thread(target=work, args=a) for a in ((changes, 0), (changes, 0), (kernels, 1), (kernels, 1))]
[t.start() for t in threads]
[t.join() for t in threads]
assert min(done) > 50, done
"""


# Above 32,768 elements kernels run without the interpreter's lock.
@pytest.mark.parametrize(("workers", "size"), ((1, 1000), (2, 70000)))
def test_changed_by_others(workers: int, size: int) -> None:
    environment = {**os.environ, "MALLOC_PERTURB_": "165"}
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", _PROGRAM, str(workers), str(size)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=root, env=environment)
    assert found.returncode == 0, found.stderr[-2000:]
