"""`torch._library.fake_profile`: fake kernels from recorded calls; not here."""

from __future__ import annotations

from .._unserved import offer as _offer


class MissingOpProfile(RuntimeError):
    """Raised by PyTorch where no recorded call fits."""


_offer(
    __name__,
    "generate_yaml_from_profiles load_op_profiles read_profiles_from_yaml save_op_profiles "
    "unsafe_generate_fake_kernels",
    "OpProfile TensorMetadata",
    "{name}: fake kernels are not made from recorded calls here; torch.library.register_fake gives one",
)
