"""Reading files: where storages go, mapping, byte orders, what may be named, other formats, and what is refused."""

from __future__ import annotations

import gc
import io
import mmap
import os
import pickle
import struct
import sys
import tarfile
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

from .. import _npu
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch
from ._samples import Plain, Slotted

pytestmark = mindtorch_only
serialization = submodule("serialization")


def saved(value: Any, **options: Any) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    buffer.seek(0)
    return buffer


def rewritten(file: io.BytesIO, method: int = zipfile.ZIP_STORED, **changes: Any) -> io.BytesIO:
    """The archive with other records; None leaves one out."""
    out = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w", method) as new:
        records = {name: old.read(name) for name in old.namelist()}
        records.update({f"archive/{name}": data for name, data in changes.items()})
        for name, data in records.items():
            if data is not None:
                new.writestr(name, data)
    out.seek(0)
    return out


def elsewhere(location: str) -> io.BytesIO:
    """A file whose tensors come from another device."""
    with zipfile.ZipFile(saved([torch.arange(3.0), torch.ones(2)])) as archive:
        data = archive.read("archive/data.pkl")
    old = b"X\x03\x00\x00\x00cpu"
    assert data.count(old) == 1
    tag = location.encode()
    data = data.replace(old, b"X" + struct.pack("<I", len(tag)) + tag)
    return rewritten(saved([torch.arange(3.0), torch.ones(2)]), **{"data.pkl": data})


# -- devices ----------------------------------------------------------------------------------------------------------
def test_map_location_in_all_forms() -> None:
    seen = []

    def call(storage: Any, location: str) -> Any:
        seen.append((type(storage).__name__, storage.nbytes(), location))
        return storage if len(seen) == 1 else None if location == "cpu" else storage

    for to in ("cpu", torch.device("cpu"), {"cuda:1": "cpu"}, call):
        got = torch.load(elsewhere("cuda:1"), map_location=to)
        assert got[0].tolist() == [0, 1, 2] and got[0].device.type == "cpu"
    assert seen == [("UntypedStorage", 12, "cuda:1"), ("UntypedStorage", 8, "cuda:1")]
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device but"):
        torch.load(elsewhere("cuda:1"))
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device but"):
        torch.load(saved(torch.ones(1)), map_location="cuda")
    with pytest.raises(RuntimeError, match="don't know how to restore data location of .* .tagged with moon."):
        torch.load(elsewhere("moon"))
    got = torch.load(elsewhere("cuda:1"), map_location="meta")
    assert got[0].device.type == "meta" and got[0].shape == (3,)
    assert got[0].untyped_storage()._checkpoint_offset > 0


def test_to_and_from_npu(tmp_path: Path) -> None:
    _npu.start()
    path = tmp_path / "a.pt"
    base = torch.arange(12.0).reshape(3, 4)
    torch.save({"base": base, "t": base.t()[1:], "p": torch.nn.Parameter(base)}, path)
    for zipped in (True, False):
        for to in ("npu", "npu:1", torch.device("npu", 0), {"cpu": "npu:1"}, lambda s, _: s.npu()):
            if not zipped:
                torch.save(
                    {"base": base, "t": base.t()[1:], "p": torch.nn.Parameter(base)},
                    path,
                    _use_new_zipfile_serialization=False,
                )
            got = torch.load(path, map_location=to)
            assert got["base"].device.type == "npu" and got["t"].cpu().tolist() == base.t()[1:].tolist()
            assert got["t"].stride() == (1, 4) and got["p"].requires_grad and isinstance(got["p"], torch.nn.Parameter)
            got["base"].zero_()
            assert not got["t"].any() and not got["p"].any()
    there = base.to("npu:1")
    for zipped in (True, False):
        torch.save([there, there[1:]], path, _use_new_zipfile_serialization=zipped)
        got = torch.load(path)
        assert str(got[0].device) == "npu:1" and got[1].cpu().tolist() == base[1:].tolist()
        assert got[0].untyped_storage().data_ptr() == got[1].untyped_storage().data_ptr()
        assert torch.load(path, map_location="cpu")[1].tolist() == base[1:].tolist()
    assert serialization.location_tag(there.untyped_storage()) == "npu:1"


def test_packages_of_the_users() -> None:
    from mindtorch_v2._serialization import locations

    before = list(locations.REGISTRY)
    try:
        torch.serialization.register_package(
            5, lambda s: "mine" if s.nbytes() == 12 else None, lambda s, tag: s.clone() if tag == "mine" else None
        )
        file = saved([torch.arange(3.0), torch.ones(2)])
        with zipfile.ZipFile(file) as archive:
            assert b"mine" in archive.read("archive/data.pkl")
        file.seek(0)
        assert torch.load(file)[0].tolist() == [0, 1, 2]
    finally:
        locations.REGISTRY[:] = before
    file.seek(0)
    with pytest.raises(RuntimeError, match="tagged with mine"):
        torch.load(file)


# -- mapping ----------------------------------------------------------------------------------------------------------
def test_mapping(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    base = torch.arange(12.0).reshape(3, 4)
    torch.save({"base": base, "t": base.t(), "n": torch.empty(0)}, path)
    before = path.read_bytes()
    got = torch.load(path, mmap=True)
    assert got["t"].tolist() == base.t().tolist() and got["base"].data_ptr() % 64 == 0
    got["base"].add_(100)
    assert got["t"][0, 0] == 100 and path.read_bytes() == before
    # The mapping lives as long as a storage over it, also when the file is gone.
    part = got["t"][1]
    path.unlink()
    del got
    gc.collect()
    assert part.tolist() == [101.0, 105.0, 109.0]
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        torch.load(saved(base), mmap=True)
    torch.save(base, path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        torch.load(path, mmap=True)


def test_nothing_is_read_that_is_mapped(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    with serialization.skip_data():
        torch.save(torch.empty(2 << 30, dtype=torch.uint8), path)
    begun = time.perf_counter()
    got = torch.load(path, mmap=True)
    assert got.numel() == 2 << 30 and time.perf_counter() - begun < 1


def test_shared_mappings_write_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save(torch.zeros(4), path)
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        assert serialization.get_default_mmap_options() == mmap.MAP_SHARED
        torch.load(path, mmap=True).fill_(7)
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    assert torch.load(path).tolist() == [7, 7, 7, 7]


def test_mapping_by_default(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save(torch.zeros(4), path)
    config = submodule("utils.serialization").config
    with config.patch({"load.mmap": True}):
        t = torch.load(path)
    assert not config.load.mmap and not t.untyped_storage().resizable()


# -- byte orders ------------------------------------------------------------------------------------------------------
def test_the_other_byte_order(tmp_path: Path) -> None:
    value = [torch.tensor([1, 2], dtype=torch.int32), torch.tensor([1 + 2j]), torch.tensor([3], dtype=torch.uint8)]
    other = "big" if sys.byteorder == "little" else "little"
    swapped = []
    for t in value:
        storage = t.untyped_storage().clone()
        storage.byteswap(t.dtype)
        swapped.append(bytes(storage.tolist()))
    changes = {f"data/{i}": data for i, data in enumerate(swapped)}
    file = rewritten(saved(value), **changes, byteorder=other.encode())
    path = tmp_path / "a.pt"
    path.write_bytes(file.getvalue())
    for got in (torch.load(file), torch.load(path, mmap=True)):
        assert [t.tolist() for t in got] == [t.tolist() for t in value]
    unmarked = rewritten(saved(value), **changes, byteorder=None)
    kinds = serialization.LoadEndianness
    for kind, right in ((None, False), (kinds.NATIVE, False), (kinds.LITTLE, False), (kinds.BIG, True)):
        serialization.set_default_load_endianness(kind)
        try:
            assert serialization.get_default_load_endianness() is kind
            unmarked.seek(0)
            assert (torch.load(unmarked)[0].tolist() == [1, 2]) is (right or sys.byteorder == "big" and kind is None)
        finally:
            serialization.set_default_load_endianness(None)
    with pytest.raises(ValueError, match="Unknown endianness type: sideways"):
        torch.load(rewritten(saved(value), byteorder=b"sideways"))


# -- what files may name ----------------------------------------------------------------------------------------------
class Runs:
    """Its pickle calls a function."""

    def __reduce__(self) -> Any:
        return os.putenv, ("MINDTORCH_TEST_RAN", "1")


def test_nothing_else_runs() -> None:
    for zipped in (True, False):
        for value, text in (
            (Runs(), "whose module posix is blocked"),
            (Plain(), "Unsupported global: GLOBAL .*Plain was not an allowed global by default"),
            (print, "Unsupported global: GLOBAL print was not an allowed global"),
        ):
            with pytest.raises(pickle.UnpicklingError, match=text) as caught:
                torch.load(saved(value, _use_new_zipfile_serialization=zipped))
            assert isinstance(caught.value, serialization.CheckpointError) and isinstance(caught.value, RuntimeError)
            assert str(caught.value).startswith("Weights only load failed.")


def test_safe_globals() -> None:
    t = torch.ones(2)
    file = saved([Plain(t=t), Slotted(t, 1)])
    names = [f"{Plain.__module__}.Plain", f"{Slotted.__module__}.Slotted"]
    assert sorted(serialization.get_unsafe_globals_in_checkpoint(file)) == sorted(names)
    with serialization.safe_globals([Plain, (Slotted, names[1])]):
        file.seek(0)
        got = torch.load(file)
        assert got[0].t.tolist() == [1, 1] and got[1].a is got[0].t and got[1].b == 1
        file.seek(0)
        assert serialization.get_unsafe_globals_in_checkpoint(file) == []
    assert serialization.get_safe_globals() == []
    serialization.add_safe_globals([Plain])
    try:
        assert serialization.get_safe_globals() == [Plain]
    finally:
        serialization.clear_safe_globals()
    assert serialization.get_safe_globals() == []
    # Not even when asked for.
    with serialization.safe_globals([os.system]), pytest.raises(pickle.UnpicklingError, match="is blocked"):
        torch.load(saved(os.system))


class Picky:
    def __init__(self, value: int) -> None:
        self.value = value

    def __setstate__(self, state: Any) -> None:
        raise LookupError("mine")


def test_errors_of_allowed_classes_are_theirs() -> None:
    with serialization.safe_globals([Picky]), pytest.raises(LookupError, match="mine"):
        torch.load(saved(Picky(3)))


def test_other_protocols_are_refused_as_in_pytorch() -> None:
    with pytest.warns(UserWarning, match="Detected pickle protocol 4 in the checkpoint"):
        with pytest.raises(pickle.UnpicklingError, match="Unsupported operand 14"):
            torch.load(saved({"a": torch.ones(1)}, pickle_protocol=4))


# -- hostile pickles --------------------------------------------------------------------------------------------------
_TENSOR = (
    b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000"
    b"X\x03\x00\x00\x00cpuK\x03tQ"
)
_HOOKS = b"\x89ccollections\nOrderedDict\n)RtR."


def hostile(data: bytes) -> io.BytesIO:
    return rewritten(saved(torch.arange(3.0)), **{"data.pkl": b"\x80\x02" + data})


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (_TENSOR + b"K\x00K\x04\x85K\x01\x85" + _HOOKS, "out of bounds for storage of size 12"),
        (_TENSOR + b"K\x01K\x03\x85K\x01\x85" + _HOOKS, "out of bounds for storage of size 12"),
        (_TENSOR + b"K\x00K\x03\x85J\xff\xff\xff\xff\x85" + _HOOKS, "must be ints that are not negative"),
        (_TENSOR + b"K\x00\x8a\x08" + b"\xff" * 7 + b"\x7f\x85K\x00\x85" + _HOOKS, "fit 64 bits"),
        (_TENSOR + b"K\x00K\x03K\x03\x86K\x01\x85" + _HOOKS, "cannot have 1 strides"),
        (_TENSOR.replace(b"K\x03tQ", b"K\x04tQ") + b"K\x00K\x03\x85K\x01\x85" + _HOOKS, "does not match expected"),
        (_TENSOR.replace(b"X\x01\x00\x00\x000", b"X\x01\x00\x00\x009") + b"N.", "locating file data/9"),
        (_TENSOR.replace(b"FloatStorage", b"QInt8Storage") + b"N.", "quantized tensors are not supported"),
        (b"cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.", "a bytearray is made of bytes"),
        (b"ctorch\nTensor\nJ\xff\xff\xff\x7f\x85R.", "only make an empty Tensor"),
        (b"c_codecs\nencode\nX\x01\x00\x00\x00aX\x08\x00\x00\x00punycode\x86R.", "latin1, ascii or utf-8"),
        (b"}K\x01" + b"q\x00h\x00\x86" * 200 + b"Ns.", "too large|too deeply"),
        (b"})" + b"\x85" * 100000 + b"Ns.", "too deeply"),
        (b"}]Ns.", "unhashable type: 'list'"),
        (b"ccollections\nCounter\nq\x01(" + b"K\x01" * 250 + b"t\x85q\x02" + b"h\x01h\x02R" * 5000, "copies"),
        (b"K\x01.K", None),
        (b"h\x05.", "KeyError"),
        (b"t.", "unexpected MARK"),
        (b"K\x01", "Ran out of input"),
        (b"X\xff\xff\xff\xffabc", "truncated"),
        (b"ctorch.nested._internal.nested_tensor\nNestedTensor\n.", "must be imported to load nested jagged"),
        (b"ctorch.distributed.tensor\nDTensor\n.", "must be imported to load DTensors"),
        (b"ctorch._tensor\n_rebuild_from_type_v2\n(cbuiltins\nset\nctorch\nTensor\n)}tR.", "made of a tensor"),
    ],
)  # fmt: skip
def test_hostile_pickles(data: bytes, text: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    # As before a test that loads nested tensors.
    monkeypatch.setattr(submodule("_serialization.allowed"), "KNOWN", {})
    begun = time.perf_counter()
    if text is None:
        assert torch.load(hostile(data)) == 1
    else:
        with pytest.raises(serialization.CheckpointError, match=text):
            torch.load(hostile(data))
    assert time.perf_counter() - begun < 5


def test_fields_of_tensors_are_not_attributes() -> None:
    for name in ("_offset", "_shape", "_storage"):
        head = _TENSOR + b"K\x00K\x03\x85K\x01\x85\x89ccollections\nOrderedDict\n)Rt"
        args = head[len(b"ctorch._utils\n_rebuild_tensor_v2\n") :]
        key = b"X" + struct.pack("<I", len(name)) + name.encode()
        data = (
            b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\nctorch\nTensor\n"
            + args + b"}" + key + b"J\x00\x00\x00\x10stR."
        )  # fmt: skip
        try:
            got = torch.load(hostile(data))
        except serialization.CheckpointError:
            continue
        # Compiled, the fields are not in the dict.
        assert got.tolist() == [0, 1, 2]


# -- archives ---------------------------------------------------------------------------------------------------------
def test_archives_of_other_writers() -> None:
    value = {"a": torch.arange(1000.0), "b": torch.ones(3)}
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        gone = {".format_version": None, ".storage_alignment": None, ".data/serialization_id": None, "byteorder": None}
        got = torch.load(rewritten(saved(value), method, **gone))
        assert torch.equal(got["a"], value["a"]) and torch.equal(got["b"], value["b"])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"version": None}, 'Expected hasRecord."version". to be true'),
        ({"version": b"11\n"}, "the maximum supported version for reading is 10"),
        ({"version": b"0\n"}, "the minimum supported version for reading is 1"),
        ({"version": b"abc"}, "Couldn't parse the version abc as Long Long"),
        ({"data.pkl": None}, "failed locating file data.pkl: file not found"),
        ({"data/0": None}, "failed locating file data/0: file not found"),
        ({"data/0": b"1234"}, r"record size \(4 bytes\) does not match expected size \(12 bytes"),
        ({"data.pkl": b""}, "Ran out of input"),
        ({".storage_alignment": b"x"}, "storage alignment"),
    ],
)
def test_broken_archives(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(serialization.CheckpointError, match=text):
        torch.load(rewritten(saved(torch.arange(3.0)), **changes))


def test_lies_of_the_directory() -> None:
    good = saved([torch.arange(300.0), torch.ones(300)]).getvalue()
    entry = good.rindex(b"archive/data/1") - 46
    other = good.rindex(b"archive/data/0") - 46
    assert good[entry : entry + 4] == good[other : other + 4] == b"PK\x01\x02"

    def load(changed: bytearray) -> None:
        with pytest.raises(serialization.CheckpointError):
            torch.load(io.BytesIO(bytes(changed)))

    for at, width, number in ((20, 4, 1 << 20), (24, 4, 1 << 30), (42, 4, 1 << 31), (42, 4, 0), (10, 2, 12), (8, 2, 1)):
        lie = bytearray(good)
        lie[entry + at : entry + at + width] = number.to_bytes(width, "little")
        load(lie)
    lie = bytearray(good)  # two records in one place
    lie[entry + 42 : entry + 46] = lie[other + 42 : other + 46]
    load(lie)
    for cut in (1, 22, 60, 200, 1000):
        load(bytearray(good[:-cut]))
    for junk in (b"", b"PK\x03\x04", b"PK\x03\x04" + bytes(100), b"hello world", b"\x80\x02."):
        load(bytearray(junk))
    with pytest.raises(EOFError):
        torch.load(io.BytesIO(b""))


def test_torchscript_is_refused() -> None:
    file = rewritten(saved(1), **{"constants.pkl": b"x"})
    with pytest.warns(UserWarning, match="looks like a TorchScript archive"):
        with pytest.raises(RuntimeError, match="Cannot use ``weights_only=True`` with TorchScript archives"):
            torch.load(file)
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(NotImplementedError, match="TorchScript is not supported"):
            torch.load(file, weights_only=False)
        file.seek(0)
        with pytest.raises(ValueError, match="got a torchscript checkpoint"):
            serialization.get_unsafe_globals_in_checkpoint(file)


# -- sources ----------------------------------------------------------------------------------------------------------
def test_sources(tmp_path: Path) -> None:
    class Least:
        """What the documentation asks for."""

        def __init__(self, data: bytes) -> None:
            self._of = io.BytesIO(data)
            self.read, self.readline = self._of.read, self._of.readline
            self.tell, self.seek = self._of.tell, self._of.seek

    value = {"a": torch.arange(5), "b": "x" * 300_000}
    for zipped in (True, False):
        data = saved(value, _use_new_zipfile_serialization=zipped).getvalue()
        path = tmp_path / "a.pt"
        path.write_bytes(data)
        with open(path, "rb") as buffered, open(path, "rb", 0) as raw:
            for source in (io.BytesIO(data), Least(data), buffered, raw, path, str(path)):
                assert torch.load(source)["a"].tolist() == [0, 1, 2, 3, 4]
        with path.open("rb") as f:
            assert torch.load(f, weights_only=False)["b"] == value["b"]


def test_encodings() -> None:
    """Byte strings of Python 2."""
    data = b"\x80\x02U\x02\xc3\xa9."
    file = rewritten(saved(1), **{"data.pkl": data})
    assert torch.load(file, weights_only=False) == "é"
    file.seek(0)
    assert torch.load(file, weights_only=False, encoding="bytes") == b"\xc3\xa9"
    file.seek(0)
    assert torch.load(file) == "é"
    file.seek(0)
    with pytest.warns(UserWarning, match="pickle_load_args only works if"):
        assert torch.load(file, encoding="bytes") == b"\xc3\xa9"


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        assert isinstance(torch.load(saved(Plain(a=1))), Plain)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(saved(Plain(a=1)), weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of"):
        torch.load(saved(1))
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(saved(Plain(a=1)), weights_only=False)


# -- the tar format of PyTorch's first releases -----------------------------------------------------------------------
def tar_file(path: Path) -> None:
    """As PyTorch 0.1.1 wrote them: storages, views of storages, tensors, and the object with their numbers."""
    storage = type("FloatStorage", (), {"__module__": "torch"})
    kind = type("FloatTensor", (), {"__module__": "torch"})

    python: Any = vars(pickle)["_Pickler"]

    class Pickler(python):
        def save_global(self, obj: Any, name: Any = None) -> None:
            self.write(f"c{obj.__module__}\n{obj.__name__}\n".encode())
            self.memoize(obj)

        def persistent_id(self, obj: Any) -> Any:
            return obj[1] if isinstance(obj, tuple) and obj[:1] == ("tensor",) else None

        dispatch = {**python.dispatch, type: save_global}

    def dumps(value: Any) -> bytes:
        out = io.BytesIO()
        Pickler(out, 2).dump(value)
        return out.getvalue()

    storages = dumps(1) + dumps((11, "cpu", storage)) + struct.pack("<q6f", 6, *range(6)) + dumps([(12, 11, 2, 3)])
    first = dumps((21, 11, kind)) + struct.pack("<ii2q2qq", 2, 0, 2, 3, 3, 1, 0)
    second = dumps((22, 12, kind)) + struct.pack("<iiqqq", 1, 0, 2, 1, 1)
    parts = {"storages": storages, "tensors": dumps(2) + first + second}
    parts["pickle"] = dumps({"a": ("tensor", "21"), "b": ("tensor", "22")})
    with tarfile.open(path, "w") as tar:
        for name, data in parts.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def test_tar(tmp_path: Path) -> None:
    path = tmp_path / "old.pt"
    tar_file(path)
    got = torch.load(path, weights_only=False)
    assert got["a"].tolist() == [[0, 1, 2], [3, 4, 5]] and got["b"].tolist() == [3, 4]
    got["a"][1, 0] = 30
    assert got["b"][0] == 30
    with pytest.raises(RuntimeError, match="Cannot use ``weights_only=True`` with files saved in the legacy .tar"):
        torch.load(path)


@pytest.mark.oracle
def test_tar_is_what_the_oracle_reads(oracle: Any, tmp_path: Path) -> None:
    path = tmp_path / "old.pt"
    tar_file(path)
    got = oracle.load(path, weights_only=False)
    assert got["a"].tolist() == [[0, 1, 2], [3, 4, 5]] and got["b"].tolist() == [3, 4]


# -- small things -----------------------------------------------------------------------------------------------------
class Net(torch.nn.Module):
    """Its source is saved with it."""


def test_source_of_classes() -> None:
    file = saved(Net(), _use_new_zipfile_serialization=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert type(torch.load(file, weights_only=False)) is Net
    changed = io.BytesIO(file.getvalue().replace(b"Its source is saved", b"Its source is stale"))
    with pytest.warns(serialization.SourceChangeWarning, match="source code of class .*Net' has changed"):
        torch.load(changed, weights_only=False)


def test_helpers() -> None:
    storage = torch.ones(2).untyped_storage()
    assert serialization.location_tag(storage) == "cpu"
    assert serialization.default_restore_location(storage, "cpu") is storage
    assert str(serialization.StorageType("FloatStorage")) == "StorageType(dtype=torch.float32)"
    assert serialization.normalize_storage_type(torch.FloatStorage) is torch.FloatStorage
    with serialization.mkdtemp() as folder:
        assert os.path.isdir(folder)
    assert not os.path.exists(folder)
    module = type("m", (), {"__name__": "m", "__version__": "1.10.x"})
    assert serialization.check_module_version_greater_or_equal(module, (1, 9))
    with pytest.raises(RuntimeError, match="version string is malformed '1.10.x'"):
        serialization.check_module_version_greater_or_equal(module, (1, 9, 0))
    with pytest.warns(UserWarning, match="continuing assuming"):
        assert serialization.check_module_version_greater_or_equal(module, (1, 9, 0), False)
    for name in ("cuda", "hpu"):
        with pytest.raises(RuntimeError):
            getattr(serialization, f"validate_{name}_device")("cuda:0")
