"""`torch.classes`: TorchScript's classes by namespace and name. Compiled libraries of PyTorch register them, and none
can be loaded here, so that each is refused by its name.
"""

from __future__ import annotations

import types
from typing import Any, NoReturn


class _ClassNamespace(types.ModuleType):
    def __init__(self, name: str) -> None:
        super().__init__("torch.classes" + name)
        self.name = name

    def __getattr__(self, attr: str) -> NoReturn:
        if attr.startswith("__"):
            raise AttributeError(attr)
        raise RuntimeError(
            f"Tried to instantiate class '{self.name}.{attr}', but it does not exist! Ensure that it is registered via "
            "torch::class_"
        )


class _Classes(types.ModuleType):
    __file__ = "_classes.py"

    def __init__(self) -> None:
        super().__init__("torch.classes")

    def __getattr__(self, name: str) -> _ClassNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        namespace = _ClassNamespace(name)
        setattr(self, name, namespace)
        return namespace

    @property
    def loaded_libraries(self) -> Any:
        from ._operators import ops

        return ops.loaded_libraries

    def load_library(self, path: Any) -> None:
        """Load a shared library, as `torch.ops.load_library`."""
        from ._operators import ops

        ops.load_library(path)


classes = _Classes()
