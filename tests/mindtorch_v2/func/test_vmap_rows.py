"""`vmap` of every operator of PyTorch's table over each of its tensors, beside the loop.

A sample of them runs always; MINDTORCH_VMAP=all takes every operator, with more samples and dtypes.
"""

from __future__ import annotations

import os

import pytest

from .._subject import mindtorch_only, submodule
from ..parity import _infos
from . import _mapped

pytestmark = [pytest.mark.oracle, mindtorch_only]

ALL = os.environ.get("MINDTORCH_VMAP") == "all"
# Numbers given as tensors are read before the operator is called.
READ = {"linspace-tensor_overload", "logspace-tensor_overload"}
CASES = [case for i, case in enumerate(_infos.covered()) if case.label not in READ and (ALL or i % 8 == 3)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int64", "bool", "float64"] if ALL else ["float32"])
def test_rows(case: _infos.Covered, dtype: str) -> None:
    if not _infos.supported(case.info, dtype):
        return
    found = list(_mapped.differences(case, dtype, 8 if ALL else 2))
    wrong = [d for d in found if d is not None]
    assert not wrong, "\n".join(f"{d.where}: {d.text}" for d in wrong[:5])


LOOPED = """
    _embedding_bag argwhere bincount ctc_loss.IntList ctc_loss.Tensor embedding_bag embedding_bag.padding_idx
    embedding_renorm histc histogram.bin_ct histogram.bins_tensor histogramdd histogramdd.TensorList_bins
    histogramdd.int_bins linalg_lstsq multilabel_margin_loss nonzero_static repeat_interleave.Tensor
    repeat_interleave.self_Tensor
""".split()


def test_few_rows_are_served_by_the_loop(capsys: pytest.CaptureFixture[str]) -> None:
    names = submodule("_batching.kernel").served_by_loop()
    with capsys.disabled():
        print(f"\nvmap calls these {len(names)} rows once for each: {', '.join(names)}")
    # A row that comes to this list has lost its rule; one that leaves it has got one.
    assert names == LOOPED
