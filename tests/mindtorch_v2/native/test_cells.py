"""Cells of recurrent networks: the native kernels against the composition of operators that other devices run."""

from __future__ import annotations

from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _native
from mindtorch_v2._api import lazy_tables
from mindtorch_v2._dispatch import registry

CELLS = {"_thnn_fused_lstm_cell": 4, "_thnn_fused_gru_cell": 3}
BACKWARD = ("_thnn_fused_lstm_cell_backward_impl", "_thnn_fused_gru_cell_backward")
F32, F64 = 6, 7
TOLERANCE = {"float32": 2e-6, "float64": 1e-14}


def composed(name: str, args: tuple[Any, ...]) -> Any:
    op = registry.get(name)
    return op.row.fallback.run(op, args, 0)


def operator(name: str) -> Any:
    lazy_tables.load("cells")
    return registry.get(name)


def compare(name: str, args: tuple[Any, ...], dtype: str) -> Any:
    op = operator(name)
    mine, wanted = op.call(args), composed(name, args)
    for a, b in zip(mine, wanted):
        assert a.shape == b.shape and a.dtype == b.dtype and a.is_contiguous()
        torch.testing.assert_close(a, b, rtol=10 * TOLERANCE[dtype], atol=TOLERANCE[dtype])
    return mine


def numbers(dtype: str, *shape: int, strided: bool = False) -> Any:
    made = torch.randn(*shape[::-1], dtype=getattr(torch, dtype)).t() if strided else None
    return torch.randn(*shape, dtype=getattr(torch, dtype)) * 3 if made is None else made


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize(("rows", "width"), [(0, 3), (3, 0), (1, 1), (2, 7), (5, 64), (33, 130)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CELLS)
def test_cells(name: str, dtype: str, rows: int, width: int, strided: bool, biased: bool) -> None:
    torch.manual_seed(0)
    wide = CELLS[name] * width
    gates = [numbers(dtype, rows, wide, strided=strided) for _ in range(2)]
    biases = [numbers(dtype, wide) for _ in range(2)] if biased else [None, None]
    state = numbers(dtype, rows, width, strided=strided)
    made = compare(name, (*gates, state, *biases), dtype)
    slope = numbers(dtype, rows, width, strided=strided)
    if name == "_thnn_fused_gru_cell":
        compare(BACKWARD[1], (slope, made[1], biased), dtype)
        return
    for grads in ((slope, None), (None, slope), (slope, slope * 2)):
        compare(BACKWARD[0], (*grads, state, made[1], made[2], biased), dtype)


def test_other_dtypes_go_by_the_composition() -> None:
    op = operator("_thnn_fused_lstm_cell")
    for dtype in (torch.float16, torch.bfloat16):
        gates, state = torch.randn(2, 8).to(dtype), torch.randn(2, 2).to(dtype)
        for a, b in zip(
            op.call((gates, gates, state, None, None)), composed(op.name, (gates, gates, state, None, None))
        ):
            assert torch.equal(a, b)


@pytest.mark.parametrize("name", ["lstm_cell", "lstm_cell_backward", "gru_cell", "gru_cell_backward"])
def test_raw_calls_stay_inside_their_storages(name: str) -> None:
    """Each operand in turn is too short, begins before its memory, or has another dtype."""
    operands = {"lstm_cell": 8, "lstm_cell_backward": 7, "gru_cell": 7, "gru_cell_backward": 5}[name]
    function = getattr(_native, name)

    def arguments(**other: Any) -> list[Any]:
        out: list[Any] = []
        for i in range(operands):
            here = other if other.get("at") == i else {}
            out += [
                _native.Storage(here.get("nbytes", 4 * 2 * 3 * 5)),
                here.get("offset", 0),
                (),
                here.get("code", F32),
            ]
        return out

    function(*arguments(), 2, 3)
    for at in range(operands):
        with pytest.raises(RuntimeError, match="out of bounds for storage"):
            function(*arguments(at=at, nbytes=8), 2, 3)
        with pytest.raises(RuntimeError, match="out of bounds for storage"):
            function(*arguments(at=at, offset=-1), 2, 3)
        with pytest.raises(RuntimeError, match="expected dtype"):
            function(*arguments(at=at, code=F64, nbytes=4 * 2 * 3 * 5 * 2), 2, 3)
    for sizes in ((2**33, 2**33), (-1, 3), (2, 2**62)):
        with pytest.raises((RuntimeError, ValueError, OverflowError)):
            function(*arguments(), *sizes)
    with pytest.raises(NotImplementedError):
        function(*[a if i % 4 != 3 else 4 for i, a in enumerate(arguments())], 2, 1)
