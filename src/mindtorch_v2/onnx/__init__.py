"""`torch.onnx`: importable; exporting raises."""

from __future__ import annotations

from enum import Enum

from .._unserved import offer as _offer
from . import errors as errors
from .errors import OnnxExporterError as OnnxExporterError

__all__ = ["OnnxExporterError", "OperatorExportTypes", "TrainingMode", "errors", "is_in_onnx_export"]

WHY = "{name}: exporting to ONNX is not served; save the weights with safetensors or torch.save and export with PyTorch"
_offer(
    __name__,
    "export register_custom_op_symbolic unregister_custom_op_symbolic dynamo_export select_model_mode_for_export",
    "ONNXProgram ExportableModule InputObserver ExportOptions JitScalarType",
    WHY,
)


class OperatorExportTypes(Enum):
    """How PyTorch's first exporter treats operators that ONNX does not have."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(Enum):
    """Whether a model is exported as it trains or as it evaluates."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


def is_in_onnx_export() -> bool:
    """False: nothing is exported."""
    return False
