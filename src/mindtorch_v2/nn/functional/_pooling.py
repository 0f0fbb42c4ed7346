"""Pooling.

Invariant: a function here only completes arguments; shapes, dtypes, values and derivatives come from the row it calls.
"""

from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor
from .._tuples import each as _each
from ._rows import here, row

Ints = tuple[int, ...]


def _ints(value: Any) -> Any:
    """Ints as a tuple; the row refuses anything else."""
    return (value,) if isinstance(value, int) else tuple(value) if isinstance(value, (list, tuple)) else value


_LARGEST = ("", "max_pool1d", "max_pool2d", "max_pool3d")
_BOTH = tuple(f"{name}_with_indices" for name in _LARGEST)


def _max_pool(
    rank: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    given = (
        input,
        (kernel_size,) if type(kernel_size) is int else _ints(kernel_size),
        () if stride is None else _ints(stride),
        (padding,) if type(padding) is int else _ints(padding),
        (dilation,) if type(dilation) is int else _ints(dilation),
        ceil_mode,
    )
    return row("pool", _BOTH[rank] if return_indices else _LARGEST[rank]).call(given)


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def _sizes(input: Tensor, output_size: Any, rank: int) -> Ints:
    """None stands for the input's own size."""
    if isinstance(output_size, int):
        return (output_size,) * rank
    if type(output_size) is tuple and input.dim() > len(output_size):
        for n in output_size:
            if type(n) is not int:
                break
        else:
            return output_size
    if len(input.shape) <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    return tuple(s if v is None else v for v, s in zip(output_size, input.shape[-len(output_size) :]))


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    return row("pool", "adaptive_avg_pool2d").call((input, _sizes(input, output_size, 2)))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    return row("pool", "adaptive_avg_pool3d").call((input, _sizes(input, output_size, 3)))


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    both = row("pool", "adaptive_max_pool1d").call((input, _ints(output_size)))
    return both if return_indices else both[0]


def _max_sizes(input: Tensor, output_size: Any, rank: int) -> Ints:
    sizes = _sizes(input, output_size, rank)
    if len(sizes) != rank and all(isinstance(n, int) for n in sizes):  # what is no int the row refuses
        raise RuntimeError(f"adaptive_max_pool{rank}d(): internal error: output_size.size() must be {rank}")
    return sizes


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    with_indices = bool(return_indices)
    both = row("pool", "adaptive_max_pool2d").call((input, _max_sizes(input, output_size, 2)))
    return both if with_indices else both[0]


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    with_indices = bool(return_indices)
    both = row("pool", "adaptive_max_pool3d").call((input, _max_sizes(input, output_size, 3)))
    return both if with_indices else both[0]


def adaptive_max_pool1d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    return adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    return adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    return adaptive_max_pool3d(input, output_size, True)


def _fractional(
    rank: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, return_indices: bool, samples: Any
) -> Any:
    name = f"fractional_max_pool{rank}d"
    if output_size is None:
        if output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if rank == 2 and len(output_ratio) > 2:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        sizes = [input.size(i - rank) for i in range(rank)]
        output_size = tuple(int(n * r) for n, r in zip(sizes, _each(output_ratio, rank)))
    if samples is None:
        batch = 1 if input.dim() == rank + 1 else input.size(0)
        samples = torch.rand(batch, input.size(-rank - 1), rank, dtype=input.dtype, device=input.device)
    kernel, wanted = (_each(v, rank) for v in (kernel_size, output_size))
    both = row("fractional", name).call((input, kernel, wanted, samples))
    return both if return_indices else both[0]


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    return _fractional(2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    return _fractional(3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The indices come in any case: PyTorch's signature has `return_indices`, and its function does not ask it."""
    return _fractional(2, input, kernel_size, output_size, output_ratio, True, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The indices come in any case: PyTorch's signature has `return_indices`, and its function does not ask it."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, True, _random_samples)


def _unpooled(input: Tensor, kernel: Ints, stride: Ints, padding: Ints, output_size: Any) -> Ints:
    """The size before pooling: the smallest one unless given."""
    rank = len(kernel)
    sizes = input.shape
    try:
        smallest = tuple((sizes[-rank + d] - 1) * stride[d] + kernel[d] - 2 * padding[d] for d in range(rank))
    except IndexError:
        raise IndexError(
            f"max_unpool{rank}d: expected {rank} dimensions, strides and paddings, got an input of {list(sizes)}, "
            f"stride {list(stride)} and padding {list(padding)}"
        ) from None
    if output_size is None:
        return smallest
    given = tuple(output_size)
    if len(given) == rank + 2:
        given = given[2:]
    if len(given) != rank:
        raise ValueError(
            f"output_size should be a sequence containing {rank} or {rank + 2} elements, but it has a "
            f"length of '{len(given)}'"
        )
    for d in range(rank):
        low, high = smallest[d] - stride[d], smallest[d] + stride[d]
        if not low < given[d] < high:
            raise ValueError(f'invalid output_size "{given}" (dim {d} must be between {low} and {high})')
    return given


def _max_unpool(
    rank: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    kernel = _each(kernel_size, rank)
    steps = kernel if stride is None else _each(stride, rank)
    pads = _each(padding, rank)
    sizes = _unpooled(input, kernel, steps, pads, output_size)
    if rank == 1:
        flat = row("pool", "max_unpool2d").call((input.unsqueeze(-1), indices.unsqueeze(-1), (*sizes, 1)))
        return flat.squeeze(-1)
    if rank == 2:
        return row("pool", "max_unpool2d").call((input, indices, sizes))
    return row("pool", "max_unpool3d").call((input, indices, sizes, steps, pads))


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


def _lp(sums: Any, norm_type: float, places: int) -> Any:
    """From a mean of powers to the norm of the window; the sign keeps what a negative mean means."""
    return (sums.sign() * sums.abs().relu()).mul(places).pow(1.0 / norm_type)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: int, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    return _lp(torch.avg_pool1d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode), norm_type, kernel_size)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    # Asks what the sizes are.
    means = here("avg_pool2d")(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    high, wide = (kernel_size, kernel_size) if isinstance(kernel_size, int) else kernel_size
    return _lp(means, norm_type, high * wide)


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    means = here("avg_pool3d")(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    deep, high, wide = (kernel_size,) * 3 if isinstance(kernel_size, int) else kernel_size
    return _lp(means, norm_type, deep * high * wide)
