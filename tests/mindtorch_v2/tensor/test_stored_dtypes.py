"""Element types that few or no operators compute with: what they are, and that tensors of the latter can be made, seen
as bytes, copied, and nothing else."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch

NAMES = [
    *("bits1x8", "bits2x4", "bits4x2", "bits8", "bits16"),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)),
    *("float8_e5m2fnuz", "float8_e4m3fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2", "complex32"),
]
QUESTIONS = [
    "str(d)",
    "(d.itemsize, d.is_floating_point, d.is_complex)",
    "d.is_signed",
    "str(d.to_real())",
    "str(torch.finfo(d))",
    "torch.finfo(d).bits",
    "str(torch.iinfo(d))",
    "torch.empty(2, dtype=d).shape",
    "torch.empty(2, 3, dtype=d).t().stride()",
    "torch.empty(2, dtype=d, device='meta').shape",
    "torch.empty(2, dtype=d).type()",
    "torch.zeros(8, dtype=torch.uint8).view(d).shape",
    "torch.zeros(8, dtype=torch.uint8).view(d)[1:].numel()",
    "torch.arange(8, dtype=torch.uint8).view(d).view(torch.uint8).tolist()",
    "torch.empty(2, dtype=d).element_size()",
    "torch.set_default_dtype(d)",
    "torch.empty(2, dtype=d).numpy()",
    "torch.can_cast(d, torch.float32)",
]


def told(library: Any, name: str, question: str) -> str:
    try:
        got = str(eval(question, {"torch": library, "d": getattr(library, name)}))
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
    return got.replace("mindtorch_v2", "torch")


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_what_they_are(name: str) -> None:
    oracle = _oracle.load()
    for question in QUESTIONS:
        assert told(torch, name, question) == told(oracle, name, question), question


@pytest.mark.parametrize("name", NAMES)
def test_there_is_one_object(name: str) -> None:
    dtype = getattr(torch, name)
    assert pickle.loads(pickle.dumps(dtype)) is dtype and copy.deepcopy(dtype) is dtype


def test_other_names() -> None:
    assert torch.chalf is torch.complex32
    assert torch.bit is torch.uint1


@mindtorch_only  # PyTorch copies some of them
@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith("float8") and n != "complex32"])
def test_bytes_are_copied_and_nothing_is_computed(name: str) -> None:
    dtype = getattr(torch, name)
    raw = torch.arange(16, dtype=torch.uint8).view(4, 4)
    t = raw.view(dtype)
    assert t.clone().view(torch.uint8).tolist() == raw.tolist()
    assert t.t().contiguous().t().contiguous().view(torch.uint8).tolist() == raw.tolist()
    assert copy.deepcopy(t).dtype is dtype
    for call in (
        lambda: t.to(torch.float32),
        lambda: torch.ones(2).to(dtype),
        lambda: torch.zeros(2, dtype=dtype),
        lambda: t.clone().fill_(1),
        lambda: t.tolist(),
        lambda: t.sum(),
        lambda: torch.cat([t, t]),
    ):
        with pytest.raises(NotImplementedError, match=f"implemented for '{t.type()[6:-6]}'"):
            call()
    with pytest.raises((NotImplementedError, RuntimeError)):
        _ = t + 1
    with pytest.raises(RuntimeError, match="romotion"):
        torch.promote_types(dtype, torch.int32)
