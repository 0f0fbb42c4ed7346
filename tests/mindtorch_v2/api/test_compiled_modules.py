"""Compiled modules come from one library, each under its own name, whoever asks first and by which name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import BuiltinFunctionType

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _compiled, _native, _tensor_base
from mindtorch_v2._dispatch import state

PACKAGE = Path(str(torch.__file__)).parent
COMPILED = any(PACKAGE.glob("_core__mypyc*"))


def run(text: str) -> str:
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_compiled_is_what_runs() -> None:
    assert isinstance(state.is_grad_enabled, BuiltinFunctionType) == COMPILED
    assert any(isinstance(each, _compiled.Finder) for each in sys.meta_path) == COMPILED


@pytest.mark.skipif(not COMPILED, reason="the package is uncompiled: make test")
def test_there_is_one_library() -> None:
    own = {path.name.partition(".")[0] for path in PACKAGE.rglob("*.so") if "_emulator" not in path.parts}
    assert own == {"_core__mypyc", "_native"}


@pytest.mark.skipif(not COMPILED, reason="the package is uncompiled: make test")
def test_every_module_of_the_library_has_its_source_beside_it() -> None:
    library = sys.modules["mindtorch_v2._core__mypyc"]
    names = [name.removeprefix("init_").replace("___", ".") for name in vars(library) if name.startswith("init_")]
    assert len(names) > 100
    for name in names:
        spec = _compiled.find(name)
        assert spec is not None and Path(str(spec.origin)).is_file(), name


def test_of_other_names_nothing_is_known() -> None:
    assert _compiled.find("mindtorch_v2._autograd") is None
    assert _compiled.find("mindtorch_v2.nn") is None
    assert _compiled.find("json") is None


@pytest.mark.parametrize("first", ["mindtorch_v2._ops.rules.shape", "mindtorch_v2._backends.npu.table"])
def test_a_module_may_be_the_first_that_is_asked_for(first: str) -> None:
    # The same module again, as an attribute of its package, with its source for tools.
    said = run(
        f"import importlib, sys; m = importlib.import_module({first!r}); print(sys.modules[{first!r}] is m, m.__name__,"
        f" m.__spec__.name, importlib.import_module(m.__package__).{first.rpartition('.')[2]} is m, m.__file__)"
    )
    assert said.startswith(f"True {first} {first} True ")
    assert re.search(r"(\.py|\.so)$", said.strip())


def test_by_the_name_torch() -> None:
    said = run(
        "import mindtorch_v2.torch, torch, sys\n"
        "from torch._dispatch import state\n"
        "print(torch.ones(2).add(1).tolist(), state is sys.modules['mindtorch_v2._dispatch.state'])"
    )
    assert said.strip() == "[2.0, 2.0] True"


@pytest.mark.parametrize("given", [None, 1, "init", _tensor_base, object()])
def test_nothing_else_begins_a_module(given: object) -> None:
    with pytest.raises(TypeError, match="takes a module of the library"):
        _native.begin_module(given)


def test_a_foreign_capsule_begins_no_module() -> None:
    with pytest.raises(TypeError, match="takes a module of the library"):
        _native.begin_module(torch.ones(2).__dlpack__())
