"""`torch._inductor.test_case`: PyTorch's class of tests for generated code; nothing of it has to be set up here."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from .._dynamo import test_case

    return getattr(test_case, name)
