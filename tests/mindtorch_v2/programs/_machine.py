"""Random programs of views, in-place writes, operators, detach, no_grad and backward, run in two libraries in lockstep.

Invariant: a program is data. Every choice comes from the seed and the shapes in the first machine, so a failure is
reproduced by its seed, and its report lists the instructions that led to it.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from .._oracle import dtype_name

Run = Callable[[Any, list[Any], Any], Any]


class Instruction(NamedTuple):
    name: str
    operands: tuple[int, ...]
    params: Any

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f't{operand}' for operand in self.operands)}; {self.params})"


class Kind(NamedTuple):
    """How to choose an instruction, given the shapes of its operands, and how to run it."""

    operands: int
    choose: Callable[[random.Random, list[tuple[int, ...]]], Any]
    run: Run


def nothing(rng: random.Random, shapes: list[tuple[int, ...]]) -> Any:
    return None


def a_dim(rng: random.Random, shapes: list[tuple[int, ...]]) -> Any:
    return rng.randrange(-len(shapes[0]), len(shapes[0])) if shapes[0] else 0


def two_dims(rng: random.Random, shapes: list[tuple[int, ...]]) -> Any:
    count = max(len(shapes[0]), 1)
    return rng.randrange(count), rng.randrange(count)


def an_order(rng: random.Random, shapes: list[tuple[int, ...]]) -> Any:
    order = list(range(len(shapes[0])))
    rng.shuffle(order)
    return tuple(order)


def a_number(rng: random.Random, shapes: list[tuple[int, ...]]) -> Any:
    return rng.choice([0.5, -1.25, 2.0, 0.0, 1.5])


def a_shape(rng: random.Random, shapes: list[tuple[int, ...]]) -> Any:
    """A shape with as many elements, now and then a wrong one."""
    count = 1
    for size in shapes[0]:
        count *= size
    if rng.random() < 0.05:
        return (count + 1,)
    options: list[tuple[int, ...]] = [(-1,) if count else (0,), (count,), (1, count), (count, 1)]
    options += [(small, count // small) for small in (2, 3) if count and count % small == 0]
    return rng.choice(options)


def an_index(rng: random.Random, shapes: list[tuple[int, ...]]) -> Any:
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
    return tuple(parts)


def a_narrowing(rng: random.Random, shapes: list[tuple[int, ...]]) -> Any:
    dim = rng.randrange(max(len(shapes[0]), 1))
    size = shapes[0][dim] if shapes[0] else 1
    start = rng.randint(0, max(size - 1, 0))
    return dim, start, rng.randint(0, size - start)


def an_expansion(rng: random.Random, shapes: list[tuple[int, ...]]) -> Any:
    sizes = [rng.choice([-1, 3]) if size == 1 else -1 for size in shapes[0]]
    return (*([2] if rng.random() < 0.3 else []), *sizes)


def strides(rng: random.Random, shapes: list[tuple[int, ...]]) -> Any:
    return rng.choice(
        [((2,), (1,), None), ((2, 2), (2, 1), None), ((2, 2), (1, 2), 0), ((3,), (0,), 0), ((1, 2), (1, 1), 1)]
    )


def a_mask(rng: random.Random, shapes: list[tuple[int, ...]]) -> Any:
    return nested(shapes[0], lambda: rng.random() < 0.5)


def a_list_of_rows(rng: random.Random, shapes: list[tuple[int, ...]]) -> Any:
    size = shapes[0][0] if shapes[0] else 1
    return [rng.randrange(-size, size) for _ in range(rng.randint(1, 3))] if size else [0]


def nested(shape: tuple[int, ...], value: Callable[[], Any]) -> Any:
    if not shape:
        return value()
    return [nested(shape[1:], value) for _ in range(shape[0])]


def mask_of(torch: Any, data: Any, like: Any) -> Any:
    return torch.tensor(data, dtype=torch.bool).reshape(like.shape)


def index_of(torch: Any, data: Any) -> Any:
    return torch.tensor(data, dtype=torch.int64)


def masked_fill(torch: Any, t: list[Any], data: Any) -> Any:
    return t[0].masked_fill_(mask_of(torch, data, t[0]), 0.25)


def set_item(torch: Any, t: list[Any], index: Any) -> None:
    t[0][index] = t[1]


def set_item_number(torch: Any, t: list[Any], index: Any) -> None:
    t[0][index] = 0.75


def set_mask(torch: Any, t: list[Any], data: Any) -> None:
    t[0][mask_of(torch, data, t[0])] = 0.5


def set_rows(torch: Any, t: list[Any], data: Any) -> None:
    t[0][index_of(torch, data)] = t[1]


def backward(torch: Any, t: list[Any], retain: Any) -> None:
    t[0].sum().backward(retain_graph=retain)


def gradient(torch: Any, t: list[Any], create: Any) -> Any:
    return torch.autograd.grad(t[0].sum(), [t[1]], create_graph=create, allow_unused=True)[0]


def set_data(torch: Any, t: list[Any], params: Any) -> None:
    t[0].data.mul_(0.5)


VIEWS: dict[str, Kind] = {
    "view": Kind(1, a_shape, lambda torch, t, p: t[0].view(p)),
    "reshape": Kind(1, a_shape, lambda torch, t, p: t[0].reshape(p)),
    "index": Kind(1, an_index, lambda torch, t, p: t[0][p]),
    "transpose": Kind(1, two_dims, lambda torch, t, p: t[0].transpose(*p)),
    "permute": Kind(1, an_order, lambda torch, t, p: t[0].permute(p)),
    "narrow": Kind(1, a_narrowing, lambda torch, t, p: t[0].narrow(*p)),
    "unsqueeze": Kind(1, a_dim, lambda torch, t, p: t[0].unsqueeze(p)),
    "squeeze": Kind(1, nothing, lambda torch, t, p: t[0].squeeze()),
    "expand": Kind(1, an_expansion, lambda torch, t, p: t[0].expand(p)),
    "diagonal": Kind(1, nothing, lambda torch, t, p: t[0].diagonal()),
    "as_strided": Kind(1, strides, lambda torch, t, p: t[0].as_strided(*p)),
    "unbind": Kind(1, nothing, lambda torch, t, p: t[0].unbind()[0]),
    "split": Kind(1, a_dim, lambda torch, t, p: t[0].split(2, p)[-1]),
    "detach": Kind(1, nothing, lambda torch, t, p: t[0].detach()),
    "view_as": Kind(1, nothing, lambda torch, t, p: t[0].view_as(t[0])),
}

OPERATORS: dict[str, Kind] = {
    "add": Kind(2, nothing, lambda torch, t, p: t[0] + t[1]),
    "mul": Kind(2, nothing, lambda torch, t, p: t[0] * t[1]),
    "sub": Kind(2, nothing, lambda torch, t, p: t[0] - t[1]),
    "mul_number": Kind(1, a_number, lambda torch, t, p: t[0] * p),
    "rsub": Kind(1, a_number, lambda torch, t, p: p - t[0]),
    "sin": Kind(1, nothing, lambda torch, t, p: t[0].sin()),
    "tanh": Kind(1, nothing, lambda torch, t, p: t[0].tanh()),
    "sigmoid": Kind(1, nothing, lambda torch, t, p: t[0].sigmoid()),
    "relu": Kind(1, nothing, lambda torch, t, p: t[0].relu()),
    "square": Kind(1, nothing, lambda torch, t, p: t[0] ** 2),
    "sum": Kind(1, a_dim, lambda torch, t, p: t[0].sum(p)),
    "mean": Kind(1, nothing, lambda torch, t, p: t[0].mean()),
    "amax": Kind(1, a_dim, lambda torch, t, p: t[0].amax(p, keepdim=True)),
    "softmax": Kind(1, a_dim, lambda torch, t, p: t[0].softmax(p)),
    "matmul": Kind(2, nothing, lambda torch, t, p: t[0] @ t[1]),
    "cat": Kind(2, a_dim, lambda torch, t, p: torch.cat([t[0], t[1]], p)),
    "stack": Kind(2, nothing, lambda torch, t, p: torch.stack([t[0], t[1]])),
    "where": Kind(2, nothing, lambda torch, t, p: torch.where(t[0].detach() > 0, t[0], t[1])),
    "rows": Kind(1, a_list_of_rows, lambda torch, t, p: t[0][index_of(torch, p)]),
    "masked": Kind(1, a_mask, lambda torch, t, p: t[0][mask_of(torch, p, t[0])]),
    "clone": Kind(1, nothing, lambda torch, t, p: t[0].clone()),
    "contiguous": Kind(1, nothing, lambda torch, t, p: t[0].contiguous()),
    "flip": Kind(1, a_dim, lambda torch, t, p: t[0].flip(p)),
    "tril": Kind(1, nothing, lambda torch, t, p: t[0].tril()),
}

WRITES: dict[str, Kind] = {
    "add_": Kind(2, nothing, lambda torch, t, p: t[0].add_(t[1])),
    "mul_": Kind(2, nothing, lambda torch, t, p: t[0].mul_(t[1])),
    "mul_number_": Kind(1, a_number, lambda torch, t, p: t[0].mul_(p)),
    "sin_": Kind(1, nothing, lambda torch, t, p: t[0].sin_()),
    "relu_": Kind(1, nothing, lambda torch, t, p: t[0].relu_()),
    "zero_": Kind(1, nothing, lambda torch, t, p: t[0].zero_()),
    "fill_": Kind(1, a_number, lambda torch, t, p: t[0].fill_(p)),
    "copy_": Kind(2, nothing, lambda torch, t, p: t[0].copy_(t[1])),
    "masked_fill_": Kind(1, a_mask, masked_fill),
    "setitem": Kind(2, an_index, set_item),
    "setitem_number": Kind(1, an_index, set_item_number),
    "setitem_mask": Kind(1, a_mask, set_mask),
    "setitem_rows": Kind(2, a_list_of_rows, set_rows),
    "t_": Kind(1, two_dims, lambda torch, t, p: t[0].transpose_(*p)),
    "unsqueeze_": Kind(1, a_dim, lambda torch, t, p: t[0].unsqueeze_(p)),
    "detach_": Kind(1, nothing, lambda torch, t, p: t[0].detach_()),
    "data": Kind(1, nothing, set_data),
    "out": Kind(3, nothing, lambda torch, t, p: torch.add(t[0], t[1], out=t[2])),
}

ENDS: dict[str, Kind] = {
    "backward": Kind(1, lambda rng, shapes: rng.random() < 0.7, backward),
    "gradient": Kind(2, lambda rng, shapes: rng.random() < 0.3, gradient),
}

KINDS: dict[str, Kind] = {**VIEWS, **OPERATORS, **WRITES, **ENDS}
WEIGHTS: list[tuple[list[str], float]] = [
    (list(VIEWS), 0.30),
    (list(OPERATORS), 0.27),
    (list(WRITES), 0.33),
    (list(ENDS), 0.10),
]
SHAPES: list[tuple[int, ...]] = [(3,), (2, 3), (2, 2), (3, 1), (2, 1, 3), (), (4,), (0, 2)]


class Machine:
    """One library running the program."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.pool: list[Any] = []
        # The first version of a new tensor tells how it was made, which is no rule: PyTorch sums gradients, and folds
        # the batch of a matmul, in place.
        self.first_version: dict[int, int] = {}
        # Whether a gradient is a view, and its strides, is the engine's business.
        self.gradients: set[int] = set()

    def leaf(self, values: list[float], shape: tuple[int, ...], requires_grad: bool) -> None:
        torch = self.torch
        made = torch.tensor(values, dtype=torch.float64).reshape(shape).clone()
        self.pool.append(made.requires_grad_(requires_grad))

    def run(self, instruction: Instruction, grad: bool) -> tuple[str, Any]:
        """("error", type and text), ("same", index), ("new", tensor) or ("none", None)."""
        torch = self.torch
        operands = [self.pool[operand] for operand in instruction.operands]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with torch.set_grad_enabled(grad):
                    result = KINDS[instruction.name].run(torch, operands, instruction.params)
            except (RuntimeError, IndexError, TypeError, ValueError, AttributeError) as error:
                return "error", (type(error).__name__, plain(str(error)))
        if result is None:
            return "none", None
        for index, known in enumerate(self.pool):
            if known is result:
                return "same", index
        return "new", result

    def facts(self, tensor: Any) -> dict[str, Any]:
        """What must agree exactly."""
        # Reading grad_fn lets a view find the new history of its base, so it comes first; for some views it raises.
        node = ask(lambda: type(tensor.grad_fn).__name__)
        gradient = id(tensor) in self.gradients
        return {
            "shape": tuple(tensor.shape),
            # Without elements there are no addresses, and PyTorch's strides follow no rule that users can see.
            "stride": tuple(tensor.stride()) if tensor.numel() and not gradient else None,
            "offset": int(tensor.storage_offset()),
            "dtype": dtype_name(tensor.dtype),
            "requires_grad": ask(lambda: tensor.requires_grad),
            "is_leaf": ask(lambda: tensor.is_leaf),
            "version": tensor._version - self.first_version.get(id(tensor), 0),
            "is_view": tensor._is_view() and not gradient,
            "node": node,
        }


def ask(question: Callable[[], Any]) -> Any:
    """The answer, or the text of the error."""
    try:
        return question()
    except RuntimeError as error:
        return plain(str(error))


def plain(text: str) -> str:
    """Errors without what names a library or an address."""
    text = re.sub(r",? but expected one of:.*", "", text, flags=re.DOTALL)
    return re.sub(r"0x[0-9a-f]+", "0x0", text).replace("mindtorch_v2", "torch")


def choose(rng: random.Random, machine: Machine) -> Instruction:
    names = rng.choices([group for group, _ in WEIGHTS], [weight for _, weight in WEIGHTS])[0]
    name = rng.choice(names)
    kind = KINDS[name]
    # The youngest tensors are the most interesting, so they are chosen more often.
    ages = [1.0 + position for position in range(len(machine.pool))]
    if name in ENDS and rng.random() < 0.9:
        ages = [age if _wants_grad(t) else 0.01 for age, t in zip(ages, machine.pool)]
    operands = tuple(rng.choices(range(len(machine.pool)), ages, k=kind.operands))
    shapes = [tuple(machine.pool[operand].shape) for operand in operands]
    return Instruction(name, operands, kind.choose(rng, shapes))


def reads_what_it_writes(instruction: Instruction, machine: Machine) -> bool:
    """Whether one element of an operand, expanded, meets several of a target in the same memory.

    PyTorch does not look for this overlap, and its values depend on the order in which it visits the elements, which
    is no rule: mindtorch_v2 visits them in another one.
    """
    if instruction.name not in ("add_", "mul_", "out"):
        return False
    tensors = [machine.pool[operand] for operand in instruction.operands]
    target = tensors.pop() if instruction.name == "out" else tensors.pop(0)
    return not expanded(target) and any(
        expanded(t) and t.untyped_storage().data_ptr() == target.untyped_storage().data_ptr() for t in tensors
    )


def expanded(tensor: Any) -> bool:
    return any(size > 1 and stride == 0 for size, stride in zip(tensor.shape, tensor.stride()))


def _wants_grad(tensor: Any) -> bool:
    return ask(lambda: tensor.requires_grad) is True


class Mismatch(AssertionError):
    """The two machines disagree."""


def values(tensor: Any) -> list[float]:
    return [float(value) for value in tensor.detach().reshape(-1).tolist()]


def close(left: list[float], right: list[float]) -> bool:
    if len(left) != len(right):
        return False
    for a, b in zip(left, right):
        if a != a and b != b:
            continue
        if a == b or abs(a - b) <= 1e-9 + 1e-7 * abs(b):
            continue
        return False
    return True


def lockstep(seed: int, reference: Machine, other: Machine, length: int = 16) -> dict[str, int]:
    """Run one program in both; Mismatch with the whole listing where they differ. Gives counts of what happened."""
    rng = random.Random(seed)
    listing: list[str] = []
    counts = {"new": 0, "same": 0, "none": 0, "error": 0}
    for _ in range(3):
        shape = rng.choice(SHAPES)
        count = 1
        for size in shape:
            count *= size
        data, requires_grad = [round(rng.uniform(-1, 1), 3) for _ in range(count)], rng.random() < 0.6
        listing.append(f"t{len(reference.pool)} = leaf {shape} {data} requires_grad={requires_grad}")
        reference.leaf(data, shape, requires_grad)
        other.leaf(data, shape, requires_grad)
    leaves = list(range(3))
    # Copies that are no leaves may be written, so they come first.
    opening = [Instruction("mul_number", (index,), 1.5) for index in leaves]
    for step in range(len(opening) + length):
        instruction = opening[step] if step < len(opening) else choose(rng, reference)
        grad = step < len(opening) or rng.random() > 0.12
        if reads_what_it_writes(instruction, reference):
            continue
        listing.append(f"t{len(reference.pool)} = {instruction}{'' if grad else '   # no_grad'}")
        expected, actual = reference.run(instruction, grad), other.run(instruction, grad)
        counts[expected[0]] += 1
        if expected[0] != actual[0] or (expected[0] in ("error", "same") and expected[1] != actual[1]):
            raise Mismatch(report(seed, listing, f"outcome {show(actual)}, expected {show(expected)}"))
        if expected[0] == "new" and isinstance(expected[1], reference.torch.Tensor):
            for machine, made in ((reference, expected[1]), (other, actual[1])):
                machine.pool.append(made)
                if instruction.name in ("gradient", "matmul"):
                    machine.first_version[id(made)] = made._version
                if instruction.name == "gradient":
                    machine.gradients.add(id(made))
        compare(seed, listing, reference, other)
    for index in leaves:
        with warnings.catch_warnings():
            # A leaf that was written in place is no leaf any more; its .grad is None in both, with a warning.
            warnings.simplefilter("ignore")
            left, right = _grad(other.pool[index]), _grad(reference.pool[index])
        if isinstance(right, str):
            if left != right:
                raise Mismatch(report(seed, listing, f"gradient of t{index} is {left}, expected {right}"))
            continue
        if (left is None) != (right is None):
            raise Mismatch(report(seed, listing, f"gradient of t{index} is {left}, expected {right}"))
        if right is not None and not close(values(left), values(right)):
            raise Mismatch(report(seed, listing, f"gradient of t{index} is {values(left)}, expected {values(right)}"))
    return counts


def _grad(tensor: Any) -> Any:
    return ask(lambda: tensor.grad)


def compare(seed: int, listing: list[str], reference: Machine, other: Machine) -> None:
    for index, (left, right) in enumerate(zip(other.pool, reference.pool)):
        actual, expected = other.facts(left), reference.facts(right)
        if actual != expected:
            wrong = {key: (actual[key], expected[key]) for key in expected if actual[key] != expected[key]}
            raise Mismatch(report(seed, listing, f"t{index}: (got, expected) {wrong}"))
        if not close(values(left), values(right)):
            raise Mismatch(report(seed, listing, f"t{index} holds {values(left)}, expected {values(right)}"))


def show(outcome: tuple[str, Any]) -> str:
    return f"{outcome[0]} {outcome[1]}"


def report(seed: int, listing: list[str], text: str) -> str:
    return f"seed {seed}: {text}\n  " + "\n  ".join(listing)
