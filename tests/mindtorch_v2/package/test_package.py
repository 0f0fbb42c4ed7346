"""`torch.package`: archives with code, written here and read by PyTorch, and the other way round."""

from __future__ import annotations

import importlib
import importlib.resources
import inspect
import io
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from .._subject import subject, submodule

package: Any = submodule("package")

LAYERS = '''
import math

from . import constants


class Scaled:
    """Multiplies."""

    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return x * self.by * constants.TWO * math.pi
'''


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package on the disk, importable for one test."""
    folder = tmp_path / "kept_code"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .layers import Scaled\n")
    (folder / "layers.py").write_text(LAYERS)
    (folder / "constants.py").write_text("TWO = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("kept_code")
    for name in [n for n in sys.modules if n.partition(".")[0] == "kept_code"]:
        del sys.modules[name]


def _archive(library: Any, obj: Any) -> io.BytesIO:
    made = importlib.import_module(f"{library.__name__}.package")
    buffer = io.BytesIO()
    with made.PackageExporter(buffer) as exporter:
        exporter.intern("kept_code.**")
        exporter.save_pickle("model", "model.pkl", obj)
        exporter.save_text("model", "notes.txt", "two pi")
    buffer.seek(0)
    return buffer


def _model(library: Any, code: Any) -> dict[str, Any]:
    weights = library.arange(4.0)
    return {"scaled": code.Scaled(3), "weights": weights, "part": weights[1:3], "dtype": library.float16}


@pytest.mark.oracle
@pytest.mark.parametrize("here", [True, False])
def test_archives_are_read_by_the_other_library(here: bool, code: Any, oracle: Any) -> None:
    writer, reader = (subject, oracle) if here else (oracle, subject)
    importer = importlib.import_module(f"{reader.__name__}.package").PackageImporter(
        _archive(writer, _model(writer, code))
    )
    loaded = importer.load_pickle("model", "model.pkl")
    assert loaded["scaled"](1) == code.Scaled(3)(1)
    assert type(loaded["scaled"]) is not code.Scaled
    assert loaded["weights"].tolist() == [0, 1, 2, 3] and loaded["part"].tolist() == [1, 2]
    assert loaded["dtype"] is reader.float16
    assert importer.load_text("model", "notes.txt") == "two pi"
    assert importer.python_version() is not None


@pytest.mark.oracle
def test_what_is_said_of_an_archive(code: Any, oracle: Any) -> None:
    def said(library: Any) -> list[Any]:
        made = importlib.import_module(f"{library.__name__}.package")
        importer = made.PackageImporter(_archive(library, code.Scaled(3)))
        found = [str(importer.file_structure(include=["**/*.py", "model/*"])), sorted(importer.extern_modules)]
        for wrong in ("absent", "kept_code.absent", "sys"):
            with pytest.raises(ModuleNotFoundError) as error:
                importer.import_module(wrong)
            found.append(str(error.value).partition("modules:")[0])
        for patterns in ([], [("deny", "kept_code.layers"), ("intern", "**")], [("mock", "**")]):
            exporter = made.PackageExporter(io.BytesIO(), debug=True)
            for action, pattern in patterns:
                getattr(exporter, action)(pattern)
            with pytest.raises(made.PackagingError) as failed:
                exporter.save_pickle("model", "model.pkl", code.Scaled(3))
                exporter.save_source_string("more", "import sys\nfrom ... import up")
                exporter.close()
            found.append(str(failed.value))
        return found

    assert said(subject) == said(oracle)


def test_parts_of_one_storage_stay_together(code: Any) -> None:
    loaded = package.PackageImporter(_archive(subject, _model(subject, code))).load_pickle("model", "model.pkl")
    loaded["part"][0] = 9
    assert loaded["weights"].tolist() == [0, 9, 2, 3]


def test_code_of_an_archive_stays_apart(code: Any) -> None:
    importer = package.PackageImporter(_archive(subject, code.Scaled(3)))
    layers = importer.import_module("kept_code.layers")
    assert layers is not sys.modules["kept_code.layers"] and layers.__name__ not in sys.modules
    assert package.is_from_package(layers) and not package.is_from_package(code)
    assert inspect.getsource(layers.Scaled) == inspect.getsource(code.Scaled)
    assert importer.get_source("kept_code.layers") == LAYERS
    assert layers.math is sys.modules["math"]


def test_an_object_of_an_archive_is_written_again(code: Any) -> None:
    importer = package.PackageImporter(_archive(subject, code.Scaled(3)))
    loaded = importer.load_pickle("model", "model.pkl")
    with pytest.raises(pickle.PicklingError):
        _archive(subject, loaded)
    buffer = io.BytesIO()
    with package.PackageExporter(buffer, importer=(importer, package.sys_importer)) as exporter:
        exporter.intern("**")
        exporter.save_pickle("model", "model.pkl", loaded)
    buffer.seek(0)
    assert package.PackageImporter(buffer).load_pickle("model", "model.pkl")(1) == code.Scaled(3)(1)


def test_modules_are_left_out_and_left_to_the_environment(code: Any) -> None:
    seen: list[str] = []
    buffer = io.BytesIO()
    with package.PackageExporter(buffer) as exporter:
        exporter.mock("kept_code.layers")
        exporter.extern("kept_code.constants")
        exporter.register_mock_hook(lambda _, name: seen.append(f"mock {name}"))
        exporter.register_extern_hook(lambda _, name: seen.append(f"extern {name}"))
        exporter.save_source_string(
            "main", "from kept_code import layers, constants\ndef use(): return layers.Scaled(1)"
        )
    buffer.seek(0)
    main = package.PackageImporter(buffer).import_module("main")
    assert seen == ["mock kept_code.layers", "extern kept_code.constants"]
    assert main.constants is sys.modules["kept_code.constants"]
    with pytest.raises(NotImplementedError, match="was mocked out"):
        main.use()
    with pytest.raises(ImportError, match="disallowed"):
        buffer.seek(0)
        package.PackageImporter(buffer, lambda name: False)


def test_resources_of_packages() -> None:
    buffer = io.BytesIO()
    with package.PackageExporter(buffer) as exporter:
        exporter.save_binary("things", "one.bin", b"1")
        exporter.save_text("things.inner", "two.txt", "2")
        exporter.save_source_string(
            "main", "import torch_package_importer as me\nread = me.load_text('things.inner', 'two.txt')"
        )
    buffer.seek(0)
    importer = package.PackageImporter(buffer)
    reader = importer.get_resource_reader("things")
    assert list(reader.contents()) == ["one.bin", "inner"] and reader.is_resource("one.bin")
    assert importlib.resources.files(importer.import_module("things")).joinpath("one.bin").read_bytes() == b"1"
    assert importer.import_module("main").read == "2"
    with pytest.raises(ValueError, match="must be only a file name"):
        exporter.save_text("things", "a/b", "")


def test_a_traced_module_in_an_archive() -> None:
    traced = subject.fx.symbolic_trace(subject.nn.Sequential(subject.nn.Linear(2, 3), subject.nn.ReLU()))
    buffer = io.BytesIO()
    with package.PackageExporter(buffer) as exporter:
        exporter.save_pickle("model", "model.pkl", traced)
    buffer.seek(0)
    loaded = package.PackageImporter(buffer).load_pickle("model", "model.pkl")
    x = subject.randn(4, 2)
    assert loaded(x).tolist() == traced(x).tolist()
