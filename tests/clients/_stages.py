"""What a client's program is made of: stages in order, each giving numbers, printed as one line of JSON.

A program runs as it is on this package's `torch` and on PyTorch's, with the same seeds; the driver compares. It imports
nothing of the package and nothing of the tests but this file.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from typing import Any

Stage = Callable[[dict[str, Any]], Any]


def plain(value: Any) -> Any:
    """Numbers of tensors, arrays and nested containers."""
    if hasattr(value, "detach"):
        value = value.detach().to("cpu")
        return (value.float() if value.is_floating_point() else value).tolist()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    raise TypeError(f"a stage gives numbers, not {type(value)}")


def run(*stages: Stage) -> None:
    """Run the stages of a program and end with its report."""
    finish(performed("", stages))


def run_parts(parts: dict[str, list[Stage]]) -> None:
    """Run several lists of stages; one that fails does not hinder the next. Names after the program choose some."""
    chosen = [name for name in parts if name in sys.argv[1:]] or list(parts)
    finish([line for name in chosen for line in performed(name, parts[name])])


def performed(part: str, stages: Iterable[Stage]) -> list[dict[str, Any]]:
    """Run the stages one after the other, up to the first that fails; they share a dictionary."""
    warnings.simplefilter("ignore")
    kept: dict[str, Any] = {}
    report: list[dict[str, Any]] = []
    for stage in stages:
        begun = time.perf_counter()
        line: dict[str, Any] = {"part": part, "stage": stage.__name__}
        try:
            line["numbers"] = plain(stage(kept))
        except BaseException as error:
            line["error"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            traceback.print_exc()
        line["seconds"] = round(time.perf_counter() - begun, 2)
        report.append(line)
        if "error" in line:
            break
    return report


def finish(report: list[dict[str, Any]]) -> None:
    print("REPORT " + json.dumps(report))
    sys.exit(any("error" in line for line in report))


def seeded(seed: int = 0) -> Any:
    """PyTorch, or what stands for it, with its generator set, and those that libraries use beside it."""
    import random

    import numpy
    import torch

    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)
    return torch


def reloaded(fresh: Any, model: Any) -> Any:
    """A model of the same making with the weights of another, by way of a file."""
    import io

    import torch

    stored = io.BytesIO()
    torch.save(model.state_dict(), stored)
    stored.seek(0)
    fresh.load_state_dict(torch.load(stored))
    return fresh


def train(model: Any, loss: Callable[[], Any], steps: int = 3, rate: float = 1e-2) -> list[float]:
    """A few steps of AdamW with clipped gradients; the losses."""
    import torch

    # A gradient that is zero but for rounding (of a bias in front of a softmax) must not become a step of its own.
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, eps=1e-4)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(float(value.detach()))
    return losses
