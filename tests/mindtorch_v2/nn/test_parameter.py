"""`Parameter` and `Buffer`."""

from __future__ import annotations

import copy
import pickle

import pytest

from .._subject import subject as torch
from .._subject import submodule

nn = submodule("nn")


def test_shares_memory_and_is_a_leaf() -> None:
    data = torch.ones(2, 2)
    p = nn.Parameter(data)
    assert isinstance(p, torch.Tensor) and type(p) is nn.Parameter
    assert p.requires_grad and p.is_leaf and p.data_ptr() == data.data_ptr()
    assert not nn.Parameter(data, requires_grad=False).requires_grad
    assert tuple(nn.Parameter().shape) == (0,)
    with torch.no_grad():
        assert nn.Parameter(data).requires_grad
    graph = torch.ones(1, requires_grad=True) * 2
    assert nn.Parameter(graph).is_leaf


def test_results_of_operators_are_tensors() -> None:
    p = nn.Parameter(torch.ones(2))
    for result in (p + 1, p * p, p[0], p.view(2, 1), p.detach(), p.clone(), torch.relu(p)):
        assert type(result) is torch.Tensor
    assert type(p.data) is torch.Tensor


def test_integers_cannot_require_grad() -> None:
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        nn.Parameter(torch.ones(2, dtype=torch.int64))
    assert not nn.Parameter(torch.ones(2, dtype=torch.int64), requires_grad=False).requires_grad


def test_text() -> None:
    assert repr(nn.Parameter(torch.ones(2))) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"


def test_copies() -> None:
    p = nn.Parameter(torch.ones(2))
    p.note = "kept"
    deep = copy.deepcopy(p)
    assert type(deep) is nn.Parameter and deep.requires_grad and deep.data_ptr() != p.data_ptr()
    loaded = pickle.loads(pickle.dumps(p))
    assert type(loaded) is nn.Parameter and loaded.requires_grad and torch.equal(loaded, p)
    assert loaded.note == "kept"


def test_subclasses_are_marked() -> None:
    class Own(torch.Tensor):
        pass

    value = torch.ones(2).as_subclass(Own)
    p = nn.Parameter(value)
    assert type(p) is Own and isinstance(p, nn.Parameter) and p.requires_grad
    assert not isinstance(value, nn.Parameter)
    module = nn.Module()
    module.p = p
    assert [name for name, _ in module.named_parameters()] == ["p"]


def test_buffer() -> None:
    b = nn.Buffer(torch.ones(2), persistent=False)
    assert isinstance(b, nn.Buffer) and type(b) is torch.Tensor and b.persistent is False
    assert not isinstance(torch.ones(2), nn.Buffer)
