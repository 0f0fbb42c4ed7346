"""The Jacobians that `torch.autograd.gradcheck` once made public, and now calls deprecated.

Invariant: rows belong to elements of the input, columns to those of the output; for a complex input an entry is the
derivative by its real part plus i times that by its imaginary part.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor

__all__ = ["get_analytical_jacobian", "get_numerical_jacobian", "get_numerical_jacobian_wrt_specific_input"]


def _refuse(name: str, grad_out: float) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be "
        "removed in a future version of PyTorch. If you have a specific use for this or feature request for this to be "
        "a stable API, please file us an issue at https://github.com/pytorch/pytorch/issues/new",
        FutureWarning,
        stacklevel=3,
    )
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")


def _real_output(name: str, outputs: tuple[Any, ...]) -> None:
    if any(o.is_complex() for o in outputs):
        raise ValueError(
            f"Expected output to be non-complex. {name} no longer supports functions that return complex outputs."
        )


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _iter_tensors(x: Any, only_requiring_grad: bool = False) -> Iterator[Tensor]:
    """The tensors in something and in the lists and tuples in it."""
    if isinstance(x, Tensor):
        if x.requires_grad or not only_requiring_grad:
            yield x
    elif isinstance(x, (tuple, list)):
        for item in x:
            yield from _iter_tensors(item, only_requiring_grad)


def _get_numerical_jacobian(
    fn: Callable[..., Any],
    inputs: Any,
    outputs: Any = None,
    target: Any = None,
    eps: float = 1e-3,
    is_forward_ad: bool = False,
) -> list[tuple[Tensor, ...]]:
    """The Jacobians of every output of `fn(*inputs)` by each input, or by each of `target`, from differences."""
    outputs = _as_tuple(fn(*_as_tuple(inputs))) if outputs is None else outputs
    target = inputs if target is None else target
    places = [i for i, x in enumerate(target) if isinstance(x, Tensor) and x.requires_grad]
    return [
        get_numerical_jacobian_wrt_specific_input(fn, place, inputs, outputs, eps, x, is_forward_ad)
        for x, place in zip(_iter_tensors(target, True), places)
    ]


def get_numerical_jacobian(
    fn: Callable[[Any], Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[Tensor, ...]:
    """The Jacobian of the first output of `fn(inputs)` by each input, or by each of `target`, from differences."""
    _refuse("get_numerical_jacobian", grad_out)

    def packed(*given: Any) -> Any:
        return fn(given)

    outputs = _as_tuple(packed(*_as_tuple(inputs)))
    _real_output("get_numerical_jacobian", outputs)
    return tuple(each[0] for each in _get_numerical_jacobian(packed, inputs, outputs, target, eps))


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable[..., Any],
    input_idx: int,
    inputs: Any,
    outputs: Any,
    eps: float,
    input: Tensor | None = None,
    is_forward_ad: bool = False,
) -> tuple[Tensor, ...]:
    """Jacobians of every output of `fn(*inputs)` by one input, from differences."""
    x = inputs[input_idx] if input is None else input
    if not x.requires_grad:
        raise AssertionError("Expected input to have requires_grad=True")
    dtype = x.dtype if x.dtype.is_complex else None
    inexact = [o for o in outputs if o.dtype.is_floating_point or o.dtype.is_complex]
    jacobians = tuple(o.new_zeros((x.numel(), o.numel()), dtype=dtype) for o in inexact)
    memory = x.data
    for row, index in enumerate(product(*map(range, x.shape))):
        slopes = _slopes(fn, inputs, memory[index], eps, eps, index)
        if not is_forward_ad and any(s.is_complex() for s in slopes):
            what = "Expected ds_dx to be real-valued, not complex"
            raise AssertionError(what if x.is_complex() else what + ".")
        if x.is_complex():
            aside = _slopes(fn, inputs, memory[index], eps * 1j, eps, index)
            slopes = [a + b * 1j for a, b in zip(slopes, aside)]
        for jacobian, slope in zip(jacobians, slopes):
            jacobian[row] = slope
    return jacobians


def _slopes(
    fn: Callable[..., Any], inputs: Any, entry: Tensor, step: complex, size: float, index: tuple[int, ...]
) -> list[Tensor]:
    """Central differences of the outputs when one element moves by `step`."""
    before = entry.clone()
    entry.copy_(before - step)
    low = tuple(o.clone() for o in _as_tuple(fn(*_as_tuple(inputs))))
    entry.copy_(before + step)
    high = tuple(o.clone() for o in _as_tuple(fn(*_as_tuple(inputs))))
    entry.copy_(before)
    for a, b in zip(low, high):
        for what in ("shape", "dtype"):
            if getattr(a, what) != getattr(b, what):
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed on index "
                    f"{index} by {size}, but got: {what}s {getattr(a, what)} and {getattr(b, what)}."
                )
    return [((b - a) / (2 * size)).detach().reshape(-1) for a, b in zip(low, high)]


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """The Jacobians of `output` by the inputs from backward; whether two passes agree within `nondet_tol`, and whether
    gradients have the inputs' dtypes and sizes."""
    _refuse("get_analytical_jacobian", grad_out)
    _real_output("get_analytical_jacobian", (output,))
    wanted = list(_iter_tensors(inputs, True))
    first, sizes, types = _stacked(wanted, output)
    second, _, _ = _stacked(wanted, output)
    same = all(a.numel() == 0 or not bool((a - b).abs().max() > nondet_tol) for a, b in zip(first, second))
    return first, same, types, sizes


def _stacked(wanted: list[Tensor], output: Tensor) -> tuple[tuple[Tensor, ...], bool, bool]:
    jacobians = tuple(x.new_zeros((x.numel(), output.numel())) for x in wanted)
    sizes = types = True
    for column in range(output.numel()):
        seed = torch.zeros_like(output, memory_format=torch.contiguous_format)
        seed.view(-1)[column] = 1
        found = torch.autograd.grad(output, wanted, seed, retain_graph=True, allow_unused=True)
        for x, jacobian, g in zip(wanted, jacobians, found):
            if g is None:
                continue
            if g.shape != x.shape:
                sizes = False
            elif g.dtype != x.dtype:
                types = False
            jacobian[:, column] = g.detach().reshape(-1)
    return jacobians, sizes, types
