"""`torch.onnx.errors`: exceptions of the exporter, for programs that catch them."""


class OnnxExporterError(RuntimeError):
    """Anything that the exporter raises."""


class OnnxExporterWarning(UserWarning):
    """What the exporter warns of."""


class UnsupportedOperatorError(OnnxExporterError):
    """An operator without a counterpart."""


class SymbolicValueError(OnnxExporterError):
    """A value that cannot be exported."""
