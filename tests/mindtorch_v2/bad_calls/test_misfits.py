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
