"""`torch.utils.backend_registration`: the name of the device outside PyTorch's own list. Here that is `npu`, for good.

Invariant: its methods on tensors, modules and storages exist from the start, so making them again is refused.
"""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor

__all__ = ["generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"]

_IN_TREE = frozenset(
    "cpu cuda ipu xpu mkldnn opengl opencl ideep hip ve fpga maia xla lazy vulkan mps meta hpu mtia".split()
)


def rename_privateuse1_backend(backend_name: str) -> None:
    """Give the device its name: it is called `npu`, and nothing else."""
    if not isinstance(backend_name, str):
        raise RuntimeError(f"_rename_privateuse1_backend expects a str, but got {type(backend_name).__name__}")
    if backend_name in _IN_TREE:
        raise RuntimeError(f"Cannot register privateuse1 backend with in-tree device name: {backend_name}")
    if backend_name != "npu":
        raise RuntimeError("torch.register_privateuse1_backend() has already been set! Current backend: npu")


def generate_methods_for_privateuse1_backend(
    for_tensor: bool = True,
    for_module: bool = True,
    for_packed_sequence: bool = True,
    for_storage: bool = False,
    unsupported_dtype: Any = None,
) -> None:
    """Make `is_npu` and `npu()` for these classes; refused, as they are there."""
    from ..nn import Module
    from ..storage import UntypedStorage

    for asked, owner, name in (
        (for_tensor, Tensor, "is_npu"),
        (for_module, Module, "npu"),
        (for_storage, UntypedStorage, "npu"),
    ):
        if asked and hasattr(owner, name):
            raise RuntimeError(f"The custom device module of {owner} has already been registered with {name}")
    if for_packed_sequence:
        raise NotImplementedError("methods of PackedSequence for npu cannot be made; use .to('npu')")
