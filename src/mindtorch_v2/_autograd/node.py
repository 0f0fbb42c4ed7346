"""Graph nodes. A node is one recorded call; its edges point to the nodes that made the call's inputs.

Invariant: `next_nodes[i]` is None exactly when input i needs no gradient; `metas` describes what the node was given as
outputs of the forward call, three entries (shape, dtype, device) for each.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from mypy_extensions import i64, mypyc_attr

if TYPE_CHECKING:
    from .saved import SavedTensor

# What a node is; the engine branches on this instead of calling an overridable method.
OP: Final[i64] = 0
ACCUMULATE: Final[i64] = 1
PYTHON_FUNCTION: Final[i64] = 2
COPY_SLICES: Final[i64] = 3
CALLABLE: Final[i64] = 4

_LAST: Final[i64] = (1 << 62)

FREED: Final = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


@final
class Counter:
    """Numbers nodes in the order in which they were made; the engine runs the latest first."""

    next: i64

    def __init__(self) -> None:
        self.next = 0


SEQUENCE: Final = Counter()


@mypyc_attr(allow_interpreted_subclasses=True)
class Node:
    """One recorded call."""

    next_nodes: list[Node | None]
    next_nrs: list[int]
    metas: list[Any]
    saved: list[Any] | None = None
    formulas: Any = None
    payload: Any = None
    pre_hooks: Any = None
    retain_hooks: Any = None
    node_pre_hooks: Any = None
    post_hooks: Any = None
    extra: Any = None
    seq: i64 = 0
    kind: i64 = 0
    need: i64 = 0
    freed: bool = False

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return tuple([(n, self.next_nrs[i]) for i, n in enumerate(self.next_nodes)])

    @property
    def metadata(self) -> dict[Any, Any]:
        if self.extra is None:
            self.extra = {}
        out: dict[Any, Any] = self.extra
        return out

    def _sequence_nr(self) -> int:
        return self.seq

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep values for the backward pass, each with the version it has now."""
        from .saved import save_input

        self.saved = [save_input(t) for t in tensors]

    def saved_tensors(self) -> tuple[Any, ...]:
        """The kept values; raises if one was written in place since, or if they were freed."""
        if self.freed:
            raise RuntimeError(FREED)
        if self.saved is None:
            return ()
        from .saved import SavedTensor

        return tuple([v.unpack(self) if isinstance(v, SavedTensor) else v for v in self.saved])

    def register_hook(self, fn: Any) -> Any:
        from .hooks import add_hook

        if self.post_hooks is None:
            self.post_hooks = {}
        return add_hook(self.post_hooks, fn)

    def register_prehook(self, fn: Any) -> Any:
        from .hooks import add_hook

        if self.node_pre_hooks is None:
            self.node_pre_hooks = {}
        return add_hook(self.node_pre_hooks, fn)

    def __call__(self, *grads: Any) -> Any:
        from .engine import apply_node

        out = apply_node(self, list(grads))
        return out[0] if len(out) == 1 else tuple(out)

    def __hash__(self) -> int:
        return id(self) >> 4

    def __eq__(self, other: object) -> bool:
        return self is other


def next_sequence() -> i64:
    n = SEQUENCE.next
    SEQUENCE.next = n + 1
    return n


def release(node: Node) -> None:
    """Drop saved values after a backward pass that does not keep the graph."""
    if node.saved is not None:
        node.saved = None
        node.freed = True


LAST: Final[i64] = _LAST
