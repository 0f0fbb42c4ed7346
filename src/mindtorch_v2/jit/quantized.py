"""`torch.jit.quantized`: modules that PyTorch itself has removed from here."""

from __future__ import annotations

from .._absent import classes, refusing

_TEXT = "torch.jit.{name} is no longer supported. Please use the torch.ao.quantization APIs instead."

globals().update(
    classes(
        __name__,
        """QuantizedGRU QuantizedGRUCell QuantizedLSTM QuantizedLSTMCell QuantizedLinear QuantizedLinearFP16
        QuantizedRNNBase QuantizedRNNCell QuantizedRNNCellBase""",
        _TEXT,
    )
)
globals().update(
    refusing(
        __name__,
        "quantize_linear_modules quantize_rnn_cell_modules quantize_rnn_modules",
        RuntimeError,
        "{name} function is no longer supported. Please use torch.ao.quantization.quantize_dynamic API instead.",
    )
)
