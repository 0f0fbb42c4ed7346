"""`torch.sparse.FloatTensor` and the like, the constructors of old programs. Also holds for PyTorch (run with
MINDTORCH_TEST_SUBJECT=torch)."""

from __future__ import annotations

from typing import Any

import pytest

from .._subject import subject as torch

KINDS = "BFloat16 Byte Char Double Float Half Int Long Short".split()


def parts() -> tuple[Any, Any]:
    return torch.tensor([[0, 1], [1, 2]]), torch.tensor([1.0, 2.0])


@pytest.mark.parametrize("kind", KINDS)
def test_indices_and_values(kind: str) -> None:
    cls = getattr(torch.sparse, f"{kind}Tensor")
    indices, values = parts()
    values = values.to(cls.dtype)
    for made in (cls(indices, values, torch.Size([2, 3])), cls(indices, values, (2, 3)), cls(indices, values)):
        assert tuple(made.shape) == (2, 3) and made.layout is torch.sparse_coo and made.dtype is cls.dtype
        assert isinstance(made, cls) and not isinstance(made, getattr(torch, f"{kind}Tensor"))
        assert made.to_dense().tolist() == [[0, 1, 0], [0, 0, 2]]
    assert cls.layout is torch.sparse_coo and cls.__name__ == f"{kind}Tensor" and cls.__module__ == "torch.sparse"
    assert not isinstance(values, cls)


def test_values_keep_their_dtype() -> None:
    indices, values = parts()
    assert torch.sparse.LongTensor(indices, values, (2, 3)).dtype is torch.float32


def test_sizes_alone() -> None:
    cls = torch.sparse.DoubleTensor
    for made, shape in ((cls(), (0,)), (cls(2, 3), (2, 3)), (cls(torch.Size([4])), (4,))):
        assert tuple(made.shape) == shape and made._nnz() == 0 and made.dtype is torch.float64


def test_refusals() -> None:
    indices, values = parts()
    cls = torch.sparse.FloatTensor
    for given in ((indices,), (indices, values, 5), ("a",), (2.5,)):
        with pytest.raises(TypeError, match=r"new\(\) received an invalid combination of arguments"):
            cls(*given)
    with pytest.raises(TypeError, match="only accepts sizes"):
        cls([1])
    with pytest.raises(TypeError, match=r"new\(\) got an unexpected keyword argument 'dtype'"):
        cls(indices, values, (2, 3), dtype=torch.float32)


def test_second_names() -> None:
    indices, values = parts()
    matrix = torch.sparse_coo_tensor(indices, values, (2, 3))
    assert torch.spmm(matrix, torch.ones(3, 2)).tolist() == [[1, 1], [2, 2]]
    assert torch.saddmm(torch.sparse_coo_tensor((2, 2)), matrix, torch.ones(3, 2)).to_dense().tolist() == [
        [1, 1],
        [2, 2],
    ]
