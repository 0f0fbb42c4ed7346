"""The dtypes in which operators run under autocast, against PyTorch: the table itself, and what comes out."""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch
from ..parity import _infos
from . import _results

# Where PyTorch fails under autocast only, and we have no reason to.
WORKS_HERE = {
    # Its backward casts weights that it then multiplies with scores of the wider type.
    "nn.functional.linear_cross_entropy-chunked",
    "nn.functional.linear_cross_entropy-chunked_none",
    # PyTorch looks at the dtypes before the products cast them.
    "linalg.multi_dot",
}


def test_products_are_cast_and_sums_are_not() -> None:
    a = torch.ones(3, 3)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.mm(a, a).dtype == torch.bfloat16
        assert (a @ a.to(torch.bfloat16)).dtype == torch.bfloat16
        assert (a + a).dtype == torch.float32
        assert torch.nn.functional.linear(a, a, a[0]).dtype == torch.bfloat16
        assert torch.cat([a, a.to(torch.bfloat16)]).dtype == torch.float32
        assert torch.nn.functional.mse_loss(a.to(torch.bfloat16), a.to(torch.bfloat16)).dtype == torch.float32
    assert torch.mm(a, a).dtype == torch.float32


def test_forms_that_write_are_not_cast() -> None:
    a, out = torch.ones(3, 3), torch.empty(3, 3)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.mm(a, a, out=out) is out and out.dtype == torch.float32
        assert a.addmm_(a, a).dtype == torch.float32


def test_what_is_not_a_float_of_the_device_stays() -> None:
    a = torch.ones(3, 3)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.mm(a.double(), a.double()).dtype == torch.float64
        assert torch.mm(a.long(), a.long()).dtype == torch.int64
        assert torch.mm(a.to("meta"), a.to("meta")).dtype == torch.float32


@pytest.mark.oracle
@pytest.mark.parametrize(("device", "key"), [("cpu", "AutocastCPU"), ("npu", "AutocastCUDA")])
@mindtorch_only
def test_the_table_names_what_pytorch_has_kernels_for(device: str, key: str) -> None:
    oracle = _oracle.load()
    theirs = {name.removeprefix("aten::").partition(".")[0] for name in _registered(oracle, key)}
    if device == "npu":
        # Banned: PyTorch has a kernel, which raises.
        assert "binary_cross_entropy" in theirs
    ours = set(submodule("_ops.autocast_policy").POLICY[device])
    assert ours - set(submodule("_ops.autocast_policy").INSTEAD) == theirs


def _registered(oracle: Any, key: str) -> list[str]:
    names: list[str] = oracle._C._dispatch_get_registrations_for_dispatch_key(key)
    return names


@pytest.mark.oracle
@pytest.mark.parametrize("case", _infos.covered(), ids=lambda case: case.label)
def test_dtypes_of_results(case: _infos.Covered) -> None:
    """A difference that is also there without autocast is not autocast's."""
    if not _infos.supported(case.info, "float32"):
        return
    for number, given in enumerate(_results.GIVEN):
        low = ("bfloat16", "float16")[number % 2]
        for where, actual, expected in _results.outcomes(case, given, low, 1, on=True):
            if _results.dtypes(actual) == _results.dtypes(expected):
                continue
            if case.label in WORKS_HERE and isinstance(expected, _infos.Failure):
                continue
            plain = next(iter(_results.outcomes(case, given, low, 1, on=False)))
            assert _results.dtypes(plain[1]) != _results.dtypes(plain[2]), (where, actual, expected)
