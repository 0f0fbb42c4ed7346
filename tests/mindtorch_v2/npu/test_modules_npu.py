"""Every module of PyTorch's table on an NPU: forward and gradients against the same module on the CPU.

Invariant: results, gradients and buffers stay on the NPU; the CPU's are those that `nn/test_module_db.py` compares with
PyTorch.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

import mindtorch_v2 as torch

from .. import _oracle
from ..nn import _module_db

pytestmark = pytest.mark.oracle
NAMES = _module_db.names()
# What an NPU computes in single precision by other formulas.
TOLERANCE = 2e-3


def _moved(value: Any) -> Any:
    def move(t: Any) -> Any:
        return t.detach().to("npu").requires_grad_(t.requires_grad)

    return _oracle.tree_map(move, value, lambda v: isinstance(v, torch.Tensor))


@pytest.mark.parametrize("name", NAMES)
def test_module(name: str) -> None:
    for sample in _module_db.samples(name, "float32", few=1):
        ours, _ = _module_db.pair(sample)
        given = sample.made.forward_input
        args, kwargs = _oracle.convert_argument(given.args), _oracle.convert_argument(given.kwargs)
        if _module_db.entries()[name].is_lazy:
            ours(*args, **kwargs)
        if name.startswith("FractionalMaxPool"):
            # The windows are drawn on the device: on both the same ones.
            ours._random_samples = torch.rand(
                args[0].shape[0] if args[0].ndim == ours_rank(name) + 2 else 1,
                args[0].shape[-ours_rank(name) - 1],
                ours_rank(name),
            )
        other = copy.deepcopy(ours).to("npu")
        if name.startswith("FractionalMaxPool"):
            other._random_samples = ours._random_samples.to("npu")
        expected = _module_db.run(torch, ours, args, kwargs, False)
        actual = _module_db.run(torch, other, _moved(args), _moved(kwargs), False)
        _same(dict(enumerate(actual.outputs)), dict(enumerate(expected.outputs)), str(sample))
        _same(actual.gradients, expected.gradients, f"{sample}, gradients")
        _same(actual.buffers, expected.buffers, f"{sample}, buffers")


def ours_rank(name: str) -> int:
    return int(name[-2])


def _same(actual: dict[Any, Any], expected: dict[Any, Any], where: str) -> None:
    assert list(actual) == list(expected), where
    for key, want in expected.items():
        got = actual[key]
        assert got.device.type == "npu" and got.shape == want.shape and got.dtype == want.dtype, f"{where}: {key}"
        scale = max(1.0, float(want.detach().abs().max()) if want.numel() else 1.0)
        close = torch.isclose(got.detach().cpu(), want.detach(), rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True)
        assert bool(close.all()), f"{where}: {key}\n{got}\n{want}"
