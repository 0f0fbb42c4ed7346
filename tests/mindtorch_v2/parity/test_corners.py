"""Single calls whose overload, layout or answer for no elements once differed from PyTorch's."""

from __future__ import annotations

import functools
import itertools
import math
import subprocess
import sys
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


INF = math.inf


def resize(torch: Any, size: tuple[int, int], mode: str) -> Any:
    x = (numbers(torch, 1, 2, 5, 4) * 7 % 11).requires_grad_()
    out = torch.nn.functional.interpolate(x, size=size, mode=mode, antialias=True)
    out.square().sum().backward()
    return out.detach(), x.grad


def all_padding(torch: Any, mode: str) -> Any:
    weight = torch.ones(3, 2, requires_grad=True)
    where, starts = torch.tensor([1, 1]), torch.tensor([0])
    out = torch.nn.functional.embedding_bag(where, weight, starts, mode=mode, padding_idx=1)
    out.sum().backward()
    return out.detach(), weight.grad


def pooled(torch: Any, name: str, where: str) -> Any:
    x = torch.ones(1, 2, 4, 4, 4, device=where).contiguous(memory_format=torch.channels_last_3d)
    return getattr(torch.nn.functional, name)(x, 2).stride()


def batch(torch: Any, where: str) -> Any:
    return (torch.ones(2, 3, 4, device=where), None, None, torch.zeros(3, device=where), torch.ones(3, device=where))


def written_list(torch: Any) -> Any:
    tensors = [torch.ones(2)]
    results = [torch._foreach_add_(tensors, 1), torch._foreach_zero_(tensors), torch._foreach_copy_(tensors, tensors)]
    return [found is tensors for found in results]


def matrix(torch: Any, dtype: str) -> Any:
    """Two matrices without any symmetry and with distinct values."""
    x = (numbers(torch, 2, 3, 3).double() * 7 % 19).sin()
    return x.to(torch.float64) if dtype == "real" else torch.complex(x, (x * 5).cos())


def decomposed(torch: Any, dtype: str, loss: Callable[[Any, Any], Any]) -> Any:
    x = matrix(torch, dtype).requires_grad_()
    (gradient,) = torch.autograd.grad(loss(torch, x), x, create_graph=True)
    (second,) = torch.autograd.grad(gradient.abs().square().sum(), x)
    return gradient.detach(), second


def eigenvectors_tangent(torch: Any, dtype: str, triangle: str) -> Any:
    x = matrix(torch, dtype)
    return torch.func.jvp(lambda at: torch.linalg.eigh(at, triangle)[1].abs(), (x,), (x.flip(0),))[1]


def slope_of_values(torch: Any, name: str, x: Any) -> Any:
    """Of values that are equal: only their vectors have no derivative."""
    call = torch.linalg.matrix_norm if name == "nuc" else getattr(torch.linalg, name)
    x = x.requires_grad_()
    found = call(x, "nuc") if name == "nuc" else call(x)
    if isinstance(found, tuple):
        found = found[1 if name == "svd" else 0]
    (found.real if found.is_complex() else found).sum().backward()
    return x.grad


CALLS: dict[str, Call] = {
    # the derivative of singular values and eigenvalues that are equal
    **{
        f"{name}_of_{kind}": lambda torch, name=name, make=make: slope_of_values(torch, name, make(torch))
        for name in ("svd", "svdvals", "nuc", "eigh", "eigvalsh", "eig", "eigvals")
        for kind, make in {"unit": lambda torch: torch.eye(3), "zeros": lambda torch: torch.zeros(2, 3, 3)}.items()
    },
    # powers begin and end at numbers of their dtype, and only their distance is rounded to it besides
    **{
        f"logspace_{dtype}_{steps}": lambda torch, dtype=dtype, steps=steps: torch.logspace(
            0.9, 4.9, steps, base=2.5, dtype=getattr(torch, dtype)
        )
        for dtype in ("int64", "uint8", "float32", "float16", "bfloat16")
        for steps in (0, 1, 4, 5, 39)
    },
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
    # what is not finite
    **{
        f"logcumsumexp_{name}": lambda torch, values=values: torch.logcumsumexp(torch.tensor(values), 0)
        for name, values in {
            "low": [complex(-INF, 1), complex(-INF, 2), 2j],
            "high": [complex(INF, 1), complex(INF, 2), 2j],
            "equal": [complex(INF, 1)] * 3,
            "nan": [complex(1, math.nan), complex(1, 1), 2j],
            "last_nan": [1j, complex(-INF, INF), complex(1, 0.5), complex(-INF, math.nan)],
        }.items()
    },
    "logaddexp_low": lambda torch: torch.logaddexp(torch.tensor([complex(-INF, 1)]), torch.tensor([complex(-INF, 2)])),
    "logaddexp_high": lambda torch: torch.logaddexp(torch.tensor([complex(INF, 1)]), torch.tensor([complex(INF, 2)])),
    "logaddexp_nan": lambda torch: torch.logaddexp(torch.tensor([complex(INF, math.nan)]), torch.tensor([1j])),
    # PyTorch adds alpha times the other operand, also where alpha is one
    **{
        f"{name}_infinite_{dtype}": lambda torch, call=call, dtype=dtype: call(
            torch.tensor([complex(INF, 1), 1j, 1, complex(INF, INF)] * 5, dtype=getattr(torch, dtype)),
            torch.tensor([complex(1, INF), complex(INF, 0), 1j, complex(-INF, 1)] * 5, dtype=getattr(torch, dtype)),
        )
        for dtype in ("complex64", "complex128")
        for name, call in {
            "add": lambda a, b: a + b,
            "add_alpha": lambda a, b: a.add(b, alpha=2),
            "sub": lambda a, b: a - b,
            "rsub": lambda a, b: complex(1, INF) - a,
            "add_number": lambda a, b: a + complex(1, INF),
            "add_strided": lambda a, b: a[::2] + b[::2],
            "add_in_place": lambda a, b: a.add_(b),
        }.items()
    },
    # powers of two that alone would overflow
    "ldexp_half": lambda torch: torch.ldexp(torch.tensor([2.0**-10]).half(), torch.tensor([20])),
    "ldexp_single": lambda torch: torch.ldexp(torch.tensor([2.0**-100, 0.0, 1.0]), torch.tensor([140, 10000, -10000])),
    "ldexp_double": lambda torch: torch.ldexp(torch.tensor([2.0**-1000]).double(), torch.tensor([2000])),
    "ldexp_layout": lambda torch: torch.ldexp(torch.ones(2, 1, 3), torch.ones(4, 2, 3).long().transpose(0, 1)),
    # an empty list of dimensions may be None, a number a tensor without dimensions
    "roll_none": lambda torch: torch.roll(torch.arange(3), 1, None),
    "amax_none": lambda torch: torch.amax(numbers(torch, 2, 3), None),
    "isclose_tensor": lambda torch: torch.isclose(torch.ones(2), torch.zeros(2), atol=torch.tensor(2.0)),
    "broadcast_shapes_none": lambda torch: tuple(torch.broadcast_shapes(None, (2, 1))),
    "list_of_floats": lambda torch: numbers(torch, 3, 3)[[0.5, 1.7]],
    "ellipses": lambda torch: numbers(torch, 3, 3, 3)[..., ..., 0:1],
    # images
    "lanczos_down": lambda torch: resize(torch, (2, 3), "lanczos"),
    "lanczos_up": lambda torch: resize(torch, (7, 9), "lanczos"),
    "cosine_mixed": lambda torch: torch.nn.functional.cosine_similarity(torch.ones(2, 3).long(), torch.ones(2, 3)),
    "conv_of_nothing": lambda torch: torch.nn.functional.conv2d(torch.ones(1, 0, 4, 4), torch.ones(2, 0, 3, 3)),
    "conv_of_nothing_bias": lambda torch: torch.nn.functional.conv1d(
        torch.ones(1, 0, 4), torch.ones(2, 0, 3), torch.ones(2)
    ),
    "bag_of_padding": lambda torch: all_padding(torch, "max"),
    "bag_of_padding_sum": lambda torch: all_padding(torch, "sum"),
    # strides of pooled volumes and images, and of what has no data
    **{
        f"{name}_{where}": lambda torch, name=name, where=where: pooled(torch, name, where)
        for name in ("max_pool3d", "avg_pool3d", "adaptive_avg_pool3d", "adaptive_max_pool3d")
        for where in ("cpu", "meta")
    },
    "adaptive_avg_pool2d_one": lambda torch: torch.nn.functional.adaptive_avg_pool2d(
        numbers(torch, 2, 3, 4, 4).contiguous(memory_format=torch.channels_last), 1
    ).stride(),
    "svd_meta": lambda torch: [t.stride() for t in torch.linalg.svd(torch.ones(3, 4, device="meta"))],
    "eig_meta": lambda torch: [t.stride() for t in torch.linalg.eig(torch.ones(3, 3, device="meta"))],
    "kaiser_meta": lambda torch: tuple(torch.signal.windows.kaiser(5, device="meta").shape),
    "batch_norm_meta": lambda torch: [
        tuple(t.shape) for t in torch.native_batch_norm(*batch(torch, "meta"), False, 0.1, 1e-5)
    ],
    "solve_out": lambda torch: torch.linalg.solve(torch.eye(3), torch.ones(3, 2), out=torch.empty(0)).stride(),
    "solve_out_vectors": lambda torch: torch.linalg.solve(
        torch.eye(3).expand(2, 3, 3), torch.ones(2, 3), out=torch.empty(0)
    ).stride(),
    "fractional_nothing": lambda torch: torch.nn.functional.fractional_max_pool2d(
        torch.ones(1, 2, 4, 4), 2, output_size=(0, 2)
    ),
    "foreach_list": lambda torch: written_list(torch),
    "foreach_clone": lambda torch: torch._foreach_clone([numbers(torch, 2, 3).t()]),
    "foreach_mm": lambda torch: torch._foreach_mm([numbers(torch, 2, 3)], [numbers(torch, 3, 2)]),
    "linalg_matmul": lambda torch: torch.linalg.matmul(numbers(torch, 2, 3), numbers(torch, 3, 2)),
    "bags_without_offsets": lambda torch: torch.nn.functional.embedding_bag(
        torch.tensor([0, 1]), torch.ones(3, 2), torch.tensor([0]), include_last_offset=True
    ),
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


DECOMPOSITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "eigh": lambda torch, x: (torch.linalg.eigh(x)[1].abs() * numbers(torch, 3, 3)).sum(),
    "eigh_upper": lambda torch, x: (torch.linalg.eigh(x, "U")[1].abs() * numbers(torch, 3, 3)).sum(),
    "svd": lambda torch, x: (torch.linalg.svd(x)[0].abs() * numbers(torch, 3, 3)).sum(),
    # Complex vectors are free up to a phase.
    "phase_of_eigh": lambda torch, x: torch.linalg.eigh(x)[1].sum().abs(),
    "phase_of_eig": lambda torch, x: torch.linalg.eig(x)[1].sum().abs(),
    "phase_of_svd": lambda torch, x: torch.linalg.svd(x)[0].sum().abs(),
    "phase_of_right_vectors": lambda torch, x: torch.linalg.svd(x)[2].sum().abs(),
}


# The sign of a real vector is the factorization's choice.
REAL = [name for name in DECOMPOSITIONS if not name.startswith("phase")]


@pytest.mark.parametrize(("name", "dtype"), [*((n, "complex") for n in DECOMPOSITIONS), *((n, "real") for n in REAL)])
def test_decomposition(name: str, dtype: str) -> None:
    compare(lambda torch: decomposed(torch, dtype, DECOMPOSITIONS[name]), name)


@pytest.mark.parametrize("dtype", ["real", "complex"])
@pytest.mark.parametrize("triangle", ["L", "U"])
def test_tangent_of_eigenvectors(triangle: str, dtype: str) -> None:
    compare(lambda torch: eigenvectors_tangent(torch, dtype, triangle), triangle)


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


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("size", [(3, 9), (13, 2), (7, 6), (2, 12)])
@pytest.mark.parametrize("channels", [3, 5])
def test_bytes_are_resized_in_fixed_point(mode: str, antialias: bool, size: Any, channels: int) -> None:
    def call(torch: Any) -> Any:
        x = (torch.arange(2 * channels * 7 * 6) * 67 % 256).to(torch.uint8).view(2, channels, 7, 6)
        return torch.nn.functional.interpolate(x, size=size, mode=mode, antialias=antialias)

    compare(call, mode)


DEPRECATED: dict[str, Call] = {
    "qr": lambda torch: torch.qr(torch.eye(2)),
    "cholesky": lambda torch: torch.cholesky(torch.eye(2)),
    "lu_solve": lambda torch: torch.lu_solve(torch.ones(2, 1), *torch.linalg.lu_factor(torch.eye(2))),
    "triangular_solve": lambda torch: torch.triangular_solve(torch.ones(2, 1), torch.eye(2)),
    "lu": lambda torch: torch.lu(torch.eye(2)),
    "chain_matmul": lambda torch: torch.chain_matmul(torch.eye(2), torch.eye(2)),
    "T": lambda torch: torch.tensor(1.0).T,
    "mT": lambda torch: torch.tensor(1.0).mT,
    "H": lambda torch: torch.tensor(1.0).H,
    "stft": lambda torch: torch.stft(torch.arange(16.0), 8, window=torch.ones(8), return_complex=False),
    "bucketize": lambda torch: torch.bucketize(torch.ones(6)[::2], torch.arange(6.0)[::2]),
}
# In a process of its own, since each is said once.
SCRIPT = """
import sys, warnings
import {module} as torch
from tests.mindtorch_v2.parity.test_corners import DEPRECATED
for name, call in DEPRECATED.items():
    for time in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(torch)
        for w in caught:
            print(name, time, w.category.__name__, repr(str(w.message).split(" (Triggered")[0]))
"""


def test_deprecations_are_told_once() -> None:
    said = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT.format(module=module.__name__)], capture_output=True, text=True, check=True
        ).stdout
        for module in (subject, _oracle.load())
    ]
    assert said[0] == said[1]
    assert len(said[0].splitlines()) == len(DEPRECATED) + 1  # both operands of bucketize


def test_complex_modules_are_told_of() -> None:
    with pytest.warns(UserWarning, match="Complex modules are a new feature"):
        subject.nn.Linear(2, 2).to(subject.complex64)
