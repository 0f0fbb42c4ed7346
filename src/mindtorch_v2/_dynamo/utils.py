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
