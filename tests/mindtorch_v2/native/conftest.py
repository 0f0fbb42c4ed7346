"""PyTorch for the tests of native kernels."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def torch() -> Any:
    module = pytest.importorskip("torch")
    module.set_num_threads(1)
    return module
