"""The reverse pass: runs the graph from its roots, latest node first, with an explicit queue and no recursion.

Invariant: a node runs once, after every node that feeds it has run; what arrives over several edges is summed. Saved
values are released as soon as their node has run unless the graph is kept.
"""

from __future__ import annotations

import _heapq
import _thread
from typing import Any, Final, final

from .._backends.common.runtime import empty_contiguous, runtime_of
from .._core_operators import CORE, HOOKS
from .._device import device
from .._dispatch.keys import AUTOGRAD, BATCHED, PROFILE, PYTHON, SPARSE, TORCH_DISPATCH
from .._dispatch.state import modes, set_modes
from .._dtype import dtype
from .._layout import preserve_format
from .._mypyc import i64
from .._tensor_base import TensorBase, grad_fn_of, requires_grad
from .function_node import FunctionNode, apply_function, release_function
from .gradients import accumulate_into, acquire, fit, fit_root, leave, sum_to, warn_of_cycle
from .inplace import Slice, slice_of
from .node import ACCUMULATE, COPY_SLICES, FREED, FUNCTION, OP, WATCH, Node, NodeHooks
from .record import Formulas, accumulator, run_formulas
from .saved import release

_AUTOGRAD_OFF: Final[i64] = AUTOGRAD << 32
_PYTHON_OFF: Final[i64] = PYTHON << 32
_heappush: Final[Any] = _heapq.heappush
_heappop: Final[Any] = _heapq.heappop


_NOTHING: Final[list[Any]] = []


@final
class Visit:
    """A node in one pass: what it still waits for, what has arrived, and where its gradients go."""

    def __init__(self, node: Node) -> None:
        self.node: Final = node
        self.next: list[Visit | None] = _NOTHING
        self.grads: list[Any] | None = None
        self.waiting: i64 = 0
        self.explored: bool = False
        self.edge: i64 = 0
        # On the way to a wanted input: its gradients must be computed.
        self.needed: bool = False
        self.captures: list[tuple[int, int]] | None = None


@final
class Task:
    """One backward pass."""

    def __init__(self, keep: bool, everything: bool, formulas: i64, users: i64) -> None:
        self.number: i64 = 0
        self.keep: Final = keep
        self.anomaly: Final = WATCH.anomaly
        self.profiler: Final[Any] = WATCH.profiler if users & PROFILE else None
        self.watched: Final = WATCH.anomaly or self.profiler is not None
        self.reported: bool = False
        self.everything: Final = everything
        # The thread's modes while formulas run, and while user code does: only the latter sees `__torch_function__`.
        self.formulas: Final = formulas
        self.users: Final = users
        self.visits: list[Visit] = []
        self.heap: list[Any] = []
        self.results: list[Any] = []
        self.ticket: i64 = 0
        # Set when user code is about to run, which may ask for the pass it is in.
        self.known: bool = False
        self.callbacks: list[Any] | None = None
        # The root if there is only one: PyTorch does not count it among the nodes that a pass runs.
        self.root: Node | None = None
        # Made when somebody asks which nodes the pass runs.
        self.index: dict[Node, Visit] | None = None


@final
class Passes:
    """Numbers the passes, so that a node's note of an earlier pass is not taken for this one's."""

    count: i64

    def __init__(self) -> None:
        self.count = 0


PASSES: Final = Passes()

# The passes this thread is in, for callbacks queued from hooks.
CURRENT: Final[Any] = _thread._local()
# How many of them one thread's stack has room for.
DEPTH: Final = 30


def current_tasks() -> list[Task]:
    tasks: list[Task] | None = getattr(CURRENT, "tasks", None)
    if tasks is None:
        tasks = []
        CURRENT.tasks = tasks
    return tasks


def queue_callback(fn: Any) -> None:
    """Run `fn` when the pass this thread is in has ended."""
    running = current_tasks()
    if not running:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    task = running[len(running) - 1]
    if task.callbacks is None:
        task.callbacks = []
    task.callbacks.append(fn)


def current_pass() -> int:
    """The number of the pass this thread is in; -1 outside of one."""
    running = current_tasks()
    return int(running[len(running) - 1].number) if running else -1


def will_run(node: Any) -> bool:
    """Whether the pass this thread is in runs a node, or ran it."""
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    running = current_tasks()
    if not running:
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    task = running[len(running) - 1]
    if node is task.root:
        return False
    if task.index is None:
        task.index = {v.node: v for v in task.visits if v.explored}
    v: Visit | None = task.index.get(node)
    if v is None or not (task.everything or v.needed or v.captures is not None):
        return False
    if node._kind == ACCUMULATE and v.captures is not None:
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is "
            "currently not supported."
        )
    return True


def runs_everything() -> bool:
    """Whether the passes this thread is in go to all leaves, so that a pass within them may accumulate."""
    for task in current_tasks():
        if not task.everything:
            return False
    return True


def make_known(task: Task) -> None:
    if not task.known:
        current_tasks().append(task)
        task.known = True


def finish(task: Task) -> None:
    """Run the callbacks, which may queue further ones."""
    while task.callbacks:
        pending = task.callbacks
        task.callbacks = None
        for fn in pending:
            fn()


def gradient_at(t: TensorBase) -> tuple[Node, int]:
    """The edge over which the gradient of `t` arrives."""
    node = grad_fn_of(t)
    if node is not None:
        return node, int(t._output_nr)
    return accumulator(t), 0


def has_edge(t: TensorBase) -> bool:
    """Whether a gradient can arrive: a view made without recording requires grad through its base, but has no edge."""
    return grad_fn_of(t) is not None or (t._keys & AUTOGRAD) != 0


def input_edge(t: Any) -> tuple[Node, int]:
    """The edge at which a gradient is asked for; a GradientEdge is one already."""
    if not isinstance(t, TensorBase):
        if isinstance(t, tuple) and len(t) >= 2 and isinstance(t[0], Node):
            node: Node = t[0]
            nr: int = t[1]
            return node, nr
        raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(t).__name__}")
    if not requires_grad(t):
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return gradient_at(t)


def leads_elsewhere(outputs: list[TensorBase], inputs: list[TensorBase]) -> bool:
    """Whether the graph behind the outputs leads to any leaf but the inputs."""
    own = {id(t) for t in inputs}
    known: set[int] = set()
    todo: list[Node] = []
    for t in outputs:
        made = grad_fn_of(t)
        if made is not None:
            todo.append(made)
        elif requires_grad(t) and id(t) not in own:
            return True
    while todo:
        node = todo.pop()
        if id(node) in known:
            continue
        known.add(id(node))
        if node._kind == ACCUMULATE and id(node._payload) not in own:
            return True
        for n in node._next:
            if n is not None:
                todo.append(n)
    return False


def grad_one(t: TensorBase, gradient: Any, inputs: tuple[Any, ...], keep: bool, create: bool) -> list[Any]:
    """`autograd.grad` of one tensor."""
    if gradient is not None:
        gradient = root_gradient(gradient, t._shape, t._dtype, 0)
    elif requires_grad(t):
        gradient = ones_of(t)
    if not has_edge(t):
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    edges = [input_edge(x) for x in inputs]
    node, nr = gradient_at(t)
    return run_backward([node], [nr], [gradient], keep, create, edges, False)


def backward_one(t: TensorBase, gradient: Any, keep: bool, create: bool) -> None:
    """`t.backward(gradient)`."""
    if gradient is not None:
        gradient = root_gradient(gradient, t._shape, t._dtype, 0)
    elif requires_grad(t):
        gradient = ones_of(t)
    if not has_edge(t):
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    node, nr = gradient_at(t)
    run_backward([node], [nr], [gradient], keep, create, None, True)


def ones_of(t: TensorBase) -> Any:
    """The gradient of a scalar by itself; a tensor with a handler is asked for it."""
    if ((t._keys | modes()) & TORCH_DISPATCH) == 0:
        return ones_at(t._shape, t._dtype, t._device)
    return CORE.ones_like.call((t, None, None, None, False, preserve_format))


def ones_at(shape: tuple[int, ...], dt: dtype, dev: device) -> Any:
    """The gradient of a scalar by itself."""
    for s in shape:
        if s != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if not dt.is_floating_point:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {dt}")
    t = empty_contiguous(shape, dt, dev)
    runtime_of(t).fill(t, 1)
    return t


def root_gradient(g: Any, shape: tuple[int, ...], dt: dtype, i: int) -> Any:
    """Check the gradient that was given for output `i`."""
    if not isinstance(g, TensorBase):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    if g._shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of torch.Size({list(g._shape)}) and output[{i}] has a "
            f"shape of torch.Size({list(shape)})."
        )
    if g._dtype.is_complex != dt.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{i}] has a dtype of {g._dtype} and output[{i}] has a dtype of {dt}."
        )
    return g if g._dtype is dt else CORE.to_copy.call((g, dt, None, None, False))


def run_backward(
    nodes: list[Node],
    nrs: list[int],
    grads: list[Any],
    keep: bool,
    create: bool,
    inputs: list[tuple[Node, int]] | None,
    accumulate: bool,
) -> list[Any]:
    """Run from the roots. With `inputs`, only towards those edges; without `accumulate` the gradients that arrive there
    are returned in order, otherwise they end in `.grad`."""
    if create and accumulate:
        warn_of_cycle()
    old = modes()
    users = old & ~_AUTOGRAD_OFF if create else old | _AUTOGRAD_OFF
    task = Task(keep, inputs is None, users | _PYTHON_OFF, users)
    roots: list[Visit] = []
    # Nodes carry a note of the pass that explores them, so only one pass explores at a time.
    acquire()
    try:
        stamp = PASSES.count + 1
        PASSES.count = stamp
        task.number = stamp
        if inputs is not None:
            want(task, stamp, inputs, accumulate)
        for node in nodes:
            roots.append(explore(task, stamp, node))
    finally:
        leave()
    i: i64 = 0
    for v in roots:
        deliver(v, nrs[i], fit_root(v.node, nrs[i], int(i), grads[i]))
        i += 1
    single = len(roots) == 1
    if single:
        task.root = nodes[0]
    if not single:
        for v in roots:
            if v.waiting == 0:
                v.waiting = -1
                push(task, v)
    set_modes(task.formulas)
    try:
        loop(task, roots[0] if single else None)
        if task.callbacks is not None:
            set_modes(users)
            finish(task)
    finally:
        if task.known:
            current_tasks().pop()
        set_modes(old)
    return task.results


def visit(task: Task, stamp: i64, node: Node) -> Visit:
    v = Visit(node)
    node._mark = stamp
    node._place = len(task.visits)
    task.visits.append(v)
    return v


def want(task: Task, stamp: i64, inputs: list[tuple[Node, int]], accumulate: bool) -> None:
    """Mark the edges whose gradients are asked for."""
    for i, e in enumerate(inputs):
        node, nr = e
        v = task.visits[node._place] if node._mark == stamp else visit(task, stamp, node)
        if accumulate:
            v.needed = True
        else:
            task.results.append(None)
            if v.captures is None:
                v.captures = []
            v.captures.append((nr, i))


def explore(task: Task, stamp: i64, root: Node) -> Visit:
    """Find every node behind `root` that was not found before and count the edges that lead to each."""
    if root._mark == stamp:
        top = task.visits[root._place]
        if top.explored:
            return top
    else:
        top = visit(task, stamp, root)
    if not task.everything:
        explore_inputs(task, stamp, top)
        return top
    stack: list[Visit] = [top]
    while stack:
        v = stack.pop()
        v.explored = True
        below = v.node._next
        if len(below) == 1:
            v.next = [reach(task, stamp, below[0], stack)]
        else:
            v.next = [reach(task, stamp, node, stack) for node in below]
    return top


def reach(task: Task, stamp: i64, node: Node | None, stack: list[Visit]) -> Visit | None:
    """Follow an edge; a node seen for the first time is put on the stack."""
    if node is None:
        return None
    if node._mark == stamp:
        w = task.visits[node._place]
    else:
        w = visit(task, stamp, node)
    w.waiting += 1
    if not w.explored:
        w.explored = True
        if node._kind != ACCUMULATE:
            stack.append(w)
    return w


def explore_inputs(task: Task, stamp: i64, top: Visit) -> None:
    """The same depth first: when a node is left, it is known whether a wanted input lies behind it."""
    top.explored = True
    stack: list[Visit] = [top]
    while stack:
        v = stack[len(stack) - 1]
        below = v.node._next
        depth = len(stack)
        while v.edge < len(below):
            if v.edge == 0:
                v.next = []
            node = below[v.edge]
            v.edge += 1
            v.next.append(reach(task, stamp, node, stack))
            if len(stack) > depth:
                break
        if len(stack) > depth:
            continue
        stack.pop()
        if not v.needed:
            for w in v.next:
                if w is not None and (w.needed or w.captures is not None):
                    v.needed = True
                    break


def push(task: Task, v: Visit) -> None:
    task.ticket += 1
    _heappush(task.heap, (-int(v.node._seq), int(task.ticket), v))


def loop(task: Task, ready: Visit | None) -> None:
    heap = task.heap
    while True:
        # A chain has one successor at a time: run it at once, without going through the queue.
        while ready is not None and not heap:
            ready = step(task, ready)
        if ready is not None:
            push(task, ready)
        if not heap:
            return
        v: Visit = _heappop(heap)[2]
        ready = step(task, v)


def step(task: Task, v: Visit) -> Visit | None:
    """Run one node and hand its gradients on. Returns one successor that became ready, queues any others."""
    return step_watched(task, v) if task.watched else step_plain(task, v)


def step_plain(task: Task, v: Visit) -> Visit | None:
    node = v.node
    if node._hooks is None and node._kind != FUNCTION and (node._kind != ACCUMULATE or node._payload._hooks is None):
        return run(task, v)
    # User code may ask for the pass it is in.
    make_known(task)
    set_modes(task.users)
    ready = run(task, v) if len(current_tasks()) <= DEPTH else run_elsewhere(task, v)
    set_modes(task.formulas)
    return ready


def run_elsewhere(task: Task, v: Visit) -> Visit | None:
    """The same where passes lie too deep inside each other for this thread's stack."""
    from .reentrant import elsewhere

    ready: Visit | None = elsewhere(run_known, task, v)
    return ready


def run_known(task: Task, v: Visit) -> Visit | None:
    current_tasks().append(task)
    return run(task, v)


def step_watched(task: Task, v: Visit) -> Visit | None:
    """A step that the profiler or anomaly detection wants to know of."""
    if task.profiler is None:
        return step_suspected(task, v)
    event = task.profiler.begin_evaluation(v.node)
    try:
        return step_suspected(task, v) if task.anomaly else step_plain(task, v)
    finally:
        task.profiler.finish(event)


def step_suspected(task: Task, v: Visit) -> Visit | None:
    """A step under anomaly detection: an error is reported with the forward call behind it."""
    from .anomaly import enter, leave, report

    make_known(task)
    outer = enter(v.node)
    try:
        return step_plain(task, v)
    except Exception:
        set_modes(task.users)
        # A leaf's step runs within that of the node before it, which did not fail.
        if not task.reported:
            task.reported = True
            report(v.node)
        raise
    finally:
        leave(outer)
        set_modes(task.formulas)


def run(task: Task, v: Visit) -> Visit | None:
    node = v.node
    grads = v.grads
    if grads is None:
        grads = [None] * node._results
    v.grads = None
    hooks = node._hooks
    if not task.everything:
        if not v.needed:
            # A single root's hooks run even where no wanted input lies behind it, those of several roots do not.
            if v.captures is not None or node is task.root:
                run_tensor_hooks(node, hooks, grads)
            if v.captures is not None:
                capture(task, v.captures, grads)
            return None
        if v.captures is not None:
            capture(task, v.captures, grads)
    event = task.profiler.begin_node(node, grads) if task.watched and task.profiler is not None else None
    if node._kind == ACCUMULATE:
        accumulate(task, node, hooks, grads)
        if event is not None:
            task.profiler.finish(event)
        return None
    if hooks is not None:
        run_tensor_hooks(node, hooks, grads)
        if hooks.pre is not None:
            grads = run_pre_hooks(hooks.pre, grads)
        out = apply_hooked(task, v, hooks, grads)
    elif task.everything or node._kind != OP:
        out = apply_node(node, grads)
    else:
        out = apply_towards(v, grads)
    if event is not None:
        task.profiler.finish(event)
    if not task.keep:
        release_node(node)
    if task.anomaly:
        check_nan(node, out)
    grads = out  # what arrived is let go: a gradient that is a view of it may be the last to hold it
    ready: Visit | None = None
    i: i64 = 0
    after = v.next
    # Cut what has been walked, or the visits of a long chain would be freed by recursion.
    v.next = _NOTHING
    for w in after:
        if w is not None:
            if task.everything or w.needed or w.captures is not None:
                hand_on(node, i, out, w)
            w.waiting -= 1
            if w.waiting == 0:
                if w.node._kind == ACCUMULATE and task.profiler is None:
                    # Leaves come before everything else in any case; a profiler sees them beside this node, not in it.
                    step(task, w)
                else:
                    if ready is not None:
                        push(task, ready)
                    ready = w
        i += 1
    return ready


def apply_towards(v: Visit, grads: list[Any]) -> list[Any]:
    """Gradients for the edges of an operator's node that lead to a wanted input."""
    node = v.node
    f: Formulas = node._formulas
    need: i64 = 0
    j: i64 = 0
    at = 0
    while j < f.count:
        for _ in range(f.width(node, int(j))):
            if leads(v.next[at]):
                need |= 1 << j
            at += 1
        j += 1
    return run_formulas(node, grads, need & node._need)


def leads(w: Visit | None) -> bool:
    return w is not None and (w.needed or w.captures is not None)


def apply_hooked(task: Task, v: Visit, hooks: NodeHooks, grads: list[Any]) -> list[Any]:
    """Run a node that has hooks. Those after it see gradients that fit the inputs already."""
    node = v.node
    if node._kind == FUNCTION:
        out = apply_node(node, grads)
    else:
        set_modes(task.formulas)
        out = apply_node(node, grads) if task.everything or node._kind != OP else apply_towards(v, grads)
        set_modes(task.users)
    if hooks.post is None:
        return out
    i = 0
    for below in node._next:
        if node._kind == COPY_SLICES and not task.everything and not leads(v.next[i]):
            out[i] = None
        if below is not None and out[i] is not None:
            nr = node._nrs[i]
            out[i] = fit(node, i, below, nr, out[i])
        i += 1
    return run_post_hooks(hooks.post, out, grads)


def check_nan(node: Node, out: list[Any]) -> None:
    if WATCH.check_nan:
        from .anomaly import refuse_nan

        refuse_nan(node, out)


def hand_on(node: Node, i: i64, out: list[Any], w: Visit) -> None:
    """Move a gradient to the node it is for; nothing here keeps it, so that a leaf may take it as its own."""
    g = out[i]
    if g is not None:
        out[i] = None
        nr = node._nrs[i]
        deliver(w, nr, fit(node, int(i), w.node, nr, g))


def capture(task: Task, wanted: list[tuple[int, int]], grads: list[Any]) -> None:
    for nr, slot in wanted:
        task.results[slot] = grads[nr]


def deliver(v: Visit, nr: int, g: Any) -> None:
    """Add a gradient to what has arrived at a node."""
    grads = v.grads
    if grads is None:
        n = v.node._results
        if n == 1:
            v.grads = [g]
            return
        grads = [None] * n
        v.grads = grads
    old = grads[nr]
    if old is not None and old._keys & SPARSE:
        # Only a dense tensor takes a sparse one.
        old, g = g, old
    grads[nr] = g if old is None else CORE.add.call((old, g, 1))


# -- running nodes ------------------------------------------------------------------------------------------------
def apply_node(node: Node, grads: list[Any]) -> list[Any]:
    """Gradients for every edge of a node."""
    if node._kind == OP:
        return run_formulas(node, grads, node._need)
    if node._kind == FUNCTION:
        assert isinstance(node, FunctionNode)
        return apply_function(node, grads)
    if node._kind == COPY_SLICES:
        return apply_copy_slices(node, grads)
    if grads[0] is not None:
        accumulate_into(node._payload, grads)
    return []


def call_node(node: Node, grads: list[Any]) -> list[Any]:
    """`node(*grads)`, as a user writes it."""
    for i, g in enumerate(grads):
        if g is not None and not isinstance(g, TensorBase):
            raise TypeError(f"argument {i} is not a Variable")
    results = max(int(node._results), 1)
    expected = results
    if node._kind == OP:
        f: Formulas = node._formulas
        expected = f.incoming(node)
    if len(grads) != expected:
        raise TypeError(f"expected {expected} arguments, got {len(grads)} instead")
    return apply_node(node, grads + [None] * (results - expected))


def apply_copy_slices(node: Node, grads: list[Any]) -> list[Any]:
    """The gradient of a write through a view: outside the view it passes, inside it goes through the written value."""
    if node._freed:
        raise RuntimeError(FREED)
    s: Slice = node._payload
    g = grads[0]
    out: list[Any] = [None] * len(node._next)
    if g is None:
        return out
    whole = HOOKS.dense_like(g, s.base_shape, s.base_stride)
    part = slice_of(whole, s)
    inner = apply_node(s.inner, [CORE.clone.call((part, None))])
    at: i64 = s.target
    if node._next[0] is not None:
        first = inner[at] if at >= 0 else None
        if first is None:
            CORE.zero_.call((part,))
        else:
            if first._shape != part._shape:
                first = sum_to(first, part._shape)
            if first._keys & BATCHED:
                # What is written is one for each of the many, so what it is written into must be.
                whole = HOOKS.dense_like(HOOKS.many_like(g, first), s.base_shape, s.base_stride)
                part = slice_of(whole, s)
            CORE.copy_.call((part, first, False))
        out[0] = whole
    i: i64 = 0
    k: i64 = 1
    for got in inner:
        if i != at:
            out[k] = got
            k += 1
        i += 1
    return out


def release_node(node: Node) -> None:
    if node._kind == OP:
        release(node)
    elif node._kind == COPY_SLICES:
        # The node of the write itself may also be part of the graph, by way of a result it saved.
        node._payload = None
        node._freed = True
    elif node._kind == FUNCTION:
        release_function(node)


# -- leaves -------------------------------------------------------------------------------------------------------
def accumulate(task: Task, node: Node, hooks: NodeHooks | None, grads: list[Any]) -> None:
    """Add into a leaf's `.grad`, with the hooks around it."""
    leaf: TensorBase = node._payload
    if leaf._hooks is not None:
        leaf._hooks.run(grads, 0)
    if hooks is not None and hooks.pre is not None:
        grads = run_pre_hooks(hooks.pre, grads)
    if grads[0] is not None:
        if leaf._grad_fn is not None:
            raise RuntimeError("leaf variable has been moved into the graph interior")
        # A leaf may have been detached in place since it was used.
        if leaf._keys & AUTOGRAD:
            accumulate_into(leaf, grads)
    if leaf._hooks is not None:
        leaf._hooks.run_post_accumulate(leaf)
    if hooks is not None and hooks.post is not None:
        run_post_hooks(hooks.post, [], grads)


# -- hooks --------------------------------------------------------------------------------------------------------
def run_tensor_hooks(node: Node, hooks: NodeHooks | None, grads: list[Any]) -> None:
    """Hooks registered on the tensors a node made, then `retain_grad`."""
    if node._kind == ACCUMULATE:
        if node._payload._hooks is not None:
            node._payload._hooks.run(grads, 0)
        return
    if hooks is None:
        return
    if hooks.tensor is not None:
        for nr, t in hooks.tensor.items():
            t.run(grads, nr)
    if hooks.retain is not None:
        for nr, ref in hooks.retain.items():
            t = ref()
            if t is not None and grads[nr] is not None:
                retain(t, grads[nr])


def retain(t: TensorBase, g: Any) -> None:
    """`.grad` of a non-leaf."""
    if t._grad_field is None:
        t._grad_field = CORE.clone.call((g, None))
    else:
        t._grad_field = CORE.add.call((t._grad_field, g, 1))


def run_pre_hooks(hooks: Any, grads: list[Any]) -> list[Any]:
    for fn in list(hooks.values()):
        got = fn(tuple(grads))
        if got is not None:
            grads = checked(fn, got, len(grads))
    return grads


def run_post_hooks(hooks: Any, out: list[Any], grads: list[Any]) -> list[Any]:
    for fn in list(hooks.values()):
        got = fn(tuple(out), tuple(grads))
        if got is not None:
            out = checked(fn, got, len(out))
    return out


def checked(fn: Any, got: Any, expected: int) -> list[Any]:
    """The gradients a node's hook returned in place of those it got."""
    if not isinstance(got, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(got).__name__}'")
    new = list(got)
    if len(new) != expected:
        name = getattr(fn, "__name__", "<unknown>")
        raise RuntimeError(
            f"hook '{name}' has returned an incorrect number of values (got {len(new)}, but expected {expected})"
        )
    return new
