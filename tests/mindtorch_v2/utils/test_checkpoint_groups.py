"""`GraphExecGroup`: several backward passes that run a checkpointed call again once."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule

checkpoint: Any = submodule("utils.checkpoint")


@pytest.mark.parametrize("grouped, runs", [(True, 2), (False, 3)])
def test_runs(grouped: bool, runs: int) -> None:
    count = []

    def fn(x: Any) -> Any:
        count.append(1)
        y = x.sin().cos()
        return y, y.sin().cos()

    x = torch.randn(3, requires_grad=True)
    y, z = checkpoint.checkpoint(fn, x, use_reentrant=False)
    with checkpoint.GraphExecGroup() if grouped else contextlib.nullcontext():
        (at_y,) = torch.autograd.grad(z, (y,), (torch.ones(3),))
        (at_x,) = torch.autograd.grad(y, (x,), (at_y,))
    assert len(count) == runs
    plain = x.detach().requires_grad_()
    plain.sin().cos().sin().cos().sum().backward()
    torch.testing.assert_close(at_x, plain.grad)


def test_what_groups_refuse() -> None:
    x = torch.randn(3, requires_grad=True)
    out = checkpoint.checkpoint(lambda t: t.sin().cos(), x, use_reentrant=False)
    with checkpoint.GraphExecGroup() as group:
        assert checkpoint.GraphExecGroup._get_current_group() is group
        out.sum().backward(retain_graph=True)
        with pytest.raises(RuntimeError, match="Performing two backward calls that overlap"):
            out.sum().backward()
        with pytest.raises(RuntimeError, match="GraphExecGroup contexts cannot be nested"):
            checkpoint.GraphExecGroup().__enter__()
    assert checkpoint.GraphExecGroup._get_current_group() is None
