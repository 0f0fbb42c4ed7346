"""PyTorch's names in pickles: what we write under them, and what they mean here.

Invariant: a pickle that leaves names nothing of this package, and `torch.*` in a pickle that comes in means this
package, whether or not PyTorch is installed.
"""

from __future__ import annotations

import pickletools
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

_HERE = "mindtorch_v2"
# Our private modules whose names PyTorch has elsewhere than in the public module around them, or in `torch` itself.
_MODULES = {
    "_utils": "torch._utils",
    "_tensor": "torch._tensor",
    "_C": "torch._C",
    "_overrides": "torch.overrides",
    "_autograd.hooks": "torch.utils.hooks",
    "_autograd.function": "torch.autograd.function",
    "nested._internal.nested_tensor": "torch.nested._internal.nested_tensor",
    "nn.modules._hooks": "torch.nn.modules.module",
}
# Single names, ours to PyTorch's.
_NAMES = {
    ("_random", "Generator"): ("torch._C", "Generator"),
    ("_utils", "_rebuild_from_type_v2"): ("torch._tensor", "_rebuild_from_type_v2"),
    ("_utils", "_rebuild_from_type"): ("torch._tensor", "_rebuild_from_type"),
    ("_layout", "_get_layout"): ("torch.serialization", "_get_layout"),
    ("_autograd.hooks", "HookDict"): ("collections", "OrderedDict"),
}
_BACK = {theirs: (f"{_HERE}.{ours[0]}", ours[1]) for ours, theirs in _NAMES.items() if theirs[0] != "collections"}
# Opcodes of protocols 2 and 3 without an argument or with one of fixed length.
_FIXED = re.compile(
    rb"(?:[()\]}aesut\x85\x86\x87N\x88\x89Rb\x81Q012o]|[\x80Kqh\x82].|[M\x83].{2}|[Jrj\x84].{4}|G.{8})*", re.DOTALL
)


@cache
def theirs(module: str, name: str) -> tuple[str, str]:
    """PyTorch's name for an object that pickles as `module.name` here. What only this package has keeps its place."""
    if module != _HERE and not module.startswith(_HERE + "."):
        # With the name `torch`, our modules bear PyTorch's already.
        return _NAMES.get((module.removeprefix("torch."), name), (module, name))
    inside = module[len(_HERE) + 1 :]
    single = _NAMES.get((inside, name))
    if single is not None:
        return single
    public = _MODULES.get(inside)
    if public is None:
        parts = inside.split(".")
        hidden = next((i for i, part in enumerate(parts) if part.startswith("_")), len(parts))
        public = ".".join(["torch", *(part for part in parts[:hidden] if part)])
    try:
        find(public, name)
    except (ImportError, AttributeError):
        return f"torch.{inside}", name
    return public, name


def find(module: str, name: str) -> Any:
    """What a name of PyTorch's means here. Raises what an import would."""
    if (module, name) in _BACK:
        module, name = _BACK[module, name]
    elif (module, name) in (("torch._C", "_VariableFunctionsClass"), ("torch._C", "_VariableFunctions")):
        # PyTorch pickles `torch.relu` as an attribute of this class.
        return import_module(_HERE)
    elif (module, name) in (("torch._C", "TensorBase"), ("torch._C", "_TensorBase")):
        module, name = _HERE, "Tensor"
    else:
        # A module that was renamed between releases.
        module = "torch._tensor" if module == "torch.tensor" else module
        module = _HERE + module[len("torch") :]
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def is_theirs(module: str) -> bool:
    """Whether a module of this name is PyTorch's."""
    return module == "torch" or module.startswith("torch.")


def renamed(data: bytes) -> bytes:
    """A pickle with PyTorch's names in place of ours."""
    if _HERE.encode() not in data:
        return data
    pieces: list[bytes] = []
    done = 0
    for start, end, module, name, drop in _globals(data):
        new = theirs(module, name)
        if module and new == (module, name):
            continue
        pieces.append(data[done:start])
        if module:
            pieces.append(drop + "c{}\n{}\n".format(*new).encode())
        done = end
    pieces.append(data[done:])
    return b"".join(pieces)


def _globals(data: bytes) -> Iterator[tuple[int, int, str, str, bytes]]:
    """Where a pickle names something: begin, end, module, name and what must stand in front of another name for it.
    What has no module is to be left out."""
    if data[:1] == b"\x80" and data[1] in (2, 3):
        return _globals_of_two(data)
    return _globals_of_others(data)


def _globals_of_two(data: bytes) -> Iterator[tuple[int, int, str, str, bytes]]:
    """Of protocols 2 and 3, where GLOBAL stands by itself; other opcodes are passed over many at a time."""
    at, end = 0, len(data)
    while True:
        found = _FIXED.match(data, at)
        at = found.end() if found is not None else at
        if at >= end or data[at] == 0x2E:  # STOP
            return
        code = data[at]
        if code == 0x63:  # GLOBAL
            first = data.index(b"\n", at)
            second = data.index(b"\n", first + 1)
            yield at, second + 1, data[at + 1 : first].decode(), data[first + 1 : second].decode(), b""
            at = second + 1
        elif code in b"XBT\x8b":  # BINUNICODE, BINBYTES, BINSTRING, LONG4
            at += 5 + int.from_bytes(data[at + 1 : at + 5], "little")
        elif code in b"CU\x8a":  # SHORT_BINBYTES, SHORT_BINSTRING, LONG1
            at += 2 + data[at + 1]
        else:
            raise ValueError(f"opcode {code:#x} in a pickle of protocol {data[1]}")


def _globals_of_others(data: bytes) -> Iterator[tuple[int, int, str, str, bytes]]:
    """Of any protocol. STACK_GLOBAL becomes a GLOBAL in front of which its two strings are thrown away, so that the
    numbers in the memo stay; frames, whose lengths would no longer be true, are left out."""
    texts: dict[int, str] = {}
    last: list[str] = ["", ""]
    memoized = 0
    opcodes: list[Any] = list(pickletools.genops(data))
    for (opcode, argument, at), after in zip(opcodes, [*(p for _, _, p in opcodes[1:]), len(data)]):
        kind = opcode.name
        if kind == "GLOBAL":
            module, _, name = argument.partition(" ")
            yield at, after, module, name, b""
        elif kind == "FRAME":
            yield at, after, "", "", b""
        elif kind == "STACK_GLOBAL":
            yield at, after, last[0], last[1], b"00"
        elif kind.endswith("UNICODE"):
            last = [last[1], argument]
        elif kind in ("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"):
            texts[memoized if kind == "MEMOIZE" else argument] = last[1]
            memoized += 1
        elif kind in ("GET", "BINGET", "LONG_BINGET"):
            last = [last[1], texts.get(argument, "")]
