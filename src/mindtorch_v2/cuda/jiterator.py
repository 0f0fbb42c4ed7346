"""`torch.cuda.jiterator`: kernels from C++ text for CUDA. The text is read; there is no CUDA to run it."""

from __future__ import annotations

import re
from typing import Any

__all__: list[str] = []

_KERNEL = re.compile(r"\s*(?:template\s*<\s*typename[^>]*>)?\s*\w+\s+(\w+)\s*\(.*\)\s*\{.*\}\s*", re.DOTALL)


class _JittedFunction:
    """A kernel that was described; calling it needs CUDA."""

    def __init__(self, code_string: str, return_by_ref: bool, num_outputs: int, **kwargs: Any) -> None:
        found = _KERNEL.fullmatch(code_string)
        if found is None:
            raise Exception(f"Couldn't parse code, please check correctness:\n {code_string}")
        self.code_string = code_string
        self.return_by_ref = return_by_ref
        self.num_outputs = num_outputs
        self.kernel_name = found[1]
        self.kwargs_dict = kwargs
        self.is_cuda_available = False

    def __call__(self, *tensors: Any, **kwargs: Any) -> Any:
        raise AssertionError("Jiterator is only supported on CUDA and ROCm GPUs, none are available.")


def _create_jit_fn(code_string: str, **kwargs: Any) -> _JittedFunction:
    """A kernel with one result."""
    return _JittedFunction(code_string, False, 1, **kwargs)


def _create_multi_output_jit_fn(code_string: str, num_outputs: int, **kwargs: Any) -> _JittedFunction:
    """A kernel with several results."""
    return _JittedFunction(code_string, True, num_outputs, **kwargs)
