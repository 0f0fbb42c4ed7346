"""The reverse pass: runs the graph from its roots, latest node first, with an explicit queue and no recursion.

Invariant: a node runs once, after every node that feeds it has run; what arrives over several edges is summed. Saved
values are released as soon as their node has run unless the graph is kept.
"""
from __future__ import annotations

import heapq
import threading
from typing import Any, Final, final

from mypy_extensions import i64

from .._dispatch.keys import AUTOGRAD
from .._dispatch.state import modes, set_modes
from .._tensor_base import HOT, TensorBase, numel
from .inplace import Slice, slice_of
from .node import ACCUMULATE, CALLABLE, COPY_SLICES, FREED, OP, PYTHON_FUNCTION, Node, release
from .record import Formulas

_AUTOGRAD_OFF: Final[i64] = AUTOGRAD << 32
_heappush: Final[Any] = heapq.heappush
_heappop: Final[Any] = heapq.heappop
_LOCK: Final[Any] = threading.RLock()
# Above this many elements a kernel may let other threads run, so adding into a shared `.grad` needs the lock.
_BIG: Final[i64] = 16384


@final
class Buffer:
    """What has arrived at a node so far. `owned[i]`: nobody else holds gradient i, so a leaf may keep it as it is."""

    def __init__(self, n: i64) -> None:
        self.grads: list[Any] = [None] * n
        self.owned: i64 = 0


@final
class Task:
    """One backward pass."""

    def __init__(self, keep: bool, create: bool, accumulate: bool) -> None:
        self.keep: Final = keep
        self.create: Final = create
        self.accumulate: Final = accumulate
        self.waiting: dict[Node, int] = {}
        self.buffers: dict[Node, Buffer] = {}
        self.heap: list[Any] = []
        self.needed: dict[Node, bool] | None = None
        self.captures: dict[Node, dict[int, int]] = {}
        self.results: list[Any] = []
        self.ticket: i64 = 0
        self.callbacks: list[Any] = []


# The passes this thread is in, for callbacks queued from hooks.
CURRENT: Final[Any] = threading.local()


def current_tasks() -> list[Task]:
    tasks: list[Task] | None = getattr(CURRENT, "tasks", None)
    if tasks is None:
        tasks = []
        CURRENT.tasks = tasks
    return tasks


def run_backward(nodes: list[Node], nrs: list[int], grads: list[Any], keep: bool, create: bool,
                 inputs: list[tuple[Node, int]] | None, accumulate: bool) -> list[Any]:
    """Run from the roots. With `inputs`, only towards those edges; the gradients there are returned in order."""
    task = Task(keep, create, accumulate)
    order = count(task, nodes)
    if inputs is not None:
        restrict(task, order, inputs)
    for i, root in enumerate(nodes):
        deliver(task, root, nrs[i], grads[i], False)
    for root in nodes:
        if task.waiting.get(root, 0) == 0 and root in task.buffers:
            push(task, root)
            task.waiting[root] = -1
    old = modes()
    set_modes(old & ~_AUTOGRAD_OFF if create else old | _AUTOGRAD_OFF)
    running = current_tasks()
    running.append(task)
    try:
        loop(task)
        while task.callbacks:
            pending = task.callbacks
            task.callbacks = []
            for fn in pending:
                fn()
    finally:
        running.pop()
        set_modes(old)
    return task.results


def count(task: Task, roots: list[Node]) -> list[Node]:
    """Count, for every reachable node, the edges that lead to it. Returns the nodes in the order of discovery."""
    waiting = task.waiting
    seen: dict[Node, bool] = {}
    stack: list[Node] = []
    order: list[Node] = []
    for r in roots:
        if r not in seen:
            seen[r] = True
            stack.append(r)
            order.append(r)
    while stack:
        node = stack.pop()
        for nxt in node.next_nodes:
            if nxt is not None:
                waiting[nxt] = waiting.get(nxt, 0) + 1
                if nxt not in seen:
                    seen[nxt] = True
                    stack.append(nxt)
                    order.append(nxt)
    return order


def restrict(task: Task, order: list[Node], inputs: list[tuple[Node, int]]) -> None:
    """Mark the nodes from which one of the wanted edges can be reached."""
    for i, e in enumerate(inputs):
        node, nr = e
        where = task.captures.get(node)
        if where is None:
            where = {}
            task.captures[node] = where
        where[(nr << 20) | i] = i
        task.results.append(None)
    parents: dict[Node, list[Node]] = {}
    for node in order:
        for nxt in node.next_nodes:
            if nxt is not None:
                known = parents.get(nxt)
                if known is None:
                    parents[nxt] = [node]
                else:
                    known.append(node)
    needed: dict[Node, bool] = {}
    stack: list[Node] = []
    for node in task.captures:
        stack.append(node)
    marked: dict[Node, bool] = {}
    while stack:
        node = stack.pop()
        for p in parents.get(node, []):
            needed[p] = True
            if p not in marked:
                marked[p] = True
                stack.append(p)
    task.needed = needed


def push(task: Task, node: Node) -> None:
    task.ticket += 1
    _heappush(task.heap, (-int(node.seq), int(task.ticket), node))


def loop(task: Task) -> None:
    heap = task.heap
    while heap:
        node: Node = _heappop(heap)[2]
        buffer = task.buffers.pop(node)
        ready = step(task, node, buffer)
        # A chain has one successor at a time: run it at once, without going through the queue.
        while ready is not None and not heap:
            node = ready
            buffer = task.buffers.pop(node)
            ready = step(task, node, buffer)
        if ready is not None:
            push(task, ready)


def step(task: Task, node: Node, buffer: Buffer) -> Node | None:
    """Run one node and hand its gradients on. Returns one successor that became ready, queues any others."""
    grads = buffer.grads
    if node.pre_hooks is not None or node.retain_hooks is not None or (
            node.kind == ACCUMULATE and node.payload._hooks is not None):
        run_tensor_hooks(node, grads)
        buffer.owned = 0
    if task.needed is not None:
        where = task.captures.get(node)
        if where is not None:
            for key, slot in where.items():
                task.results[slot] = grads[key >> 20]
            buffer.owned = 0
        if node not in task.needed:
            # Beyond the wanted inputs; a wanted leaf itself is run only by backward(inputs=...).
            if not (where is not None and task.accumulate and node.kind == ACCUMULATE):
                if where is not None and task.accumulate:
                    retain_at(node, grads)
                return None
        elif where is not None and task.accumulate and node.kind != ACCUMULATE:
            retain_at(node, grads)
    if node.node_pre_hooks is not None:
        grads = run_node_pre_hooks(node, grads)
        buffer.owned = 0
    if node.kind == ACCUMULATE:
        accumulate(task, node, grads[0], (buffer.owned & 1) != 0)
        if node.post_hooks is not None:
            run_post_hooks(node, [], grads)
        return None
    out = apply_node(node, grads)
    if node.post_hooks is not None:
        out = run_post_hooks(node, out, grads)
    if not task.keep:
        release_node(node)
    ready: Node | None = None
    i: i64 = 0
    for nxt in node.next_nodes:
        if nxt is not None:
            g = out[i]
            if g is not None:
                deliver(task, nxt, node.next_nrs[i], check(node, int(i), nxt, node.next_nrs[i], g),
                        is_own(g, grads, out, i))
            left = task.waiting[nxt] - 1
            task.waiting[nxt] = left
            if left == 0:
                if nxt not in task.buffers:
                    # Nothing defined arrived, but what hangs below may still be waiting for this node's word.
                    task.buffers[nxt] = Buffer(len(nxt.metas) // 3)
                if ready is not None:
                    push(task, ready)
                ready = nxt
        i += 1
    return ready


def is_own(g: Any, grads: list[Any], out: list[Any], i: i64) -> bool:
    """Whether a gradient is fresh memory that goes to one place only."""
    if not isinstance(g, TensorBase) or g._base_field is not None:
        return False
    s = g._storage
    for other in grads:
        if isinstance(other, TensorBase) and other._storage is s:
            return False
    j: i64 = 0
    for other in out:
        if j != i and isinstance(other, TensorBase) and other._storage is s:
            return False
        j += 1
    return True


def deliver(task: Task, node: Node, nr: int, g: Any, owned: bool) -> None:
    """Add a gradient to what has arrived at a node."""
    buffer = task.buffers.get(node)
    if buffer is None:
        buffer = Buffer(len(node.metas) // 3)
        task.buffers[node] = buffer
    old = buffer.grads[nr]
    if old is None:
        buffer.grads[nr] = g
        if owned:
            buffer.owned |= 1 << nr
    else:
        buffer.grads[nr] = HOT.add.call((old, g, 1))
        buffer.owned |= 1 << nr


def check(node: Node, i: int, nxt: Node, nr: int, g: Any) -> Any:
    """Fit a gradient to its input: sum what was broadcast, cast to its dtype."""
    if not isinstance(g, TensorBase):
        raise TypeError(f"{node.name()} returned a {type(g).__name__} as gradient {i}; expected a Tensor")
    metas = nxt.metas
    shape: tuple[int, ...] = metas[3 * nr]
    if g._shape != shape:
        if not expandable(shape, g._shape):
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {i} - got {list(g._shape)} but expected "
                f"shape compatible with {list(shape)}")
        g = sum_to(g, shape)
    dt = metas[3 * nr + 1]
    if g._dtype is not dt:
        if g._dtype.is_complex and not dt.is_complex:
            g = HOT.real.call((g,))
        if g._dtype is not dt:
            g = HOT.to_copy.call((g, dt, None, None))
    dev = metas[3 * nr + 2]
    if g._device is not dev and g._device != dev:
        raise RuntimeError(
            f"Function {node.name()} returned an invalid gradient at index {i} - expected device {dev} but got "
            f"{g._device}")
    return g


def expandable(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether `shape` broadcasts to `to`."""
    d = len(to) - len(shape)
    if d < 0:
        return False
    for i, s in enumerate(shape):
        if s != to[d + i] and s != 1:
            return False
    return True


def sum_to(g: Any, shape: tuple[int, ...]) -> Any:
    """Undo broadcasting."""
    if len(shape) == 0:
        return HOT.sum.call((g, None, False, None))
    lead = len(g._shape) - len(shape)
    dims: list[int] = list(range(lead))
    for i, s in enumerate(shape):
        if s == 1 and g._shape[lead + i] != 1:
            dims.append(lead + i)
    if dims:
        g = HOT.sum.call((g, tuple(dims), True, None))
    return HOT.view.call((g, shape)) if lead else g


# -- running nodes ------------------------------------------------------------------------------------------------
def apply_node(node: Node, grads: list[Any]) -> list[Any]:
    """Gradients for every edge of a node."""
    if node.kind == OP:
        f: Formulas = node.formulas
        return f.apply(node, grads)
    if node.kind == COPY_SLICES:
        return apply_copy_slices(node, grads)
    if node.kind == PYTHON_FUNCTION or node.kind == CALLABLE:
        out: list[Any] = node.payload.apply_backward(node, grads)
        return out
    accumulate_into(node.payload, grads[0], False)
    return []


def apply_copy_slices(node: Node, grads: list[Any]) -> list[Any]:
    """The gradient of a write through a view: outside the view it passes, inside it goes through the written value."""
    s: Slice = node.payload
    if node.freed:
        raise RuntimeError(FREED)
    g = grads[0]
    out: list[Any] = [None] * len(node.next_nodes)
    if g is None:
        return out
    whole = HOT.dense_like(g, s.base_shape, s.base_stride)
    part = slice_of(whole, s)
    inner = apply_node(s.inner, [HOT.clone.call((part, None))])
    first = inner[0]
    if node.next_nodes[0] is not None:
        if first is None:
            part.zero_()
        else:
            if first._shape != part._shape:
                first = sum_to(first, part._shape)
            part.copy_(first)
        out[0] = whole
    for i in range(1, len(out)):
        out[i] = inner[i]
    return out


def release_node(node: Node) -> None:
    if node.kind == COPY_SLICES:
        s: Slice = node.payload
        release(s.inner)
        node.freed = True
    elif node.kind == PYTHON_FUNCTION:
        node.payload.release(node)
    else:
        release(node)


def accumulate(task: Task, node: Node, g: Any, owned: bool) -> None:
    if g is None:
        return
    leaf: TensorBase = node.payload
    if numel(leaf) > _BIG:
        with _LOCK:
            accumulate_into(leaf, g, owned and not task.create)
    else:
        accumulate_into(leaf, g, owned and not task.create)
    hooks = leaf._hooks
    if hooks is not None:
        hooks.run_post_accumulate(leaf)


def accumulate_into(leaf: TensorBase, g: Any, owned: bool) -> None:
    """Add into `.grad`: keep the gradient itself when nobody else holds it and its layout fits, else a copy."""
    old = leaf._grad_field
    recording = (modes() & _AUTOGRAD_OFF) == 0
    if old is None:
        if owned and g._stride == leaf._stride:
            leaf._grad_field = g
        else:
            leaf._grad_field = HOT.grad_copy(g, leaf)
    elif recording:
        leaf._grad_field = HOT.add.call((old, g, 1))
    else:
        HOT.add_.call((old, g, 1))


# -- hooks --------------------------------------------------------------------------------------------------------
def run_tensor_hooks(node: Node, grads: list[Any]) -> None:
    """Hooks registered on the tensors a node made, then `retain_grad`."""
    if node.kind == ACCUMULATE:
        hooks = node.payload._hooks
        if grads[0] is not None:
            grads[0] = hooks.run(grads[0])
        return
    if node.pre_hooks is not None:
        for nr, hooks in node.pre_hooks.items():
            if grads[nr] is not None:
                grads[nr] = hooks.run(grads[nr])
    if node.retain_hooks is not None:
        for nr, ref in node.retain_hooks.items():
            t = ref()
            if t is not None and grads[nr] is not None:
                retain(t, grads[nr])


def retain(t: TensorBase, g: Any) -> None:
    """`.grad` of a non-leaf."""
    if t._grad_field is None:
        t._grad_field = HOT.clone.call((g, None))
    else:
        t._grad_field = HOT.add.call((t._grad_field, g, 1))


def retain_at(node: Node, grads: list[Any]) -> None:
    """backward(inputs=...) with a non-leaf input accumulates into that tensor's `.grad`."""
    extra = node.extra
    if extra is not None and "accumulate_into" in extra:
        for nr, t in extra.pop("accumulate_into").items():
            if grads[nr] is not None:
                retain(t, grads[nr])


def run_node_pre_hooks(node: Node, grads: list[Any]) -> list[Any]:
    for fn in list(node.node_pre_hooks.values()):
        got = fn(tuple(grads))
        if got is not None:
            grads = list(got) if isinstance(got, (tuple, list)) else [got]
    return grads


def run_post_hooks(node: Node, out: list[Any], grads: list[Any]) -> list[Any]:
    for fn in list(node.post_hooks.values()):
        got = fn(tuple(out), tuple(grads))
        if got is not None:
            out = list(got) if isinstance(got, (tuple, list)) else [got]
    return out
