"""CPU lines of the cells of recurrent networks."""
from __future__ import annotations

from ..kernels import cells
from ..lines import cpu

cpu("_thnn_fused_lstm_cell", cells.lstm())
cpu("_thnn_fused_lstm_cell_backward_impl", cells.lstm_backward())
cpu("_thnn_fused_gru_cell", cells.gru())
cpu("_thnn_fused_gru_cell_backward", cells.gru_backward())
