"""Stagers: what makes the copy of a state dict that is written while the program goes on.

Invariant: a copy shares no memory with what it was made of.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from typing_extensions import deprecated

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


@runtime_checkable
class AsyncStager(Protocol):
    """Copies a state dict, at once or in a thread."""

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether `async_save` waits for the copy."""
        return self._synchronize_after_execute

    def stage(self, state_dict: dict[str, Any]) -> Any:
        """The copy, or a future of it."""
        raise NotImplementedError(f"{self.__class__.__name__} must implement stage method")

    @deprecated(
        "`synchronize_staging` is deprecated and will be removed in future versions."
        "Please use staging_future from AsyncSaveResponse instead.",
        category=FutureWarning,
    )
    def synchronize_staging(self) -> None:
        """Wait for the copy."""

    def close(self) -> None:
        """Give back what is held."""


@dataclass
class StagingOptions:
    """How a copy is made."""

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


def _copied(value: Any, pinned: bool, shared: bool, waits: bool) -> Any:
    """A copy on the host: the program may go on and change its tensors."""
    from ... import Tensor, empty_like
    from ..tensor import DTensor

    if isinstance(value, DTensor):
        local = _copied(value._local_tensor, pinned, shared, waits)
        return DTensor(local, value._spec, requires_grad=False)
    if not isinstance(value, Tensor):
        return value
    if not pinned:
        made = value.detach().to("cpu", copy=True, non_blocking=not waits)
    else:
        made = empty_like(value, device="cpu", requires_grad=False, pin_memory=True)
        made.copy_(value.detach(), non_blocking=not waits)
    return made.share_memory_() if shared else made


def copied(state_dict: Any, pinned: bool = False, shared: bool = False, waits: bool = True) -> Any:
    """A copy of all tensors in a state dict, on the host."""
    from ... import accelerator
    from ...utils._pytree import tree_map

    found = tree_map(lambda value: _copied(value, pinned, shared, waits), state_dict)
    if not waits:
        accelerator.synchronize()
    return found


class DefaultStager(AsyncStager):
    """Copies as its options say."""

    _NO_ACCELERATOR = "Non-blocking copy requires that the current accelerator is available."

    def __init__(self, config: StagingOptions | None = None) -> None:
        from ... import accelerator

        self._config = StagingOptions() if config is None else config
        self._staging_executor = ThreadPoolExecutor(max_workers=1) if self._config.use_async_staging else None
        if self._config.use_non_blocking_copy and not accelerator.is_available():
            raise AssertionError(self._NO_ACCELERATOR)
        self._staging_future: Future[Any] | None = None

    def stage(self, state_dict: dict[str, Any], **kwargs: Any) -> Any:
        """The copy, or a future of it."""
        if self._staging_executor is None:
            return self._stage(state_dict)
        self._staging_future = self._staging_executor.submit(self._stage, state_dict)
        return self._staging_future

    def _stage(self, state_dict: dict[str, Any]) -> Any:
        config = self._config
        return copied(state_dict, config.use_pinned_memory, config.use_shared_memory, not config.use_non_blocking_copy)

    def close(self) -> None:
        """Wait for the thread, and end it."""
        if self._staging_executor is not None:
            self._staging_executor.shutdown(wait=True)

    def synchronize_staging(self) -> None:
        """Wait for the copy."""
        if self._staging_future is not None:
            self._staging_future.result()


class BlockingAsyncStager(AsyncStager):
    """Copies in the call; with a cache, into the memory of the copy before."""

    _synchronize_after_execute: bool = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict = cache_staged_state_dict
        self.type_check = type_check
        self.state_dict_cache: Any = None

    def stage(self, state_dict: dict[str, Any]) -> Any:
        """The copy."""
        from ... import Tensor
        from ...utils._pytree import tree_flatten, tree_unflatten

        flat, spec = tree_flatten(state_dict)
        if self.type_check:
            for value in flat:
                if not isinstance(value, (Tensor, int, float, str, bytes, bool, type(None))):
                    raise ValueError(f"Unexpected value type {type(value)}")
        if not self.cache_staged_state_dict:
            return copied(state_dict)
        if self.state_dict_cache is None:
            self.state_dict_cache = copied(state_dict)
            return self.state_dict_cache
        known = [
            _written(old, new) if isinstance(new, Tensor) else new
            for old, new in zip(tree_flatten(self.state_dict_cache)[0], flat)
        ]
        self.state_dict_cache = tree_unflatten(known, spec)
        return self.state_dict_cache

    def synchronize_staging(self) -> None:
        """Nothing: the copy was made in the call."""

    def close(self) -> None:
        """Nothing is held."""


def _written(old: Any, new: Any) -> Any:
    getattr(old, "_local_tensor", old).copy_(getattr(new, "_local_tensor", new).detach())
    return old
