"""The table of dtypes that CPU kernels refuse (`_backends/cpu/refused.py`); see `limits/calls/dtypes.txt` too."""

from __future__ import annotations

from typing import Any

import pytest

from .._subject import subject as torch

refused = pytest.importorskip(f"{torch.__name__}._backends.cpu.refused").REFUSED


def test_names_are_operators() -> None:
    from mindtorch_v2._dispatch import registry

    torch.ones(2).to_sparse()
    assert [name for name in refused if "::" not in name and registry.find(name) is None] == []


def _sum(t: Any) -> Any:
    return t.sum()


def _gather(t: Any) -> Any:
    return t.gather(0, torch.zeros(2, dtype=torch.int64))


@pytest.mark.parametrize("call", (_sum, _gather))
def test_no_elements_are_refused_nowhere(call: Any) -> None:
    t = torch.ones(2).to(torch.float8_e4m3fn)
    with pytest.raises(NotImplementedError, match="not implemented for 'Float8_e4m3fn'"):
        call(t)
    assert t[:0].sum().item() == 0 and t[:0].gather(0, torch.zeros(0, dtype=torch.int64)).numel() == 0


def test_other_devices_are_not_asked() -> None:
    t = torch.ones(2, device="meta").to(torch.float8_e4m3fn)
    assert t.sum().dtype is torch.float8_e4m3fn and t.gather(
        0, torch.zeros(2, dtype=torch.int64, device="meta")
    ).shape == (2,)


def test_an_out_form_writes_nothing() -> None:
    out = torch.ones(2, dtype=torch.uint16)
    with pytest.raises(NotImplementedError, match="\"scatter_gather_tensor_cpu\" not implemented for 'UInt16'"):
        torch.gather(torch.zeros(2, dtype=torch.uint16), 0, torch.zeros(2, dtype=torch.int64), out=out)
    assert out.tolist() == [1, 1]
