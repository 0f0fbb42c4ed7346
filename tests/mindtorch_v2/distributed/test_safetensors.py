"""Checkpoints as Hugging Face's files: what is in them, and read on another number of ranks."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .._subject import mindtorch_only
from .._subject import subject as torch
from . import _safe
from ._ranks import Ranks

pytestmark = mindtorch_only  # PyTorch's needs the package safetensors


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    made = Ranks("mindtorch_v2", 2)
    yield made
    made.close()


@pytest.fixture(scope="module")
def three() -> Iterator[Ranks]:
    made = Ranks("mindtorch_v2", 3)
    yield made
    made.close()


def header(path: Path) -> Any:
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length])


NAMES = {
    "whole": ["model-00001-of-00001"],
    "by file": ["model-00001-of-00002", "model-00002-of-00002"],
    "pieces": ["shard-00001-model-00001-of-00001", "shard-00002-model-00001-of-00001"],
    "made whole": ["model-00001-of-00002", "model-00002-of-00002"],
}


@pytest.mark.parametrize("how", _safe.WAYS)
def test_saved_by_two_and_read_by_three(ranks: Ranks, three: Ranks, how: str, tmp_path: Path) -> None:
    ranks.values("_safe.save", str(tmp_path), how)
    assert sorted(path.stem for path in tmp_path.glob("*.safetensors")) == NAMES[how]
    index = tmp_path / "model.safetensors.index.json"
    assert index.exists() == (how != "pieces")
    if index.exists():
        told = json.loads(index.read_text())
        assert told["metadata"] == {"total_size": 15 * 4 + 3 * 2 + 6 * 8} and set(told["weight_map"]) == {"w", "b", "n"}
    else:
        notes = header(tmp_path / f"{NAMES[how][1]}.safetensors")["__metadata__"]
        assert (
            json.loads(notes["DCP_SHARDING_INFO"])["w"] == {"saved_offsets": [3, 0]} and notes["DCP_VERSION"] == "1.0"
        )
    want = (torch.arange(15.0).reshape(5, 3).tolist(), [0.0, 1.0, 2.0], [[0, 1, 2], [3, 4, 5]])
    assert three.values("_safe.load", str(tmp_path)) == [want] * 3


WRONG = {
    "short": b"\1\0",
    "long header": struct.pack("<Q", 1 << 40) + b"{}",
    "no JSON": struct.pack("<Q", 2) + b"{x",
    "no dict": struct.pack("<Q", 2) + b"[]",
    "past the end": b'{"w":{"dtype":"F32","shape":[5,3],"data_offsets":[0,60]}}',
    "shape": b'{"w":{"dtype":"F32","shape":[5,-3],"data_offsets":[0,60]}}',
    "huge": b'{"w":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}',
    "dtype": b'{"w":{"dtype":"F31","shape":[],"data_offsets":[0,4]}}',
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_such_file_is_refused(what: str, tmp_path: Path) -> None:
    _, storage, _ = _safe.tools(torch)
    data = WRONG[what]
    (tmp_path / "model.safetensors").write_bytes(data if data[:1] != b"{" else struct.pack("<Q", len(data)) + data)
    with pytest.raises(ValueError, match="model.safetensors: "):
        storage.HuggingFaceStorageReader(str(tmp_path)).read_metadata()


def test_what_is_no_tensor_is_refused(tmp_path: Path) -> None:
    checkpoint, storage, _ = _safe.tools(torch)
    with pytest.raises(checkpoint.CheckpointException, match="'step' is none"):
        checkpoint.save({"step": 3}, storage_writer=storage.HuggingFaceStorageWriter(str(tmp_path)), no_dist=True)
