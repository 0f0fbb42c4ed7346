"""`torch.utils.cpp_extension`: importable; extensions in C++ need PyTorch's library, which is not here."""

from __future__ import annotations

from .._unserved import offer as _offer

__all__: list[str] = []
CUDA_HOME = ROCM_HOME = SYCL_HOME = CUDNN_HOME = None
IS_HIP_EXTENSION = False

_offer(
    __name__,
    "load load_inline include_paths library_paths verify_ninja_availability check_compiler_is_gcc "
    "check_compiler_ok_for_platform get_compiler_abi_compatibility_and_version get_cxx_compiler "
    "get_default_build_root remove_extension_h_precompiler_headers",
    "BuildExtension CUDAExtension CppExtension SyclExtension",
    "{name}: extensions in C++ are built against PyTorch's library, which is not here; define operators in Python with "
    "torch.library.custom_op, which may call any compiled code through ctypes or a module of its own",
)


def is_ninja_available() -> bool:
    """Whether ninja is installed."""
    import shutil

    return shutil.which("ninja") is not None
