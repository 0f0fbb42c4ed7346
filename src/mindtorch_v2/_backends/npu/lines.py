"""The vocabulary of NPU lines: which vendor function serves which row.

    npu("addcmul", "aclnnAddcmul(self, tensor1, tensor2, value, out)")

Left the row's name; right the vendor call with the row's argument names in the vendor's order. What is passed how
(tensor, scalar, array, C width) is taken from `table.py`. Results are `out`, or `out0, out1, ...` for several; they are
allocated by the row's rule, and one without elements is null where the vendor lets it be. Further words:

literals        1  0.5  -1  true  false  none  "text"
helpers         dims(self, dim): a function of the names in it, of `helpers.py` or marked @helper in a family's file
numbers=        dict(other="aclnnAdds(self, other, alpha, out)"): the call when that argument is a Python number (or a
                0-dim CPU tensor). Without one the number becomes a 0-dim tensor on the device.
cast=           names of operands that are cast to the dtype the rule computes in; default: the operands of a pointwise
                rule, else none. Operands that are not cast keep their dtype, widened if the vendor does not accept it.
                Results that the vendor does not write in the row's dtype are cast.
expand=         names of operands that the vendor wants in the result's shape
starts=         the operand whose values the result has before the call: "aclnnInplaceX(out, index, value)" then changes
                some of them. Nothing is called when another operand has no element.
empty=          a number: what the results hold when an operand has no element (default: the vendor decides; results
                without elements are never launched for).
inplace=        the call that serves `op_`, such as "aclnnInplaceX(self, mask, value)", or a dict by argument as in
                numbers= ("" for the main call), or False. By default aclnnInplaceX if it has the parameters of aclnnX
                without the result. Without one, a temporary and a copy.
otherwise=      a kernel for dtypes that the vendor function neither accepts nor can widen; default: `absent`, or the
                row's own composition of other operators, if it has one, else an error that names what is accepted.
absent=         a kernel for chips and libraries that lack the function (`quirks.py` says which chips)

Instead of a text the right side may be
    parts(fn)           fn(*args) in terms of other operators, once the rule has agreed
    into(fn)            fn(out, *args), or fn((out0, ...), *args), writes into the rule's results: several launches
    choose("mode", {None: line(...), "floor": line(...)})   by an argument's value
    makes(fn)           fn(*args) without asking a rule: shapes that depend on data
    fused(("aclnnX",), fits, fn, back)    for a composite: fn(*args) where fits(*args). Without `back` when nobody
                        records gradients; with it fn(*args) gives (result, tensors that back needs) and
                        back(grad, needs, args, kept) the gradients of the arguments; saves=("x",): the tensors among
                        args that it reads, if not all of them (`_backends/recorded.py`)
    listed(call, what)  for an operator over lists (`lists.py`)
and `missing("op", "reason")` says that NPUs have no such operator. In `parts` and `into`, call other rows as methods,
or a vendor function with `call("aclnnX", "op", value, value, ...)`.

Invariant: a line names a row, a vendor function of the table and arguments of the row, or loading it fails and says
which names exist. A row without a line is in `holes()`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..._dispatch import registry
from ..._dispatch.keys import AUTOGRAD, NPU
from ..._dispatch.op import FnKernel, Kernel, Op, PartsKernel, Rule
from ..._ops.rules.dtype_checks import Choose
from ..._ops.rules.pointwise import Pointwise
from ..common.kernels import IntoKernel, derived
from ..recorded import Whole, recorder
from . import helpers, launch, quirks, table
from .kernels import EXPRESSION, LITERAL, RESULT, ByArgument, ByFunction, Call, Expression, Line, Missing
from .lists import ListCall, ListKernel

# Those of common operators are compiled; families add their own.
HELPERS: dict[str, Callable[..., Any]] = {
    "dims": helpers.dims,
    "wrapped": helpers.wrapped,
    "keep": helpers.keep,
    "dtype": helpers.dtype_of,
    "cube": helpers.cube,
    "cube_of_convolution": helpers.cube_of_convolution,
    "reduction_of": helpers.reduction_of,
    "reduction_of_rows": helpers.reduction_of_rows,
    "joined": helpers.joined,
    "stacked": helpers.stacked,
}
_TOKEN = re.compile(r'\s*("[^"]*"|[A-Za-z_]\w*|-?\d+\.\d*(?:e-?\d+)?|-?\d+|[(),])')
_WORDS: dict[str, Any] = {"true": True, "false": False, "none": None}


def helper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function usable in lines under its own name."""
    HELPERS[fn.__name__] = fn
    return fn


# -- reading a call -------------------------------------------------------------------------------------------------
class Reader:
    """Reads `aclnnX(a, helper(b, 1), out)` for one row."""

    def __init__(self, text: str, op: Op) -> None:
        self.text, self.op = text, op
        self.tokens = self._split(text)
        self.at = 0
        count = len(op.schema.returns)
        self.results = ["out"] if count == 1 else [f"out{i}" for i in range(count)]

    def _split(self, text: str) -> list[str]:
        tokens, at = [], 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                raise self.error(f"cannot read {text[at:]!r}")
            tokens.append(found.group(1))
            at = found.end()
        return tokens

    def error(self, what: str) -> ValueError:
        return ValueError(f"NPU line of '{self.op.name}', {self.text!r}: {what}")

    def next(self) -> str:
        if self.at >= len(self.tokens):
            raise self.error("unexpected end")
        self.at += 1
        return self.tokens[self.at - 1]

    def call(self) -> tuple[str, list[tuple[int, Any]]]:
        """The function's name and its arguments as (source, literal or expression)."""
        name = self.next()
        items = self.items()
        if self.at != len(self.tokens):
            raise self.error(f"nothing may follow the call, got {self.tokens[self.at]!r}")
        return name, items

    def items(self) -> list[tuple[int, Any]]:
        if self.next() != "(":
            raise self.error("expected '('")
        items: list[tuple[int, Any]] = []
        if self.tokens[self.at : self.at + 1] == [")"]:
            self.at += 1
            return items
        while True:
            items.append(self.item())
            end = self.next()
            if end == ")":
                return items
            if end != ",":
                raise self.error(f"expected ',' or ')', got {end!r}")

    def item(self) -> tuple[int, Any]:
        token = self.next()
        if token[0] == '"':
            return int(LITERAL), token[1:-1]
        if token[0] == "-" or token[0].isdigit():
            return int(LITERAL), float(token) if "." in token else int(token)
        if self.tokens[self.at : self.at + 1] == ["("]:
            fn = HELPERS.get(token)
            if fn is None:
                raise self.error(f"no helper is called {token!r}; helpers: {', '.join(sorted(HELPERS))}")
            items = self.items()
            return int(EXPRESSION), Expression(fn, [s for s, _ in items], [v for _, v in items], [v for _, v in items])
        if token in _WORDS:
            return int(LITERAL), _WORDS[token]
        if token in self.results:
            return int(RESULT) - self.results.index(token), None
        position = self.op.schema.index(token)
        if position < 0:
            names = [a.name for a in self.op.schema.args] + self.results
            raise self.error(f"{token!r} is no argument; names: {', '.join(names)}")
        return position, None


def pointwise_positions(rule: Rule | None) -> Sequence[int]:
    """The operands a pointwise rule promotes; none for other rules."""
    while rule is not None:
        if isinstance(rule, Pointwise):
            return rule.positions
        if isinstance(rule, Choose):
            rule = next(iter(rule.rules.values()))
        else:
            rule = getattr(rule, "inner", None)
    return ()


def _call(op: Op, text: str, cast: Sequence[str] | None, expand: Sequence[str], inplace: bool | str) -> Call:
    reader = Reader(text, op)
    name, items = reader.call()
    if not table.has(name):
        raise reader.error(f"{name} has no line in table.py")
    sig = table.signature(name)
    if len(items) != len(sig.params):
        raise reader.error(
            f"{name} takes {len(sig.params)} parameters ({', '.join(p.name for p in sig.params)}), got {len(items)}"
        )
    for p, (source, _) in zip(sig.params, items):
        if source <= RESULT and not p.written:
            raise reader.error(f"parameter {p.name} is not written, but a result is passed")
    positions = pointwise_positions(op.rule) if cast is None else _positions(reader, op, cast)
    wide = _positions(reader, op, expand)
    other: Call | None = None
    if isinstance(inplace, str):
        other = _call(op, inplace, cast, (), False)
    elif inplace:
        other = _inplace(op, sig, items, positions)
    return _made(name, items, positions, wide, other)


def _made(
    name: str, items: list[tuple[int, Any]], positions: Sequence[int], wide: Sequence[int], inplace: Call | None
) -> Call:
    tensors = [p.kind == table.TENSOR for p in table.signature(name).params]
    return Call(
        name,
        [s for s, _ in items],
        [v for _, v in items],
        [t and s >= 0 and s in positions for t, (s, _) in zip(tensors, items)],
        [t and s >= 0 and s in wide for t, (s, _) in zip(tensors, items)],
        inplace,
    )


def _positions(reader: Reader, op: Op, names: Sequence[str]) -> Sequence[int]:
    positions = [op.schema.index(n) for n in names]
    if -1 in positions:
        raise reader.error(f"cast= or expand= names {list(names)}; arguments: {[a.name for a in op.schema.args]}")
    return positions


def _inplace(op: Op, sig: table.Signature, items: list[tuple[int, Any]], positions: Sequence[int]) -> Call | None:
    """The function that writes into its first operand, if the vendor has one with the other parameters as they are."""
    name = "aclnnInplace" + sig.name[5:]
    outs = [i for i, (s, _) in enumerate(items) if s <= RESULT]
    if not table.has(name) or len(outs) != 1 or not items or items[0][0] != 0:
        return None
    rest = [p for i, p in enumerate(sig.params) if i != outs[0]]
    theirs = table.signature(name).params
    if len(rest) != len(theirs) or any(a.kind != b.kind for a, b in zip(rest, theirs)):
        return None
    if any(a.name != b.name for a, b in zip(rest[1:], theirs[1:])):
        return None
    return _made(name, [x for i, x in enumerate(items) if i != outs[0]], positions, (), None)


# -- writing lines --------------------------------------------------------------------------------------------------
class Unbound:
    """A line before its row is known."""

    def __init__(
        self,
        text: str,
        numbers: Mapping[str, str] | None,
        cast: Sequence[str] | None,
        expand: Sequence[str],
        starts: str | None,
        empty: Any,
        inplace: bool | str | Mapping[str, str],
        otherwise: Any,
        absent: Any,
    ) -> None:
        self.text, self.numbers, self.cast, self.expand, self.empty = text, numbers, cast, expand, empty
        self.starts, self.inplace, self.absent = starts, inplace, absent
        self.otherwise = absent if otherwise is None else otherwise

    def bind(self, op: Op) -> Kernel:
        by_name = self.inplace if isinstance(self.inplace, Mapping) else {}
        plain: bool | str = by_name.get("", True) if isinstance(self.inplace, Mapping) else self.inplace
        call = _call(op, self.text, self.cast, self.expand, plain)
        by_number: list[tuple[int, Call]] = []
        for name, text in (self.numbers or {}).items():
            position = op.schema.index(name)
            if position < 0:
                raise ValueError(
                    f"NPU line of '{op.name}': numbers= names {name!r}; arguments: {[a.name for a in op.schema.args]}"
                )
            mine = by_name.get(name, True) if isinstance(self.inplace, Mapping) else self.inplace is not False
            by_number.append((position, _call(op, text, self.cast, self.expand, mine)))
        slots = [i for i, a in enumerate(op.schema.args) if a.is_tensor]
        lists = any(a.is_tensor_list for a in op.schema.args)
        otherwise = op.row.fallback if self.otherwise is None and op.row is not None else self.otherwise
        start = -1 if self.starts is None else op.schema.index(self.starts)
        if self.starts is not None and start not in slots:
            raise ValueError(
                f"NPU line of '{op.name}': starts= names {self.starts!r}; arguments: {[a.name for a in op.schema.args]}"
            )
        return Line(slots, call, by_number, start, self.empty, lists, otherwise, self.absent)


class Chosen:
    """`choose(...)` before its row is known."""

    def __init__(self, name: str | Callable[..., Any], kernels: Mapping[Any, Kernel | Unbound | str]) -> None:
        self.name, self.kernels = name, kernels

    def bind(self, op: Op) -> Kernel:
        if not isinstance(self.name, str):
            return ByFunction(self.name, {value: bound(k, op) for value, k in self.kernels.items()})
        position = op.schema.index(self.name)
        if position < 0:
            raise ValueError(
                f"NPU line of '{op.name}': choose names {self.name!r}; arguments: {[a.name for a in op.schema.args]}"
            )
        return ByArgument(position, {value: bound(k, op) for value, k in self.kernels.items()})


def bound(kernel: Kernel | Unbound | Chosen | UnboundWhole | UnboundLists | str, op: Op) -> Kernel:
    if isinstance(kernel, str):
        return line(kernel).bind(op)
    return kernel if isinstance(kernel, Kernel) else kernel.bind(op)


def line(
    text: str,
    *,
    numbers: Mapping[str, str] | None = None,
    cast: Sequence[str] | None = None,
    expand: Sequence[str] = (),
    starts: str | None = None,
    empty: Any = None,
    inplace: bool | str | Mapping[str, str] = True,
    otherwise: Kernel | None = None,
    absent: Kernel | None = None,
) -> Unbound:
    """A vendor call with its options as a value, for `choose`."""
    return Unbound(text, numbers, cast, expand, starts, empty, inplace, otherwise, absent)


def npu(name: str, kernel: str | Kernel | Unbound | Chosen | UnboundWhole | UnboundLists, **options: Any) -> None:
    """Serve operator `name` on NPUs; the options are those of `line`."""
    op = registry.get(name)
    if isinstance(kernel, str):
        kernel = line(kernel, **options)
    elif options:
        raise ValueError(f"NPU line of '{name}': {', '.join(options)} belong to a vendor call")
    op.kernels[int(NPU)] = bound(kernel, op)
    op.forget()


def with_fallback(name: str, text: str, **options: Any) -> None:
    """A line whose row's own composition serves chips and libraries that lack the function."""
    npu(name, text, absent=registry.get(name).row.fallback, **options)


def missing(name: str, reason: str) -> None:
    """State that NPUs do not offer an operator."""
    npu(name, Missing(reason))


def parts(fn: Callable[..., Any]) -> Kernel:
    return PartsKernel(fn)


def into(fn: Callable[..., Any], aliasing: bool = False) -> Kernel:
    """aliasing: `out` may be one of the inputs."""
    return IntoKernel(fn, aliasing, True)


def makes(fn: Callable[..., Any]) -> Kernel:
    return FnKernel(fn)


class Fused(Whole):
    """A composite in vendor calls: where they do not fit, or this chip or library lacks one, its parts serve."""

    def __init__(
        self,
        op: Op,
        functions: Sequence[str],
        fits: Callable[..., bool],
        fn: Callable[..., Any],
        back: Callable[..., Any] | None,
        saves: Sequence[str] | None,
    ) -> None:
        super().__init__(op, int(NPU), fits, fn, back, saves)
        for name in functions:
            table.signature(name)
        self.functions = functions
        # Whether the functions are there; asked once.
        self.here: bool | None = None

    def serves(self, args: tuple[Any, ...]) -> bool:
        if self.here is None:
            self.here = all(not quirks.lacks(name) and launch.available(name) for name in self.functions)
        return self.here and self.fits(*args)


class UnboundWhole:
    """`fused(...)` before its row is known."""

    def __init__(
        self,
        functions: Sequence[str],
        fits: Callable[..., bool],
        fn: Callable[..., Any],
        back: Callable[..., Any] | None,
        saves: Sequence[str] | None,
    ) -> None:
        self.functions, self.fits, self.fn, self.back, self.saves = functions, fits, fn, back, saves

    def bind(self, op: Op) -> Kernel:
        made = Fused(op, self.functions, self.fits, self.fn, self.back, self.saves)
        if self.back is not None:
            op.kernels[int(NPU | AUTOGRAD)] = FnKernel(recorder(made))
        return FnKernel(made)


def fused(
    functions: Sequence[str],
    fits: Callable[..., bool],
    fn: Callable[..., Any],
    back: Callable[..., Any] | None = None,
    saves: Sequence[str] | None = None,
) -> UnboundWhole:
    return UnboundWhole(functions, fits, fn, back, saves)


class UnboundLists:
    """`listed(...)` before its row is known."""

    def __init__(self, call: ListCall, what: int) -> None:
        self.call, self.what = call, what

    def bind(self, op: Op) -> Kernel:
        if op.composite is None:
            raise ValueError(f"line of '{op.name}': only composites are served whole")
        return ListKernel(self.call, self.what, op.composite)


def listed(call: ListCall, what: int) -> UnboundLists:
    """A call over lists as the kernel of a row; `what` it makes of them is one of `lists`' constants."""
    return UnboundLists(call, what)


def choose(name: str | Callable[..., Any], kernels: Mapping[Any, Kernel | Unbound | str]) -> Chosen:
    """By the value of the argument `name`, or by what a function of all arguments answers."""
    return Chosen(name, kernels)


def call(function: str, op: str, *values: Any) -> None:
    """Launch a vendor function with values in its own order; `op` is the name the user called."""
    launch.launch(launch.resolve(function), list(values), op)


def accepts_dtype(function: str, t: Any, param: int = 0) -> bool:
    """Whether the documents accept a tensor's dtype for a parameter of a function."""
    return bool(table.signature(function).params[param].mask >> int(t._dtype.code) & 1)


# -- what is there --------------------------------------------------------------------------------------------------
def state(op: Op) -> str:
    """How an operator is served: "line", "parts", "derived", "composite", "missing: reason", or "" for a hole."""
    kernel = op.kernels.get(int(NPU))
    if isinstance(kernel, Missing):
        return f"missing: {kernel.reason}"
    if isinstance(kernel, (Line, ByArgument, ByFunction)) or served_fused(kernel) is not None:
        return "line"
    if kernel is not None:
        return "parts"
    if op.composite is not None:
        return "composite"
    found = derived(op, int(NPU))
    if found is None:
        return ""
    return state(op.functional) and "derived" if op.functional is not None else "derived"


def served_fused(kernel: Kernel | None) -> Fused | ListKernel | None:
    """What serves a composite at once, if that is how this kernel works."""
    if isinstance(kernel, ListKernel):
        return kernel
    return kernel.fn if isinstance(kernel, FnKernel) and isinstance(kernel.fn, Fused) else None


def holes() -> list[str]:
    """Rows that nobody serves on NPUs and nobody declared missing."""
    return sorted(op.name for op in registry.ops() if not state(op))
