"""Tokens per second of greedy decoding with a cache, this package against PyTorch, in turns.

    make bench-generate
    python benchmarks/bench_generate.py --ours PYTHON --oracle PYTHON [--rounds 7] [--tokens 64] [--check 1.5]

The models are those of tests/clients, built small, so that a token is calls and little arithmetic.

Each library runs in a process of its own, which waits while the other one works. The figure is the median of rounds, of
processor time: one thread works, so that it is the time on a quiet machine, whatever else this one does. What the clock
says follows.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

CLIENTS = Path(__file__).resolve().parents[1] / "tests" / "clients"
CHILD = """
import sys, time
if sys.argv[1]:
    sys.path.append(sys.argv[1]); sys.modules["torch_npu"] = None
sys.path.insert(0, sys.argv[3])
import torch, transformers
from _families import FAMILIES
transformers.utils.logging.set_verbosity_error()
torch.manual_seed(0)
torch.set_num_threads(1)
models = {}
for name in ("gpt2", "llama"):
    family = FAMILIES["decoders"][name]
    sizes = {**family.config, "eos_token_id": None}
    sizes.update(n_positions=256) if name == "gpt2" else sizes.update(max_position_embeddings=256)
    config = getattr(transformers, family.name + "Config")(**sizes)
    models[name] = getattr(transformers, family.name + family.head)(config).eval()
x = torch.randint(3, 60, (1, 8))
print("ready", flush=True)
for line in sys.stdin:
    begun, used = time.perf_counter(), time.process_time()
    out = models[line.strip()].generate(
        x, attention_mask=torch.ones_like(x), max_new_tokens=int(sys.argv[2]), do_sample=False, pad_token_id=0
    )
    print(time.process_time() - used, time.perf_counter() - begun, out[0, -8:].tolist(), flush=True)
"""


def started(python: str, folder: str, tokens: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    child = subprocess.Popen(
        [python, "-W", "ignore", "-c", CHILD, folder, str(tokens), str(CLIENTS)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None and child.stdout.readline().strip() == "ready"
    return child


def asked(child: subprocess.Popen[str], name: str) -> tuple[float, float, str]:
    """Seconds of the processor and of the clock, and the last tokens."""
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(name + "\n")
    child.stdin.flush()
    used, seconds, tokens = child.stdout.readline().split(" ", 2)
    return float(used), float(seconds), tokens


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--ours", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--check", type=float, default=0.0, help="fail below so many times PyTorch's speed")
    given = parser.parse_args()
    asks = [given.ours, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    folder = subprocess.run(asks, check=True, capture_output=True, text=True).stdout.strip()
    children = started(given.ours, "", given.tokens), started(given.oracle, folder, given.tokens)
    worst = float("inf")
    for name in ("gpt2", "llama"):
        rounds: list[list[tuple[float, float, str]]] = []
        for _ in range(given.rounds + 1):
            answers = [asked(child, name) for child in children]
            assert answers[0][2] == answers[1][2], "the tokens differ"
            rounds.append(answers)
        del rounds[0]  # it warms up
        ours, theirs = (given.tokens / statistics.median(r[side][0] for r in rounds) for side in (0, 1))
        clock = [statistics.median(r[side][1] for r in rounds) for side in (0, 1)]
        print(
            f"{name:8} {ours:8.0f} tokens/s   PyTorch {theirs:8.0f} tokens/s   {ours / theirs:5.2f} times; "
            f"by the clock {clock[1] / clock[0]:5.2f}",
            flush=True,
        )
        worst = min(worst, ours / theirs)
    for child in children:
        child.kill()
    return int(worst < given.check)


if __name__ == "__main__":
    sys.exit(main())
