"""`CrossRefFakeMode`: real operators beside fake ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule

subclasses: Any = submodule("_subclasses")

PROGRAMS: list[Callable[[Any], Any]] = [
    lambda x: (x @ x.t()).relu().sum(0),
    lambda x: x.t()[1:].add_(1),
    lambda x: torch.cat([x, x.chunk(2, 1)[0]], 1).softmax(-1),
    lambda x: torch.sort(x, 1)[1].unsqueeze(0).expand(2, 3, 4),
    lambda x: torch.nn.functional.layer_norm(x, (4,)).view(-1),
    lambda x: x[x > 0.5],
    lambda x: x.clone(memory_format=torch.contiguous_format).t_(),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_pass(program: Callable[[Any], Any]) -> None:
    x = torch.arange(12.0).reshape(3, 4) / 12
    expected = program(x.clone())
    with subclasses.CrossRefFakeMode():
        assert torch.equal(program(x), expected)


def test_gradients_pass() -> None:
    x = torch.rand(3, 4, requires_grad=True)
    with subclasses.CrossRefFakeMode():
        (x.sin() @ x.t()).sum().backward()
    assert x.grad is not None


def test_differences_are_told() -> None:
    library = torch.library
    with library._scoped_library("test_cross_reference", "FRAGMENT") as lib:
        lib.define("wrong(Tensor x) -> Tensor")
        lib.impl("wrong", lambda x: x.clone(), "CPU")
        lib.impl("wrong", lambda x: x.new_empty(7), "Meta")
        op = torch.ops.test_cross_reference.wrong
        error = submodule("_subclasses.fake_tensor").MetadataMismatchError
        with pytest.raises(error, match="found mismatched tensor metadata"), subclasses.CrossRefFakeMode():
            op(torch.ones(3))
        with subclasses.CrossRefFakeMode(lambda func: func is op.default):
            assert op(torch.ones(3)).tolist() == [1.0, 1.0, 1.0]
