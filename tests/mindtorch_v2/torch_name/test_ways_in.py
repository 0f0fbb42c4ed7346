"""The ways to a `torch` that is this package: the runner, the import, and the distribution's folder."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .._subject import mindtorch_only
from ._process import SOURCE, answer, environment, python

pytestmark = mindtorch_only
FOLDER = Path(SOURCE, "mindtorch_v2", "_torch_path")

# What every program below finds out, whichever way it was started.
CHECKS = """
import importlib.metadata, importlib.util, pickle, sys
import torch.nn.functional as F
import torch, mindtorch_v2
from torch import nn
assert torch is mindtorch_v2 and torch.torch is torch and sys.modules["torch"] is sys.modules["mindtorch_v2"]
for name in list(sys.modules):
    if name.startswith("torch."):
        assert sys.modules[name] is sys.modules["mindtorch_v2" + name[5:]], name
        assert sys.modules[name].__name__ == name, name
assert F is mindtorch_v2.nn.functional and torch.nn is nn
assert nn.Linear.__module__ == "torch.nn.modules.linear" and repr(torch.Size) == "<class 'torch.Size'>"
assert torch.__name__ == "torch" and torch.__file__.endswith("__init__.py") and torch.__path__
spec = importlib.util.find_spec("torch")
assert spec.loader is not None and spec.origin == torch.__file__
assert importlib.util.find_spec("torch.optim") is not None and importlib.util.find_spec("torch.nonsense") is None
assert importlib.metadata.version("torch") == "2.13.0+mindtorch"
assert "torch" in importlib.metadata.packages_distributions()["torch"]
assert torch.__version__ >= "2.4.0" and torch.__version__ < (3, 0)
copy = pickle.loads(pickle.dumps(nn.Linear(2, 3)))
assert type(copy) is nn.Linear and isinstance(copy, mindtorch_v2.nn.Module)
import torch.optim.lr_scheduler, torch.distributions.transforms as T
assert T.ExpTransform() == T.ExpTransform()
import torch_npu
assert torch_npu.npu is torch.npu and torch_npu.device_count is torch.npu.device_count
try:
    import torch.nonsense
except ModuleNotFoundError as error:
    assert error.name == "torch.nonsense"
"""


def test_script(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    (tmp_path / "beside.py").write_text("value = 5\n")
    script.write_text(
        CHECKS + "import beside\nassert __name__ == '__main__' and __file__ == sys.argv[0]\n"
        "print(sys.argv[1:], beside.value)\nraise SystemExit(3)\n"
    )
    done = python("-m", "mindtorch_v2.torch", "-q", str(script), "-x", "--why", cwd=Path(SOURCE))
    assert (done.stdout, done.stderr, done.returncode) == ("['-x', '--why'] 5\n", "", 3)


def test_module_and_code(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(CHECKS + "print(__name__, sys.argv[1:])\n")
    done = python("-m", "mindtorch_v2.torch", "-q", "-m", "package", "a", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("__main__ ['a']\n", "")
    done = python("-m", "mindtorch_v2.torch", "-q", "-c", "import sys, torch; print(sys.argv, torch.ones(2))", "b")
    assert (done.stdout, done.stderr) == ("['-c', 'b'] tensor([1., 1.])\n", "")


def test_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import torch\n\ndef test_it():\n    import mindtorch_v2\n    assert torch is mindtorch_v2\n"
    )
    done = python("-m", "mindtorch_v2.torch", "-q", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_import(tmp_path: Path) -> None:
    done = python("-c", "import mindtorch_v2.torch as it\n" + CHECKS + "assert it is torch")
    assert (done.stderr, done.returncode) == ("", 0)


def test_the_distributions_folder() -> None:
    """What `make torch-wheel` packs: found on the path like any other package, here before PyTorch's."""
    path = os.pathsep.join((str(FOLDER), SOURCE))
    done = subprocess.run(
        [sys.executable, "-c", CHECKS],
        env={**environment(), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.stderr, done.returncode) == ("", 0)


def test_processes_that_a_program_starts_find_it_too(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import multiprocessing as mp\nimport subprocess, sys\nimport torch\n"
        "def work(t):\n    import mindtorch_v2\n    assert torch is mindtorch_v2\n    return t + 1\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(work, [torch.ones(2)])[0].tolist())\n"
        "    code = 'import torch; print(torch.nn.Linear.__module__, torch.__file__)'\n"
        "    subprocess.run([sys.executable, '-c', code])\n"
    )
    done = python("-m", "mindtorch_v2.torch", "-q", str(script))
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["[2.0, 2.0]", f"torch.nn.modules.linear {SOURCE}/mindtorch_v2/__init__.py"]


def test_wrong_calls() -> None:
    for args in ((), ("-m",), ("-x", "y")):
        done = python("-m", "mindtorch_v2.torch", *args)
        assert done.returncode == 2 and done.stderr.startswith("usage: python -m mindtorch_v2.torch"), args
    assert python("-m", "mindtorch_v2.torch", "--help").stdout.startswith("usage")


def test_another_torch_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import mindtorch_v2\n" + "# " + "-" * 3000 + "\n")
    done = python("-c", "import torch, mindtorch_v2.torch", cwd=tmp_path)
    assert "ImportError: PyTorch has been imported already, from" in done.stderr
    # Both in one process, each under its own name: as the tests of this package do.
    done = python("-c", "import torch, mindtorch_v2; assert torch is not mindtorch_v2", cwd=tmp_path)
    assert (done.stderr, done.returncode) == ("", 0)


def test_says_which_where_pytorch_is_installed(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise RuntimeError\n")
    done = python("-m", "mindtorch_v2.torch", "-c", "import torch", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr == f"mindtorch_v2: `torch` is mindtorch_v2; PyTorch in {tmp_path}/torch is not used\n"


def test_costs_little() -> None:
    """Loads nothing but its own two files."""
    code = (
        "import sys, mindtorch_v2\nbefore = set(sys.modules)\nimport mindtorch_v2.torch\n"
        "print(sorted(n for n in set(sys.modules) - before if not n.startswith('torch')))"
    )
    done = python("-c", code)
    assert done.stdout == "['mindtorch_v2._torch_name', 'mindtorch_v2._torch_name.homes', 'mindtorch_v2.torch']\n"


@pytest.mark.oracle
def test_pytorch_itself_is_refused_once_imported() -> None:
    if importlib.util.find_spec("torch") is None:
        return
    done = python("-c", "import torch, mindtorch_v2.torch")
    assert "ImportError: PyTorch has been imported already, from" in done.stderr


def test_annotations_of_a_program_are_its_own(tmp_path: Path) -> None:
    """What `from __future__` says in the runner is not said for the program."""
    program = tmp_path / "annotated.py"
    text = "def f(x: int) -> float: ...\nassert f.__annotations__ == {'x': int, 'return': float}\nprint('real')"
    program.write_text(text)
    for way in ([str(program)], ["-c", text]):
        done = subprocess.run(
            [sys.executable, "-m", "mindtorch_v2.torch", "-q", *way],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == "real\n", done.stderr


def test_functorch_comes_with_the_name() -> None:
    assert answer(
        "import json, warnings; warnings.simplefilter('ignore'); import functorch, torch; "
        "from functorch.experimental import chunk_vmap, control_flow; "
        "print(json.dumps([functorch.vmap(torch.sin)(torch.zeros(2)).tolist(), "
        "functorch.FunctionalModule is torch._functorch.make_functional.FunctionalModule, "
        "control_flow.cond is torch.cond]))"
    ) == [[0.0, 0.0], True, True]


def test_pickles_of_subclasses_name_what_pytorch_reads() -> None:
    done = python(
        *("-m", "mindtorch_v2.torch", "-q", "-c"),
        "import io, pickle, torch, zipfile\n"
        "class Sub(torch.Tensor): pass\n"
        "x = torch.ones(2).as_subclass(Sub); x.note = 3\n"
        "f = io.BytesIO(); torch.save(x, f)\n"
        "z = zipfile.ZipFile(f); data = z.read('archive/data.pkl')\n"
        "print(b'ctorch._tensor\\n_rebuild_from_type_v2' in data)\n"
        "f.seek(0)\n"
        "with torch.serialization.safe_globals([Sub]): y = torch.load(f)\n"
        "print(type(y).__name__, y.note, pickle.loads(pickle.dumps(x)).note)\n",
    )
    assert (done.stdout, done.stderr) == ("True\nSub 3 3\n", "")


def test_functorch_rearranges_by_patterns() -> None:
    assert answer(
        "import json, torch; from functorch.einops import rearrange\n"
        "def shape(*args, **sizes):\n"
        "    try: return list(rearrange(*args, **sizes).shape)\n"
        "    except Exception as e: return type(e).__name__ + ': ' + str(e)\n"
        "x = torch.arange(24).reshape(2, 3, 4)\n"
        "print(json.dumps([shape(x, 'a b (c d) -> (a c) b d', c=2), shape([x, x], 'n ... c -> c (...) n'), "
        "shape(x, '... c -> c ... 1'), rearrange(x, 'a b c -> c (a b)')[1].tolist(), shape(x, 'a b -> b a'), "
        "shape(x, 'a b c -> a b'), shape(x, 'a (b (c)) -> a b c'), shape(x, 'a b (c d) -> a b c d', d=3)]))"
    ) == [
        [4, 3, 2],
        [4, 6, 2],
        [4, 2, 3, 1],
        [1, 5, 9, 13, 17, 21],
        "ValueError: Number of dimensions in pattern (2) must be equal to the number of dimensions in the tensor (3)",
        "ValueError: Identifiers only on one side of rearrange expression (should be on both): {'c'}",
        "ValueError: Axis composition is one-level (brackets inside brackets not allowed)",
        "DimensionBindError: inferred dimension does not evenly fit into larger dimension: 4 vs ('?', 3)",
    ]
