"""`torch._dynamo.utils`: what libraries ask of PyTorch's tracer."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._guards import detect_fake_mode as detect_fake_mode
from .._logging._internal import LazyString as LazyString

# What the tracer would count.
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)


def is_compile_supported(device_type: Any) -> bool:
    """False: there is no compiler for any device."""
    return False


@contextmanager
def disable_cache_limit() -> Iterator[None]:
    """A function may be compiled as often as it is called differently."""
    from . import config

    settings: Any = config
    with settings.patch(recompile_limit=sys.maxsize, accumulated_recompile_limit=sys.maxsize):
        yield


def clone_input(x: Any, *, dtype: Any = None) -> Any:
    """A copy of a tensor with its strides, requiring grad as it does, with a copy of its gradient."""
    from .. import no_grad, preserve_format, strided
    from .._subclasses.fake_tensor import FakeTensor

    if isinstance(x, FakeTensor):
        return x
    with no_grad():
        if x.layout is strided:
            copy = x.clone(memory_format=preserve_format).to(dtype or x.dtype)
            if copy.stride() != x.stride() and 0 not in x.stride():
                copy = x.new_empty_strided(x.size(), x.stride(), dtype=dtype or x.dtype).copy_(x)
        else:
            copy = x.clone()
    if x.is_leaf:
        copy.requires_grad_(x.requires_grad)
        if x.grad is not None:
            copy.grad = clone_input(x.grad, dtype=dtype)
    return copy
