"""Methods written by hand that PyTorch's argument parser guards: their arguments are checked as it would check them.

Invariant: a method is called only with arguments that fit one of its signatures.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .complaint import of_signatures, parse, read, unpacking


def parsed(*texts: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Signatures as PyTorch prints them, without the tensor: `@parsed("int dim = None", "*, torch.layout layout")`."""
    signatures = [read(text) for text in texts]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        bare = any(parse(name, each, (), {}) is None and unpacking(name, each, (), {}) is None for each in signatures)

        @functools.wraps(function)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if bare and not args and not kwargs:
                return function(self)
            for signature in signatures:
                if parse(name, signature, args, kwargs) is None and unpacking(name, signature, args, kwargs) is None:
                    return function(self, *args, **kwargs)
            raise of_signatures(name, list(texts), len(texts) > 1, args, kwargs)

        return call

    return decorate
