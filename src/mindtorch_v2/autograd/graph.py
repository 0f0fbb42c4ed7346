"""The graph as users see it: nodes and edges, hooks over several gradients, hooks for what is saved.

Invariant: everything here reads nodes that `_autograd.record` made; nothing makes new ones. Hooks for saved values
apply to the thread that entered their block.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from .._autograd.engine import current_pass, gradient_at, will_run
from .._autograd.hooks import RemovableHandle
from .._autograd.node import Node
from .._dispatch.keys import WRITES
from .._dispatch.state import include, set_modes
from .._tensor_base import TensorBase, bump, requires_grad

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor arrives; stands for the tensor in `autograd.grad` and `backward`."""

    node: Node
    output_nr: int
    ownership_token: Node | None = None


def get_gradient_edge(tensor: Any) -> GradientEdge:
    if not isinstance(tensor, TensorBase) or not requires_grad(tensor):
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node, nr = gradient_at(tensor)
    return GradientEdge(node, nr)


def increment_version(tensor: Any) -> None:
    """Tell autograd that the memory of a tensor, or of several, was written behind its back."""
    for t in [tensor] if isinstance(tensor, TensorBase) else tensor:
        if not t.is_inference():
            bump(t)


# -- hooks over several gradients -----------------------------------------------------------------------------------
class _MultiHandle(RemovableHandle):
    """Removes the hooks that together make one."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> tuple[RemovableHandle, ...]:
        return self.handles

    def __setstate__(self, state: tuple[RemovableHandle, ...]) -> None:
        self.handles = state


class _Gathered:
    """The gradients of one pass until the last of them has arrived."""

    def __init__(self, nodes: list[Node]) -> None:
        self.grads: list[Any] = [None] * len(nodes)
        self.missing = sum(will_run(node) for node in nodes)


def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[[Any], None], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` once per pass: with "all", with the list of gradients once every tensor that takes part in the pass has
    its own (None for the others); with "any", with the first gradient there is."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        return _MultiHandle(_first_hooks(tensors, fn))
    nodes = [t.node if isinstance(t, GradientEdge) else gradient_at(t)[0] for t in tensors]
    lock = threading.Lock()
    passes: dict[int, _Gathered] = {}

    def hook_at(place: int) -> Callable[[Any], None]:
        def hook(grad: Any) -> None:
            number = _pass_number()
            with lock:
                found = passes.get(number)
                if found is None:
                    found = passes[number] = _Gathered(nodes)
                found.grads[place] = grad
                found.missing -= 1
                complete = found.missing == 0
            if complete:
                fn(found.grads)
                del passes[number]

        return hook

    return _MultiHandle(tuple(t.register_hook(hook_at(i)) for i, t in enumerate(tensors)))


def _first_hooks(tensors: Sequence[Any], fn: Callable[[Any], None]) -> tuple[RemovableHandle, ...]:
    lock = threading.Lock()
    seen: set[int] = set()

    @functools.wraps(fn)
    def hook(grad: Any) -> None:
        number = _pass_number()
        with lock:
            if number in seen:
                return
            seen.add(number)
        fn(grad)

    return tuple(t.register_hook(hook) for t in tensors if t.requires_grad)


def _pass_number() -> int:
    number = current_pass()
    if number == -1:
        raise AssertionError("expected this hook to be called inside a backward call")
    return number


# -- hooks for what is saved ----------------------------------------------------------------------------------------
@functools.cache
@functools.cache
def _saved_hooks() -> Any:
    """What is loaded when hooks are first asked for."""
    from .._autograd import saved_hooks

    return saved_hooks


class saved_tensors_hooks:
    """Inside the block `pack_hook(tensor)` decides what is kept of a value saved for backward, and
    `unpack_hook(kept)` gives it back when it is needed."""

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if not callable(self.pack_hook) or not callable(self.unpack_hook):
            raise TypeError(
                "_push_saved_tensors_default_hooks(): incompatible function arguments. The following argument types "
                "are supported:\n    1. (pack_hook: Callable, unpack_hook: Callable) -> None\n\n"
                f"Invoked with: {self.pack_hook!r}, {self.unpack_hook!r}"
            )
        _saved_hooks().push_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *args: object) -> None:
        _saved_hooks().pop_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Values saved inside the block are kept on the CPU (in pinned memory if asked for) and moved back when needed."""

    def __init__(self, pin_memory: bool = False, device_type: str = "npu") -> None:
        import mindtorch_v2 as torch

        devices = getattr(torch, device_type, None)

        def pack_to_cpu(tensor: Any) -> tuple[Any, Any]:
            if not pin_memory:
                return tensor.device, tensor.cpu()
            pinned = devices is not None and devices.is_available()
            packed = torch.empty(tensor.size(), dtype=tensor.dtype, pin_memory=pinned)
            packed.copy_(tensor, non_blocking=pinned)
            return tensor.device, packed

        def unpack_from_cpu(packed: tuple[Any, Any]) -> Any:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack_to_cpu, unpack_from_cpu)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside the block, using hooks for saved values raises RuntimeError with this message."""
    if not isinstance(error_message, str):
        raise TypeError(
            "_saved_tensors_hooks_disable(): incompatible function arguments. The following argument types are "
            "supported:\n    1. (error_message: str, fail_if_non_empty: bool = True) -> None\n\n"
            f"Invoked with: {error_message!r}"
        )
    hooks = _saved_hooks()
    before = hooks.disabled_message()
    try:
        hooks.disable_hooks(error_message)
        yield
    finally:
        hooks.disable_hooks(before)


def region_activation_memory_budget(budget: float) -> NoReturn:
    """A hint for compiled regions, of which there are none here: refused, as PyTorch refuses it outside of one."""
    where = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{where}: expects a float, got {type(budget).__name__}")
    if not 0.0 <= budget <= 1.0:
        raise ValueError(f"{where}: must be in [0, 1], got {budget}")
    raise RuntimeError(f"{where} can only be used inside a torch.compile region; it has no effect in eager mode.")


class _Kept:
    """Stands for a saved value; the value lives as long as some node keeps this."""

    __slots__ = ("__weakref__",)


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[Any]:
    """Inside the block values saved for backward may be written: a copy is kept of those that are. Backward has to run
    inside as well. Yields the record of what was copied."""
    from .._autograd.saved_hooks import SavedCopies, current_copies, set_copies

    copies = SavedCopies()

    def pack(tensor: Any) -> _Kept:
        key = _Kept()
        copies.keep(key, tensor)
        return key

    def unpack(key: _Kept) -> Any:
        found = copies.cloned.get(key)
        if found is None:
            found = copies.original.get(key)
        if found is None or current_copies() is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was "
                "originally recorded."
            )
        return found

    if current_copies() is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    with saved_tensors_hooks(pack, unpack):
        old = include(WRITES)
        set_copies(copies)
        try:
            yield copies
        finally:
            set_copies(None)
            set_modes(old)
            copies.clear()
