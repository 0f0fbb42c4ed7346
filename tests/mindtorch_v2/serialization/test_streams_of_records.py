"""Archives record by record, empty storages of several dtypes, storages in files: one program, both libraries."""

from __future__ import annotations

import io
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch

pytestmark = [mindtorch_only, pytest.mark.oracle]


def _records(library: Any) -> list[Any]:
    s = library.serialization
    saved = io.BytesIO()
    library.save(library.nn.Linear(3, 5).state_dict(), saved)
    saved.seek(0)
    with s._open_file_like(saved, "rb") as stream:
        with s._open_zipfile_reader(stream) as reader:
            data, told = reader.get_record("data.pkl"), [reader.has_record(".format_version")]
    other = io.BytesIO()
    with s._open_zipfile_writer(other) as writer:
        writer.write_record("data.pkl", data, len(data))
        # Records whose bytes somebody else writes.
        writer.write_record_metadata("data/0", 60)
        writer.write_record_metadata("data/1", 20)
    other.seek(0)
    loaded = library.load(other)
    return [*told, {name: tuple(t.shape) for name, t in loaded.items()}]


def _empty_storages(library: Any) -> list[Any]:
    told: list[Any] = []
    for new in (True, False):
        a = library.tensor([], dtype=library.float64)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            b = library.TypedStorage(wrap_storage=a.untyped_storage(), dtype=library.int16)
            f = io.BytesIO()
            library.save([a, b], f, _use_new_zipfile_serialization=new)
            f.seek(0)
            told += [str(each.dtype) for each in library.load(f)]
    return told


def _written(library: Any) -> list[Any]:
    storage = library.tensor([1, 2, 3], dtype=library.int16).untyped_storage()
    buffer = io.BytesIO()
    storage._write_file(buffer, False, True, 2)
    with tempfile.TemporaryFile() as f:
        storage._write_file(f, True, False, 1)
        f.seek(0)
        told = [buffer.getvalue(), f.read()]
        try:
            library.ones(2, device="meta").untyped_storage()._write_file(f, True, True, 4)
        except NotImplementedError as error:
            told.append(str(error))
    return told


def _wrapper(library: Any) -> list[Any]:
    """The storage of a wrapper has no bytes."""

    class Wraps(library.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    storage = library.Tensor._make_wrapper_subclass(Wraps, (2,)).untyped_storage()
    told: list[Any] = []
    calls: list[Callable[[], Any]] = [
        lambda: storage.data_ptr(),
        lambda: storage.resize_(0),
        lambda: storage.copy_(storage),
        lambda: storage.fill_(0),
    ]
    for call in calls:
        with pytest.raises(RuntimeError) as caught:
            call()
        told.append("on an invalid python storage" in str(caught.value))
    return told


@pytest.mark.parametrize("program", [_records, _empty_storages, _written, _wrapper], ids=lambda p: p.__name__)
def test_both_libraries_tell_the_same(program: Callable[[Any], list[Any]]) -> None:
    assert program(torch) == program(_oracle.load())
