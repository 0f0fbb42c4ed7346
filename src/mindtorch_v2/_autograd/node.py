"""Graph nodes. A node is one recorded call; its edges point to the nodes that made the call's inputs.

Invariant: `_next[i]` is None exactly when input i needs no gradient, and `_nrs[i]` says which result of that node the
input is. Fields begin with an underscore because the node of a custom
Function is the user's `ctx`, whose plain names belong to the user.
"""

from __future__ import annotations

from typing import Any, Final, final

from .. import _native
from .._mypyc import i64, mypyc_attr

# What a node is; the engine branches on this instead of calling an overridable method.
OP: Final[i64] = 0
ACCUMULATE: Final[i64] = 1
FUNCTION: Final[i64] = 2
COPY_SLICES: Final[i64] = 3

# Leaves come before everything else in the order in which the engine runs nodes.
LAST: Final[i64] = 1 << 62

FREED: Final = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)

_track: Final[Any] = _native.track

# Nodes that PyTorch names with their namespace.
_NAMESPACED: Final = frozenset(
    {"AccumulateGrad", "CopySlices", "CopyBackwards", "Error", "NotImplemented", "UndefinedGradBackward"}
)


@final
class Counter:
    """Numbers nodes in the order in which they were made; the engine runs the latest first."""

    next: i64

    def __init__(self) -> None:
        self.next = 0


SEQUENCE: Final = Counter()


@final
class Watch:
    """Whether more is wanted of a recorded call than its node. `hooks` counts the blocks, of all threads, in which
    saved values are packed by users; `on` is what recording looks at. `grad_dtypes` and `loose`: whether a leaf, or how
    many threads, want gradients of another dtype or any layout (`leaf_policy`). `profiler` is told of the nodes that
    run in threads that are profiled."""

    on: bool
    hooks: i64
    anomaly: bool
    check_nan: bool
    grad_dtypes: bool
    loose: i64
    profiler: Any

    def __init__(self) -> None:
        self.on = False
        self.hooks = 0
        self.anomaly = False
        self.check_nan = True
        self.grad_dtypes = False
        self.loose = 0
        self.profiler = None


WATCH: Final = Watch()


@final
class NodeHooks:
    """What users hung on a node.

    tensor: hooks of the tensors it made, by output number. retain: those tensors (weakly) whose `.grad` is wanted.
    pre, post: hooks of the node itself.
    """

    tensor: dict[int, Any] | None
    retain: dict[int, Any] | None
    pre: Any
    post: Any

    def __init__(self) -> None:
        self.tensor = None
        self.retain = None
        self.pre = None
        self.post = None


@mypyc_attr(allow_interpreted_subclasses=True)
class Node:
    """One recorded call."""

    _next: tuple[Node | None, ...]
    _nrs: list[int]
    # What the forward call returned: how many results, the first one's shape, dtype and device, then the others'.
    _results: i64 = 0
    _shape: Any = None
    _dtype: Any = None
    _device: Any = None
    _metas: list[Any] | None = None
    _saved: list[Any] | None = None
    _formulas: Any = None
    _payload: Any = None
    _hooks: NodeHooks | None = None
    _metadata: dict[Any, Any] | None = None
    _seq: i64 = 0
    _kind: i64 = 0
    _need: i64 = 0
    # The engine's note of the pass that saw this node last, and of the node's place in that pass.
    _mark: i64 = 0
    _place: i64 = 0
    # Whether something is saved in a tensor's place, and whether that was released.
    _holds: bool = False
    _freed: bool = False

    def name(self) -> str:
        plain = type(self).__name__
        return "torch::autograd::" + plain if plain in _NAMESPACED else plain

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return tuple([(n, self._nrs[i]) for i, n in enumerate(self._next)])

    @property
    def metadata(self) -> dict[Any, Any]:
        if self._metadata is None:
            self._metadata = {}
            show(self)
        return self._metadata

    def _sequence_nr(self) -> int:
        return self._seq

    def _set_sequence_nr(self, sequence_nr: Any) -> None:
        """Say when the node was made: of nodes that are ready the engine runs the latest first."""
        if not isinstance(sequence_nr, int):
            raise TypeError("an integer is required")
        if sequence_nr < 0:
            raise OverflowError("can't convert negative int to unsigned")
        if sequence_nr >= 1 << 64:
            raise OverflowError("int too big to convert")
        self._seq = min(sequence_nr, (1 << 63) - 1)

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep values for the backward pass, each with the version it has now."""
        from .saved import save_input

        self._saved = [save_input(t) for t in tensors]
        self._holds = True

    def saved_tensors(self) -> tuple[Any, ...]:
        """The kept values; raises if one was written in place since, or if they were freed."""
        if self._freed:
            raise RuntimeError(FREED)
        if self._saved is None:
            return ()
        from .saved import unpacked

        return tuple([unpacked(v, self) for v in self._saved])

    def register_hook(self, fn: Any) -> Any:
        """`fn(grad_inputs, grad_outputs)` after the node ran; what it returns replaces grad_inputs."""
        from .hooks import HookDict, add_hook

        hooks = hooks_of(self)
        if hooks.post is None:
            hooks.post = HookDict()
        return add_hook(hooks.post, fn)

    def register_prehook(self, fn: Any) -> Any:
        """`fn(grad_outputs)` before the node runs; what it returns replaces grad_outputs."""
        from .hooks import HookDict, add_hook

        hooks = hooks_of(self)
        if hooks.pre is None:
            hooks.pre = HookDict()
        return add_hook(hooks.pre, fn)

    def __call__(self, *grads: Any) -> Any:
        from .engine import call_node

        out = call_node(self, list(grads))
        return out[0] if len(out) == 1 else tuple(out)

    def __hash__(self) -> int:
        return id(self) >> 4

    def __eq__(self, other: object) -> bool:
        return self is other


def show(node: Node) -> None:
    """Let the cyclic collector see a node that may refer to what refers to it."""
    _track(node, node._next, node._saved)


def hooks_of(node: Node) -> NodeHooks:
    hooks = node._hooks
    if hooks is None:
        hooks = NodeHooks()
        node._hooks = hooks
        show(node)
    return hooks


def add_meta(node: Node, shape: Any, dt: Any, dev: Any) -> None:
    """Describe one more result of the forward call; None stands for one that is no tensor."""
    if node._results == 0:
        node._shape = shape
        node._dtype = dt
        node._device = dev
    else:
        metas = node._metas
        if metas is None:
            metas = []
            node._metas = metas
        metas.append((shape, dt, dev))
    node._results += 1


def meta(node: Node, nr: int) -> tuple[Any, Any, Any]:
    """Shape, dtype and device of a result."""
    metas = node._metas
    if nr == 0 or metas is None:
        return node._shape, node._dtype, node._device
    got: tuple[Any, Any, Any] = metas[nr - 1]
    return got


def next_sequence() -> i64:
    n = SEQUENCE.next
    SEQUENCE.next = n + 1
    return n


def short_name(node: Node) -> str:
    """The operator behind a node, as PyTorch's messages name it: `Mul` for MulBackward0, `Sum1` for SumBackward1."""
    name = node.name()
    at = name.rfind("Backward")
    tail = name[at + 8 :] if at >= 0 else "x"
    if tail == "" or tail == "0":
        return name[:at]
    return name[:at] + tail if tail.isdigit() else name
