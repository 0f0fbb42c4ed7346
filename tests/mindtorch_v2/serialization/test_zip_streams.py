"""Archives record by record: what one library writes the other reads, and what both refuse."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch

RECORDS = {"a": b"12039810948234589", "b": b"", "c/d": bytes(range(256)) * 5}


def written(library: Any, target: Any) -> Any:
    with library.serialization._open_zipfile_writer(target) as writer:
        for name, data in RECORDS.items():
            writer.write_record(name, data, len(data))
        writer.write_record("text", "hello", 5)
        writer.write_record("part", b"12345", 3)
        found = writer.archive_name(), writer.get_all_written_records()
    return found


def read(library: Any, target: Any) -> Any:
    with library.serialization._open_zipfile_reader(target) as reader:
        names = [name for name in reader.get_all_records() if name not in ("version", "byteorder") and name[0] != "."]
        return {name: (reader.get_record(name), reader.get_record_size(name)) for name in names}, reader.has_record("q")


def expected() -> Any:
    records = {**RECORDS, "text": b"hello", "part": b"123"}
    return {name: (data, len(data)) for name, data in records.items()}, False


def test_a_stream() -> None:
    stream = io.BytesIO()
    assert written(torch, stream) == ("archive", {*RECORDS, "text", "part"})
    stream.seek(0)
    assert read(torch, stream) == expected()


def test_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "words.pt")
    assert written(torch, path)[0] == "words"
    assert read(torch, path) == expected()


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize("way", ["there", "back"])
def test_across_libraries(way: str, tmp_path: Path) -> None:
    oracle = _oracle.load()
    first, second = (torch, oracle) if way == "there" else (oracle, torch)
    for target in (io.BytesIO(), str(tmp_path / "words.pt")):
        written(first, target)
        if isinstance(target, io.BytesIO):
            target.seek(0)
        assert read(second, target) == expected()


def refusal(library: Any, line: str, tmp_path: Path) -> str:
    stream = io.BytesIO()
    written(library, stream)
    stream.seek(0)
    space = {"s": library.serialization, "io": io, "stream": stream, "torch": library}
    try:
        eval(line, space)
    except Exception as error:  # what is compared
        return f"{type(error).__name__}: {str(error).partition('. This is')[0]}"
    return "nothing"


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize(
    "line",
    [
        "s._open_zipfile_reader('/no/such/file')",
        "s._open_zipfile_reader(io.BytesIO(b'abc'))",
        "s._open_zipfile_writer(3)",
        "torch._C.PyTorchFileReader(stream).get_record('nope')",
        "s._open_zipfile_nothing",
    ],
)
def test_what_is_refused(line: str, tmp_path: Path) -> None:
    ours = refusal(torch, line, tmp_path).replace("mindtorch_v2", "torch").replace("CheckpointError", "RuntimeError")
    assert ours == refusal(_oracle.load(), line, tmp_path)
