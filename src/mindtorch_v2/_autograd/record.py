"""Recording: from a row's derivative formulas to nodes in the graph, and back again when the node is run.

Invariant: a node has one edge for each differentiable argument of its row (one per tensor for a list argument), in
schema order, and saves exactly the values that the formulas of the inputs needing gradient name.
"""

from __future__ import annotations

from _weakref import ref as _weak
from typing import Any, Final, final

from .. import _native
from .._backends.common.runtime import empty_contiguous, runtime_of
from .._device import device
from .._dispatch.keys import AUTOGRAD
from .._dispatch.op import Derivative, Kernel, Op
from .._dispatch.schema import Schema
from .._dispatch.state import BELOW_AUTOGRAD, _tls_get, set_modes
from .._dtype import dtype
from .._mypyc import i64
from .._tensor_base import TensorBase, differentiable, grad_fn_of, requires_grad, set_history
from .attributes import attribute_names, saved_attribute
from .node import ACCUMULATE, FREED, LAST, OP, WATCH, Node, add_meta, meta, next_sequence
from .saved import Packed, SavedList, SavedOutput, opened, save_lean, save_list, unpacked

_alloc: Final[Any] = _native.alloc_instance
_untrack: Final[Any] = _native.untrack
_ref: Final[Any] = _weak

# Where a formula's parameter comes from.
ARG: Final[i64] = 0
RESULT: Final[i64] = 1
SHAPE: Final[i64] = 2
DTYPE: Final[i64] = 3
STRIDE: Final[i64] = 4
DEVICE: Final[i64] = 5
SHAPES: Final[i64] = 6
OFFSET: Final[i64] = 7
DTYPES: Final[i64] = 8

# Parameters that are not saved: the incoming gradient(s), which inputs want one, and the gradients with None where
# nothing arrived.
GRAD: Final = -1
GRADS: Final = -2
NEEDS: Final = -3
ARRIVED: Final = -4

_SUFFIXES: Final[dict[str, int]] = {
    "_shape": 2,
    "_dtype": 3,
    "_stride": 4,
    "_device": 5,
    "_shapes": 6,
    "_offset": 7,
    "_dtypes": 8,
}


@final
class Slot:
    """One value to keep, and the inputs (as bits) whose formulas need it."""

    def __init__(self, kind: i64, index: i64, tensor: bool) -> None:
        self.kind: Final = kind
        self.index: Final = index
        # In a tensor's place: released after backward, also when it is a number, which PyTorch keeps as a tensor
        # unless it has an overload for numbers.
        self.tensor: Final = tensor
        self.mask: i64 = 0


@final
class Formula:
    """One function that gives the gradient of one or more inputs."""

    def __init__(self, fn: Any, params: list[int], edges: list[int], single: bool) -> None:
        self.fn: Final[Any] = fn
        self.params: Final = params
        self.edges: Final = edges
        self.single: Final = single
        self.count: Final = len(params)
        # A formula of the first result's gradient has nothing to say when that gradient is undefined.
        self.needs_g: Final = GRAD in params
        mask: i64 = 0
        for e in edges:
            mask |= 1 << e
        self.mask: Final = mask


class NodeNames:
    """Node classes by name: `type(t.grad_fn).__name__` is part of PyTorch's interface."""

    def __init__(self) -> None:
        self.classes: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        cls = self.classes.get(name)
        if cls is None:
            # PyTorch's nodes print without a module: <AddBackward0 object at ...>.
            cls = type(
                name,
                (Node,),
                {
                    "__module__": "builtins",
                    "__getattr__": saved_attribute,
                    "__dir__": attribute_names,
                    "requires_grad": True,
                },
            )
            self.classes[name] = cls
        return cls


NAMES: Final = NodeNames()


def camel(name: str) -> str:
    """`nll_loss2d` -> `NllLoss2D`: PyTorch capitalises after a digit too."""
    return "".join([p.title() for p in name.strip("_").split("_")])


def _can_have(dt: Any) -> bool:
    return dt is not None and differentiable(dt)


@final
class Formulas(Derivative):
    """A row's derivatives in the form the recorder uses."""

    def __init__(
        self, op_name: str, schema: Schema, grad: dict[Any, Any], node_name: Any, nondiff: tuple[str, ...]
    ) -> None:
        self.op_name: Final = op_name
        self.schema: Final = schema
        self.node_name: Final[Any] = node_name
        self.positions: list[int] = []
        self.lists: i64 = 0
        self.slots: list[Slot] = []
        self.names: list[str] = []
        self.formulas: list[Formula] = []
        self.self_slot: i64 = -1
        self.node_class: Any = None
        self.single: bool = len(schema.returns) == 1 and not schema.returns[0].is_list
        self.nondiff: list[int] = [i for i, r in enumerate(schema.returns) if r.name in nondiff]
        wanted: list[str] = []
        for key in grad:
            wanted.extend([key] if isinstance(key, str) else list(key))
        for name in wanted:
            i = schema.index(name)
            if i < 0 or schema.args[i].kind != "Tensor":
                raise ValueError(
                    f"row {op_name}: derivative for {name!r}, but its tensor arguments are "
                    f"{[a.name for a in schema.args if a.kind == 'Tensor']}"
                )
        for i, a in enumerate(schema.args):
            if a.name in wanted:
                if a.is_list:
                    self.lists |= 1 << len(self.positions)
                self.positions.append(i)
        self.count: i64 = len(self.positions)
        self.first: i64 = self.positions[0] if self.positions else 0
        self.second: i64 = self.positions[1] if len(self.positions) > 1 else 0
        order = [schema.args[i].name for i in self.positions]
        named: list[tuple[str, Formula]] = []
        for key, fn in grad.items():
            names = [key] if isinstance(key, str) else list(key)
            edges = [order.index(n) for n in names]
            if fn is None:
                continue
            named.append((", ".join(names), Formula(fn, self.params_of(fn), edges, isinstance(key, str))))
        # By name, as in PyTorch: whoever watches the backward pass sees the formulas in that order.
        self.formulas = [f for _, f in sorted(named, key=lambda n: n[0])]
        for f in self.formulas:
            for p in f.params:
                if p >= 0:
                    self.slots[p].mask |= f.mask
        self.saves_results: bool = any([s.kind == RESULT for s in self.slots])
        # The node's name tells whether the operand was a tensor or a number: they are two overloads.
        self.numbered: Final = not (node_name is None or isinstance(node_name, str))
        # Whether each element of the result comes from one of each operand: then a formula is its own transpose.
        self.elementwise: bool = False
        # How tangents are computed where that is not to be done from the formulas (`_ops/tangent_rules`).
        self.tangent: Any = None
        self.tangent_known: bool = False
        self._kernel: Kernel = AutogradKernel(self)

    def params_of(self, fn: Any) -> list[int]:
        code = fn.__code__
        out: list[int] = []
        for p in code.co_varnames[: code.co_argcount]:
            name: str = p
            if name == "g" and self.schema.index("g") < 0:
                out.append(GRAD)
            elif name == "grads":
                out.append(GRADS)
            elif name == "arrived":
                out.append(ARRIVED)
            elif name == "needs":
                out.append(NEEDS)
            else:
                out.append(self.slot(name))
        return out

    def slot(self, name: str) -> int:
        if name in self.names:
            return self.names.index(name)
        kind: i64 = -1
        index: i64 = self.schema.index(name)
        if index >= 0:
            kind = ARG
        elif name == "result":
            kind, index = RESULT, 0
        else:
            for j, r in enumerate(self.schema.returns):
                if r.name == name or name == f"result{j}":
                    kind, index = RESULT, j
            if kind < 0:
                for suffix, k in _SUFFIXES.items():
                    if name.endswith(suffix):
                        i = self.schema.index(name[: -len(suffix)])
                        if i >= 0:
                            kind, index = k, i
        if kind < 0:
            raise ValueError(
                f"row {self.op_name}: a derivative names {name!r}; it may name g, grads, needs, result, "
                f"{', '.join([a.name for a in self.schema.args])}, or <tensor>_shape, _dtype, _stride, _device, "
                "_offset"
            )
        if kind == ARG and name == "self":
            self.self_slot = len(self.slots)
        tensor = kind == RESULT or (kind == ARG and self.schema.args[index].kind == "Tensor")
        self.slots.append(Slot(kind, index, tensor))
        self.names.append(name)
        return len(self.slots) - 1

    def kernel(self) -> Kernel:
        return self._kernel

    def cls(self, args: tuple[Any, ...]) -> Any:
        c = self.node_class
        if c is None:
            n = self.node_name
            if n is None:
                n = camel(self.op_name.split(".")[0]) + "Backward0"
            elif not isinstance(n, str):
                return NAMES.get(n(*args))
            c = NAMES.get(n)
            self.node_class = c
        return c

    def saved_value(self, node: Node, name: str) -> Any:
        if name not in self.names:
            raise AttributeError(f"'{type(node).__name__}' object has no attribute '_saved_{name}'")
        if node._freed or node._saved is None:
            raise RuntimeError(FREED)
        return unpacked(node._saved[self.names.index(name)], node)

    def saves_tensor(self, name: str) -> bool:
        return name in self.names and self.slots[self.names.index(name)].tensor

    # -- forward --------------------------------------------------------------------------------------------------
    def need(self, args: tuple[Any, ...]) -> i64:
        """Bits of the differentiable arguments that require grad."""
        bits: i64 = 0
        j: i64 = 0
        for i in self.positions:
            a = args[i]
            if isinstance(a, TensorBase):
                if requires_grad(a):
                    bits |= 1 << j
            elif a is not None and self.lists & (1 << j):
                for t in a:
                    if isinstance(t, TensorBase) and requires_grad(t):
                        bits |= 1 << j
            j += 1
        return bits

    def start(self, args: tuple[Any, ...], need: i64) -> Node:
        """A node with its edges; what it saves comes with `keep`, what it describes with `finish`. One of several
        inputs may require grad and lead nowhere (a view made in no_grad mode of a tensor with a history): `_need`
        leaves it out."""
        node: Node = _alloc(Node, self.cls(args))
        node._kind = OP
        node._formulas = self
        node._need = need
        node._seq = next_sequence()
        n = self.count
        if n == 1 and self.lists == 0:
            a = args[self.first]
            if isinstance(a, TensorBase):
                node._next = (behind(a),)
                node._nrs = _ZEROS_1 if a._output_nr == 0 else [int(a._output_nr)]
                return node
        elif n == 2 and self.lists == 0:
            a = args[self.first]
            b = args[self.second]
            if isinstance(a, TensorBase):
                if isinstance(b, TensorBase):
                    e = behind(a)
                    e2 = behind(b)
                    node._next = (e, e2)
                    if e is None:
                        node._need &= 2
                    if e2 is None:
                        node._need &= 1
                    node._nrs = (
                        _ZEROS_2 if a._output_nr == 0 and b._output_nr == 0 else [int(a._output_nr), int(b._output_nr)]
                    )
                else:
                    node._next = (behind(a), None)
                    node._nrs = _ZEROS_2 if a._output_nr == 0 else [int(a._output_nr), 0]
                return node
        self.edges(node, args)
        if self.lists == 0:
            for i, e in enumerate(node._next):
                if e is None:
                    node._need &= ~(1 << i)
        return node

    def edges(self, node: Node, args: tuple[Any, ...]) -> None:
        nodes: list[Node | None] = []
        nrs: list[int] = []
        for i in self.positions:
            a = args[i]
            if isinstance(a, TensorBase):
                edge(a, nodes, nrs)
            elif isinstance(a, (tuple, list)):
                for t in a:
                    if isinstance(t, TensorBase):
                        edge(t, nodes, nrs)
                    else:
                        nodes.append(None)
                        nrs.append(0)
            else:
                nodes.append(None)
                nrs.append(0)
        node._next = tuple(nodes)
        node._nrs = nrs

    def keep(self, node: Node, args: tuple[Any, ...], need: i64) -> None:
        """Save the arguments that the formulas of the inputs needing gradient name."""
        slots = self.slots
        if not slots:
            return
        if len(slots) == 1:
            node._saved = [self.kept(node, slots[0], args, need)]
        elif len(slots) == 2:
            node._saved = [self.kept(node, slots[0], args, need), self.kept(node, slots[1], args, need)]
        else:
            node._saved = [self.kept(node, s, args, need) for s in slots]

    def kept(self, node: Node, s: Slot, args: tuple[Any, ...], need: i64) -> Any:
        """The value for one slot; None where no formula that will run names it."""
        if (s.mask & need) == 0:
            return None
        if s.kind == ARG:
            value = args[s.index]
            if s.tensor and not (self.numbered and isinstance(value, (int, float, complex))):
                node._holds = True
            if isinstance(value, TensorBase):
                return save_lean(value)
            return save_list(value) if isinstance(value, (tuple, list)) else value
        if s.kind == RESULT:
            node._holds = True
            return None
        return metadata(s.kind, args[s.index])

    def keep_results(self, node: Node, result: Any, need: i64) -> None:
        saved = node._saved
        if saved is None:
            return
        i: i64 = 0
        for s in self.slots:
            if s.kind == RESULT and s.mask & need:
                r = result if self.single else result[s.index]
                saved[i] = SavedOutput(r, s.index, None) if isinstance(r, TensorBase) else r
            i += 1

    def finish(self, node: Node, result: Any, need: i64) -> None:
        """Give the results their history."""
        if isinstance(result, TensorBase):
            add_meta(node, result._shape, result._dtype, result._device)
            if differentiable(result._dtype):
                set_history(result, node, 0)
        else:
            nr: i64 = 0
            for r in result:
                if isinstance(r, TensorBase):
                    add_meta(node, r._shape, r._dtype, r._device)
                    if differentiable(r._dtype) and int(nr) not in self.nondiff:
                        set_history(r, node, nr)
                else:
                    add_meta(node, None, None, None)
                nr += 1
        if self.saves_results:
            self.keep_results(node, result, need)

    def incoming(self, node: Node) -> int:
        """How many gradients the node takes: one for each result up to the last that can have one."""
        n = int(node._results)
        while n > 1 and (n - 1 in self.nondiff or not _can_have(meta(node, n - 1)[1])):
            n -= 1
        return n

    # -- backward -------------------------------------------------------------------------------------------------
    def apply(self, node: Node, grads: list[Any], need: i64) -> list[Any]:
        """Gradients for the edges of the node that `need` names, from the gradients of its results."""
        if node._freed:
            raise RuntimeError(FREED)
        try:
            return self.gradients(node, grads, need)
        except RuntimeError:
            # PyTorch unpacks all saved values before it computes, by name: the first one that was written to is named.
            saved = node._saved
            if saved is not None:
                for i in self.in_order():
                    if not isinstance(saved[i], (Packed, SavedList)):
                        unpacked(saved[i], node)
            raise

    def in_order(self) -> list[int]:
        """The slots in the order in which PyTorch unpacks them: inputs, then results, each by name."""
        return sorted(range(len(self.slots)), key=lambda i: (self.slots[i].kind == RESULT, self.names[i]))

    def gradients(self, node: Node, grads: list[Any], need: i64) -> list[Any]:
        out: list[Any] = [None] * len(node._next)
        saved = node._saved
        if node._hooks is not None and saved is not None:
            saved = opened(saved, node)
        if need != node._need and saved is not None:
            # What no formula of this pass names must not have been written to either.
            for v in saved:
                unpacked(v, node)
        for f in self.formulas:
            if (f.mask & need) == 0 or (f.needs_g and grads[0] is None):
                continue
            p = f.params
            n = f.count
            # Calls with few arguments go without a tuple.
            if n == 1:
                got = f.fn(self.value(p[0], f, node, saved, grads, need))
            elif n == 2:
                got = f.fn(self.value(p[0], f, node, saved, grads, need), self.value(p[1], f, node, saved, grads, need))
            elif n == 3:
                got = f.fn(
                    self.value(p[0], f, node, saved, grads, need),
                    self.value(p[1], f, node, saved, grads, need),
                    self.value(p[2], f, node, saved, grads, need),
                )
            elif n == 4:
                got = f.fn(
                    self.value(p[0], f, node, saved, grads, need),
                    self.value(p[1], f, node, saved, grads, need),
                    self.value(p[2], f, node, saved, grads, need),
                    self.value(p[3], f, node, saved, grads, need),
                )
            elif n == 5:
                got = f.fn(
                    self.value(p[0], f, node, saved, grads, need),
                    self.value(p[1], f, node, saved, grads, need),
                    self.value(p[2], f, node, saved, grads, need),
                    self.value(p[3], f, node, saved, grads, need),
                    self.value(p[4], f, node, saved, grads, need),
                )
            else:
                got = f.fn(*[self.value(k, f, node, saved, grads, need) for k in p])
            if f.single:
                self.place(out, node, f.edges[0], got)
            else:
                for k, e in enumerate(f.edges):
                    self.place(out, node, e, got[k])
        return out

    def value(self, p: int, f: Formula, node: Node, saved: list[Any] | None, grads: list[Any], need: i64) -> Any:
        """What a formula's parameter stands for."""
        if p >= 0:
            if saved is None:
                raise RuntimeError(FREED)
            return unpacked(saved[p], node)
        if p == GRAD:
            return grads[0]
        if p == GRADS:
            return materialized(node, grads)
        if p == ARRIVED:
            return tuple(grads)
        return tuple([(need & (1 << e)) != 0 for e in f.edges])

    def place(self, out: list[Any], node: Node, e: int, got: Any) -> None:
        if self.lists == 0:
            out[e] = got
            return
        # A list argument spreads over several edges; those before it are single.
        at = 0
        for j in range(e):
            at += self.width(node, j)
        if self.lists & (1 << e):
            if got is not None:
                for k, g in enumerate(got):
                    out[at + k] = g
        else:
            out[at] = got

    def width(self, node: Node, j: int) -> int:
        if self.lists & (1 << j):
            return len(node._next) - (len(self.positions) - 1)
        return 1


def metadata(kind: i64, a: Any) -> Any:
    if isinstance(a, TensorBase):
        if kind == SHAPE:
            return a._shape
        if kind == DTYPE:
            return a._dtype
        if kind == STRIDE:
            return a._stride
        if kind == DEVICE:
            return a._device
        if kind == OFFSET:
            return a._offset
    if kind == SHAPES:
        return [t._shape for t in a]
    if kind == DTYPES:
        return [t._dtype for t in a]
    # A number in a tensor's place has no dimensions.
    return () if kind in (SHAPE, STRIDE) else None


def zeros_at(shape: tuple[int, ...], dt: dtype, dev: device) -> TensorBase:
    t = empty_contiguous(shape, dt, dev)
    runtime_of(t).fill(t, 0)
    return t


def materialized(node: Node, grads: list[Any]) -> tuple[Any, ...]:
    """All gradients, zeros where nothing arrived."""
    out: list[Any] = []
    for i, g in enumerate(grads):
        if g is None:
            shape, dt, dev = meta(node, i)
            if shape is not None:
                g = zeros_at(shape, dt, dev)
        out.append(g)
    return tuple(out)


NO_EDGES: Final[tuple[Node | None, ...]] = ()
ZEROS: Final[list[list[int]]] = [[0] * n for n in range(8)]


def node_behind(t: TensorBase) -> Node | None:
    """The node the gradient of `t` goes to; None when it needs none."""
    fn = grad_fn_of(t)
    if fn is not None:
        return fn
    return accumulator(t) if t._keys & AUTOGRAD else None


def number_of(t: Any) -> int:
    """Which result of its node a tensor is."""
    return t._output_nr if isinstance(t, TensorBase) and t._grad_fn is not None else 0


# Edges nearly always lead to the first result of a node; nobody changes these lists.
_ZEROS_0: Final[list[int]] = []
_ZEROS_1: Final[list[int]] = [0]
_ZEROS_2: Final[list[int]] = [0, 0]
_NO_NODES: Final[list[Node | None]] = []


def behind(t: TensorBase) -> Node | None:
    """The node over which the gradient of `t` arrives; which of its results `t` is, `t._output_nr` says."""
    fn = grad_fn_of(t)
    if fn is None and t._keys & AUTOGRAD:
        return accumulator(t)
    return fn


def edge(t: TensorBase, nodes: list[Node | None], nrs: list[int]) -> None:
    """Append the edge to the node behind `t`."""
    nodes.append(behind(t))
    nrs.append(t._output_nr)


_ACCUMULATE_GRAD: Final[Any] = NAMES.get("AccumulateGrad")


def accumulator(t: TensorBase) -> Node:
    """The node that adds into a leaf's `.grad`. The leaf knows it weakly: the graph keeps it, and it keeps the leaf."""
    ref = t._accumulator
    if ref is not None:
        found = ref()
        if found is not None:
            got: Node = found
            return got
    node: Node = _alloc(Node, _ACCUMULATE_GRAD)
    node._kind = ACCUMULATE
    node._seq = LAST
    node._payload = t
    node._next = NO_EDGES
    node._nrs = ZEROS[0]
    add_meta(node, t._shape, t._dtype, t._device)
    if WATCH.grad_dtypes:
        from .leaf_policy import grad_dtype

        node._dtype = grad_dtype(t)
    t._accumulator = _weak(node)
    if WATCH.anomaly:
        from .observe import started

        started(node)
    return node


_BELOW: Final[i64] = (AUTOGRAD << 32) | BELOW_AUTOGRAD


def run_below(op: Op, args: tuple[Any, ...], keys: i64) -> Any:
    """Run the rest of the call without recording it again."""
    rest = keys & ~AUTOGRAD
    kernel = op.below(rest, args)
    if not kernel.calls_ops or kernel.guarded:
        return kernel.run(op, args, rest)
    return run_hidden(kernel, op, args, rest)


def run_hidden(kernel: Kernel, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
    """Run a kernel whose operators record nothing."""
    old: i64 = _tls_get()
    set_modes(old | _BELOW)
    try:
        return kernel.run(op, args, keys)
    finally:
        set_modes(old)


@final
class AutogradKernel(Kernel):
    """Runs a functional operator or a view and records it."""

    def __init__(self, formulas: Formulas) -> None:
        self.formulas: Final = formulas

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        f = self.formulas
        need = f.need(args)
        if need == 0:
            return run_below(op, args, keys)
        # First the edges: a view that lost its history says so before the operator looks at shapes.
        node = f.start(args, need)
        if WATCH.on:
            return run_watched(f, node, need, op, args, keys)
        result = run_below(op, args, keys)
        f.keep(node, args, node._need)
        f.finish(node, result, need)
        # A graph has no cycles of its own; what could close one (hooks, user data) shows the node to the collector.
        _untrack(node, node._next, node._saved)
        return result


def run_watched(f: Formulas, node: Node, need: i64, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
    """The same while users want more done: what is saved of the inputs is packed before the operator runs."""
    from .observe import finished, started

    f.keep(node, args, node._need)
    started(node)
    result = run_below(op, args, keys)
    f.finish(node, result, need)
    finished(node, result)
    return result


@final
class CastDerivative(Derivative):
    """An operator that is recorded only if its result, of the dtype at `place` among the arguments, can have a
    gradient. A cast to integers does not even look at the history, which may be lost."""

    def __init__(self, formulas: Formulas, place: i64) -> None:
        self.formulas: Final = formulas
        self._kernel: Kernel = CastAutograd(formulas, place)

    def kernel(self) -> Kernel:
        return self._kernel


@final
class CastAutograd(Kernel):
    def __init__(self, formulas: Formulas, place: i64) -> None:
        self.recorded: Final[Kernel] = formulas.kernel()
        self.place: Final = place

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        dt = args[self.place]
        if isinstance(dt, dtype) and not differentiable(dt):
            return run_below(op, args, keys)
        return self.recorded.run(op, args, keys)


@final
class NotDifferentiable(Derivative):
    """An operator whose result has no gradient on purpose (comparisons, argmax, ...)."""

    def __init__(self) -> None:
        self._kernel: Kernel = PassKernel()

    def kernel(self) -> Kernel:
        return self._kernel


@final
class PassKernel(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        return run_below(op, args, keys)


@final
class NoDerivative(Kernel):
    """No row may lack a derivative silently: the result is computed, its backward says what is missing."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        raise NotImplementedError(
            f"the derivative for '{op.name}' is not implemented: its row in _ops/ declares neither grad= nor "
            "nondifferentiable=True"
        )


NO_GRADIENT: Final = NotDifferentiable()
NO_DERIVATIVE: Final = NoDerivative()


def run_formulas(node: Node, grads: list[Any], need: i64) -> list[Any]:
    """What the formulas of an operator's node give. A hook may have put anything in the place of a gradient or of a
    saved value: what Python says of a formula then is told of the node.
    """
    f: Formulas = node._formulas
    try:
        return f.apply(node, grads, need)
    except Exception as error:
        from .._dispatch.unforeseen import told_again

        told = told_again(error, node.name(), ["grad"], tuple(grads))
        if told is None:
            raise
        raise told from None
