"""The size of a ragged dimension where a number or the size of another tensor is wanted: PyTorch refuses, and so do we.

What PyTorch says carries the place in its sources; it is compared without that.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch

pytestmark = pytest.mark.oracle

SIZES = """d1.expand(s); d1.expand(2, r, 3); t.broadcast_to(d1, s); v.view(s); v.view(r, 3); v.reshape(s)
v.reshape(-1, r); t.empty(s); t.zeros(s); t.zeros(2, r, 3); t.ones(*s); t.ones(r); t.full(s, 1.0); t.rand(s)
t.randn(s); t.randint(0, 3, s); t.zeros(size=s); d.new_zeros(s); d.new_ones(s); d.new_empty(s)
d.new_full(s, 2.0); d.repeat(r, 1); d.tile((r, 1)); d.as_strided((r, 2), (1, 1)); d.as_strided((2, 2), (r, 1))
t.empty_strided((r, 2), (2, 1)); d.new_empty_strided((r, 2), (2, 1)); d.split([r, 1]); d.resize_(r); d.roll(r)
t.nn.functional.pad(d, (r, 0)); t.nn.functional.interpolate(d1, size=r)
t.nn.functional.conv1d(d1, t.ones(1, 1, 1), padding=r); t.nn.Linear(r, 2); t.normal(0.0, 1.0, s)
j.values().view(r, 3)"""
NUMBERS = """t.randint(r, (2,)); d.as_strided((2, 2), (1, 1), r); d[:r]; d[r:]; d[::r]; d.split(r); d.chunk(r)
t.arange(r); t.arange(0, r); t.linspace(0, 1, r); t.eye(r); t.eye(2, r); d.sum(r); d.squeeze(r); d.permute(0, r)
d.transpose(0, r); d.roll(1, r); d.topk(r); d.kthvalue(r); d.cumsum(r); d.unfold(0, r, 1)
t.nn.functional.max_pool1d(d1, r); t.randperm(r); t.nn.functional.one_hot(t.tensor([0, 1]), r)
t.bincount(t.tensor([0, 1]), minlength=r); t.add(d, d, alpha=r); t.full((2,), r); t.tensor([r, 1]); t.diag(d, r)
d.tril(r); t.tril_indices(r, 2); d.flatten(0, r); d.clamp(max=r); d.argmax(r); t.dropout(d, r, True)
t.vander(d[0], r); t.hamming_window(r); d.softmax(r); d >= r; d == r; t.empty(2).random_(r)
t.empty(2).uniform_(0, r); r + 1; 1 + r; r - 1; 1 - r; r // 2; r / 2; r % 2; r**2; -r; +r; abs(r); r & 1; r | 1
r ^ 1; r << 1; r >> 1; int(r); float(r); r + r"""
FINE = """j.view(s); j.view(2, r, 1, 3); j.expand(s); j.reshape(2, r, 3, 1); t.broadcast_to(j, s); r * 2; 2 * r
r >= 2; r == 3"""


def _calls(text: str) -> list[str]:
    return [call.strip() for line in text.splitlines() for call in line.split(";")]


def _told(call: str, library: Any) -> Any:
    t = library
    j = t.nested.nested_tensor([t.arange(6.0).reshape(2, 3), t.arange(9.0).reshape(3, 3)], layout=t.jagged)
    names = dict(t=t, j=j, s=j.shape, r=j.shape[1], d=t.arange(6.0).reshape(2, 3), d1=t.ones(2, 1, 3), v=t.ones(5, 3))
    try:
        found = eval(call, names)
    except Exception as error:
        return type(error).__name__, re.sub(r"^\S+\.cpp:\d+: ", "", str(error)).partition("\n")[0]
    sizes = found.shape if isinstance(found, t.Tensor) else (found,)
    return "fine", [re.sub(r"j\d+", "j", str(n)) for n in sizes]


@pytest.mark.parametrize("call", _calls(SIZES) + _calls(NUMBERS))
def test_refused_in_pytorchs_words(call: str) -> None:
    mine = _told(call, torch)
    assert mine[0] in ("RuntimeError", "AttributeError")
    assert mine == _told(call, _oracle.load())


@pytest.mark.parametrize("call", _calls(FINE))
def test_nested_tensors_know_their_own(call: str) -> None:
    assert _told(call, torch) == _told(call, _oracle.load())


@pytest.mark.parametrize(
    "call", _calls("d + r; r * d; d / r; d.new_tensor([r]); t.zeros(s, device='meta'); d.new_zeros(s, device='meta')")
)
def test_no_value_is_made_up(call: str) -> None:
    """PyTorch counts with a made-up value here, or names another attribute."""
    assert _told(call, torch)[0] in ("RuntimeError", "AttributeError")
