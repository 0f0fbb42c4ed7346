"""Files cross between PyTorch and this library, in every form, and say the same on the other side."""

from __future__ import annotations

import importlib
import io
import pickletools
import warnings
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .._subject import mindtorch_only
from .._subject import subject as torch
from . import _samples
from ._samples import EVERYTHING, WEIGHTS, same

pytestmark = [mindtorch_only, pytest.mark.filterwarnings("ignore:.*(TypedStorage|pickle protocol|Couldn't retrieve)")]


def written(library: Any, value: Any, **options: Any) -> io.BytesIO:
    buffer = io.BytesIO()
    library.save(value, buffer, **options)
    buffer.seek(0)
    return buffer


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_from_the_oracle(oracle: ModuleType, name: str, protocol: int) -> None:
    theirs = WEIGHTS[name](oracle)
    file = written(oracle, theirs, pickle_protocol=protocol)
    same(torch.load(file, weights_only=False), theirs, (torch, oracle))
    if protocol == 2:
        file.seek(0)
        same(torch.load(file), theirs, (torch, oracle))


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_to_the_oracle(oracle: ModuleType, name: str, protocol: int) -> None:
    ours = WEIGHTS[name](torch)
    file = written(torch, ours, pickle_protocol=protocol)
    same(ours, oracle.load(file, weights_only=False), (torch, oracle))
    if protocol == 2:
        file.seek(0)
        same(ours, oracle.load(file), (torch, oracle))


@pytest.mark.parametrize("name", EVERYTHING)
@pytest.mark.parametrize("zipped", [True, False])
def test_everything_crosses(oracle: ModuleType, name: str, zipped: bool) -> None:
    for writer, reader in ((oracle, torch), (torch, oracle)):
        if name == "generators" and not zipped and reader is oracle:
            continue  # PyTorch sets the state before it has read it.
        value = EVERYTHING[name](writer)
        file = written(writer, value, _use_new_zipfile_serialization=zipped)
        with warnings.catch_warnings():
            # PyTorch compares the source of its modules with itself.
            warnings.simplefilter("ignore")
            got = reader.load(file, weights_only=False)
        pair = (got, value) if reader is torch else (value, got)
        same(*pair, (torch, oracle))


@pytest.mark.parametrize("name", [n for n in WEIGHTS if n != "dtypes"])
def test_streams_of_pickles_cross(oracle: ModuleType, name: str, tmp_path: Path) -> None:
    for writer, reader in ((oracle, torch), (torch, oracle)):
        value = WEIGHTS[name](writer)
        path = tmp_path / f"{name}.pt"
        writer.save(value, path, _use_new_zipfile_serialization=False)
        for source in (path, io.BytesIO(path.read_bytes())):
            for only in (True, False):
                got = reader.load(source, weights_only=only)
                if isinstance(source, io.BytesIO):
                    source.seek(0)
                same(*((got, value) if reader is torch else (value, got)), (torch, oracle))


def test_old_dtypes_in_streams(oracle: ModuleType) -> None:
    value = _samples.old_dtypes(oracle)
    same(torch.load(written(oracle, value, _use_new_zipfile_serialization=False)), value, (torch, oracle))
    ours = _samples.old_dtypes(torch)
    same(ours, oracle.load(written(torch, ours, _use_new_zipfile_serialization=False)), (torch, oracle))


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_pickles_are_equal(oracle: ModuleType, name: str) -> None:
    """Not only equivalent: the same opcodes, names and memo."""

    def opcodes(library: Any) -> list[Any]:
        with zipfile.ZipFile(written(library, WEIGHTS[name](library))) as archive:
            return [(op.name, arg) for op, arg, _ in pickletools.genops(archive.read("archive/data.pkl"))]

    assert opcodes(torch) == opcodes(oracle)


def test_the_archives_are_equal(oracle: ModuleType) -> None:
    """Byte for byte, except for the number that tells files apart and what depends on it."""
    value = [_samples.views, _samples.model_state, _samples.dtypes]
    ours = written(torch, [f(torch) for f in value]).getvalue()
    theirs = written(oracle, [f(oracle) for f in value]).getvalue()
    end = theirs.index(b"archive/.data/serialization_id")
    assert len(ours) == len(theirs) and ours[:end] == theirs[:end]
    with zipfile.ZipFile(io.BytesIO(ours)) as archive:
        assert archive.testzip() is None


def test_conjugates_and_negations_are_computed(oracle: ModuleType) -> None:
    t = oracle.tensor([1 + 2j, 3 - 4j])
    value = {"conj": t.conj(), "neg": t.clone().conj().imag, "plain": t}
    for zipped in (True, False):
        got = torch.load(written(oracle, value, _use_new_zipfile_serialization=zipped))
        for name in value:
            assert got[name].tolist() == value[name].tolist()


def test_subclasses(oracle: ModuleType) -> None:
    """A class of the user's for each library under one name."""
    for writer, reader in ((oracle, torch), (torch, oracle)):
        kinds = {lib: type("Mine", (lib.Tensor,), {"__module__": __name__}) for lib in (writer, reader)}
        globals()["Mine"] = kinds[writer]
        value = writer.arange(4.0).reshape(2, 2).t().as_subclass(kinds[writer])
        value.note = "x"
        file = written(writer, [value, value[0]])
        globals()["Mine"] = kinds[reader]
        got = reader.load(file, weights_only=False)
        assert {type(item) for item in got} == {kinds[reader]} and got[0].note == "x"
        assert got[0].stride() == (1, 2) and got[0].tolist() == value.tolist()
        assert got[0].untyped_storage().data_ptr() == got[1].untyped_storage().data_ptr()
        file.seek(0)
        with reader.serialization.safe_globals([kinds[reader]]):
            assert type(reader.load(file)[0]) is kinds[reader]
        del globals()["Mine"]


def test_optimizer_continues_after_crossing(oracle: ModuleType) -> None:
    def train(library: Any, state: Any, steps: int) -> Any:
        p = library.nn.Parameter(library.tensor([1.0, -2.0, 3.0]) if state is None else state["p"].clone())
        optimizer = library.optim.Adam([p], lr=0.125)
        if state is not None:
            optimizer.load_state_dict(state["optimizer"])
        for _ in range(steps):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
        return {"p": p.detach(), "optimizer": optimizer.state_dict()}

    straight = train(oracle, None, 4)["p"].tolist()
    for first, second in ((oracle, torch), (torch, oracle)):
        crossed = second.load(written(first, train(first, None, 2)))
        assert train(second, crossed, 2)["p"].tolist() == pytest.approx(straight, rel=1e-6)


def test_storages(oracle: ModuleType) -> None:
    """As in PyTorch, they come back with a dtype."""
    for writer, reader in ((oracle, torch), (torch, oracle)):
        raw = writer.arange(5, dtype=writer.uint8)
        file = written(writer, [raw, raw.untyped_storage(), raw.storage(), writer.ones(2).storage()])
        got = reader.load(file)
        assert [type(s).__name__ for s in got[1:]] == ["TypedStorage"] * 3
        assert len({s.data_ptr() for s in got[:3]}) == 1 and got[3].tolist() == [1.0, 1.0]
        assert got[2].tolist() == [0, 1, 2, 3, 4] and str(got[3].dtype) == "torch.float32"


def test_every_public_class_has_a_name_that_the_oracle_knows(oracle: ModuleType) -> None:
    from mindtorch_v2._serialization.names import find, theirs

    count = 0
    for room in ("nn", "nn.utils.parametrizations", "optim", "optim.lr_scheduler", "distributions", "amp", "storage"):
        module = importlib.import_module(f"mindtorch_v2.{room}")
        for name in dir(module):
            kind = getattr(module, name)
            if not isinstance(kind, type) or name.startswith("_") or not kind.__module__.startswith("mindtorch_v2"):
                continue
            where, title = theirs(kind.__module__, kind.__qualname__)
            assert find(where, title) is kind
            # This one is younger than the module that PyTorch keeps it in.
            if title != "LinearCrossEntropyOptions":
                assert getattr(importlib.import_module(where), title.split(".")[0]) is not None
                count += 1
    assert count > 250


def test_quantized_tensors_are_refused_by_name(oracle: ModuleType) -> None:
    error = torch.serialization.UnsupportedCheckpoint
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantized = oracle.quantize_per_tensor(oracle.ones(2), 1.0, 0, oracle.qint8)
    for only in (True, False):
        assert torch.load(written(oracle, oracle.eye(2).to_sparse()), weights_only=only).is_sparse
    with pytest.raises(error, match="quantized tensors are not supported"):
        torch.load(written(oracle, quantized))


def test_public_names(oracle: ModuleType) -> None:
    assert sorted(torch.serialization.__all__) == sorted(oracle.serialization.__all__)
    for name in oracle.serialization.__all__:
        assert hasattr(torch.serialization, name)
    for group, name in ((g, n) for g in ("load", "save") for n in vars(getattr(torch.utils.serialization.config, g))):
        if not name.startswith("_"):
            setting = [getattr(getattr(lib.utils.serialization.config, group), name) for lib in (torch, oracle)]
            assert setting[0] == setting[1]
