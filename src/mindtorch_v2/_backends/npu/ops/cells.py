"""NPU lines of recurrent cells: the vendor has the cell of a long short-term memory, and its gradient.

Invariant: dtypes that the vendor does not have, and chips and libraries without the functions, go by the composition.
"""
from __future__ import annotations

from ...._dispatch import registry
from ..lines import line, npu


def _serve(name: str, text: str) -> None:
    composed = registry.get(name).row.fallback
    npu(name, line(text, absent=composed, otherwise=composed))


_serve("_thnn_fused_lstm_cell", "aclnnThnnFusedLstmCell(input_gates, hidden_gates, cx, input_bias, hidden_bias, out0, "
       "out1, out2)")
_serve("_thnn_fused_lstm_cell_backward_impl", "aclnnThnnFusedLstmCellBackward(grad_hy, grad_cy, cx, cy, workspace, "
       "has_bias, out0, out1, out2)")
