"""The library under test.

Test files say `from ._subject import subject as torch`. Normally that is `mindtorch_v2`; with the environment variable
`MINDTORCH_TEST_SUBJECT=torch` the same tests run on PyTorch itself, which proves that what they expect is what PyTorch
does. Invariant: a test that can run on PyTorch passes on PyTorch. Tests of names that only mindtorch_v2 has carry
`@mindtorch_only`.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import Any

import pytest

SUBJECT_NAME: str = os.environ.get("MINDTORCH_TEST_SUBJECT", "mindtorch_v2")
subject: Any = importlib.import_module(SUBJECT_NAME)
IS_ORACLE: bool = SUBJECT_NAME == "torch"

mindtorch_only = pytest.mark.skipif(IS_ORACLE, reason="a name that only mindtorch_v2 has")


def submodule(path: str) -> ModuleType:
    """`submodule("autograd")` is `mindtorch_v2.autograd`, or `torch.autograd` when PyTorch is the subject."""
    return importlib.import_module(f"{SUBJECT_NAME}.{path}")
