"""`torch.PyTorchFileReader`, with which programs read parts of a checkpoint by themselves."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2

from .. import _oracle


def asked(library: Any, source: Any) -> list[Any]:
    reader = library.PyTorchFileReader(source)
    names = reader.get_all_records()
    stored = reader.get_storage_from_record("data/0", 3, library.float32)
    plain = reader.get_storage_from_record("data/0", 12, library.UntypedStorage)
    return [
        *(names, reader.has_record("data/0"), reader.has_record("data/7"), reader.serialization_id()),
        *((reader.get_record_size(n), reader.get_record(n)) for n in names),
        *(reader.get_record_offset("data/0"), reader.get_record_header_offset("data/0")),
        *(str(stored.dtype), tuple(stored.shape), bytes(stored.untyped_storage()), stored.storage_offset()),
        *(str(plain.dtype), tuple(plain.shape), bytes(plain.untyped_storage())),
    ]


def failure(library: Any, call: Any) -> str:
    with pytest.raises(Exception) as raised:
        call(library)
    kind = "RuntimeError" if isinstance(raised.value, RuntimeError) else type(raised.value).__name__
    return f"{kind}: {raised.value}".partition(". This is an internal")[0]


@pytest.mark.parametrize("writer", ["mindtorch_v2", "torch"])
def test_records_are_read_as_pytorch_reads_them(writer: str, tmp_path: Path) -> None:
    oracle = _oracle.load()
    library = mindtorch_v2 if writer == "mindtorch_v2" else oracle
    path = str(tmp_path / "file.pt")
    library.save({"a": library.arange(3.0), "b": [library.ones(2, dtype=library.int8)]}, path)
    assert asked(mindtorch_v2, path) == asked(oracle, path)
    data = Path(path).read_bytes()
    assert asked(mindtorch_v2, io.BytesIO(data)) == asked(oracle, io.BytesIO(data))


def test_what_is_refused_is_refused_in_pytorchs_words(tmp_path: Path) -> None:
    oracle = _oracle.load()
    path = str(tmp_path / "file.pt")
    mindtorch_v2.save(mindtorch_v2.arange(3.0), path)
    for call in (
        lambda library: library.PyTorchFileReader(str(tmp_path / "nothing")),
        lambda library: library.PyTorchFileReader(3),
        lambda library: library.PyTorchFileReader(path).get_record("nothing"),
        lambda library: library.PyTorchFileReader(path).get_storage_from_record("data/0", 5, library.UntypedStorage),
        lambda library: library.PyTorchFileReader(path).get_storage_from_record("data/0", 4, library.float32),
    ):
        assert failure(mindtorch_v2, call) == failure(oracle, call)


def test_an_archive_of_its_own(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    mindtorch_v2.save({"a": mindtorch_v2.arange(3.0)}, buffer)
    buffer.seek(0)
    reader = mindtorch_v2.PyTorchFileReader(buffer)
    stored = reader.get_storage_from_record("data/0", 3, mindtorch_v2.float32)
    again = mindtorch_v2.empty(0).set_(stored.untyped_storage(), 0, (3,))
    assert again.tolist() == [0.0, 1.0, 2.0] and mindtorch_v2._C.PyTorchFileReader is mindtorch_v2.PyTorchFileReader
