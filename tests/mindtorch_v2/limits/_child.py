"""Runs hostile calls on one library in a process of their own, and says what each did.

Invariant: one JSON line per call, written before the next one begins, so that a crash names the call it came from. The
process may not use much more memory than a few tensors need: what is refused must be refused before it is built.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import resource
import signal
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

MEMORY = 6 << 30
SECONDS = 20


class Hang(BaseException):
    """A call that did not answer in time."""


def late(_signal: int, _frame: FrameType | None) -> None:
    raise Hang


def shown(value: Any) -> str:
    """A result in words that do not depend on the library."""
    if hasattr(value, "layout") and hasattr(value, "untyped_storage"):
        if value.is_nested or str(value.layout) != "torch.strided":
            return f"{str(value.dtype).rpartition('.')[2]} {value.layout} of {value.dim()} dimensions"
        text = f"{str(value.dtype).rpartition('.')[2]} {list(value.shape)} {list(value.stride())}"
        if value.device.type == "meta" or value.numel() > 20:
            return text
        return f"{text} {value.tolist()}"
    if isinstance(value, (tuple, list)) and len(value) > 8:
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, (tuple, list)):
        inside = ", ".join(map(shown, value))
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    return re.sub("mindtorch_v2", "torch", " ".join(repr(value).split()))  # an answer is one line


def reworded(error: BaseException) -> str:
    """The first line of a message; the allocator's own source line is nobody's business."""
    text = str(error).strip().split("\n")[0]
    text = re.sub(r"^\[enforce fail at [^\]]*\] err == 0\. ", "", text)
    # PyTorch goes on with where it was raised, in lines that are not looked at, and closes the quotation there.
    text = re.sub(r'(Overflow when unpacking long long)"$', r"\1", text)
    text = re.sub(r"mindtorch_v2", "torch", text)
    return f"{type(error).__name__}: {text}"


def said(call: Callable[[], Any]) -> list[str]:
    """The warnings of a call, without the place in PyTorch's sources."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [f"{w.category.__name__}: {str(w.message).partition(' (Triggered')[0]}" for w in caught]


def attempt(torch: Any, source: str) -> str:
    names: dict[str, Any] = {
        "torch": torch,
        "F": torch.nn.functional,
        "nn": torch.nn,
        "nan": float("nan"),
        "inf": float("inf"),
    }
    names["said"] = said
    names["one"] = torch.ones(1)
    names["t"] = torch.arange(6.0).reshape(2, 3)
    names["vast"] = torch.zeros(1).expand(2**62)
    tree = ast.parse(source)
    last = tree.body.pop()
    assert isinstance(last, ast.Expr)
    signal.alarm(SECONDS)
    try:
        exec(compile(tree, "<call>", "exec"), names)
        return shown(eval(compile(ast.Expression(last.value), "<call>", "eval"), names))
    except Hang:
        return "no answer"
    except BaseException as error:  # every error is an answer
        return reworded(error)
    finally:
        signal.alarm(0)


def main(library: str, device: str) -> None:
    torch = importlib.import_module(library)
    calls = json.load(sys.stdin)
    if device == "npu":
        torch.npu.use_emulator()
        torch.zeros(1, device="npu")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    used = int(re.findall(r"VmSize:\s+(\d+)", open("/proc/self/status").read())[0]) << 10
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    signal.signal(signal.SIGALRM, late)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libraries below print to it
    for source in calls:
        if device == "cpu":
            answer = attempt(torch, source)
        else:
            with torch.device(device):
                answer = attempt(torch, source)
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
