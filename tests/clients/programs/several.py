"""accelerate: two processes, and those of `Trainer`: DDP by gloo and HCCL, FSDP of both kinds by HCCL, as one process.

On PyTorch all are DDP on its CPU: accelerate has no FSDP on CPUs.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

os.environ.setdefault("MINDTORCH_NPU", "emulator")

from _several import losses
from _stages import run_parts

OURS = sys.modules.get("torch_npu", "") is not None
DEVICE = "npu" if OURS else "cpu"


def stage(library: str, name: str, way: str, ranks: int, device: str) -> Callable[[dict[str, Any]], Any]:
    def run(kept: dict[str, Any]) -> Any:
        found = losses(library, way if OURS else "replicas", ranks, device)
        want = kept.setdefault("alone", found)
        assert found[-1] < found[0] - 0.01, found  # it learns
        assert all(abs(mine - other) < 2e-4 for mine, other in zip(found, want, strict=True)), (found, want)
        return found

    run.__name__ = name
    return run


def stages(library: str) -> list[Callable[[dict[str, Any]], Any]]:
    return [
        stage(library, "alone", "alone", 1, "cpu"),
        stage(library, "gloo", "replicas", 2, "cpu"),
        stage(library, "hccl", "replicas", 2, DEVICE),
        stage(library, "fsdp2", "split", 2, DEVICE),
        stage(library, "fsdp", "around", 2, DEVICE),
    ]


run_parts({library: stages(library) for library in ("accelerate", "trainer")})
