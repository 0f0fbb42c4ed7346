"""`torch._numpy.random`: random numbers by NumPy's names, from PyTorch's generator.

Invariant: a number without a size is one of Python's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy

import mindtorch_v2 as torch

from ._dtypes import default_dtypes
from ._normalizations import ArrayLike, array_or_scalar, normalizer


def use_numpy_random() -> bool:
    """Whether numbers come from NumPy's own generator, by a setting of traced programs."""
    from .._dynamo import config

    return bool(getattr(config, "use_numpy_random_stream", False))


def _stream(function: Callable[..., Any]) -> Any:
    """A function that asks NumPy's where the setting says so."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if not use_numpy_random():
            return function(*args, **kwargs)
        from ._ndarray import asarray, ndarray

        given = [x.tensor.numpy() if isinstance(x, ndarray) else x for x in args]
        result = getattr(numpy.random, function.__name__)(*given, **kwargs)
        return asarray(result) if isinstance(result, numpy.ndarray) else result

    return wrapped


@_stream
def seed(seed: Any = None) -> None:
    """Set where the sequence of numbers begins."""
    if seed is not None:
        torch.random.manual_seed(seed)


def _shape(size: Any) -> tuple[tuple[int, ...], bool]:
    """Sizes, and whether one number is asked for."""
    if size is None:
        return (), True
    return (size,) if isinstance(size, int) else tuple(size), False


@_stream
def random_sample(size: Any = None) -> Any:
    """Uniform numbers from zero up to one."""
    shape, one = _shape(size)
    return array_or_scalar(torch.empty(shape, dtype=default_dtypes().float_dtype).uniform_(), return_scalar=one)


@_stream
def random(size: Any = None) -> Any:
    """Uniform numbers from zero up to one."""
    return random_sample(size)


@_stream
def sample(size: Any = None) -> Any:
    """Uniform numbers from zero up to one."""
    return random_sample(size)


@_stream
def rand(*size: Any) -> Any:
    """Uniform numbers of a shape."""
    return random_sample(None if size == () else size)


@_stream
def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    """Uniform numbers between bounds."""
    shape, one = _shape(size)
    values = torch.empty(shape, dtype=default_dtypes().float_dtype).uniform_(low, high)
    return array_or_scalar(values, return_scalar=one)


@_stream
def randn(*size: Any) -> Any:
    """Numbers of the standard normal distribution, of a shape."""
    return normal(size=None if size == () else size)


@_stream
def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    """Numbers of a normal distribution."""
    shape, one = _shape(size)
    values = torch.empty(shape, dtype=default_dtypes().float_dtype).normal_(loc, scale)
    return array_or_scalar(values, return_scalar=one)


@_stream
def randint(low: Any, high: Any = None, size: Any = None) -> Any:
    """Whole numbers from one bound up to another."""
    if high is None:
        low, high = 0, low
    shape, one = _shape(size)
    return array_or_scalar(torch.randint(low, high, size=shape), int, return_scalar=one)


@_stream
def shuffle(x: Any) -> None:
    """Put the rows of an array in a random order, in place."""
    from ._ndarray import ndarray

    if isinstance(x, torch.Tensor):
        tensor = x
    elif isinstance(x, ndarray):
        tensor = x.tensor
    else:
        raise NotImplementedError("We do not random.shuffle lists in-place")
    tensor.copy_(tensor[torch.randperm(tensor.shape[0])])


@_stream
@normalizer
def choice(a: ArrayLike, size: Any = None, replace: Any = True, p: ArrayLike | None = None) -> Any:
    """Elements drawn at random."""
    if a.numel() == 1:
        a = torch.arange(a.item() if a.dim() == 0 else a)
    shape: Any = (1,) if size is None else (size,) if isinstance(size, int) else tuple(size)
    weights = torch.ones_like(a) / a.shape[0] if p is None else p / p.sum()
    drawn = torch.multinomial(weights, math.prod(shape), replacement=replace)
    return a[drawn.reshape(shape)]


__all__ = [
    "choice",
    "normal",
    "rand",
    "randint",
    "randn",
    "random",
    "random_sample",
    "sample",
    "seed",
    "shuffle",
    "uniform",
    "use_numpy_random",
]
