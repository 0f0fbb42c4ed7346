"""`torch._C._functorch`: levels of transforms, and tensors that stand for many, as PyTorch's tests and tools see them.

Invariant: a level has PyTorch's number, its depth among the transforms that run.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from .._batching import dims
from .._batching.kernel import serve
from .._batching.level import Level, batch_of, begin, end, enter, inside, leave, levels_of, live, transforms
from .._batching.loop import FALLBACK

__all__ = [
    "TransformType",
    "CInterpreter",
    "_add_batch_dim",
    "_grad_decrement_nesting",
    "_grad_increment_nesting",
    "_is_vmap_fallback_enabled",
    "_jvp_decrement_nesting",
    "_jvp_increment_nesting",
    "_remove_batch_dim",
    "_set_vmap_fallback_enabled",
    "_unwrap_batched",
    "_vmap_decrement_nesting",
    "_vmap_increment_nesting",
    "current_level",
    "dlevel",
    "get_dynamic_layer_stack_depth",
    "get_interpreter_stack",
    "get_unwrapped",
    "is_batchedtensor",
    "is_functionaltensor",
    "is_functorch_wrapped_tensor",
    "is_gradtrackingtensor",
    "is_legacy_batchedtensor",
    "maybe_current_level",
    "maybe_get_bdim",
    "maybe_get_level",
    "peek_interpreter_stack",
    "pop_dynamic_layer_stack_and_undo_to_depth",
    "reshape_dim_into",
    "reshape_dim_outof",
]


class TransformType(Enum):
    """Kinds of transforms."""

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4


def _level(depth: int) -> Level:
    for level in live():
        if level.depth == depth:
            return level
    raise RuntimeError(f"no vmap runs at level {depth}; levels of vmap: {[level.depth for level in live()]}")


def _vmap_increment_nesting(batch_size: int, randomness: str) -> int:
    """Begin a level; its number."""
    serve()
    return enter(batch_size, randomness).depth


def _vmap_decrement_nesting() -> int:
    """End the innermost level; the number it had."""
    return leave().depth


def _begin(kind: str) -> int:
    begin(kind)
    return len(transforms())


def _end(kind: str) -> int:
    running = transforms()
    if not running or running[-1] != kind:
        raise RuntimeError(f"the innermost transform is {running[-1] if running else None}, not {kind}")
    end()
    return len(running) + 1


def _grad_increment_nesting() -> int:
    """Begin a level of `grad`; its number. Tensors are not wrapped for it."""
    return _begin("grad")


def _grad_decrement_nesting() -> int:
    """End it; the number it had."""
    return _end("grad")


def _jvp_increment_nesting() -> int:
    return _begin("jvp")


def _jvp_decrement_nesting() -> int:
    return _end("jvp")


def pop_dynamic_layer_stack_and_undo_to_depth(depth: int) -> None:
    """End the innermost transforms until `depth` are left."""
    while len(transforms()) > depth:
        if transforms()[-1] == "vmap":
            leave()
        else:
            end()


_KINDS = {"vmap": TransformType.Vmap, "grad": TransformType.Grad, "jvp": TransformType.Jvp}


class CInterpreter:
    """A transform that runs: its kind and its number."""

    def __init__(self, kind: str, level: int) -> None:
        self._kind, self._level = kind, level

    def key(self) -> TransformType:
        return _KINDS.get(self._kind, TransformType.Functionalize)

    def level(self) -> int:
        return self._level


def get_interpreter_stack() -> list[CInterpreter] | None:
    """The transforms that run, the innermost last; None where there is none."""
    return [CInterpreter(kind, i + 1) for i, kind in enumerate(transforms())] or None


def peek_interpreter_stack() -> CInterpreter | None:
    stack = get_interpreter_stack()
    return None if stack is None else stack[-1]


def _is_vmap_fallback_enabled() -> bool:
    return FALLBACK.allowed


def _set_vmap_fallback_enabled(enabled: bool) -> None:
    """Whether operators without a batching rule may be called for each of the many."""
    FALLBACK.allowed = enabled


def dlevel(tensor: Any) -> int:
    """The level of a tensor, 0 for a plain one, -1 where the level has ended."""
    top = batch_of(tensor)
    if top is None:
        return 0
    return top.level.depth if top.level in live() else -1


def _add_batch_dim(tensor: Any, batch_dim: int, level: int) -> Any:
    return dims.add_batch_dim(tensor, batch_dim, _level(level))


def _remove_batch_dim(tensor: Any, level: int, batch_size: Any, out_dim: int) -> Any:
    found = _level(level)
    if batch_size != found.size:
        raise RuntimeError(f"_remove_batch_dim: level {level} has the size {found.size}, got batch_size={batch_size}")
    return dims.remove_batch_dim(tensor, out_dim, found)


def _unwrap_batched(tensor: Any, level: int) -> tuple[Any, int | None]:
    """What a tensor of the level wraps, and where its many values lie; any other tensor as it is."""
    top = batch_of(tensor)
    if top is None or top.level.depth != level or top.shared:
        return tensor, None
    return inside(tensor, top.level), 0


def is_batchedtensor(tensor: Any) -> bool:
    top = batch_of(tensor)
    return top is not None and not top.shared


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """PyTorch's first `vmap` had tensors of its own; there are none here."""
    return False


def is_gradtrackingtensor(tensor: Any) -> bool:
    """Gradients are recorded on tensors themselves, which nothing wraps for that."""
    return False


def is_functionaltensor(tensor: Any) -> bool:
    """`functionalize` is a mode here, and wraps nothing."""
    return False


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    return bool(levels_of(tensor))


def get_unwrapped(tensor: Any) -> Any:
    if batch_of(tensor) is None:
        raise RuntimeError("No wrappers present!")
    return dims.unwrapped(tensor)


def maybe_get_bdim(tensor: Any) -> int:
    """The dimension of the many in what a tensor wraps, which is the first; -1 where there is none."""
    return 0 if is_batchedtensor(tensor) else -1


def maybe_get_level(tensor: Any) -> int:
    top = batch_of(tensor)
    return -1 if top is None else top.level.depth


def maybe_current_level() -> int | None:
    """The number of the innermost transform."""
    return len(transforms()) or None


def current_level() -> int:
    found = maybe_current_level()
    if found is None:
        raise RuntimeError("no transform of torch.func runs")
    return found


def get_dynamic_layer_stack_depth() -> int:
    return len(transforms())


def reshape_dim_into(src: int, dst: int, x: Any) -> Any:
    """The tensor with the dimension `src` made part of `dst`, which is counted without it."""
    rank = x.dim()
    moved = x.movedim(src, dst % (rank - 1))
    dst %= rank - 1
    return moved.reshape((*moved.shape[:dst], moved.shape[dst] * moved.shape[dst + 1], *moved.shape[dst + 2 :]))


def reshape_dim_outof(src: int, size1: int, x: Any) -> Any:
    """The tensor with a dimension split in two, the first of size `size1`."""
    src %= x.dim()
    if x.shape[src] % size1 != 0:
        raise RuntimeError(f"reshape_dim_outof: {x.shape[src]} elements cannot be split in {size1}")
    return x.reshape((*x.shape[:src], size1, x.shape[src] // size1, *x.shape[src + 1 :]))
