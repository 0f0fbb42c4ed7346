"""Expanded operands with more elements than anyone can wait for: refused before the work begins."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F

CALLS = {
    "sum": lambda v, _: v.sum(),
    "prod": lambda v, _: v.prod(),
    "max": lambda v, _: v.max(),
    "argmin": lambda v, _: v.argmin(),
    "any": lambda v, _: v.any(),
    "mean": lambda v, _: v.mean(),
    "var": lambda v, _: v.var(),
    "sum_to_size": lambda v, _: v.sum_to_size(1),
    "nonzero": lambda v, _: v.nonzero(),
    "argwhere": lambda v, _: torch.argwhere(v),
    "nonzero_static": lambda v, _: torch.nonzero_static(v, size=2),
    "masked_select": lambda v, _: v.masked_select(v.bool()),
    "mask": lambda v, _: v[torch.ones(1, dtype=torch.bool).expand(v.shape)],
    "dot": lambda v, _: torch.dot(v, v),
    "index_add": lambda v, i: torch.zeros(1).index_add(0, i, v),
    "scatter_add": lambda v, i: torch.zeros(1).scatter_add(0, i, v),
    "index_put": lambda v, i: torch.zeros(1).index_put((i,), v, accumulate=True),
    "attention": lambda v, _: F.scaled_dot_product_attention(torch.ones(1, 1, 4), *(v.reshape(1, -1, 4),) * 2),
    "mse_loss": lambda v, _: F.mse_loss(v, v),
}


@pytest.mark.parametrize("name", CALLS)
def test_work_without_an_end_is_not_begun(name: str) -> None:
    vast = torch.zeros(1).expand(2**50)
    index = torch.zeros(1, dtype=torch.int64).expand(2**50)
    with pytest.raises(RuntimeError, match=r"more than can be read in a day|can't allocate memory"):
        CALLS[name](vast, index)


def test_few_elements_of_many_are_read() -> None:
    """What reads only what an index names is not refused."""
    vast = torch.ones(1).expand(2**50)
    assert vast.index_select(0, torch.tensor([2**49, 0])).tolist() == [1.0, 1.0]
    assert vast[torch.tensor([5])].tolist() == [1.0] and vast[-3:].sum().item() == 3.0
