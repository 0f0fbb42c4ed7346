"""`torch.masked` reductions of COO and CSR tensors, with masks of any layout, against PyTorch."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch

_LAYOUTS = ("strided", "sparse_coo", "sparse_csr")


def _placed(t: Any, layout: str) -> Any:
    return t if layout == "strided" else t.to_sparse() if layout == "sparse_coo" else t.to_sparse_csr()


def _outcome(library: Any, name: str, layout: str, mask_layout: str, options: dict[str, Any]) -> Any:
    masked = importlib.import_module(library.__name__ + ".masked")
    data = library.tensor([[1.0, 0.0, 3.0], [0.0, 0.0, -2.0], [4.0, 5.0, 0.0]])
    mask = library.tensor([[True, False, True], [False, False, True], [False, True, True]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = getattr(masked, name)(_placed(data, layout), mask=_placed(mask, mask_layout), **options)
        except Exception as error:
            return type(error).__name__
    dense = found if str(found.layout) == "torch.strided" else found.to_dense()
    return str(found.layout), str(found.dtype), tuple(found.shape), dense.tolist()


@pytest.mark.parametrize("mask_layout", _LAYOUTS)
@pytest.mark.parametrize("layout", _LAYOUTS)
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
def test_reductions(name: str, layout: str, mask_layout: str) -> None:
    for options in ({}, {"dim": 0}, {"dim": 1, "keepdim": True}, {"dim": 0, "keepdim": True}, {"keepdim": True}):
        given = (name, layout, mask_layout, options)
        if name == "mean" and layout == "sparse_coo":
            continue  # PyTorch has none
        assert _outcome(torch, *given) == _outcome(_oracle.load(), *given), given


def test_sparse_results_are_compared_by_entries() -> None:
    t = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    for layout in ("sparse_coo", "sparse_csr"):
        torch.testing.assert_close(_placed(t, layout), _placed(t.clone(), layout))
        with pytest.raises(AssertionError):
            torch.testing.assert_close(_placed(t, layout), _placed(t * 2, layout))
        with pytest.raises(AssertionError, match="number of specified values"):
            torch.testing.assert_close(_placed(t, layout), _placed(t + 1, layout))


_OTHERS = "sum prod amax argmax argmin mean median logsumexp var std softmax log_softmax softmin cumsum cumprod".split()


def _refusal(library: Any, name: str, kind: str, masked: bool) -> Any:
    data = library.arange(12.0, dtype=library.float64).reshape(3, 4)
    sizes = ((1, 1),) if kind in ("bsr", "bsc") else ()
    of_kind = [getattr(t, f"to_sparse_{kind}")(*sizes) for t in (data, data > 3)]
    module = importlib.import_module(library.__name__ + ".masked")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            getattr(module, name)(of_kind[0], 1, mask=of_kind[1] if masked else None)
        except Exception as error:
            return type(error).__name__, str(error)
    return None


@pytest.mark.oracle
@pytest.mark.parametrize("masked", (False, True))
@pytest.mark.parametrize("kind", ("coo", "csr", "csc", "bsr", "bsc"))
@pytest.mark.parametrize("name", _OTHERS)
def test_layouts_that_a_function_does_not_take(name: str, kind: str, masked: bool) -> None:
    assert _refusal(torch, name, kind, masked) == _refusal(_oracle.load(), name, kind, masked)
