"""PyTorch's own tests of `torch.distributed`, which its wheel carries, run by ranks of this package.

Invariant: `torch` is this package in such a rank; only the files of tests are PyTorch's.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import tempfile
import types
import unittest
from pathlib import Path
from typing import Any

_PLACE = "PYTORCH_TESTING"


class _State:
    cases: Any = None


def use_their_tools() -> None:
    """Let `torch` be this package, and `torch.testing._internal` PyTorch's files."""
    # Processes that this one starts find this package under the name: they are told where the other is.
    if _PLACE not in os.environ:
        found = importlib.util.find_spec("torch")
        assert found is not None and found.origin is not None
        os.environ[_PLACE] = str(Path(found.origin).parent / "testing")
    importlib.import_module("mindtorch_v2.torch")
    testing = importlib.import_module("mindtorch_v2.testing")
    testing.__path__.append(os.environ[_PLACE])
    if importlib.util.find_spec("expecttest") is None:
        stand_in = types.ModuleType("expecttest")
        setattr(stand_in, "TestCase", unittest.TestCase)
        sys.modules["expecttest"] = stand_in


def _prepare(rank: int, size: int) -> Any:
    """Their class of tests."""
    use_their_tools()
    folder = tempfile.mkdtemp(prefix="upstream")
    os.environ.update(BACKEND="gloo", WORLD_SIZE=str(size), RANK=str(rank), TEMP_DIR=folder, INIT_METHOD="env://")
    for name in ("barrier", "test_dir", "init_dir"):
        os.mkdir(os.path.join(folder, name))
    tests: Any = importlib.import_module("torch.testing._internal.distributed.distributed_test")
    namespace = {
        "world_size": size,
        "_barrier": lambda self, *args, **kwargs: importlib.import_module("torch.distributed").barrier(),
    }
    return type("Cases", (tests.TestDistBackend, tests.DistributedTest._DistTestBase), namespace)


def run(torch: Any, dist: Any, rank: int, size: int, name: str) -> str:
    """One test: nothing if it passes, or why it is skipped."""
    _State.cases = _State.cases or _prepare(rank, size)
    case = _State.cases.__new__(_State.cases)
    unittest.TestCase.__init__(case, name)
    case.rank, case.file_name = rank, ""
    torch.manual_seed(0)
    try:
        getattr(case, name)()
    except unittest.SkipTest as reason:
        return f"skipped: {reason}"
    except SystemExit as code:  # how their tests say that they are skipped
        return f"skipped: {code.code}"
    return ""
