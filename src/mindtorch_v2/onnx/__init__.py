"""`torch.onnx`: importable; exporting raises."""

from __future__ import annotations

from .._unserved import offer as _offer
from . import errors as errors
from .errors import OnnxExporterError as OnnxExporterError

__all__ = ["OnnxExporterError", "errors", "is_in_onnx_export"]

WHY = "{name}: exporting to ONNX is not served; save the weights with safetensors or torch.save and export with PyTorch"
_offer(
    __name__,
    "export register_custom_op_symbolic unregister_custom_op_symbolic dynamo_export select_model_mode_for_export",
    "ONNXProgram ExportableModule InputObserver ExportOptions JitScalarType",
    WHY,
)


def is_in_onnx_export() -> bool:
    """False: nothing is exported."""
    return False
