"""Single calls whose overload, layout or answer for no elements once differed from PyTorch's."""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject

pytestmark = pytest.mark.oracle
Call = Callable[[Any], Any]


def numbers(torch: Any, *shape: int) -> Any:
    return torch.arange(float(math.prod(shape))).reshape(shape)


CALLS: dict[str, Call] = {
    # a bool is never a dimension
    "std_bool": lambda torch: numbers(torch, 2, 3).std(True),
    "std_bool_false": lambda torch: numbers(torch, 2, 3).std(False),
    "var_bool": lambda torch: numbers(torch, 2, 3).var(False),
    "var_mean_bool": lambda torch: torch.var_mean(numbers(torch, 2, 3), False),
    "std_dim_bool": lambda torch: numbers(torch, 2, 3).std(0, False, True),
    # strides
    "unique_dim_1": lambda torch: torch.unique(numbers(torch, 3, 4), dim=1),
    "unique_dim_2": lambda torch: torch.unique(numbers(torch, 2, 3, 4), dim=2),
    "unique_dim_all": lambda torch: torch.unique(numbers(torch, 3, 4).t(), True, True, True, dim=1),
    "unique_consecutive_dim": lambda torch: torch.unique_consecutive(numbers(torch, 2, 3, 4), dim=1),
    "quantile_keepdim": lambda torch: torch.quantile(numbers(torch, 2, 3, 4), torch.tensor([0.2, 0.5]), keepdim=True),
    "quantile_one": lambda torch: torch.quantile(numbers(torch, 2, 3, 4), torch.tensor([0.2]), dim=1),
    "quantile_number": lambda torch: torch.quantile(numbers(torch, 2, 3, 4), 0.2, dim=0, keepdim=True),
    "nanquantile_one": lambda torch: torch.nanquantile(numbers(torch, 2, 3, 4), torch.tensor([0.2]), dim=2),
    "matrix_norm_kept": lambda torch: torch.linalg.matrix_norm(numbers(torch, 2, 3, 4, 2), 2, (0, 2), True),
    "matrix_norm_nuclear": lambda torch: torch.linalg.matrix_norm(numbers(torch, 2, 3, 4, 2), "nuc", (3, 1), True),
    "norm_least": lambda torch: torch.linalg.norm(numbers(torch, 2, 3, 4, 2), 1, (1, 3), True),
    # operands of two dtypes
    "searchsorted_int_float": lambda torch: torch.searchsorted(torch.tensor([1, 2, 3]), torch.tensor([1.5, 2.5])),
    "searchsorted_half_float": lambda torch: torch.searchsorted(torch.ones(2).half(), torch.tensor([1.0001])),
    "bucketize_double_float": lambda torch: torch.bucketize(torch.tensor([1.5]).double(), torch.tensor([1.0, 2.0])),
    "ctc_float_targets": lambda torch: torch.nn.functional.ctc_loss(
        torch.zeros(4, 1, 3), torch.tensor([[1.0, 2.0]]), (4,), (2,)
    ),
    "bce_double_weight": lambda torch: torch.nn.functional.binary_cross_entropy(
        torch.full((2,), 0.5), torch.ones(2), weight=torch.ones(2).double()
    ),
    # a generator for results like another tensor
    "rand_like_generator": lambda torch: torch.rand_like(torch.ones(3), generator=torch.Generator().manual_seed(3)),
    "randn_like_generator": lambda torch: torch.randn_like(torch.ones(9), generator=torch.Generator().manual_seed(3)),
    "randint_like_generator": lambda torch: torch.randint_like(
        torch.ones(3), 2, 9, generator=torch.Generator().manual_seed(3)
    ),
    # a bool behind an int is a size
    "view_bool": lambda torch: numbers(torch, 2, 3).view(6, True),
    "sum_bool": lambda torch: numbers(torch, 2, 3).sum((0, True)),
    # no elements
    "histogram_empty": lambda torch: torch.histogram(torch.ones(0), 3),
    "histogram_empty_range": lambda torch: torch.histogram(torch.ones(0), 3, range=(0.0, 2.0)),
    "histogram_edges": lambda torch: torch.histogram(torch.ones(3), 3),
    "histc_empty": lambda torch: torch.histc(torch.ones(0), 3),
    "gradient_spacing_none": lambda torch: torch.gradient(numbers(torch, 3, 4), spacing=None),
    "gradient_spacing_none_dim": lambda torch: torch.gradient(numbers(torch, 3, 4), spacing=None, dim=1),
}


def answer(torch: Any, call: Call) -> Any:
    """The result, or type and text of the exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(torch)
        except Exception as error:
            return type(error).__name__, str(error)


def compare(call: Call, where: str) -> None:
    mine, theirs = answer(subject, call), answer(_oracle.load(), call)
    if isinstance(theirs, tuple) and isinstance(theirs[0], str):
        assert mine == theirs, where
    else:
        _oracle.assert_same(mine, theirs, rtol=1e-5, atol=1e-5, where=where)


@pytest.mark.parametrize("name", CALLS)
def test_call(name: str) -> None:
    compare(CALLS[name], name)


def matrix_norm(shape: tuple[int, ...], order: Any, keep: bool, torch: Any) -> Any:
    return torch.linalg.matrix_norm(torch.ones(shape), order, keepdim=keep)


def norm(shape: tuple[int, ...], order: Any, keep: bool, torch: Any) -> Any:
    return torch.linalg.norm(torch.ones(shape), order, (-2, -1), keep)


def test_norms_of_matrices_without_elements() -> None:
    shapes = ((0, 0), (0, 3), (3, 0), (2, 0, 3), (0, 2, 3))
    orders = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf, 0, 3)
    for shape, order, keep in itertools.product(shapes, orders, (False, True)):
        where = f"{shape} {order} {keep}"
        compare(functools.partial(matrix_norm, shape, order, keep), where)
        compare(functools.partial(norm, shape, order, keep), where)


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("shape", [(0, 2), (1, 2), (2, 2)])
@pytest.mark.parametrize("correction", [0, 1, 2, 5])
def test_gradients_of_variances_without_freedom(name: str, shape: Any, correction: int, oracle: Any) -> None:
    for dim in (None, 0, 1, (0, 1)):
        seen = []
        for lib in (subject, oracle):
            x = lib.arange(1.0, 1 + shape[0] * shape[1]).reshape(shape).requires_grad_()
            getattr(x, name)(dim, correction=correction).sum().backward(create_graph=True)
            seen.append((str(x.grad.tolist()), x.grad.requires_grad))
        assert seen[0] == seen[1], dim


def test_the_derivative_of_atan2_at_the_origin(oracle: Any) -> None:
    seen = []
    for lib in (subject, oracle):
        a, b = lib.zeros(2, requires_grad=True), lib.tensor([0.0, 1.0], requires_grad=True)
        first = lib.autograd.grad(lib.atan2(a, b).sum(), [a, b], create_graph=True)
        second = lib.autograd.grad((first[0] + first[1]).sum(), [a, b])
        seen.append(str([g.tolist() for g in (*first, *second)]))
    assert seen[0] == seen[1]
