"""Functions that keep zero: they are functions of the values.

Invariant: a COO tensor is made coalesced first, since f(a) + f(b) is not f(a + b); in place it must be already.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._dispatch import registry
from .._dispatch.op import Op, Overrider
from .coalesce import coalesced
from .parts import is_coo, parts, replace, with_values
from .refusals import refused
from .table import OF_VALUES, TABLE, Entry, serves

_BOTH = (
    "abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan isneginf isposinf log1p neg "
    "rad2deg relu round sgn sign signbit sin sinh sqrt tan tanh trunc"
).split()
_COO_ONLY = ["nan_to_num"]
_COMPRESSED_ONLY = "angle".split()
# Linear ones need no sum first.
_LINEAR = ("neg", "neg_")
_ALSO = {
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "absolute": "abs",
    "negative": "neg",
    "fix": "trunc",
}


def _flat(g: Any) -> Any:
    """A slope of zero: of the gradient's layout, without entries."""
    return torch.zeros_like(g)


def _log1p_slope(g: Any, self: Any) -> Any:
    return g * (self.to_dense() + 1).conj().reciprocal()


def _angle_slope(g: Any, self: Any) -> Any:
    """Real numbers lie in two directions; of complex entries the values alone count."""
    if not self._dtype.is_complex:
        return _flat(g)
    z, into = parts(self).values, parts(g).values
    found = torch.where(z == 0, 0, torch.complex(-z.imag * into, z.real * into) / (z.real.square() + z.imag.square()))
    return with_values(self, found)


# Derivatives whose dense formulas would mix layouts.
_SLOPES: dict[str, dict[Any, Any]] = {
    **{name: {"self": _flat} for name in "ceil floor round sign trunc".split()},
    "log1p": {"self": _log1p_slope},
    "angle": {"self": _angle_slope},
}


def _unary(layouts: str) -> Overrider:
    """The dense operator on the values."""

    def run(op: Op, args: tuple[Any, ...], keys: int) -> Any:
        t, rest = args[0], args[1:]
        if layouts == ("compressed" if is_coo(t) else "coo"):
            raise refused(op.name, [t])
        if not op.mutates:
            source = coalesced(t) if is_coo(t) and op.name not in _LINEAR else t
            return with_values(source, op.call((parts(source).values, *rest)))
        if is_coo(t) and not parts(t).coalesced and op.name not in _LINEAR:
            raise RuntimeError(f"{op.title()} requires coalesced input")
        op.call((parts(t).values, *rest))
        return replace(t, t)

    return Overrider(run)


def _register() -> None:
    for names, layouts in ((_BOTH, "both"), (_COO_ONLY, "coo"), (_COMPRESSED_ONLY, "compressed")):
        OF_VALUES.update(names)
        for name in names:
            base, dot, overload = name.partition(".")
            for form in (name, f"{base}_{dot}{overload}"):
                TABLE[form] = Entry(_unary(layouts), _SLOPES.get(name), False)


def _same(op: Op, args: tuple[Any, ...], keys: int) -> Any:
    """Composites that are another name of one operator."""
    whole = op.composite
    if whole is None:
        # The in-place form of another name.
        assert op.functional is not None
        return registry.get(f"{op.functional.name}_").call(args)
    return whole.run(op, args, keys)


def _conj(op: Op, args: tuple[Any, ...], keys: int) -> Any:
    """Conjugation of the values; a real tensor is its own conjugate."""
    t = args[0]
    if not t._dtype.is_complex:
        return t
    from .rows import CONJ

    made = CONJ.call((t,))
    return replace(t, made) if op.mutates else made


def _never(op: Op, args: tuple[Any, ...], keys: int) -> Any:
    """A sparse tensor is not lazy: its values are computed at once."""
    return False


def _itself(op: Op, args: tuple[Any, ...], keys: int) -> Any:
    return args[0]


_NAMED = (
    "true_divide true_divide_ divide divide_ multiply multiply_ subtract subtract_ movedim.int movedim.intlist "
    "moveaxis.int moveaxis.intlist swapaxes swapdims adjoint"
).split()


def _aliases() -> None:
    for name in (*_ALSO, *(f"{name}_" for name in _ALSO), *_NAMED):
        TABLE[name] = Entry(Overrider(_same), None, True)
    for name in ("conj", "conj_physical", "conj_physical_"):
        TABLE[name] = Entry(Overrider(_conj), None, True)
    for name in ("resolve_conj", "resolve_neg"):
        TABLE[name] = Entry(Overrider(_itself), None, True)
    for name in ("is_conj", "is_neg", "_is_zerotensor"):
        TABLE[name] = Entry(Overrider(_never), None, True)


@serves("threshold_backward")
def threshold_backward(grad_output: Any, self: Any, threshold: Any) -> Any:
    """The derivative of `relu`: both have the pattern of the input."""
    same, own = (coalesced(t) if is_coo(t) else t for t in (grad_output, self))
    return with_values(own, torch.where(parts(own).values > threshold, parts(same).values, 0))


_register()
_aliases()
