"""What is public in a module of PyTorch: the names `test_namespace` asks for.

Invariant: a name counts that the module lists in `__all__`, or that has no underscore and is no import from elsewhere.
"""

from __future__ import annotations

import functools
import importlib
import json
import subprocess
import sys
from types import ModuleType
from typing import Any

MODULES = (
    *("", "accelerator", "amp", "autograd", "autograd.anomaly_mode", "autograd.forward_ad", "autograd.function"),
    *("autograd.functional", "autograd.grad_mode", "autograd.gradcheck", "autograd.graph", "autograd.profiler"),
    *(
        "autograd.profiler_legacy",
        "autograd.profiler_util",
        "profiler.itt",
        "profiler.profiler",
        "autograd.variable",
        "backends",
        "compiler",
        "cpu",
        "cuda",
        "cuda.amp",
        "distributed",
        "distributions",
        "fft",
    ),
    *("func", "functional", "futures", "fx", "hub", "jit", "library", "linalg", "masked", "monitor", "mps", "mtia"),
    *("multiprocessing", "nested", "nn", "nn.attention", "nn.functional", "nn.init", "nn.modules", "nn.parallel"),
    *("nn.parameter", "nn.utils", "nn.utils.parametrizations", "nn.utils.parametrize", "nn.utils.prune"),
    *("nn.utils.rnn", "nn.utils.stateless", "onnx", "optim", "optim.lr_scheduler", "optim.swa_utils", "overrides"),
    *("package", "profiler", "quasirandom", "random", "serialization", "signal", "signal.windows", "sparse", "special"),
    *("storage", "testing", "types", "utils", "utils._pytree", "utils.backend_registration", "utils.benchmark"),
    *("utils.checkpoint", "utils.collect_env", "utils.cpp_extension", "utils.data", "utils.deterministic"),
    *("utils.dlpack", "utils.flop_counter", "utils.hooks", "utils.mobile_optimizer", "utils.model_zoo"),
    *("utils.module_tracker", "utils.weak", "version", "xpu"),
)


def module(library: str, name: str) -> ModuleType | None:
    """A module by its name below the library's; None where there is none."""
    try:
        return importlib.import_module(f"{library}.{name}" if name else library)
    except ImportError:
        return None


def _own(name: str, value: Any) -> bool:
    """Whether a name without underscore belongs to PyTorch, and is no import that happens to show."""
    if isinstance(value, ModuleType):
        return value.__name__.startswith("torch.") and value.__name__.endswith("." + name)
    home = getattr(value, "__module__", None)
    if not isinstance(home, str):
        return True
    return home.split(".")[0] == "torch"


def public(owner: Any) -> set[str]:
    """Public names of a module or class of PyTorch."""
    listed = getattr(owner, "__all__", None)
    shown = {n for n in dir(owner) if not n.startswith("_")}
    if isinstance(owner, type):
        return shown
    if listed is not None and owner.__name__ != "torch":
        return {n for n in listed if hasattr(owner, n)}  # torch.sparse lists `solve`, and does not have it
    return {n for n in shown if _own(n, getattr(owner, n, None))} - {"torch", "file_baton"}


@functools.cache
def shown_by_pytorch() -> dict[str, list[str]]:
    """Public names of each module of PyTorch, asked of a process in which nothing but these modules was imported: what
    other code imports shows as well."""
    code = f"import json; from {__name__} import *; print(json.dumps(names_by_module()))"
    said = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = json.loads(said.stdout)
    return found


def names_by_module() -> dict[str, list[str]]:
    found = ((name, module("torch", name)) for name in MODULES)
    return {name: sorted(public(theirs)) for name, theirs in found if theirs is not None}
