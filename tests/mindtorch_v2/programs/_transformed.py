"""Random functions of views, writes and operators under `vmap`, `jvp`, `grad` and pairs of them, against PyTorch.

Invariant: the seed decides the function and the transform. A function is kept only as far as PyTorch runs it eagerly;
what PyTorch then refuses under the transform is not compared, what it computes must come out of ours.
"""

from __future__ import annotations

import math
import random
import warnings
from typing import Any, NamedTuple

from ._grammar import OPERATORS, PRELUDE, VIEWS, WRITES, Kind, Known, Statement, make, opening
from ._machine import Ended, Machine, addresses, close, left_to_the_library, shared, values

# Results whose shape depends on values, other dtypes, writes that no transform follows; of the tangent of layer_norm
# PyTorch's gradient takes the statistics for constants.
LEFT_OUT = frozenset(
    """masked cast cast_copy long bool type_as greater any argmax round remainder new_ones detach detach_ data_mul_
    transpose_ unsqueeze_ squeeze_ clamp_out where_out add_out mul_out sin_out sum_out matmul_out cat_out data
    layer_norm""".split()
)
GROUPS = [
    ([name for name in group if name not in LEFT_OUT], weight)
    for group, weight in ((VIEWS, 0.33), (OPERATORS, 0.37), (WRITES, 0.3))
]
LENGTH = 8
MOST_ELEMENTS = 64
TRANSFORMS = {
    "vmap": "F.vmap(f)(*many)",
    "jvp": "F.jvp(f, one, other)",
    "grad": "F.grad(loss, (0, 1, 2))(*one)",
    "vmap over grad": "F.vmap(F.grad(loss, (0, 1, 2)))(*many)",
    "vmap over jvp": "F.vmap(lambda *p: F.jvp(f, p, other))(*many)",
    "vmap over vmap": "F.vmap(F.vmap(f))(*more)",
    "jvp over grad": "F.jvp(F.grad(loss, (0, 1, 2)), one, other)",
    "jvp over vmap": "F.jvp(F.vmap(f), many, tuple(x * 0.5 for x in many))",
    "grad over jvp": "F.grad(lambda *p: total(F.jvp(f, p, other)[1]), (0, 1, 2))(*one)",
    "grad over vmap": "F.grad(lambda *p: total(F.vmap(f)(*p)), (0, 1, 2))(*many)",
    "grad over grad": "F.grad(lambda *p: total(F.grad(loss, (0, 1, 2))(*p)), (0, 1, 2))(*one)",
}
FRAME = """\
F = torch.func
def total(found):
    return sum((x * x).sum() + x.sum() for x in found)
def loss(t0, t1, t2):
    return total(f(t0, t1, t2))
def numbers(shape, phase):
    n = 1
    for size in shape:
        n *= size
    return (torch.arange(n, dtype=torch.float64) * 1.7 + phase).sin().reshape(shape)
one = tuple(numbers(s, i + 0.3) for i, s in enumerate(shapes))
other = tuple(numbers(s, i + 2.1) for i, s in enumerate(shapes))
many = tuple(numbers((2, *s), i + 0.7) for i, s in enumerate(shapes))
more = tuple(numbers((2, 2, *s), i + 1.2) for i, s in enumerate(shapes))
"""


class Function(NamedTuple):
    """A function of three tensors in source form."""

    shapes: tuple[tuple[int, ...], ...]
    statements: list[Statement]
    results: list[str]

    def text(self) -> str:
        lines = ["def f(t0, t1, t2):"]
        for s in self.statements:
            lines.append("    " + (f"{s.name} = {s.text}" if s.expression else s.text))
        return "\n".join([*lines, f"    return ({', '.join(self.results)},)"])


def write_function(rng: random.Random, reference: Any) -> Function:
    """As many statements as PyTorch runs."""
    machine = Machine(reference)
    kept: list[Statement] = []
    first = opening(rng, {"float64": 1.0})
    for s in first:
        machine.run(s)
    shapes = tuple(tuple(machine.pool[f"t{i}"].shape) for i in range(3))
    kept += first[3:]
    for i in range(LENGTH):
        pool = [Known(name, tuple(t.shape), False) for name, t in machine.pool.items()][3:]
        names, _ = rng.choices(GROUPS, [weight for _, weight in GROUPS])[0]
        kind = rng.choice(names)
        every = {**VIEWS, **OPERATORS, **WRITES}[kind]
        if kind in ("var", "mse_loss", "mean"):
            # Of nothing they have no value, nor a tangent.
            pool = [known for known in pool if math.prod(known.shape)]
            if not pool:
                continue
        chosen = rng.choices(pool, [2.0 + place for place in range(len(pool))], k=every.operands)
        params = "" if every.choose is None else every.choose(rng, [known.shape for known in chosen])
        s = make(kind, f"t{6 + i}", tuple(known.name for known in chosen), params)
        try:
            if left_to_the_library(s, machine) or reads_what_it_writes(machine, every, s):
                continue
            outcome = machine.run(s)[0]
        except Ended:
            continue
        made = machine.pool.get(s.name)
        if outcome in ("error", "other") or (made is not None and not fits(made)):
            machine.pool.pop(s.name, None)
            continue
        kept.append(s)
    # A view whose history a write has lost cannot be asked for its gradient.
    return Function(shapes, kept, list(machine.pool)[3:][-3:])


def reads_what_it_writes(machine: Machine, kind: Kind, s: Statement) -> bool:
    """PyTorch's tangents of such a write are computed from what was written already; in which order it writes to
    elements that share memory is its kernels' affair."""
    if kind.writes is None:
        return False
    tensors = [machine.pool[name] for name in s.operands]
    target = tensors.pop(kind.writes)
    return len(addresses(target)) < target.numel() or any(shared(t, target) for t in tensors)


def fits(t: Any) -> bool:
    return str(t.dtype) == "torch.float64" and 0 < t.numel() <= MOST_ELEMENTS


def ran(library: Any, function: Function, transform: str) -> Any:
    """The tensors that come out, in order; or the exception."""
    space: dict[str, Any] = {"torch": library, "device": "cpu", "shapes": function.shapes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(PRELUDE + FRAME + function.text(), space)
            found = eval(TRANSFORMS[transform], space)
        except Exception as error:
            return error
    out: list[Any] = []

    def visit(value: Any) -> None:
        if isinstance(value, (tuple, list)):
            for item in value:
                visit(item)
        else:
            out.append(value)

    visit(found)
    return out


def judge(seed: int, reference: Any, other: Any) -> tuple[str, str | None]:
    """What happened, and what differs."""
    rng = random.Random(f"transformed {seed}")
    transform = rng.choice(list(TRANSFORMS))
    function = write_function(rng, reference)
    want = ran(reference, function, transform)
    if isinstance(want, Exception):
        return "refused", None
    got = ran(other, function, transform)
    if isinstance(got, RuntimeError) and "out of bounds for storage" in str(got):
        # How much memory lies behind a result is its kernel's affair.
        return "beyond", None
    if isinstance(got, RuntimeError) and "modified by an inplace operation" in str(got) and "_loss" in function.text():
        # Inside `vmap` PyTorch copies what a loss is computed from where it was broadcast, so that later writes do not
        # reach what is saved.
        return "spoilt", None
    verdict = differs(got, want)
    if verdict is None:
        return transform, None
    return transform, f"seed {seed}, {transform}, shapes {function.shapes}: {verdict}\n{function.text()}\n"


def differs(got: Any, want: list[Any]) -> str | None:
    if isinstance(got, Exception):
        return f"{type(got).__name__}: {got}"
    if [tuple(t.shape) for t in got] != [tuple(t.shape) for t in want]:
        return f"shapes {[tuple(t.shape) for t in got]}, expected {[tuple(t.shape) for t in want]}"
    for i, (a, b) in enumerate(zip(got, want)):
        mine, theirs = values(a), values(b)
        scale = max([1.0, *(abs(v) for v in theirs if math.isfinite(v))])
        if not close(mine, theirs, "float64", scale):
            return f"result {i}: {mine}, expected {theirs}"
    return None
