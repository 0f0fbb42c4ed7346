"""How functions that make tensors are shown to handlers: by PyTorch's overloads, where one row serves several.

Invariant: what is shown says what the row was called with, so that running it gives the row's result.
"""

from __future__ import annotations

from typing import Any

from .._device import CPU
from .._dispatch.op import Op


def _overload(name: str, args: tuple[Any, ...], drawn: bool) -> tuple[str, tuple[Any, ...]]:
    """The overload and its positional arguments."""
    if name == "arange":
        start, end, step = args[:3]
        if type(step) is not int or step != 1:
            return "start_step", (start, end, step)
        return ("default", (end,)) if type(start) is int and start == 0 else ("start", (start, end))
    if name == "eye":
        return ("default", args[:1]) if args[0] == args[1] else ("m", args[:2])
    size = list(args[2])
    if args[0] == 0:
        return "generator" if drawn else "default", (args[1], size)
    return "low_generator" if drawn else "low", (args[0], args[1], size)


def shown(
    op: Op, func: Any, args: tuple[Any, ...], positional: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    """The overload and its positional arguments; `kwargs` gets what PyTorch's functions add."""
    if kwargs.get("pin_memory") is False and "device" not in kwargs:
        # Called by a public function, which always says where the tensor is to be.
        last = kwargs.pop("pin_memory")
        kwargs.update(device=CPU, pin_memory=last)
    drawn = "generator" in kwargs
    if op.name in ("arange", "eye", "randint"):
        name, positional = _overload(op.name, args, drawn)
        return getattr(func.overloadpacket, name), positional
    if drawn and "generator" in func.overloadpacket.overloads():
        return func.overloadpacket.generator, positional
    return func, positional
