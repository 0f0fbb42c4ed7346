"""`torch` is mindtorch_v2: PyTorch's API with PyTorch's semantics, on cpu, meta and npu."""

# Puts the package into sys.modules in the place of this module.
import mindtorch_v2.torch  # noqa: F401
