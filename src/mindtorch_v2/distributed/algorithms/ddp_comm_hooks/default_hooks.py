"""Hooks that reduce a bucket as it is, or in half precision.

Invariant: a hook returns a future of the mean, in the buffer's dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import _dtype as _t
from ....futures import Future
from ... import distributed_c10d as dist

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

Hook = Callable[[Any, Any], Future[Any]]


def _allreduce_fut(process_group: Any, tensor: Any) -> Future[Any]:
    """The mean of a tensor, later."""
    group = process_group if process_group is not None else dist.group.WORLD
    assert group is not None
    tensor.div_(group.size())
    work = dist.all_reduce(tensor, group=group, async_op=True)
    mean: Future[Any] = work.get_future().then(lambda done: done.value()[0])
    return mean


def allreduce_hook(process_group: Any, bucket: Any) -> Future[Any]:
    """What DDP does without a hook."""
    return _allreduce_fut(process_group, bucket.buffer())


def _compress_hook(dtype: Any, process_group: Any, bucket: Any) -> Future[Any]:
    group = process_group if process_group is not None else dist.group.WORLD
    assert group is not None
    buffer = bucket.buffer()
    small = buffer.to(dtype).div_(group.size())
    work = dist.all_reduce(small, group=group, async_op=True)

    def back(done: Future[Any]) -> Any:
        done.value()
        buffer.copy_(small)
        return buffer

    mean: Future[Any] = work.get_future().then(back)
    return mean


def fp16_compress_hook(process_group: Any, bucket: Any) -> Future[Any]:
    """Reduce in float16."""
    return _compress_hook(_t.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Future[Any]:
    """Reduce in bfloat16."""
    return _compress_hook(_t.bfloat16, process_group, bucket)


def _wrapped(hook: Hook, dtype: Any) -> Hook:
    def wrapper(state: Any, bucket: Any) -> Future[Any]:
        full = bucket.buffer()
        bucket.set_buffer(full.to(dtype))

        def back(done: Future[Any]) -> Any:
            full.copy_(done.value())
            return full

        return hook(state, bucket).then(back)

    return wrapper


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that gets its bucket in float16."""
    return _wrapped(hook, _t.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that gets its bucket in bfloat16."""
    return _wrapped(hook, _t.bfloat16)
