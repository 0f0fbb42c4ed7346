"""NPU lines of recurrent cells: the vendor has the cell of a long short-term memory, and its gradient.

Invariant: operands of several dtypes, dtypes that the vendor does not have, and chips and libraries without the
functions go by the composition.
"""
from __future__ import annotations

from typing import Any

from ...._dispatch import registry
from ...._tensor_base import TensorBase
from ..lines import choose, line, npu


def _alike(*args: Any) -> bool:
    return len({t._dtype for t in args if isinstance(t, TensorBase)}) == 1


def _serve(name: str, text: str) -> None:
    composed = registry.get(name).row.fallback
    npu(name, choose(_alike, {True: line(text, absent=composed, otherwise=composed), False: composed}))


_serve("_thnn_fused_lstm_cell", "aclnnThnnFusedLstmCell(input_gates, hidden_gates, cx, input_bias, hidden_bias, out0, "
       "out1, out2)")
_serve("_thnn_fused_lstm_cell_backward_impl", "aclnnThnnFusedLstmCellBackward(grad_hy, grad_cy, cx, cy, workspace, "
       "has_bias, out0, out1, out2)")
