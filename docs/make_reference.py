"""Makes the API reference from rows and docstrings: a page for each public module (`make docs`).

Invariant: a page says what `help()` says; nothing about a single name stands here.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch

# Module, and what its page is about.
MODULES = {
    "torch": "tensors, factories, and every operator that is a function of `torch`",
    "torch.Tensor": "methods of tensors",
    "torch.nn": "layers, containers, losses",
    "torch.nn.functional": "layers as functions",
    "torch.nn.init": "first values of parameters",
    "torch.nn.utils": "clipping, parametrizations, packed sequences",
    "torch.optim": "optimizers",
    "torch.optim.lr_scheduler": "schedules of learning rates",
    "torch.autograd": "gradients",
    "torch.autograd.graph": "the recorded graph: hooks, saved values",
    "torch.func": "functional transforms",
    "torch.linalg": "linear algebra",
    "torch.fft": "Fourier transforms",
    "torch.special": "special functions",
    "torch.distributions": "distributions of probability",
    "torch.amp": "autocast and gradient scaling",
    "torch.utils.data": "datasets, samplers, loaders",
    "torch.utils.checkpoint": "recomputing instead of keeping",
    "torch.serialization": "checkpoints",
    "torch.multiprocessing": "tensors between processes",
    "torch.profiler": "where the time goes",
    "torch.npu": "Ascend devices: streams, events, memory",
    "torch.accelerator": "whatever accelerator there is",
    "torch.library": "operators from outside",
    "torch.testing": "comparing tensors in tests",
}
_SIGNATURE = re.compile(r"^[\w.]+\(.*\)( -> .+)?$")


def subject(module: str) -> Any:
    if module == "torch":
        return torch
    path = module.removeprefix("torch.")
    if path == "Tensor":
        return torch.Tensor
    return importlib.import_module("mindtorch_v2." + path)


def names(module: str, thing: Any) -> list[str]:
    """Public functions and classes of a module, in the order of the alphabet."""
    listed = dir(thing) if module in ("torch", "torch.Tensor") else getattr(thing, "__all__", None) or dir(thing)
    found = []
    for name in sorted(set(listed), key=lambda n: (n.lower(), n)):
        value = getattr(thing, name, None)
        if name.startswith("_") or inspect.ismodule(value) or not callable(value):
            continue
        home = str(getattr(value, "__module__", ""))
        described = inspect.isclass(value) and module != "torch" and getattr(torch, name, None) is value
        if ("mindtorch_v2" in home or home.startswith("torch")) and not described:
            found.append(name)
    return found


def plain(signature: str) -> str:
    """A signature without annotations' quotes and without addresses of objects."""
    signature = re.sub(r"<module '([\w.]+)'[^>]*>", r"\1", signature)
    signature = re.sub(r"<(?:function|class|built-in function) '?([\w.]+)'?[^>]*>", r"\1", signature)
    signature = re.sub(r"<[\w.]+ object at 0x\w+>", "...", signature)
    return re.sub(r": '([^']*)'", r": \1", signature).replace(" -> 'None'", "").replace("\n", " ")


def signatures(name: str, thing: Any, said: list[str]) -> list[str]:
    """As the docstring gives them, or as Python sees them; never with the name of a module in front."""
    found = []
    while said and _SIGNATURE.match(said[0]):
        given = said.pop(0)
        found.append(name + given[given.index("(") :])
    if found:
        return found
    try:
        return [name + plain(str(inspect.signature(thing)))]
    except (TypeError, ValueError):
        return [name + "(...)"]


def body(said: list[str]) -> list[str]:
    """A docstring's text as Markdown: arguments become a list, the lines about forms and devices small print."""
    made: list[str] = []
    small: list[str] = []
    for line in said:
        argument = re.match(r"^    (\w+) \((.*?)\)(: .*)?$", line)
        if argument:
            made.append(f"- **{argument[1]}** (`{argument[2]}`){argument[3] or ''}")
        elif line == "Args:":
            made += ["", ""]
        elif line.startswith(("Other forms: ", "Devices: ")):
            small.append(re.sub(r"([_*])", r"\\\1", line.split(";")[0]))
        else:
            made.append(line.replace("<", "&lt;"))
    return [*made, "", f"*{'. '.join(small)}.*"] if small else made


def entry(module: str, name: str, thing: Any) -> str:
    said = (inspect.getdoc(thing) if not inspect.isclass(thing) else thing.__dict__.get("__doc__") or "") or ""
    lines = inspect.cleandoc(said).splitlines()
    kind = "class" if inspect.isclass(thing) else "method" if module == "torch.Tensor" else "function"
    shown = signatures(name, thing, lines)
    first, *more = [f"{module}.{s}" for s in shown]
    head = f"::::{{py:{kind}}} {first}\n" + "".join(f"           {s}\n" for s in more)
    return head + "\n" + "\n".join(body(lines)).strip() + "\n::::\n"


def page(module: str) -> tuple[str, list[str]]:
    """The Markdown of a module's page, and the names it describes."""
    thing = subject(module)
    every = names(module, thing)
    about = MODULES[module]
    parts = [f"# {module}\n\n{about[0].upper() + about[1:]}. {len(every)} names.\n"]
    parts += [entry(module, name, getattr(thing, name)) for name in every]
    return "\n".join(parts), every


def write(folder: Path) -> dict[str, str]:
    """All pages. Gives the address of every name, `torch.add` for one."""
    folder.mkdir(parents=True, exist_ok=True)
    addresses: dict[str, str] = {}
    rows = [
        "# API reference\n",
        "Names and signatures are PyTorch's; every page is made from the tables and docstrings.\n",
    ]
    rows += ["| module | |", "| --- | --- |"]
    for module, about in MODULES.items():
        text, every = page(module)
        (folder / f"{module}.md").write_text(text)
        addresses |= {f"{module}.{name}": f"reference/{module}.html#{module}.{name}" for name in every}
        rows.append(f"| [`{module}`]({module}.md) | {about} |")
    tree = "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(MODULES) + "\n```\n"
    (folder / "index.md").write_text("\n".join(rows) + tree)
    return addresses


def address(addresses: dict[str, str], name: str) -> str:
    """Where an operator is described, by the name of its row; empty where nowhere."""
    for module in ("linalg", "fft", "special"):
        if name.startswith(module + "_"):
            return addresses.get(f"torch.{module}.{name[len(module) + 1 :]}", "")
    for module in ("torch", "torch.nn.functional", "torch.Tensor"):
        if f"{module}.{name}" in addresses:
            return addresses[f"{module}.{name}"]
    return ""
