"""The child process: runs programs one after another and writes down what each is about to do.

Invariant: the journal names the running program before its first statement runs, so that whatever ends the process has
a name.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import json
import os
import resource
import signal
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

from ._judge import Outcome, reason
from ._programs import Sample, write
from ._targets import find
from ._values import scope

SMALL = 1000
_PR_SET_PDEATHSIG = 1
_HERE = str(Path(__file__).parent)


def limit_memory(megabytes: int) -> None:
    """What is mapped now, libraries and the emulator's arena included, and so much more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    total = pages * os.sysconf("SC_PAGE_SIZE") + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (total, total))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Not longer than the driver: one that was killed has not said goodbye.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def touch(value: Any, tensor: type, depth: int = 0) -> None:
    """Look at a result as a user would: impossible metadata shows here."""
    if isinstance(value, (tuple, list)) and depth < 3:
        for item in value[:8]:
            touch(item, tensor, depth + 1)
    elif isinstance(value, dict) and depth < 3:
        touch(list(value.values()), tensor, depth + 1)
    elif isinstance(value, tensor):
        _touch_tensor(value)
    elif not callable(value) and not hasattr(value, "send"):
        repr(value) if not isinstance(value, range) and not hasattr(value, "__array__") else None


def _touch_tensor(value: Any) -> None:
    assert value.numel() >= 0 and len(value.shape) == len(value.stride()) == value.dim()
    assert all(size >= 0 for size in value.shape), value.shape
    # A size beside a zero may be any: a list of so many empty lists is nobody's fault.
    if value.numel() > SMALL or max(value.shape, default=0) > SMALL or value.device.type == "meta":
        str(value.shape), value.is_contiguous(), value[:0] if value.dim() else None
        return
    repr(value)
    value.detach().tolist()
    value.detach().clone()
    if value.requires_grad and value.grad_fn is not None and value.dtype.is_floating_point:
        value.sum().backward()


def execute(lines: list[str], names: dict[str, Any]) -> Outcome:
    """Run the statements and touch `r`; the outcome names the statement that raised."""
    space = dict(names)
    where = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for where in lines:
                exec(compile(where, "<fuzz>", "exec"), space)
            where = "touch(r)"
            touch(space.get("r"), space["torch"].Tensor)
        except Exception as error:
            return Outcome(type(error).__name__, _text(error), f"{where} @ {_place(error)}")
    return Outcome("ok")


def _text(error: BaseException) -> str:
    try:
        return str(error)[:400]
    except Exception as inner:
        return f"its text raises {type(inner).__name__}: {inner}"


def _place(error: BaseException) -> str:
    """The innermost line of the library: its file, line and text."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if "mindtorch_v2/" in frame.filename and not frame.filename.startswith(_HERE):
            return f"{frame.filename.rpartition('mindtorch_v2/')[2]}:{frame.lineno}: {frame.line}"
    return "?"


class Journal:
    """What is going on, for the parent: the running program in one file, outcomes in another."""

    def __init__(self, directory: Path) -> None:
        self.running = os.open(directory / "running", os.O_CREAT | os.O_RDWR)
        self.outcomes = open(directory / "outcomes", "a")  # lives as long as the process

    def begin(self, seed: int, about: str, text: str) -> None:
        record = json.dumps([seed, about, text]).encode()
        os.pwrite(self.running, len(record).to_bytes(4, "little") + record, 0)

    def end(self, seed: int, about: str, text: str, outcome: Outcome) -> None:
        self.outcomes.write(json.dumps([seed, about, text, *outcome]) + "\n")
        self.outcomes.flush()


def read_running(directory: Path) -> tuple[int, str, str] | None:
    try:
        data = (directory / "running").read_bytes()
        size = int.from_bytes(data[:4], "little")
        seed, about, text = json.loads(data[4 : 4 + size])
    except (FileNotFoundError, ValueError):
        return None
    return seed, about, text


def begin_process() -> None:
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    sys.setrecursionlimit(1000)
    gc.freeze()


def load_subject(with_npu: bool) -> Any:
    import mindtorch_v2 as torch
    from mindtorch_v2._api.lazy_tables import load_all

    torch.set_num_threads(1)
    torch.ones(1)
    load_all()
    if with_npu:
        torch.npu.use_emulator(devices=2, memory="256M")
        torch.ones(1, device="npu").cpu()
        torch.ones(1, device="npu:1").cpu()
    return torch


def load_oracle() -> Any:
    import torch

    torch.set_num_threads(1)
    return torch


def read_samples(path: Path, torch: Any) -> list[Sample]:
    """What was recorded of functions that are here too; nothing where nothing was recorded."""
    recorded = json.loads(path.read_text()) if path.exists() else []
    return [
        Sample(name, tuple(args), tuple((key, text) for key, text in named))
        for name, args, named in recorded
        if _has(torch, name)
    ]


def _has(value: Any, path: str) -> bool:
    for part in path.split("."):
        value = getattr(value, part, None)
    return value is not None


def work(directory: Path, seeds: list[int], devices: list[str], megabytes: int, skipped: set[str], every: bool) -> None:
    """Judge seeds but those skipped (`#seed`, or by what they are about); write findings down, or every outcome."""
    torch = load_subject("npu" in devices)
    targets = find(torch)
    samples = read_samples(directory.parent / "samples.json", torch)
    names = scope(torch)
    begin_process()
    limit_memory(megabytes)
    journal = Journal(directory)
    for seed in seeds:
        program = write(seed, targets, samples, devices)
        if program.about in skipped or f"#{seed}" in skipped:
            continue
        journal.begin(seed, program.about, program.text)
        torch.manual_seed(0)
        outcome = execute(list(program.lines), names)
        if every or reason(outcome, program.text) is not None:
            journal.end(seed, program.about, program.text, outcome)


def answer(directory: Path, megabytes: int, oracle: bool, with_npu: bool = False) -> None:
    """Run the programs that come in, JSON by line, in either library."""
    torch = load_oracle() if oracle else load_subject(with_npu)
    names = scope(torch)
    begin_process()
    limit_memory(megabytes)
    journal = Journal(directory)
    for line in sys.stdin:
        seed, about, text = json.loads(line)
        journal.begin(seed, about, text)
        torch.manual_seed(0)
        journal.end(seed, about, text, execute(text.split("\n"), names))
