"""`torch._dynamo.test_case`: the class of PyTorch's tests of its compiler, made over PyTorch's test tools.

Whoever runs such tests brings the tools; without them the class does not exist.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name not in ("TestCase", "run_tests"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib import import_module

    tools = import_module(__name__.partition("._dynamo")[0] + ".testing._internal.common_utils")
    return getattr(tools, name)
