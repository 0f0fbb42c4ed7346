"""`MetaConverter`: tensors of the meta device for real ones, as PyTorch makes them."""

from __future__ import annotations

import gc
import weakref
from importlib import import_module
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch

pytestmark = mindtorch_only


def converter(library: Any) -> Any:
    return import_module(f"{library.__name__}._subclasses.meta_utils").MetaConverter()


MADE = """
torch.ones(4, requires_grad=True)
torch.ones(4, requires_grad=True).neg()
torch.ones(4, requires_grad=True)[:]
torch.ones(4, requires_grad=True).neg()[1:]
torch.ones(8).view(2, 4).requires_grad_()
torch.ones(8).view(2, 4).requires_grad_().view(2, 2, 2)
torch.empty(2, 3, 4, 5).to(memory_format=torch.channels_last)
torch.empty_strided((2, 2), (4, 2)).requires_grad_()
torch.view_as_real(torch.ones(4, dtype=torch.complex64))
torch.view_as_complex(torch.ones(4, 2))
torch.ones(4).view(torch.int32)
torch.ones(4, dtype=torch.complex64).imag
torch.ones(4, dtype=torch.complex64).conj()
torch.nn.Parameter(torch.ones(2))
torch.eye(3).to_sparse()
torch.eye(3).to_sparse_csr()
torch.empty(0, 3)
torch.ones(5)[2:].detach()
""".strip().split("\n")


@pytest.mark.oracle
@pytest.mark.parametrize("line", MADE)
def test_as_pytorch_converts(line: str) -> None:
    def seen(library: Any) -> Any:
        t = eval(line, {"torch": library})
        m = converter(library)(t)
        geometry = () if m.layout != library.strided else (m.stride(), m.storage_offset())
        return (
            *(str(m.device), str(m.dtype).split(".")[-1], tuple(m.shape), geometry, m.requires_grad, m.is_leaf),
            *(m._base is not None if m.layout == library.strided else None, m.is_conj(), str(m.layout).split(".")[-1]),
            isinstance(m, library.nn.Parameter),
        )

    assert seen(torch) == seen(_oracle.load())


def test_one_of_each_for_as_long_as_it_lives() -> None:
    convert = converter(torch)
    x = torch.ones(4, 4)
    y = convert(x)
    assert convert(x) is y
    assert len(convert.tensor_memo) == len(convert.storage_memo) == 1
    assert len(convert.describer.lookup_tensor) == len(convert.describer.lookup_storage) == 1
    del x
    gc.collect()
    assert len(convert.describer.lookup_tensor) == len(convert.describer.lookup_storage) == 0
    del y
    gc.collect()
    assert len(convert.tensor_memo) == len(convert.storage_memo) == 0
    gone = weakref.ref(convert)
    z = convert(torch.ones(2))
    del convert
    gc.collect()
    assert gone() is None and z.device.type == "meta"


def test_views_share_what_they_are_views_of() -> None:
    convert = converter(torch)
    x = torch.ones(4)
    a, b = convert(x[:2]), convert(x[2:])
    assert a._base is b._base is convert(x)
    before = a._version
    b.add_(1)
    assert a._version == before + 1
    c = convert(x.detach())
    assert c.untyped_storage()._cdata == a.untyped_storage()._cdata


def test_counts() -> None:
    convert = converter(torch)
    assert convert(3) == 3 and not convert.successful()
    convert(torch.ones(2))
    assert convert.successful()
    assert convert(torch.nested.nested_tensor([torch.ones(2)])) is NotImplemented
    assert not convert.successful()
    with pytest.raises(NotImplementedError, match="'shape_env'"):
        convert(torch.ones(2), shape_env=object())
