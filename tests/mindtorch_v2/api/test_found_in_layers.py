"""Differences in layers, schedulers, comparison and storage that PyTorch's own tests found."""

from __future__ import annotations

import io
import types
import warnings
from typing import Any

import pytest

from .. import _oracle
from .._outcome import plain
from .._subject import IS_ORACLE, mindtorch_only
from .._subject import subject as torch

_LINES = """
torch._foreach_add([a], [])
torch._foreach_add_([a], [])
torch._foreach_add([], [])
torch._foreach_mul([a], [a, a])
torch._foreach_addcmul([a], [], [a])
close(a.to_sparse(), a.to_sparse())
close(a.to_sparse(), b.to_sparse())
close(a.to_sparse(), c.to_sparse())
close(a.to_sparse(), a)
close(a.to_sparse(), a, check_layout=False)
close(a.to_sparse(), a.double().to_sparse(), check_dtype=False)
close(a.to_sparse(), a.to_sparse(), check_stride=True)
close(a.to_sparse_csr(), b.to_sparse_csr())
close(a.to_sparse_csc(), c.to_sparse_csc())
close(a.to_sparse_csc(), a.t().contiguous().to_sparse_csc())
torch.ops.aten._local_scalar_dense(a[0, 1])
str(torch.ops.aten._local_scalar_dense.default._schema)
"""


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize("line", _LINES.strip().split("\n"))
def test_as_pytorch_does(line: str) -> None:
    def told(library: Any) -> Any:
        space = {
            "torch": library,
            "close": library.testing.assert_close,
            "a": library.tensor([[0, 1.0], [2, 0]]),
            "b": library.tensor([[0, 1.0], [3, 0]]),
            "c": library.tensor([[1, 1.0], [3, 0]]),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return plain(eval(line, space))
            except Exception as error:  # every error is part of what a line does
                return f"{type(error).__name__}: {error}"

    assert told(torch) == told(_oracle.load())


@pytest.mark.parametrize("shape", [(0, 2, 5), (2, 0, 5)])
def test_the_bias_of_a_convolution_of_nothing_has_a_gradient(shape: tuple[int, ...]) -> None:
    for dtype in (torch.float32, torch.float64):
        x = torch.ones(shape, dtype=dtype)
        w, b = torch.ones(3, shape[1], 3, dtype=dtype), torch.full((3,), 7.0, dtype=dtype).requires_grad_()
        torch.full((3,), 5.0, dtype=dtype)  # leaves its values in memory that is taken next
        torch.nn.functional.conv1d(x, w, b).sum().backward()
        assert b.grad.tolist() == [0.0, 0.0, 0.0]


def test_gradients_of_convolutions_of_nothing_are_batched() -> None:
    x = torch.ones(2, 0, 5, dtype=torch.float64, requires_grad=True)
    w = torch.ones(3, 0, 3, dtype=torch.float64, requires_grad=True)
    b = torch.ones(3, dtype=torch.float64, requires_grad=True)
    out = torch.nn.functional.conv1d(x, w, b)
    given = torch.ones(4, *out.shape, dtype=torch.float64)
    found = torch.autograd.grad(out, (x, w, b), given, is_grads_batched=True)
    assert [tuple(t.shape) for t in found] == [(4, 2, 0, 5), (4, 3, 0, 3), (4, 3)]
    assert not found[2].any()


def test_the_function_of_a_cycle() -> None:
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    for mode, height in (("triangular", 1.0), ("triangular2", 0.25), ("exp_range", 8.0)):
        found = torch.optim.lr_scheduler.CyclicLR(optimizer, 1, 5, mode=mode, gamma=2.0, cycle_momentum=False)
        assert found._scale_fn_ref(3) == found.scale_fn(3) == height
        assert "_scale_fn_ref" not in found.state_dict()
    assert isinstance(torch.optim.lr_scheduler.CyclicLR._triangular_scale_fn, types.FunctionType)


def test_a_cycle_of_old() -> None:
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0, momentum=0.5)
    made = torch.optim.lr_scheduler.OneCycleLR(optimizer, 25, total_steps=10)
    del made._anneal_func_type
    made.load_state_dict({**made.state_dict(), "anneal_func": lambda start, end, part: 3.0})
    optimizer.step()
    made.step()
    assert optimizer.param_groups[0]["lr"] == 3.0


def test_a_number_for_what_is_in_a_tensor() -> None:
    a, b = torch.ones(1), torch.ones(2)
    numbers = a._cdata, b._cdata
    assert numbers[0] != numbers[1] and a._cdata == numbers[0]
    a.data = torch.ones(3)
    assert a._cdata == numbers[0]
    torch.utils.swap_tensors(a, b)
    assert (a._cdata, b._cdata) == (numbers[1], numbers[0])
    if not IS_ORACLE:
        saved = io.BytesIO()
        torch.save(torch.nn.Parameter(a), saved)
        assert b"_cdata" not in saved.getvalue()
