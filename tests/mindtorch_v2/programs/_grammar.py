"""What random programs are made of: statements in source form, and how one is chosen.

Invariant: a statement is text. Every choice comes from the generator and from the shapes of the tensors it names, and
is written out in the statement, so that a list of statements is the whole program: it can be run again, with any of
them left out, and printed as a script.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

# Each library runs this first, with `torch` and `device` defined.
PRELUDE = """\
log = []
def leaf(data, shape, dtype, grad):
    return torch.tensor(data, dtype=dtype, device=device).reshape(shape).clone().requires_grad_(grad)
def mask(data, like):
    return torch.tensor(data, dtype=torch.bool, device=device).reshape(like.shape)
def index(data):
    return torch.tensor(data, dtype=torch.int64, device=device)
def scaling(name, factor):
    def hook(grad):
        log.append((name, grad.detach().tolist()))
        return grad * factor
    return hook
def recording(name):
    def hook(grad):
        log.append((name, grad.detach().tolist()))
    return hook
def accumulated(name):
    def hook(parameter):
        log.append((name, parameter.grad.detach().tolist()))
    return hook
"""

FLOATS = ("float64", "float32", "bfloat16", "float16")
SHAPES: list[tuple[int, ...]] = [(3,), (2, 3), (2, 2), (3, 1), (2, 1, 3), (), (4,), (0, 2)]


class Statement(NamedTuple):
    kind: str
    name: str
    """What the result is called."""
    operands: tuple[str, ...]
    text: str
    expression: bool
    mode: str
    """The block it runs in: "", "no_grad" or "enable_grad"."""


class Kind(NamedTuple):
    """A statement: `{0}` is its first operand, `{r}` the name of its result, `{p}` what `choose` wrote."""

    text: str
    choose: Callable[[random.Random, list[tuple[int, ...]]], str] | None = None
    writes: int | None = None
    """The operand whose memory changes."""
    expression: bool = True

    @property
    def operands(self) -> int:
        return 1 + max((place for place in range(3) if f"{{{place}}}" in self.text), default=-1)


Shapes = list[tuple[int, ...]]


def a_dim(rng: random.Random, shapes: Shapes) -> str:
    if rng.random() < 0.03:
        return str(len(shapes[0]) + 1)
    return str(rng.randrange(-len(shapes[0]), len(shapes[0])) if shapes[0] else 0)


def two_dims(rng: random.Random, shapes: Shapes) -> str:
    count = max(len(shapes[0]), 1)
    return f"{rng.randrange(count)}, {rng.randrange(count)}"


def an_order(rng: random.Random, shapes: Shapes) -> str:
    order = list(range(len(shapes[0])))
    rng.shuffle(order)
    return repr(tuple(order))


def a_number(rng: random.Random, shapes: Shapes) -> str:
    return rng.choice(["0.5", "-1.25", "2.0", "0.0", "1.5", "3"])


def a_flag(rng: random.Random, shapes: Shapes) -> str:
    return rng.choice(["True", "False"])


def mostly(rng: random.Random, shapes: Shapes) -> str:
    return "True" if rng.random() < 0.75 else "False"


def a_dtype(rng: random.Random, shapes: Shapes) -> str:
    return "torch." + rng.choice(["float64", "float64", "float32", "float32", "bfloat16", "float16"])


def a_shape(rng: random.Random, shapes: Shapes) -> str:
    """A shape with as many elements, now and then a wrong one."""
    count = math.prod(shapes[0])
    if rng.random() < 0.05:
        return repr((count + 1,))
    options: list[tuple[int, ...]] = [(-1,) if count else (0,), (count,), (1, count), (count, 1)]
    options += [(small, count // small) for small in (2, 3) if count and count % small == 0]
    return repr(rng.choice(options))


def an_index(rng: random.Random, shapes: Shapes) -> str:
    """A basic index; now and then out of range."""
    parts: list[Any] = []
    for size in shapes[0][: rng.randint(0, len(shapes[0]))]:
        kind = rng.randrange(4)
        if kind == 0 and size:
            parts.append(rng.randrange(-size, size) if rng.random() > 0.03 else size)
        elif kind == 1:
            parts.append(slice(rng.randint(0, 1), rng.randint(1, size + 1), rng.choice([1, 1, 2])))
        elif kind == 2:
            parts.append(slice(None))
        else:
            parts += [None, slice(None)]
    if rng.random() < 0.2:
        parts.append(Ellipsis)
    return "(" + "".join(f"{'...' if part is Ellipsis else part}, " for part in parts) + ")"


def a_narrowing(rng: random.Random, shapes: Shapes) -> str:
    dim = rng.randrange(max(len(shapes[0]), 1))
    size = shapes[0][dim] if shapes[0] else 1
    start = rng.randint(0, max(size - 1, 0))
    return f"{dim}, {start}, {rng.randint(0, size - start)}"


def an_expansion(rng: random.Random, shapes: Shapes) -> str:
    sizes = [rng.choice([-1, 3]) if size == 1 else -1 for size in shapes[0]]
    return repr((*([2] if rng.random() < 0.3 else []), *sizes))


def strides(rng: random.Random, shapes: Shapes) -> str:
    return rng.choice(["(2,), (1,)", "(2, 2), (2, 1)", "(2, 2), (1, 2), 0", "(3,), (0,), 0", "(1, 2), (1, 1), 1"])


def a_mask(rng: random.Random, shapes: Shapes) -> str:
    return repr([rng.random() < 0.5 for _ in range(math.prod(shapes[0]))])


def some_rows(rng: random.Random, shapes: Shapes) -> str:
    """Different ones: which of two values written to one row stays is no rule."""
    size = shapes[0][0] if shapes[0] else 1
    return repr(rng.sample(range(size), rng.randint(1, min(size, 3)))) if size else "[]"


VIEWS: dict[str, Kind] = {
    "view": Kind("{0}.view({p})", a_shape),
    "reshape": Kind("{0}.reshape({p})", a_shape),
    "index": Kind("{0}[{p}]", an_index),
    "transpose": Kind("{0}.transpose({p})", two_dims),
    "permute": Kind("{0}.permute({p})", an_order),
    "narrow": Kind("{0}.narrow({p})", a_narrowing),
    "unsqueeze": Kind("{0}.unsqueeze({p})", a_dim),
    "squeeze": Kind("{0}.squeeze()"),
    "expand": Kind("{0}.expand({p})", an_expansion),
    "diagonal": Kind("{0}.diagonal()"),
    "as_strided": Kind("{0}.as_strided({p})", strides),
    "unbind": Kind("{0}.unbind()[0]"),
    "split": Kind("{0}.split(2, {p})[-1]", a_dim),
    "chunk": Kind("{0}.chunk(2)[0]"),
    "select": Kind("{0}.select({p}, 0)", a_dim),
    "unfold": Kind("{0}.unfold({p}, 2, 1)", a_dim),
    "view_as": Kind("{0}.view_as({0})"),
    "detach": Kind("{0}.detach()"),
    "data": Kind("{0}.data"),
    "flatten": Kind("{0}.flatten()"),
    "movedim": Kind("{0}.movedim({p})", two_dims),
    "real": Kind("{0}.real"),
    "mT": Kind("{0}.mT"),
    "tensor_split": Kind("{0}.tensor_split(2)[1]"),
    "step": Kind("{0}[::2]"),
    "unflatten": Kind("{0}.unflatten({p}, (-1, 1))", a_dim),
    "expand_as": Kind("{0}.expand_as({1})"),
    "squeeze_dim": Kind("{0}.squeeze({p})", a_dim),
}

OPERATORS: dict[str, Kind] = {
    "add": Kind("{0} + {1}"),
    "mul": Kind("{0} * {1}"),
    "sub": Kind("{0} - {1}"),
    "div": Kind("{0} / ({1} * {1} + 1)"),
    "mul_number": Kind("{0} * {p}", a_number),
    "rsub": Kind("{p} - {0}", a_number),
    "addcmul": Kind("torch.addcmul({0}, {1}, {2}, value=0.5)"),
    "lerp": Kind("torch.lerp({0}, {1}, 0.25)"),
    "maximum": Kind("torch.maximum({0}, {1})"),
    "exp": Kind("{0}.clamp(max=3).exp()"),
    "sin": Kind("{0}.sin()"),
    "tanh": Kind("{0}.tanh()"),
    "sigmoid": Kind("{0}.sigmoid()"),
    "relu": Kind("{0}.relu()"),
    "abs": Kind("{0}.abs()"),
    "clamp": Kind("{0}.clamp(-0.5, {p})", a_number),
    "square": Kind("{0} ** 2"),
    "sum": Kind("{0}.sum({p})", a_dim),
    "mean": Kind("{0}.mean()"),
    "amax": Kind("{0}.amax({p}, keepdim=True)", a_dim),
    "max": Kind("{0}.max({p})[0]", a_dim),
    "prod": Kind("{0}.prod({p})", a_dim),
    "cumsum": Kind("{0}.cumsum({p})", a_dim),
    "softmax": Kind("{0}.softmax({p})", a_dim),
    "matmul": Kind("{0} @ {1}"),
    "cat": Kind("torch.cat([{0}, {1}], {p})", a_dim),
    "stack": Kind("torch.stack([{0}, {1}])"),
    "where": Kind("torch.where({0} > 0, {0}, {1})"),
    "greater": Kind("{0} > {1}"),
    "rows": Kind("{0}[index({p})]", some_rows),
    "index_select": Kind("{0}.index_select(0, index({p}))", some_rows),
    "masked": Kind("{0}[mask({p}, {0})]", a_mask),
    "masked_fill": Kind("{0}.masked_fill(mask({p}, {0}), 0.25)", a_mask),
    "clone": Kind("{0}.clone()"),
    "contiguous": Kind("{0}.contiguous()"),
    "flip": Kind("{0}.flip({p})", a_dim),
    "roll": Kind("{0}.roll(1, {p})", a_dim),
    "repeat": Kind("{0}.repeat(2, 1)"),
    "tril": Kind("{0}.tril()"),
    "cast": Kind("{0}.to({p})", a_dtype),
    "cast_copy": Kind("{0}.to({p}, copy=True)", a_dtype),
    "long": Kind("{0}.long()"),
    "bool": Kind("{0}.bool()"),
    "type_as": Kind("{0}.type_as({1})"),
    "var": Kind("{0}.var({p}, correction=0)", a_dim),
    "norm": Kind("torch.linalg.vector_norm({0} + 1)"),
    "logsumexp": Kind("{0}.logsumexp({p})", a_dim),
    "log_softmax": Kind("{0}.log_softmax({p})", a_dim),
    "sort": Kind("{0}.sort({p})[0]", a_dim),
    "topk": Kind("{0}.topk(1, {p})[0]", a_dim),
    "cumprod": Kind("{0}.cumprod({p})", a_dim),
    "gather": Kind("{0}.gather({p}, torch.zeros_like({0}, dtype=torch.int64))", a_dim),
    "index_add": Kind("{0}.index_add(0, index([0]), {0}[:1])"),
    "scatter": Kind("{0}.scatter(0, torch.zeros_like({0}, dtype=torch.int64), 0.5)"),
    "outer": Kind("torch.outer({0}.flatten(), {1}.flatten())"),
    "linear": Kind("torch.nn.functional.linear({0}, {1})"),
    # Near constants a smaller eps lets rounding grow without bounds.
    "layer_norm": Kind("torch.nn.functional.layer_norm({0}, {0}.shape[-1:], eps=0.5)"),
    "gelu": Kind("torch.nn.functional.gelu({0})"),
    "softplus": Kind("torch.nn.functional.softplus({0})"),
    "leaky_relu": Kind("torch.nn.functional.leaky_relu({0})"),
    "mse_loss": Kind("torch.nn.functional.mse_loss({0}, {1})"),
    "pad": Kind("torch.nn.functional.pad({0}, (1, 1), value=0.5)"),
    "rot90": Kind("{0}.rot90()"),
    "tile": Kind("{0}.tile(2)"),
    "repeat_interleave": Kind("{0}.repeat_interleave(2)"),
    "diag_embed": Kind("{0}.diag_embed()"),
    # Away from the origin, around which derivatives grow without bounds.
    "atan2": Kind("torch.atan2({0}, {1} + 2)"),
    "hypot": Kind("torch.hypot({0}, {1} + 2)"),
    "round": Kind("{0}.round()"),
    "remainder": Kind("{0} % 2"),
    "any": Kind("{0}.any()"),
    "argmax": Kind("{0}.argmax()"),
    "where_number": Kind("torch.where({0} > 0, {0}, 1.5)"),
    "zeros_like": Kind("torch.zeros_like({0})"),
    "new_ones": Kind("{0}.new_ones((2, 3), requires_grad={p})", a_flag),
}

WRITES: dict[str, Kind] = {
    "add_": Kind("{0}.add_({1})", writes=0),
    "sub_": Kind("{0}.sub_({1}, alpha=2)", writes=0),
    "mul_": Kind("{0}.mul_({1})", writes=0),
    "mul_number_": Kind("{0}.mul_({p})", a_number, writes=0),
    "addcmul_": Kind("{0}.addcmul_({1}, {2})", writes=0),
    "sin_": Kind("{0}.sin_()", writes=0),
    "relu_": Kind("{0}.relu_()", writes=0),
    "sigmoid_": Kind("{0}.sigmoid_()", writes=0),
    "clamp_": Kind("{0}.clamp_(-0.5, 0.5)", writes=0),
    "zero_": Kind("{0}.zero_()", writes=0),
    "fill_": Kind("{0}.fill_({p})", a_number, writes=0),
    "copy_": Kind("{0}.copy_({1})", writes=0),
    "masked_fill_": Kind("{0}.masked_fill_(mask({p}, {0}), 0.25)", a_mask, writes=0),
    "index_fill_": Kind("{0}.index_fill_(0, index({p}), 0.5)", some_rows, writes=0),
    "setitem": Kind("{0}[{p}] = {1}", an_index, writes=0, expression=False),
    "setitem_number": Kind("{0}[{p}] = 0.75", an_index, writes=0, expression=False),
    "setitem_mask": Kind("{0}[mask({p}, {0})] = 0.5", a_mask, writes=0, expression=False),
    "setitem_rows": Kind("{0}[index({p})] = {1}", some_rows, writes=0, expression=False),
    "iadd": Kind("{0}[{p}] += 1", an_index, writes=0, expression=False),
    "scatter_": Kind("{0}.scatter_(0, torch.zeros_like({0}, dtype=torch.int64)[:1], 0.5)", writes=0),
    "lerp_": Kind("{0}.lerp_({1}, 0.25)", writes=0),
    "cumsum_": Kind("{0}.cumsum_({p})", a_dim, writes=0),
    "tril_": Kind("{0}.tril_()", writes=0),
    "clamp_out": Kind("torch.clamp({0}, -0.5, 0.5, out={1})", writes=1),
    "where_out": Kind("torch.where({0} > 0, {0}, {1}, out={2})", writes=2),
    "transpose_": Kind("{0}.transpose_({p})", two_dims),
    "unsqueeze_": Kind("{0}.unsqueeze_({p})", a_dim),
    "squeeze_": Kind("{0}.squeeze_()"),
    "detach_": Kind("{0}.detach_()"),
    "data_mul_": Kind("{0}.data.mul_({p})", a_number, writes=0),
    "add_out": Kind("torch.add({0}, {1}, out={2})", writes=2),
    "mul_out": Kind("torch.mul({0}, {1}, out={2})", writes=2),
    "sin_out": Kind("torch.sin({0}, out={1})", writes=1),
    "sum_out": Kind("torch.sum({0}, {p}, out={1})", a_dim, writes=1),
    "matmul_out": Kind("torch.matmul({0}, {1}, out={2})", writes=2),
    "cat_out": Kind("torch.cat([{0}, {1}], {p}, out={2})", a_dim, writes=2),
}

# Hooks, flags and gradients: what changes what the next backward does.
MARKS: dict[str, Kind] = {
    "scaling": Kind('{0}.register_hook(scaling("{r}", {p}))', a_number),
    "recording": Kind('{0}.register_hook(recording("{r}"))'),
    "accumulated": Kind('{0}.register_post_accumulate_grad_hook(accumulated("{r}"))'),
    "retain_grad": Kind("{0}.retain_grad()"),
    "requires_grad_": Kind("{0}.requires_grad_({p})", mostly),
    "grad": Kind("{0}.grad"),
    "no_grad_yet": Kind("{0}.grad = None", expression=False),
    "grad_zero_": Kind("{0}.grad.zero_()"),
    "grad_mul_": Kind("{0}.grad.mul_({p})", a_number),
}

ENDS: dict[str, Kind] = {
    "backward": Kind("{0}.sum().backward(retain_graph={p})", mostly),
    "backward_again": Kind("{0}.sum().backward(retain_graph={p})", mostly),
    # A copy: whether a leaf takes the given gradient as its own is the engine's business.
    "backward_with": Kind("{0}.backward({1} * 1, retain_graph={p})", mostly),
    "backward_ones": Kind("{0}.backward(torch.ones_like({0}))"),
    "backward_both": Kind("torch.autograd.backward([{0}.sum(), {1}.sum()], retain_graph={p})", mostly),
    "backward_into": Kind("{0}.sum().backward(inputs=[{1}], retain_graph={p})", mostly),
    "backward_graph": Kind("({0} * {0}).sum().backward(create_graph=True)"),
    "gradient": Kind("torch.autograd.grad({0}.sum(), [{1}], create_graph={p}, allow_unused=True)[0]", a_flag),
    "gradient_with": Kind("torch.autograd.grad({0}, [{1}], torch.ones_like({0}), retain_graph={p})[0]", mostly),
    "gradient_twice": Kind(
        "torch.autograd.grad(torch.autograd.grad(({0} ** 3).sum(), [{1}], create_graph=True)[0].sum(), [{1}],"
        " allow_unused=True)[0]"
    ),
}

REMOVE = "remove"
GROUPS: list[tuple[dict[str, Kind], float]] = [
    (VIEWS, 0.25),
    (OPERATORS, 0.25),
    (WRITES, 0.27),
    (MARKS, 0.11),
    (ENDS, 0.12),
]
KINDS: dict[str, Kind] = {
    "leaf": Kind("leaf({p})"),
    REMOVE: Kind("{0}.remove()", expression=False),
    **{name: kind for group, _ in GROUPS for name, kind in group.items()},
}


class Known(NamedTuple):
    """What the choice of the next statement may depend on."""

    name: str
    shape: tuple[int, ...]
    wants_grad: bool


def make(kind: str, name: str, operands: tuple[str, ...], params: str = "", mode: str = "") -> Statement:
    text = KINDS[kind].text
    for place, operand in enumerate(operands):
        text = text.replace(f"{{{place}}}", operand)
    text = text.replace("{r}", name).replace("{p}", params)
    return Statement(kind, name, operands, text, KINDS[kind].expression, mode)


def opening(rng: random.Random, dtypes: dict[str, float]) -> list[Statement]:
    """Three leaves, and copies of them: those are no leaves, so they may be written."""
    leaves: list[Statement] = []
    for place in range(3):
        shape = rng.choice(SHAPES)
        dtype = rng.choices(list(dtypes), list(dtypes.values()))[0]
        data: list[Any] = [round(rng.uniform(-1, 1), 3) for _ in range(math.prod(shape))]
        if dtype not in FLOATS:
            data = [rng.randint(-3, 3) for _ in data]
        grad = dtype in FLOATS and rng.random() < 0.65
        leaves.append(make("leaf", f"t{place}", (), f"{data}, {shape}, torch.{dtype}, {grad}"))
    copies = [
        make(rng.choice(["mul_number", "clone", "sin"]), f"t{3 + place}", (f"t{place}",), "1.5") for place in range(3)
    ]
    return leaves + copies


def next_statement(rng: random.Random, name: str, pool: list[Known], handles: list[str], mode: str) -> Statement:
    if handles and rng.random() < 0.03:
        return make(REMOVE, name, (rng.choice(handles),), mode=mode)
    group = rng.choices([group for group, _ in GROUPS], [weight for _, weight in GROUPS])[0]
    kind = rng.choice(list(group))
    # The youngest tensors are the most interesting, so they are chosen more often.
    ages = [2.0 + place for place in range(len(pool))]
    if group in (ENDS, MARKS) and rng.random() < 0.9:
        ages = [age if known.wants_grad else 0.01 for age, known in zip(ages, pool)]
    chosen = rng.choices(pool, ages, k=KINDS[kind].operands)
    if kind in ("accumulated", "grad", "grad_zero_", "grad_mul_", "no_grad_yet") or (
        kind in ("backward_into", "gradient", "gradient_with", "gradient_twice") and rng.random() < 0.5
    ):
        chosen[-1] = rng.choice(pool[:3])
    choose = KINDS[kind].choose
    params = "" if choose is None else choose(rng, [known.shape for known in chosen])
    return make(kind, name, tuple(known.name for known in chosen), params, mode)


def source(statements: list[Statement], raising: set[str], library: str, device: str, functional: bool) -> str:
    """The program as a script; the statements that raise in PyTorch are allowed to."""
    lines = ["from contextlib import suppress", f"import {library} as torch", f"device = {device!r}"]
    if device == "npu":
        lines.append("torch.npu.use_emulator(devices=1)")
    lines += PRELUDE.splitlines()
    indent = ""
    if functional:
        lines.append("with torch.functionalize():")
        indent = "    "
    mode = ""
    for statement in statements:
        if statement.mode != mode and statement.mode:
            lines.append(f"{indent}with torch.{statement.mode}():")
        mode = statement.mode
        text = f"{statement.name} = {statement.text}" if statement.expression else statement.text
        if statement.name in raising:
            text = f"with suppress(Exception): {text}"
        lines.append(indent + ("    " if mode else "") + text)
    return "\n".join(lines)
