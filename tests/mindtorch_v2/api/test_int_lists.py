"""What may stand for an int in a size, a shape or a list of dimensions, and PyTorch's words for what may not.

Invariant: every function here is asked with every kind of element; the exceptions are listed with their reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mindtorch_v2

ELEMENTS = [
    "True",
    "t.tensor(True)",
    "t.tensor(2)",
    "t.tensor([2])",
    "t.tensor([[2]])",
    "t.tensor([2, 3])",
    "t.tensor(2.0)",
    "t.tensor(2, dtype=t.uint8)",
    "np.int32(2)",
    "np.bool_(True)",
    "np.float32(2)",
    "np.array(2)",
    "np.array([2])",
    "2.0",
    "'a'",
    "None",
]
CALLS = """
    t.zeros({})
    t.zeros({}, 3)
    t.zeros(({}, 3))
    t.zeros((3, {}))
    t.zeros([{}])
    t.rand({})
    t.randn(({}, 2))
    t.empty((2, {}))
    t.full(({}, 2), 1)
    t.ones(3).new_zeros({})
    t.ones(3).new_zeros(({}, 2))
    t.zeros(4).resize_({})
    t.ones(6).view({}, -1)
    t.ones(6).view(({}, -1))
    t.ones(6).reshape({}, -1)
    t.ones(6).reshape((-1, {}))
    t.ones(6).unflatten(0, ({}, -1))
    t.ones(1, 6).expand({}, 6)
    t.ones(1, 6).expand(({}, 6))
    t.ones(1, 6).repeat({}, 6)
    t.ones(3).tile({})
    t.tile(t.ones(3), ({},))
    t.ones(6).as_strided(({},), (1,))
    t.ones(2, 3, 4).sum({})
    t.ones(2, 3, 4).sum(({}, 0))
    t.ones(2, 3, 4).sum((0, {}))
    t.ones(2, 3, 4).sum(dim={})
    t.ones(2, 3, 4).amax({})
    t.ones(2, 3, 4).permute({}, 0, 1)
    t.ones(2, 3, 4).permute(0, 1, {})
    t.ones(2, 3, 4).flip({})
    t.ones(2, 3, 4).flip(({},))
    t.ones(4, 5, 6).roll({}, 0)
    t.ones(4, 5, 6).roll(({}, 1), (0, 1))
    t.ones(2, 3, 4).unsqueeze({})
    t.ones(2, 3, 4).transpose({}, 0)
    t.ones(2, 3).cumsum({})
    t.ones(6).chunk({})
    t.ones(6).split([{}, 4])
    t.ones(3, 3).diagonal({})
    t.nn.functional.pad(t.ones(3), ({}, 1))
    t.nn.functional.avg_pool1d(t.ones(1, 1, 8), ({},))
"""
LINES = [line.strip() for line in CALLS.strip().splitlines()]


def answer(library: Any, call: str) -> str:
    try:
        result = eval(call, {"t": library, "np": np})
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return str([tuple(each.shape) for each in (result if isinstance(result, tuple) else [result])])


@pytest.mark.parametrize("line", LINES)
def test_as_pytorch(oracle: Any, line: str) -> None:
    found = {}
    for element in ELEMENTS:
        call = line.format(element)
        want, got = answer(oracle, call), answer(mindtorch_v2, call)
        if "INTERNAL ASSERT" in want or "isIntegral" in want:
            continue  # PyTorch's parser accepts what its next step refuses: here it is taken for an int
        if want.replace("torch.", "") != got.replace("torch.", ""):
            found[call] = (want, got)
    assert found == {}


def test_elements_that_count_as_ints() -> None:
    t = mindtorch_v2
    for two in (2, np.int64(2), np.uint8(2), np.array(2), t.tensor(2), t.tensor([2]), t.tensor(2, dtype=t.uint8)):
        assert t.zeros((two, 3)).shape == (2, 3) and t.ones(6).view(two, 3).shape == (2, 3)
    with pytest.raises(TypeError, match="found element of type numpy.ndarray at pos 0"):
        t.zeros((np.array([2, 3]),))
    with pytest.raises(TypeError, match=r"argument 'dim' failed to unpack the object at pos 2 .*but got float"):
        t.ones(2, 3).sum((0, 1.0))
