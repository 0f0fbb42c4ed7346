"""`_lazy_clone`: two tensors read the same memory until one of them is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .._subject import mindtorch_only
from .._subject import subject as torch

_C = torch._C


def pair() -> tuple[Any, Any, int]:
    x = torch.arange(6.0).reshape(2, 3)
    address = _C._data_address(x)
    return x, torch._lazy_clone(x), address


def cow(*tensors: Any) -> list[bool]:
    return [_C._is_cow_tensor(t) for t in tensors]


def test_memory_is_shared_and_storages_are_not() -> None:
    x, y, address = pair()
    assert cow(x, y) == [True, True]
    assert _C._data_address(x) == _C._data_address(y) == address
    assert _C._storage_address(x) != _C._storage_address(y)
    assert cow(torch.ones(2)) == [False]


READS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: x @ y.t(),
    lambda x, y: x.sum(0),
    lambda x, y: torch.cat([x, y]),
    lambda x, y: x[:, [0, 2]],
    lambda x, y: torch.sort(x),
    lambda x, y: x.tolist(),
    lambda x, y: (x == y).all().item(),
    lambda x, y: x.view(6),
    lambda x, y: torch.nn.functional.layer_norm(x, (3,)),
    lambda x, y: torch.linalg.svd(x),
    lambda x, y: x.clone(),
    lambda x, y: repr(x),
]


@pytest.mark.parametrize("read", READS)
def test_reading_leaves_it_shared(read: Callable[[Any, Any], Any]) -> None:
    x, y, _ = pair()
    read(x, y)
    assert cow(x, y) == [True, True]


WRITES: list[Callable[[Any], Any]] = [
    lambda x: x.add_(1),
    lambda x: x.view(6).mul_(2),
    lambda x: x[0].fill_(9),
    lambda x: x.zero_(),
    lambda x: x.copy_(torch.ones(2, 3)),
    lambda x: x.__setitem__((0, 1), 5.0),
    lambda x: x.__setitem__([0, 1], 5.0),
    lambda x: x.index_add_(0, torch.tensor([0]), torch.ones(1, 3)),
    lambda x: x.scatter_(1, torch.tensor([[0]]), 8.0),
    lambda x: x.masked_fill_(x > 1, 0.5),
    lambda x: x.uniform_(),
    lambda x: x.bernoulli_(0.5),
    lambda x: x.resize_(20),
    lambda x: x.t_().add_(1),
    lambda x: torch.add(torch.ones(2, 3), 1, out=x),
    lambda x: torch.cumsum(torch.ones(2, 3), 0, out=x),
    lambda x: torch.rand(2, 3, out=x),
    lambda x: torch.arange(6.0, out=x.view(6)),
    lambda x: torch._foreach_add_([x, torch.ones(1)], 1),
    lambda x: torch.nn.functional.relu_(x.sub_(3)),
    lambda x: x.numpy().fill(7),
    lambda x: x.untyped_storage().fill_(1),
    lambda x: x.untyped_storage().__setitem__(3, 1),
    lambda x: x.data_ptr(),
    lambda x: torch.optim.SGD([torch.nn.Parameter(x)], lr=1.0, foreach=True).zero_grad() or x.add_(1),
]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("which", [0, 1])
def test_the_first_write_copies(write: Callable[[Any], Any], which: int) -> None:
    x, y, address = pair()
    before = x.tolist()
    written, other = (x, y) if which == 0 else (y, x)
    view = written[1:]
    write(written)
    assert cow(written, view, other) == [False, False, True]
    assert other.tolist() == before and _C._data_address(other) == address != _C._data_address(written)
    assert _C._data_address(view) == _C._data_address(written)
    other.add_(1)
    assert cow(other) == [False] and _C._data_address(other) == address, "the last holder keeps the memory"


@pytest.mark.parametrize("fused", [False, True])
def test_steps_of_optimizers(fused: bool) -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    kept = weight.detach()._lazy_clone()
    weight.grad = torch.ones(3)
    optimizer = torch.optim.Adam([weight], lr=0.5, fused=fused)
    optimizer.step()
    assert kept.tolist() == [1.0, 1.0, 1.0] and weight.tolist() != [1.0, 1.0, 1.0]


def test_running_statistics() -> None:
    mean, var = torch.zeros(3), torch.ones(3)
    kept = mean._lazy_clone()
    torch.nn.functional.batch_norm(torch.randn(4, 3) + 5, mean, var, training=True)
    assert kept.tolist() == [0.0, 0.0, 0.0] and mean.tolist() != [0.0, 0.0, 0.0]


def test_several_clones() -> None:
    x, y, address = pair()
    z = y._lazy_clone()
    assert cow(x, y, z) == [True, True, True]
    del x
    y.add_(1)
    assert cow(y, z) == [False, True] and z.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    z.add_(1)
    assert _C._data_address(z) == address and y.tolist() == z.tolist()


def test_gradients_go_through() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x._lazy_clone()
    assert y.requires_grad and not y.is_leaf and not y._is_view()
    (y * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_parts_and_strides() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    part = x.t()[1:, 1:]
    lazy = part._lazy_clone()
    assert lazy.stride() == part.stride() and lazy.storage_offset() == part.storage_offset()
    assert lazy.tolist() == part.tolist() and cow(x, part, lazy) == [True, True, True]
    x.zero_()
    assert lazy.tolist() == [[5.0, 9.0], [6.0, 10.0], [7.0, 11.0]]


@mindtorch_only  # PyTorch fails an assertion of its own
def test_nothing() -> None:
    x = torch.empty(0)
    y = x._lazy_clone()
    y.resize_(2).fill_(1)
    assert x.shape == (0,) and y.tolist() == [1.0, 1.0]


def test_gradients_are_added_to_memory_of_their_own() -> None:
    x = torch.ones(3, requires_grad=True)
    kept = torch.ones(3)
    x.grad = kept._lazy_clone()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 3.0] and kept.tolist() == [1.0, 1.0, 1.0]
    given = torch.ones(3)
    (x + x).backward(given._lazy_clone())
    assert given.tolist() == [1.0, 1.0, 1.0]
