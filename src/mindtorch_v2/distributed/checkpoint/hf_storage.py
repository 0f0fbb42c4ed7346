"""`torch.distributed.checkpoint.hf_storage`: checkpoints as Hugging Face's files of safetensors.

Invariant: files have PyTorch's names and notes: pieces of a tensor say where in the whole they begin.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..._size import Size
from ...futures import Future
from . import _safetensors
from .filesystem import FileSystemReader, FileSystemWriter, _StorageInfo
from .metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner, WriteItemType
from .storage import WriteResult

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

_INDEX = "model.safetensors.index.json"
_SUFFIX = ".safetensors"
_PIECES = "DCP_SHARDING_INFO"
_OFFSETS = "saved_offsets"
_SHARDED = "sharded"


@dataclass
class _HFStorageInfo:
    """Where a piece of a tensor lies, and what it is."""

    relative_path: str
    shape: Any
    dtype: Any


def _file_name(index: int, files: int, shard: int | None = None) -> str:
    start = "" if shard is None else f"shard-{shard:05d}-"
    return f"{start}model-{index:05d}-of-{files:05d}{_SUFFIX}"


def _files(folder: Any) -> list[str]:
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(_SUFFIX))


def _done(value: Any) -> Any:
    found: Any = Future()
    found.set_result(value)
    return found


def _pieces(files: Iterable[str]) -> Any:
    """Every piece of every tensor: its file, its name, where in the whole it begins, and itself."""
    for path in files:
        stored, notes = _safetensors.opened(path)
        begins = json.loads(notes[_PIECES]) if notes.get(_PIECES) else {}
        for name, piece in stored.items():
            yield path, name, begins[name][_OFFSETS] if begins else [0] * len(piece.shape), piece


def _write_index(path: Any, sizes: dict[str, int], files: dict[str, str]) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        json.dump({"metadata": {"total_size": sum(sizes.values())}, "weight_map": files}, stream, indent=2)


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes files of safetensors: of the whole by rank 0, or with `save_distributed` of each rank's pieces, which
    `enable_consolidation` makes whole again. `fqn_to_index_mapping` says which file a tensor belongs to."""

    def __init__(
        self,
        path: str,
        fqn_to_index_mapping: dict[str, int] | None = None,
        thread_count: int = 1,
        save_distributed: bool = False,
        enable_consolidation: bool = False,
        thread_count_consolidation: int = 1,
    ) -> None:
        super().__init__(path=path, thread_count=thread_count)
        self.fqn_to_index_mapping = fqn_to_index_mapping
        self.save_distributed, self.enable_consolidation = save_distributed, enable_consolidation
        self.consolidated_output_path: str | None = None
        if enable_consolidation:
            self.consolidated_output_path = str(self.path)
            self.path = self.fs.concat_path(self.path, _SHARDED)
        self.thread_count_consolidation = thread_count_consolidation

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give every rank its number, and all of them the files of tensors."""
        told: dict[str, Any] = {}
        if self.fqn_to_index_mapping is not None:
            told["fqn_to_index_mapping"] = self.fqn_to_index_mapping
        shards = ({"shard_index": at} if self.save_distributed else {} for at in range(1, len(plans) + 1))
        return [dataclasses.replace(plan, storage_data={**told, **shard}) for plan, shard in zip(plans, shards)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Any:
        """Write this rank's pieces."""
        places: dict[str, int] | None = plan.storage_data.get("fqn_to_index_mapping")
        buckets: dict[int, list[Any]] = {}
        for item in plan.items:
            buckets.setdefault(1 if places is None else places[item.index.fqn], []).append(item)
        count = 1 if places is None else max(places.values())
        results: list[WriteResult] = []
        for index, items in buckets.items():
            name = _file_name(index, count, plan.storage_data.get("shard_index"))
            results += self._write_file(name, items, planner)
        return _done(results)

    def _write_file(self, name: str, items: list[Any], planner: SavePlanner) -> list[WriteResult]:
        tensors, begins, results = {}, {}, []
        for item in items:
            if item.type == WriteItemType.BYTE_IO:
                raise ValueError(f"safetensors hold tensors alone; '{item.index.fqn}' is none")
            tensor = planner.resolve_data(item).detach()
            tensors[item.index.fqn] = tensor
            begins[item.index.fqn] = {_OFFSETS: list(item.tensor_data.chunk.offsets)}
            length = tensor.numel() * tensor.element_size()
            results.append(WriteResult(item.index, length, _StorageInfo(name, 0, length)))
        notes = {_PIECES: json.dumps(begins), "DCP_VERSION": "1.0", "format": "pt"}
        with self.fs.create_stream(self.fs.concat_path(self.path, name), "wb") as stream:
            _safetensors.written(stream, tensors, notes)
            if self.sync_files:
                stream.flush()
                os.fsync(stream.fileno())
        return results

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write the index of tensors; of pieces there is none unless they are made whole."""
        if not self.save_distributed:
            every = [each for part in results for each in part]
            sizes = {each.index.fqn: each.storage_data.length for each in every}
            files = {each.index.fqn: each.storage_data.relative_path for each in every}
            _write_index(self.fs.concat_path(self.path, _INDEX), sizes, files)
        elif self.enable_consolidation:
            places = self.fqn_to_index_mapping or dict.fromkeys(metadata.state_dict_metadata, 1)
            assert self.consolidated_output_path is not None
            consolidate_safetensors_files(
                str(self.path), self.consolidated_output_path, places, self.thread_count_consolidation
            )

    @property
    def metadata_path(self) -> str:
        """The name of the index."""
        return _INDEX


def consolidate_safetensors_files(
    input_dir: str, output_dir: str, fqn_to_index_mapping: dict[str, int], num_threads: int = 1
) -> None:
    """Make whole tensors of pieces, file by file; one thread does it, whatever number is asked for."""
    found: dict[str, list[tuple[list[int], Any]]] = {}
    for _, name, begin, piece in _pieces(_files(input_dir)):
        found.setdefault(name, []).append((begin, piece))
    count = max(fqn_to_index_mapping.values())
    sizes: dict[str, int] = {}
    files: dict[str, str] = {}
    for index in sorted(set(fqn_to_index_mapping.values())):
        names = [name for name, place in fqn_to_index_mapping.items() if place == index and name in found]
        tensors = {name: _whole(found[name]) for name in names}
        file = _file_name(index, count)
        with open(os.path.join(output_dir, file), "wb") as stream:
            _safetensors.written(stream, tensors, {"format": "pt"})
        sizes.update({name: each.numel() * each.element_size() for name, each in tensors.items()})
        files.update(dict.fromkeys(names, file))
    _write_index(os.path.join(output_dir, _INDEX), sizes, files)


def _ends(begin: list[int], piece: Any) -> list[int]:
    return [start + size for start, size in zip(begin, piece.shape)]


def _whole(pieces: list[tuple[list[int], Any]]) -> Any:
    from ... import empty

    shape = [max(each) for each in zip(*(_ends(begin, piece) for begin, piece in pieces))]
    out = empty(shape, dtype=pieces[0][1].dtype, device="cpu")
    for begin, piece in pieces:
        out[tuple(slice(start, end) for start, end in zip(begin, _ends(begin, piece)))] = piece.read()
    return out


class HuggingFaceStorageReader(FileSystemReader):
    """Reads the files of safetensors in a directory, whole tensors or pieces. `thread_count` is a hint."""

    def __init__(self, path: str, thread_count: int = 1) -> None:
        super().__init__(path=path)
        self.thread_count = thread_count

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What stands in the headers of the files."""
        tensors: dict[str, TensorStorageMetadata] = {}
        places: dict[MetadataIndex, _HFStorageInfo] = {}
        for path, name, begin, piece in _pieces(_files(self.path)):
            known = tensors.get(name)
            if known is None:
                known = tensors[name] = TensorStorageMetadata(TensorProperties(dtype=piece.dtype), Size(), [])
            known.chunks.append(ChunkStorageMetadata(Size(begin), Size(piece.shape)))
            ends = _ends(begin, piece)
            known.size = Size([max(each) for each in zip(known.size or ends, ends)])
            places[MetadataIndex(name, begin)] = _HFStorageInfo(path, Size(piece.shape), piece.dtype)
        return Metadata(tensors, storage_data=places, storage_meta=StorageMeta(load_id=self.load_id))

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Any:
        """Read, file by file, every piece once."""
        wanted: dict[str, dict[str, list[Any]]] = {}
        for item in plan.items:
            path = self.storage_data[item.storage_index].relative_path
            wanted.setdefault(path, {}).setdefault(item.storage_index.fqn, []).append(item)
        for path, names in wanted.items():
            stored, _ = _safetensors.opened(path)
            for name, items in names.items():
                tensor = stored[name].read()
                for item in items:
                    self._give(tensor, item, planner)
        return _done(None)

    @staticmethod
    def _give(tensor: Any, item: Any, planner: LoadPlanner) -> None:
        part = tensor
        for dim, (start, length) in enumerate(zip(item.storage_offsets, item.lengths)):
            part = part.narrow(dim, start, length)
        target = planner.resolve_tensor(item).detach()
        if target.size() != part.size():
            raise AssertionError(f"req {item.storage_index} mismatch sizes {target.size()} vs {part.size()}")
        target.copy_(part)
        planner.commit_tensor(item, target)
