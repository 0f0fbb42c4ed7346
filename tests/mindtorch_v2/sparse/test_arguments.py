"""Arguments of the methods about layouts are checked as PyTorch's parser checks them [L1]."""

from __future__ import annotations

from typing import Any

import pytest

import mindtorch_v2 as torch

from .. import _oracle

_CALLS = """a.to_sparse_bsr(1.0)
a.to_sparse_bsr('x')
a.to_sparse_bsr(None)
a.to_sparse_bsr((1.0, 2))
a.to_sparse_bsr((1, 2), 1.5)
a.to_sparse_bsr()
a.to_sparse_bsr((2, 2), 1, 2)
a.to_sparse_csr('x')
a.to_sparse_csr(1, 2)
a.to_sparse_csr(x=2)
a.to_sparse('x')
a.to_sparse(x=1)
a.to_sparse(layout='x')
a.to_sparse(layout=torch.sparse_bsr, blocksize=1.5)
a.to_sparse(1, layout=torch.sparse_csr)
a.to_dense('x')
a.to_dense(masked_grad=1)
c.sparse_mask(1)
c.sparse_resize_('x', 2, 3)
c.sparse_resize_((2, 4), 2)
c._coalesced_(1)
c.smm(1)
c.sspaddmm(c, a, beta='x')
torch.unique(torch.tensor(5.0), dim=3)
torch.gradient(a, dim='x')
torch.gradient(a, dim=1.5)
torch.DispatchKey('a')
torch.DispatchKey(1, 2)
torch.linalg.matrix_norm(a, 1j)""".split("\n")


def _outcome(library: Any, text: str) -> tuple[str, str]:
    a = library.ones(2, 4)
    try:
        eval(text, {"torch": library, "a": a, "c": a.to_sparse()})
    except Exception as error:
        return type(error).__name__, str(error)
    return "", ""


@pytest.mark.parametrize("text", _CALLS)
def test_refused_in_the_same_words(text: str) -> None:
    ours = _outcome(torch, text)
    assert ours[0]
    assert ours == _outcome(_oracle.load(), text)


def test_a_sequence_of_absurd_length_is_not_walked() -> None:
    with pytest.raises(MemoryError):
        torch.overrides.has_torch_function(range(2**62))


def test_public_classes_are_where_they_are_found() -> None:
    for name in ("device", "dtype", "layout", "memory_format", "qscheme", "finfo", "iinfo", "Size", "Tensor"):
        assert getattr(torch, name).__module__ in ("mindtorch_v2", "torch")
