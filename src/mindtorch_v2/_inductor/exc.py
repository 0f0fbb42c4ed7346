"""`torch._inductor.exc`: errors of PyTorch's code generator, for `except` clauses."""

from __future__ import annotations


class InvalidCxxCompiler(RuntimeError):
    """There is no compiler for generated code."""

    def __init__(self) -> None:
        super().__init__("No working C++ compiler found in torch._inductor.config.cpp.cxx: no code is generated here")


class CppCompileError(RuntimeError):
    """Generated code that does not compile."""

    def __init__(self, cmd: list[str], output: str) -> None:
        super().__init__(f"C++ compile error\n\nCommand:\n{' '.join(cmd)}\n\nOutput:\n{output}")
