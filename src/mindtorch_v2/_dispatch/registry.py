"""The one registry: operators by name, and each operator's kernels by device.

Invariant: registering anything for an operator makes it forget every remembered resolution.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

from .keys import META, add_device, device_of_bit
from .op import RESOLVERS, FnKernel, Kernel, Op, Rule

OPS: dict[str, Op] = {}
# Those of one title, the name a user calls, in the order of declaration.
TITLES: dict[str, list[Op]] = {}


class Late:
    """What declares operators that nobody has asked for yet: given a name, it loads the table with that row. While a
    table is loaded, `declared` keeps which operator came from which module."""

    def __init__(self) -> None:
        self.bring: Callable[[str], None] | None = None
        self.declared: list[tuple[Op, str]] | None = None


LATE: Final = Late()


def find(name: str) -> Op | None:
    """The operator of that name, whose table is loaded if need be; None where there is none."""
    found = OPS.get(name)
    if found is None and LATE.bring is not None:
        LATE.bring(name)
        found = OPS.get(name)
    return found


def declare(op: Op) -> Op:
    """Add an operator; a name is declared once."""
    if op.name in OPS:
        raise ValueError(f"operator '{op.name}' is declared twice")
    if LATE.declared is not None:
        LATE.declared.append((op, _loading_module()))
    OPS[op.name] = op
    TITLES.setdefault(op.title(), []).append(op)
    return op


def _loading_module() -> str:
    """The module whose own lines are running, or the last one that called any of them."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))


def forget_broken(declared: list[tuple[Op, str]]) -> None:
    """Take back what modules declared that were not loaded to their end: they will be loaded again."""
    for op, module in declared:
        if module not in sys.modules and OPS.get(op.name) is op:
            del OPS[op.name]
            if op in TITLES.get(op.title(), ()):
                TITLES[op.title()].remove(op)


def get(name: str) -> Op:
    """The operator of that name."""
    found = find(name)
    if found is None:
        raise KeyError(f"no operator is called '{name}'")
    return found


def overloads(title: str) -> list[Op]:
    """What a public name stands for: the rows of that title but their `out=` forms, in the order of declaration."""
    return [op for op in TITLES.get(title, ()) if op.row is not None and not op.is_out]


def names() -> list[str]:
    return sorted(OPS)


def ops() -> Iterator[Op]:
    return iter(OPS.values())


class Bound:
    """A registered kernel as a callable of the schema's arguments; registering it puts the kernel itself back."""

    def __init__(self, op: Op, bit: int, kernel: Kernel) -> None:
        self.op = op
        self.bit = bit
        self.kernel = kernel

    def __call__(self, *args: Any) -> Any:
        return self.kernel.run(self.op, args, self.bit)


def kernels(name: str) -> dict[str, Any]:
    """The kernels of an operator by device type."""
    out: dict[str, Any] = {}
    op = get(name)
    for bit, kernel in op.kernels.items():
        if bit & (bit - 1) == 0:
            out[device_of_bit(bit)] = kernel.fn if isinstance(kernel, FnKernel) else Bound(op, bit, kernel)
    if "meta" not in out and op.rule is not None:
        # The meta device registers nothing: the rule is its kernel.
        out["meta"] = Bound(op, int(META), RESOLVERS.derived(op, int(META)))
    return out


def register(name: str, device: str, kernel: Any, meta: Any = None) -> Op:
    """Serve operator `name` on `device` with `kernel`: a callable of the schema's arguments, or a Kernel.

    `meta` is the shape rule, a callable of the same arguments; needed only where the operator has none yet. A name no
    row declares becomes an operator whose arguments are the kernel's parameters.
    """
    op = find(name)
    if op is None:
        op = declare(_from_signature(name, kernel))
    if isinstance(kernel, Bound):
        kernel = kernel.kernel
    op.kernels[add_device(device)] = kernel if isinstance(kernel, Kernel) else FnKernel(kernel)
    if meta is not None:
        op.rule = as_rule(meta)
    op.forget()
    return op


def as_rule(meta: Any) -> Rule:
    from .._ops.rules.base import PyRule

    return meta if isinstance(meta, Rule) else PyRule(meta)


def _from_signature(name: str, kernel: Any) -> Op:
    import inspect  # slow to import, and only needed for an operator without a row

    parameters = [
        p
        for p in inspect.signature(kernel).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    text = ", ".join("Tensor? " + p.name for p in parameters)
    op = Op(name, f"{name}({text}) -> Tensor")
    op.numbers = (1 << len(parameters)) - 1
    return op
