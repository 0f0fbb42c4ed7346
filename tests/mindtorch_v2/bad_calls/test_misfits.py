"""Arguments that fit no signature, and dimensions that a number does not have: PyTorch's types and words [L1].

Every function is called with a tensor without dimensions and values of many kinds in many places. Most calls are wrong
in some way.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import mindtorch_v2 as torch

from .. import _oracle

_NAMES = """
    all aminmax any argmax argmin argsort cat chunk concat corrcoef count_nonzero cov cummax cummin cumprod cumsum
    diagonal diagonal_scatter diff dsplit dstack flatten flip fliplr flipud gather hsplit hstack index_add
    index_copy index_fill index_reduce index_select kthvalue log_softmax logcumsumexp logsumexp max mean median
    min mode moveaxis movedim msort nanmean nanmedian nanquantile nansum narrow permute quantile renorm roll rot90
    scatter scatter_add select select_scatter slice_scatter softmax sort split_with_sizes squeeze stack std
    std_mean swapaxes swapdims take_along_dim tensor_split tile topk transpose tril triu unsqueeze vander var
    var_mean vsplit vstack
""".split()
_VALUES = ("0", "-1", "1", "(0,)", "()", "None")
_FORMS = (
    "x,{v}",
    "x,dim={v}",
    "x,1,{v}",
    "x,1,dim={v}",
    "x,{v},i",
    "x,{v},i,x",
    "x,{v},1",
    "x,{v},0,1",
    "x,0.5,{v}",
    "x,i,{v}",
    "(x,x),{v}",
)


def _outcome(library: Any, text: str) -> str:
    space = {"torch": library, "x": library.tensor(2.0), "i": library.tensor(0)}
    try:
        result = eval(text, space)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"{tuple(result.shape)} {result.dtype}" if hasattr(result, "shape") else type(result).__name__


@pytest.mark.parametrize("name", _NAMES)
def test_said_as_pytorch_says_it(name: str) -> None:
    oracle = _oracle.load()
    wrong: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for form in _FORMS:
            for value in _VALUES:
                text = f"torch.{name}({form.format(v=value)})"
                ours, theirs = _outcome(torch, text).replace("mindtorch_v2", "torch"), _outcome(oracle, text)
                # PyTorch marks what does not fit with `!`, or not, by rules of its own.
                if ours.replace("!", "") != theirs.replace("!", ""):
                    wrong.append(f"{text}\n  here:    {ours}\n  PyTorch: {theirs}")
    assert not wrong, "\n".join(wrong)


_COMPLEX = """
    constant_pad_nd(x,[1,1],1j) dist(x,x,1j) hardshrink(x,1j) isin(x,1j) isin(1j,x) isin(x.bool(),x) isin(x,True)
    isin(x.cfloat(),x) norm(x,1j) renorm(m,1j,0,1) renorm(m,2,0,1j) searchsorted(x,1j) searchsorted(x.double(),1j)
    threshold(x,1j,0) threshold(x,0,1j) rrelu_(x,0.1,0.2,True) bucketize(1j,x) linalg.vector_norm(x,1j)
    linalg.norm(x,1j) nn.functional.leaky_relu(x,1j) nn.functional.elu(x,1j) nn.functional.softplus(x,1j)
    nn.functional.softplus(x,1,1j) nn.functional.hardtanh(x,1j)
    ops.aten.threshold_backward(x,x,1j) ops.aten.hardshrink_backward(x,x,1j) ops.aten.softplus_backward(x,x,1j,1j)
    ops.aten.leaky_relu_backward(x,x,1j,False) ops.aten.elu_backward(x,1j,1,1,False,x)
    ops.aten.hardtanh_backward(x,x,1j,1) ops.aten.constant_pad_nd(x.to(torch.int8),[1,1],300)
    ops.aten.constant_pad_nd(x.to(torch.int8),[0,-1],300) ops.aten.constant_pad_nd(x.half(),[1,0],1e10)
""".split()


@pytest.mark.parametrize("text", _COMPLEX)
def test_complex_numbers_where_real_ones_belong(text: str) -> None:
    """A number that the result's dtype does not hold is refused; nothing is computed with its real part."""

    def told(library: Any) -> str:
        try:
            result = eval(f"torch.{text}", {"torch": library, "x": library.ones(4), "m": library.ones(2, 2)})
        except Exception as error:
            return f"{type(error).__name__}: {error}".split("\n")[0]
        return f"{tuple(result.shape)} {result.dtype}"

    assert told(torch) == told(_oracle.load())
