"""A random program run in two libraries in lockstep, and shrunk where they differ.

Invariant: the first library decides. What it makes of a statement (a result, nothing, an error) and every fact about
the tensors that a user can see must be the same in the second.
"""

from __future__ import annotations

import contextlib
import functools
import math
import random
import re
import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .._oracle import dtype_name
from ._grammar import ENDS, FLOATS, KINDS, MARKS, PRELUDE, Known, Statement, next_statement, opening, source

# Relative to the value, and relative to the largest value that the program has seen (terms may cancel).
TOLERANCES: dict[str, tuple[float, float]] = {
    "float64": (1e-7, 1e-9),
    "float32": (2e-5, 4e-6),
    "bfloat16": (4e-2, 4e-2),
    "float16": (1e-2, 1e-2),
}


class Way(NamedTuple):
    """How the second library runs the program."""

    device: str
    functional: bool

    def __str__(self) -> str:
        return self.device + (", functionalized" if self.functional else "")


CPU = Way("cpu", False)
PRODUCTS = ("matmul", "matmul_out", "linear")
# Statements that give a tensor another shape in place.
RESHAPES = ("transpose_", "unsqueeze_", "squeeze_")


class Ended(Exception):
    """Nothing beyond this statement can be compared; says why."""


class Mismatch(AssertionError):
    """The two libraries disagree."""

    def __init__(self, text: str, statements: list[Statement], raising: set[str]) -> None:
        super().__init__(text)
        self.text = text
        self.statements = statements
        self.raising = raising


@functools.lru_cache(4096)
def compiled(text: str, expression: bool) -> types.CodeType:
    return compile(text, "<program>", "eval" if expression else "exec")


class Machine:
    """One library running the program."""

    def __init__(self, torch: Any, way: Way = CPU) -> None:
        self.torch = torch
        self.way = way
        self.names: dict[str, Any] = {"torch": torch, "device": way.device}
        exec(compiled(PRELUDE, False), self.names)
        # Whether the program is compared with one on an NPU.
        self.npu = False
        self.log: list[Any] = self.names["log"]
        self.pool: dict[str, Any] = {}
        self.handles: list[str] = []
        # The first version of a new tensor tells how it was made, which is no rule: PyTorch sums gradients, and folds
        # the batch of a product, in place.
        self.first_version: dict[str, int] = {}
        # Whether a gradient is a view, its strides and the node that made it are the engine's business.
        self.gradients: set[str] = set()

    def run(self, statement: Statement) -> tuple[str, Any]:
        """("error", type and text), ("same", name), ("new", None), ("other", None) or ("none", None)."""
        code = compiled(statement.text, statement.expression)
        with contextlib.ExitStack() as blocks:
            if self.way.functional:
                blocks.enter_context(self.torch.functionalize())
            if statement.mode:
                blocks.enter_context(getattr(self.torch, statement.mode)())
            try:
                result = eval(code, self.names)
            except Exception as error:  # every error is part of the outcome
                if self.way.device == "npu" and refused(str(error)):
                    raise Ended("refused") from None
                return "error", (type(error).__name__, plain(str(error)))
        if result is None:
            return "none", None
        if not isinstance(result, self.torch.Tensor):
            self.names[statement.name] = result
            self.handles.append(statement.name)
            return "other", None
        for name, known in self.pool.items():
            if known is result:
                return "same", name
        self.names[statement.name] = self.pool[statement.name] = result
        inherited = any(operand in self.first_version for operand in statement.operands)
        if inherited or statement.kind.startswith("grad") or statement.kind in PRODUCTS:
            self.first_version[statement.name] = result._version
        if statement.kind.startswith("grad"):
            self.gradients.add(statement.name)
        return "new", None

    def facts(self, name: str) -> dict[str, Any]:
        """What must agree exactly."""
        tensor = self.pool[name]
        # Reading grad_fn lets a view find the new history of its base, so it comes first; for some views it raises.
        node = ask(lambda: type(tensor.grad_fn).__name__)
        gradient = name in self.gradients
        return {
            "shape": tuple(tensor.shape),
            # Without elements there are no addresses, and PyTorch's strides follow no rule that users can see.
            "stride": self.strides(tensor) if not gradient and tensor.numel() else None,
            "offset": int(tensor.storage_offset()) if not gradient else None,
            "dtype": dtype_name(tensor.dtype),
            "requires_grad": ask(lambda: tensor.requires_grad),
            "is_leaf": ask(lambda: tensor.is_leaf),
            "version": tensor._version - self.first_version.get(name, 0),
            "is_view": tensor._is_view() and not gradient,
            # What an assignment of a number is made of depends on the device.
            "node": node if not gradient and not self.npu else None,
        }

    def strides(self, tensor: Any) -> tuple[int, ...]:
        """On an NPU kernels choose the strides of dimensions of size one."""
        return tuple(0 if self.npu and size == 1 else step for size, step in zip(tensor.shape, tensor.stride()))

    def known(self) -> list[Known]:
        return [Known(name, tuple(t.shape), ask(lambda t=t: t.requires_grad) is True) for name, t in self.pool.items()]


def ask(question: Callable[[], Any]) -> Any:
    """The answer, or the text of the error."""
    try:
        return question()
    except RuntimeError as error:
        check_fault(str(error))
        return plain(str(error))


def check_fault(text: str) -> None:
    """Where PyTorch breaks its own assertions there is nothing to compare."""
    if "INTERNAL ASSERT FAILED" in text:
        raise Ended("a fault of PyTorch")


def gradient_of(tensor: Any) -> Any:
    return ask(lambda: tensor.grad)


def plain(text: str) -> str:
    """Errors without what names a library or an address."""
    text = re.sub(r",? but expected one of:.*", "", text, flags=re.DOTALL)
    # Which of several views made a value that was written since is a matter of who asked first.
    text = re.sub(r", which is output \d+ of [\w:]+", "", text)
    text = re.sub(r"\[(?:NPU|CPU)(\w+)Type", r"[torch.\1Tensor", text)
    return re.sub(r"0x[0-9a-f]+", "0x0", text).replace("mindtorch_v2", "torch")


def refused(text: str) -> bool:
    return "is not implemented for NPU" in text or "aclnn" in text


def values(tensor: Any) -> list[float]:
    if getattr(tensor, "_is_zerotensor", bool)():
        # PyTorch's zeros without memory, which have no tolist().
        return [0.0] * tensor.numel()
    return [float(value) for value in tensor.detach().reshape(-1).tolist()]


def close(left: list[float], right: list[float], dtype: str, scale: float) -> bool:
    if len(left) != len(right):
        return False
    relative, absolute = TOLERANCES.get(dtype, (0.0, 0.0))
    for a, b in zip(left, right):
        if a == b or (a != a and b != b):
            continue
        if not abs(a - b) <= absolute * scale + relative * abs(b) or math.isinf(b):
            return False
    return True


def left_to_the_library(statement: Statement, machine: Machine) -> bool:
    """Whether PyTorch's own result follows no rule, so that there is nothing to compare."""
    tensors = [machine.pool[operand] for operand in statement.operands if operand in machine.pool]
    if statement.kind in ("long", "copy_", "setitem", "setitem_rows", "type_as", "cast", "cast_copy", "sum_out"):
        # What a number beyond the range of the integers becomes is undefined in C.
        if any(dtype_name(t.dtype) in FLOATS and not all(abs(v) < 1e9 for v in values(t)) for t in tensors):
            return True
    if statement.kind in ("scaling", "recording", "requires_grad_"):
        # PyTorch crashes where a view whose history is lost gets a hook, and does not look at it where its flag is set.
        if isinstance(ask(lambda: tensors[0].grad_fn), str):
            return True
    if statement.kind in RESHAPES and ask(lambda: tensors[0].requires_grad) is not False:
        # Where it is not recorded, whether a gradient of the old shape still fits depends on strides.
        if statement.mode == "no_grad" or ask(lambda: tensors[0].is_leaf) is True:
            return True
        if tensors[0].retains_grad:
            # PyTorch then forgets to.
            return True
    if statement.kind in PRODUCTS and any(dtype_name(t.dtype) == "bool" for t in tensors):
        # A CPU has no products of bools; on an NPU they are sums. What else is wrong is asked before or after.
        if machine.npu or statement.kind != "matmul":
            return True
    if statement.kind == "cumsum_" and dtype_name(tensors[0].dtype) == "bool":
        # PyTorch has no kernel for bools, and asks for none where there is nothing to add up.
        if tensors[0].dim() == 0 or tensors[0].numel() == 0:
            return True
    if statement.kind == "index_add" and tensors[0].numel() == 0:
        # Whether an index into nothing is looked at depends on the number of dimensions, and on the device.
        return True
    if statement.kind in ("atan2", "hypot") and any(dtype_name(t.dtype) == "bool" for t in tensors):
        # PyTorch's derivative negates a bool, which it refuses.
        return True
    if statement.kind in ("topk", "sort") and len(set(values(tensors[0]))) < tensors[0].numel():
        # Which of equal elements comes first, and gets the gradient, is free.
        return True
    if statement.kind in ("step", "index_add") and tensors[0].dim() == 0:
        # Whether it has a dimension to slice, or a history, is asked first.
        return True
    if statement.kind == "mse_loss" and tensors[0].dtype != tensors[1].dtype:
        # Which of the two, or a copy of it, is saved.
        return True
    if machine.npu and statement.kind in ("layer_norm", "mse_loss", "var"):
        if dtype_name(tensors[0].dtype) not in FLOATS:
            # Refused by different parts of it.
            return True
    if statement.kind == "setitem" and dtype_name(tensors[0].dtype) not in FLOATS:
        # An integer tensor then requires grad, in PyTorch and here; its functional form, which has a value to write
        # back and no history for integers, does not.
        if ask(lambda: tensors[1].requires_grad) is not False:
            return True
    place = KINDS[statement.kind].writes
    return place is not None and written_by_no_rule(statement, tensors, place)


def written_by_no_rule(statement: Statement, tensors: list[Any], place: int) -> bool:
    """Whether what a write leaves in tensor number `place` depends on the order of visits, or PyTorch does not notice
    that it does."""
    target = tensors[place]
    if statement.kind.endswith("_out") and ask(lambda: target.requires_grad) is not False:
        if statement.kind in ("sum_out", "cat_out", "matmul_out") or any(t.shape != target.shape for t in tensors):
            # What PyTorch says when a gradient arrives at a tensor that was resized depends on its history and strides.
            return True
    others = [t for t in tensors if t is not target and shared(t, target)]
    if statement.kind == "setitem" and others:
        # The part that is written may meet what is read; with one element a CPU fills, while an NPU copies.
        return True
    if statement.kind in ("sum_out", "matmul_out", "cat_out", "setitem_rows"):
        # These write their result before they have read all of their inputs.
        return bool(others) or sum(t is target for t in tensors) > 1 or expanded(target)
    if statement.kind.endswith("_out") and others and any(t.shape != target.shape for t in tensors):
        # Where `out` grows, it grows over elements that are still to be read.
        return True
    if expanded(target):
        # An error, or a warning; PyTorch's cumsum_ asks for the dimension first.
        if statement.kind == "cumsum_" or others:
            return True
        return any(t is target for t in [*tensors[:place], *tensors[place + 1 :]])
    if len(addresses(target)) < target.numel():
        # PyTorch does not notice.
        return True
    # Which elements a write has already changed when it reads them, where the two meet in memory other than element by
    # element, depends on the order of the visits. PyTorch looks for this only among dense tensors, where it raises.
    return any(meet(t, target) for t in others)


def held(tensor: Any) -> int:
    return int(tensor.untyped_storage().nbytes())


def placed(gradient: Any) -> tuple[Any, ...]:
    return gradient.stride(), gradient._is_view()


def shared(left: Any, right: Any) -> bool:
    return bool(left.untyped_storage().data_ptr() == right.untyped_storage().data_ptr())


def expanded(tensor: Any) -> bool:
    return any(size > 1 and stride == 0 for size, stride in zip(tensor.shape, tensor.stride()))


def meet(left: Any, right: Any) -> bool:
    if (left.shape, left.stride(), left.storage_offset()) == (right.shape, right.stride(), right.storage_offset()):
        return False
    if dense(left) and dense(right):
        return False
    return bool(addresses(left) & addresses(right))


def addresses(tensor: Any) -> set[int]:
    found = {tensor.storage_offset() * tensor.element_size()}
    for size, stride in zip(tensor.shape, tensor.stride()):
        found = {start + step * stride * tensor.element_size() for start in found for step in range(size)}
    return found


def dense(tensor: Any) -> bool:
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


class Lockstep:
    """Two machines, and what has been compared so far."""

    def __init__(self, reference: Machine, other: Machine) -> None:
        self.reference = reference
        self.other = other
        self.ran: list[Statement] = []
        self.raising: set[str] = set()
        self.counts = {"new": 0, "same": 0, "none": 0, "error": 0, "other": 0}
        self.scale = 1.0
        self.rough = "float64"
        self.both = (reference, other)
        reference.npu = other.npu = other.way.device == "npu"

    def fail(self, text: str) -> None:
        raise Mismatch(text, list(self.ran), set(self.raising))

    def step(self, statement: Statement) -> None:
        """Run a statement in both, unless what it names is missing or PyTorch's result follows no rule."""
        if any(operand not in self.reference.names for operand in statement.operands):
            return
        if left_to_the_library(statement, self.reference):
            return
        gradients = [name for name in statement.operands if name in self.reference.gradients]
        if any(placed(self.reference.pool[name]) != placed(self.other.pool[name]) for name in gradients):
            # What can be written or viewed depends on the strides, and on whether the gradient is a view.
            return
        if statement.kind == "as_strided" and len({held(m.pool[statement.operands[0]]) for m in self.both}) == 2:
            # How much memory a result has beside its elements is no rule.
            return
        self.ran.append(statement)
        # A gradient has come through all that the program did.
        behind = self.reference.pool if statement.kind in ENDS or statement.kind in MARKS else statement.operands
        self.rough = self.roughest(behind)
        before = self.written(statement)
        expected = self.reference.run(statement)
        if expected[0] == "error":
            self.raising.add(statement.name)
        actual = self.other.run(statement)
        self.counts[expected[0]] += 1
        if expected[0] == "error":
            check_fault(expected[1][1])
        if judged(statement, expected) != judged(statement, actual):
            self.fail(f"{statement.name}: {show(actual)}, expected {show(expected)}")
        if before is not None and expected[0] == "error":
            # PyTorch itself may have resized or written when it finds the error. The second library must not have.
            after = self.written(statement)
            assert after is not None
            if repr(before[1]) != repr(after[1]):
                self.fail(f"{statement.name}: raises and leaves (before, now) {before[1], after[1]}")
            if repr(before[0]) != repr(after[0]):
                raise Ended("changed")
        for name in {*statement.operands, statement.name}:
            if name in self.reference.pool:
                self.compare(name)

    def written(self, statement: Statement) -> tuple[Any, Any] | None:
        """The tensor that the statement writes, in both."""
        place = KINDS[statement.kind].writes
        if place is None:
            return None
        name = statement.operands[place]
        return tuple((m.facts(name), values(m.pool[name])) for m in (self.reference, self.other))  # type: ignore[return-value]

    def roughest(self, names: Iterable[str]) -> str:
        """The least precise dtype: results in another one may come from it."""
        found = {dtype_name(self.reference.pool[name].dtype) for name in names if name in self.reference.pool}
        return max(found & TOLERANCES.keys(), key=TOLERANCES.__getitem__, default="float64")

    def compare(self, name: str) -> None:
        actual, expected = self.other.facts(name), self.reference.facts(name)
        if actual != expected:
            wrong = {key: (actual[key], expected[key]) for key in expected if actual[key] != expected[key]}
            self.fail(f"{name}: (got, expected) {wrong}")
        self.compare_values(name, self.other.pool[name], self.reference.pool[name])

    def compare_values(self, name: str, left: Any, right: Any) -> None:
        mine, theirs = values(left), values(right)
        if mine == theirs:
            return
        self.scale = max([self.scale, *(abs(value) for value in theirs if math.isfinite(value))])
        dtype = dtype_name(right.dtype)
        if dtype in TOLERANCES:
            dtype = max(dtype, self.rough, key=TOLERANCES.__getitem__)
        if not close(mine, theirs, dtype, self.scale):
            self.fail(f"{name} holds {mine}, expected {theirs}")
        # A rounding must not grow into a difference: a later comparison with zero would turn it into one.
        if not any(stride == 0 for stride in left.stride()) and not any(value != value for value in theirs):
            with self.other.torch.no_grad():
                fresh = self.other.torch.tensor(theirs, dtype=left.dtype, device=left.device)
                left.data.copy_(fresh.reshape(left.shape))

    def finish(self) -> None:
        """Everything, and the gradients."""
        self.rough = self.roughest(self.reference.pool)
        for name in self.reference.pool:
            self.compare(name)
            left, right = gradient_of(self.other.pool[name]), gradient_of(self.reference.pool[name])
            if isinstance(right, str) or isinstance(left, str) or left is None or right is None:
                if not (left is right or (isinstance(left, str) and left == right)):
                    self.fail(f"{name}.grad is {left}, expected {right}")
                continue
            mine, theirs = ((tuple(g.shape), dtype_name(g.dtype), g.requires_grad) for g in (left, right))
            if mine != theirs:
                self.fail(f"{name}.grad is {mine}, expected {theirs}")
            self.compare_values(f"{name}.grad", left, right)
        log, expected = self.other.log, self.reference.log
        if [name for name, _ in log] != [name for name, _ in expected]:
            self.fail(f"hooks ran as {log}, expected {expected}")
        for (name, left), (_, right) in zip(log, expected):
            if not close(flat(left), flat(right), self.rough, self.scale):
                self.fail(f"the hook {name} got {left}, expected {right}")


def judged(statement: Statement, outcome: tuple[str, Any]) -> tuple[str, Any]:
    """Of an error the type; also the words where autograd speaks (which of two faults is named first is no rule)."""
    if outcome[0] == "error" and statement.kind not in ENDS and statement.kind not in MARKS:
        return outcome[0], outcome[1][0]
    return outcome


def flat(nest: Any) -> list[float]:
    if not isinstance(nest, list):
        return [float(nest)]
    return [value for part in nest for value in flat(part)]


def show(outcome: tuple[str, Any]) -> str:
    return f"{outcome[0]} {outcome[1]}" if outcome[1] is not None else outcome[0]


CPU_DTYPES = {"float64": 0.6, "float32": 0.2, "int64": 0.08, "bool": 0.04, "bfloat16": 0.05, "float16": 0.03}
NPU_DTYPES = {"float32": 0.8, "int64": 0.08, "float16": 0.08, "bool": 0.04}


def run(seed: int, reference: Any, other: Any, way: Way, length: int = 12) -> dict[str, int]:
    """Generate and run one program; Mismatch where the libraries differ. Gives counts of what happened."""
    rng = random.Random(seed)
    pair = Lockstep(Machine(reference), Machine(other, way))
    with warnings.catch_warnings():
        # Reading .grad of what is no leaf, and resizing out=, warn.
        warnings.simplefilter("ignore")
        try:
            for statement in opening(rng, NPU_DTYPES if way.device == "npu" else CPU_DTYPES):
                pair.step(statement)
            mode = ""
            for step in range(length):
                # Blocks of a few statements.
                if rng.random() < (0.12 if not mode else 0.35):
                    mode = rng.choice(["no_grad", "no_grad", "enable_grad"]) if not mode else ""
                pair.step(next_statement(rng, f"t{6 + step}", pair.reference.known(), pair.reference.handles, mode))
            pair.finish()
        except Ended as end:
            pair.counts[str(end)] = 1
    return pair.counts


def replay(statements: list[Statement], reference: Any, other: Any, way: Way) -> Mismatch | None:
    pair = Lockstep(Machine(reference), Machine(other, way))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for statement in statements:
                pair.step(statement)
            pair.finish()
        except Mismatch as mismatch:
            return mismatch
        except Ended:
            return None
    return None


def shrink(found: Mismatch, reference: Any, other: Any, way: Way) -> Mismatch:
    """The same difference, or another, with as few statements as dropping one after the other leaves."""
    smaller = True
    while smaller:
        smaller = False
        for place in reversed(range(len(found.statements))):
            if place >= len(found.statements):
                continue
            kept = found.statements[:place] + found.statements[place + 1 :]
            still = replay(kept, reference, other, way)
            if still is not None:
                found, smaller = still, True
    return found


def report(seed: int, found: Mismatch, library: str, way: Way) -> str:
    text = source(found.statements, found.raising, library, way.device, way.functional)
    return f"seed {seed} ({way}): {found.text}\n{text}\n"
