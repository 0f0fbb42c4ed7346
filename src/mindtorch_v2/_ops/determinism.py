"""Deterministic mode: what `torch.use_deterministic_algorithms` switches, for the whole process.

Invariant: with the mode off no common call pays for it. Switched on, the kernels of the operators that make
uninitialised memory are wrapped, and fill it; the rules of those whose results may vary refuse or warn.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._dispatch import registry
from .._dispatch.keys import CPU, NPU
from .._dispatch.op import RESOLVERS, Kernel, Op, Overrider, plain_name
from .._dtype import bool as bool_
from .._tensor_base import numel
from .._warn import warn

# Operators that answer with memory as it is.
_EMPTY = ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided")

class _State:
    """The switches."""

    def __init__(self) -> None:
        self.on = False
        self.warn_only = False
        self.fill = True
        # What was replaced: operator, bit of the device, the kernel it had registered.
        self.replaced: list[tuple[Op, int, Kernel | None]] = []


STATE = _State()


def filled(t: Any) -> Any:
    """A tensor of uninitialised memory with a value in every element that is easily recognised."""
    dt = t._dtype
    if numel(t):
        if dt.is_complex:
            t.fill_(complex(math.nan, 0.0))
        elif dt.is_floating_point:
            t.fill_(math.nan)
        elif dt is bool_:
            t.fill_(True)
        else:
            unsigned = dt.name.startswith("u")
            t.fill_((1 << (8 * dt.itemsize - (0 if unsigned else 1))) - 1)
    return t


def fill_grown(t: Any, before: int) -> None:
    """After `resize_`: fill what the storage has beyond `before` bytes, if the mode asks for it."""
    if STATE.on and STATE.fill and t._device.type != "meta":
        size = t._dtype.itemsize
        old, new = before // size, t.untyped_storage().nbytes() // size
        if new > old:
            filled(t.detach().as_strided((new - old,), (1,), old))


def alert(name: str, t: Any) -> None:
    """Refuse an operator that writes places in any order, or warn of it; called by its rule."""
    if not STATE.on or t._device.type == "meta":
        return
    text = f"{name} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True"
    if STATE.warn_only:
        warn(f"{text}, warn_only=True)'. You can file an issue at https://github.com/pytorch/pytorch/issues to help us "
             "prioritize adding deterministic support for this operation.")
        return
    raise RuntimeError(
        f"{text})'. You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, "
        "if that's acceptable for your application. You can also file an issue at "
        "https://github.com/pytorch/pytorch/issues to help us prioritize adding deterministic support for this "
        "operation.")


def _replace(o: Op, make: Callable[[Kernel], Any]) -> None:
    for bit in (int(CPU), int(NPU)):
        had = o.kernels.get(bit)
        plain = had if had is not None else RESOLVERS.derived(o, bit)
        if plain is not None:
            STATE.replaced.append((o, bit, had))
            o.kernels[bit] = Overrider(make(plain))
    o.forget()


def _fills(plain: Kernel) -> Any:
    def run(op: Op, args: tuple[Any, ...], keys: int) -> Any:
        made = plain.run(op, args, keys)
        return filled(made) if STATE.fill else made

    return run


def _switch(on: bool) -> None:
    if on == STATE.on:
        return
    STATE.on = on
    if on:
        for name in _EMPTY:
            _replace(registry.get(name), _fills)
        return
    for o, bit, had in STATE.replaced:
        if had is None:
            o.kernels.pop(bit, None)
        else:
            o.kernels[bit] = had
        o.forget()
    STATE.replaced.clear()


# -- the public functions -----------------------------------------------------------------------------------------
def use_deterministic_algorithms(mode: Any, *, warn_only: Any = False) -> None:
    """Operators give the same results for the same inputs, or refuse (with `warn_only`: warn)."""
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            where = "(position 1) " if name == "mode" else ""
            raise TypeError(f"_set_deterministic_algorithms(): argument '{name}' {where}must be bool, not "
                            f"{plain_name(value)}")
    STATE.warn_only = warn_only
    _switch(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic mode is on."""
    return STATE.on


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether what is not deterministic is warned of and not refused."""
    return STATE.warn_only


_MODES = {"default": 0, "warn": 1, "error": 2}


def set_deterministic_debug_mode(debug_mode: Any) -> None:
    """Deterministic mode by one word or number: "default" or 0, "warn" or 1, "error" or 2."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                               f"{debug_mode}")
        debug_mode = _MODES[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """0: off, 1: warns, 2: refuses."""
    return 0 if not STATE.on else 1 if STATE.warn_only else 2
