"""Checkpoints in a directory: a file of each rank's items, one behind the other, and `.metadata`: what is where.

Invariant: the files are PyTorch's. `.metadata` appears last and whole, so that a directory with it is a checkpoint. It
is read by an unpickler that knows only what belongs there.
"""

from __future__ import annotations

import dataclasses
import io
import os
import pickle
import uuid
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from ..._serialization import names
from ...futures import Future
from .metadata import Metadata, StorageMeta
from .planner import LoadItemType, LoadPlan, LoadPlanner, SavePlan, SavePlanner, WriteItemType
from .storage import StorageReader, StorageWriter, WriteResult

__all__ = ["FileSystem", "FileSystemBase", "FileSystemReader", "FileSystemWriter", "SerializationFormat"]

_METADATA = ".metadata"
_VERSION = "1.0.0"


@dataclass
class _StorageInfo:
    """Where an item lies."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if value is not None}


@dataclass
class _StoragePrefix:
    """How the names of a rank's files begin."""

    prefix: str


class SerializationFormat(Enum):
    """How tensors are written."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


class FileSystemBase(ABC):
    """What is asked of a file system."""

    @contextmanager
    @abstractmethod
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Iterator[Any]:
        """An open file."""

    @abstractmethod
    def concat_path(self, path: str | os.PathLike[str], suffix: str) -> Any:
        """A path inside."""

    @abstractmethod
    def rename(self, path: str | os.PathLike[str], new_path: str | os.PathLike[str]) -> None:
        """Give a file another name."""

    @abstractmethod
    def init_path(self, path: str | os.PathLike[str]) -> Any:
        """A path as this file system has it."""

    @abstractmethod
    def mkdir(self, path: str | os.PathLike[str]) -> None:
        """Make a directory."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it is a path of this file system."""

    @abstractmethod
    def exists(self, path: str | os.PathLike[str]) -> bool:
        """Whether there is something."""

    @abstractmethod
    def rm_file(self, path: str | os.PathLike[str]) -> None:
        """Remove a file."""


class FileSystem(FileSystemBase):
    """That of the machine."""

    @contextmanager
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Iterator[Any]:
        """An open file."""
        with open(path, mode) as stream:
            yield stream

    def concat_path(self, path: str | os.PathLike[str], suffix: str) -> Any:
        """A path inside."""
        return Path(path) / suffix

    def init_path(self, path: str | os.PathLike[str]) -> Any:
        """A path."""
        return Path(path)

    def rename(self, path: str | os.PathLike[str], new_path: str | os.PathLike[str]) -> None:
        """Give a file another name."""
        os.replace(path, new_path)

    def mkdir(self, path: str | os.PathLike[str]) -> None:
        """Make a directory, and those around it."""
        Path(path).mkdir(parents=True, exist_ok=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it is a path that can be."""
        if isinstance(checkpoint_id, str) and "://" in checkpoint_id:
            return False
        return any(os.access(parent, os.W_OK) for parent in (Path(checkpoint_id), *Path(checkpoint_id).parents))

    def exists(self, path: str | os.PathLike[str]) -> bool:
        """Whether there is something."""
        return Path(path).exists()

    def rm_file(self, path: str | os.PathLike[str]) -> None:
        """Remove a file."""
        Path(path).unlink()


class FileSystemWriter(StorageWriter):
    """Writes a checkpoint into a directory."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions: Any = None,
        serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
    ) -> None:
        for name, value in (("_extensions", _extensions), ("cache_staged_state_dict", cache_staged_state_dict or None)):
            if value is not None:
                raise NotImplementedError(f"FileSystemWriter(): argument '{name}' is not served, got {value}")
        if serialization_format is not SerializationFormat.TORCH_SAVE:
            raise NotImplementedError("FileSystemWriter(): argument 'serialization_format' must be TORCH_SAVE")
        self.fs: FileSystemBase = FileSystem()
        self.path = self.fs.init_path(path)
        self.single_file_per_rank, self.sync_files, self.overwrite = single_file_per_rank, sync_files, overwrite
        # One thread writes; tensors are copied to the host when their turn comes.
        self.thread_count, self.per_thread_copy_ahead = thread_count, per_thread_copy_ahead
        self.save_id = str(uuid.uuid4())

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """A new checkpoint begins."""
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Nothing to make ready."""

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Make the directory."""
        self.fs.mkdir(self.path)
        if self.fs.exists(self.fs.concat_path(self.path, _METADATA)):
            if not self.overwrite:
                raise RuntimeError(f"Checkpoint already exists and self.overwrite={self.overwrite}.")
            warnings.warn(
                f"Detected an existing checkpoint in {self.path}, overwriting since self.overwrite={self.overwrite}."
                " Past version 2.5 of PyTorch, `overwrite` will default to False. Set this variable to True to"
                " maintain this functionality or False to raise when an existing checkpoint is found.",
                stacklevel=2,
            )
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give every rank names of files."""
        return [
            dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{rank}_")) if plan.storage_data is None else plan
            for rank, plan in enumerate(plans)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Any:
        """Write this rank's items, bytes first, small tensors before big ones."""
        order = sorted(plan.items, key=lambda item: item.tensor_storage_size() or 0)
        buckets = [order] if self.single_file_per_rank else [[item] for item in order]
        results: list[WriteResult] = []
        for at, bucket in enumerate(bucket for bucket in buckets if bucket):
            name = f"{plan.storage_data.prefix}{at}.distcp"
            with self.fs.create_stream(self.fs.concat_path(self.path, name), "wb") as stream:
                results.extend(self._write(stream, name, item, planner) for item in bucket)
                if self.sync_files:
                    stream.flush()
                    os.fsync(stream.fileno())
        done: Any = Future()
        done.set_result(results)
        return done

    @staticmethod
    def _write(stream: Any, name: str, item: Any, planner: SavePlanner) -> WriteResult:
        from ... import save

        start = stream.tell()
        data = planner.resolve_data(item)
        if item.type == WriteItemType.BYTE_IO:
            stream.write(data.getbuffer())
        else:
            host = data.detach().to("cpu")
            # Only the piece, not the memory that it is a view of.
            save(host.clone() if host.untyped_storage().nbytes() != host.numel() * host.itemsize else host, stream)
        length = stream.tell() - start
        return WriteResult(item.index, length, _StorageInfo(name, start, length))

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write `.metadata`, whole."""
        metadata.version = _VERSION
        metadata.storage_data = {each.index: each.storage_data for part in results for each in part}
        metadata.storage_meta = self.storage_meta()
        target = self.fs.concat_path(self.path, _METADATA)
        half = self.fs.concat_path(self.path, f"{_METADATA}.tmp")
        with self.fs.create_stream(half, "wb") as stream:
            stream.write(names.renamed(pickle.dumps(metadata, protocol=4)))
            if self.sync_files:
                stream.flush()
                os.fsync(stream.fileno())
        self.fs.rename(half, target)

    def storage_meta(self) -> StorageMeta | None:
        """Which checkpoint it is."""
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self.save_id)

    @property
    def checkpoint_id(self) -> str | os.PathLike[str]:
        """The directory."""
        return self.path  # type: ignore[no-any-return]

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it is a path that can be."""
        return FileSystem.validate_checkpoint_id(checkpoint_id)


_SAFE_MODULES = ("torch.distributed.checkpoint.metadata", "torch.distributed.checkpoint.filesystem", "pathlib", "torch")
_SAFE = {
    ("collections", "OrderedDict"),
    ("torch.serialization", "_get_layout"),
    ("torch.storage", "_load_from_bytes"),
    ("builtins", "set"),
    ("builtins", "getattr"),
}


class _MetadataReader(pickle.Unpickler):
    """Knows the classes of metadata, sizes, dtypes and paths."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            return _attribute
        if module not in _SAFE_MODULES and (module, name) not in _SAFE and not module.startswith("pathlib."):
            raise pickle.UnpicklingError(f"{module}.{name} is nothing that the metadata of a checkpoint has")
        return names.find(module, name) if names.is_theirs(module) else super().find_class(module, name)


def _attribute(owner: Any, name: str) -> Any:
    """Members of enumerations, and nothing else, are pickled as attributes."""
    if not (isinstance(owner, type) and issubclass(owner, Enum)):
        raise pickle.UnpicklingError(f"{owner}.{name} is nothing that the metadata of a checkpoint has")
    return getattr(owner, name)


class FileSystemReader(StorageReader):
    """Reads a checkpoint from a directory."""

    def __init__(self, path: str | os.PathLike[str], _extension_registry: Any = None) -> None:
        if _extension_registry is not None:
            raise NotImplementedError("FileSystemReader(): argument '_extension_registry' is not served")
        self.fs: FileSystemBase = FileSystem()
        self.path = self.fs.init_path(path)
        self.storage_data: dict[Any, _StorageInfo] = {}
        self.load_id = str(uuid.uuid4())

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Another checkpoint is read."""
        self.storage_data = {}
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.load_id = str(uuid.uuid4())

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What is known of the checkpoint."""
        with self.fs.create_stream(self.fs.concat_path(self.path, _METADATA), "rb") as stream:
            metadata: Metadata = _MetadataReader(stream).load()
        if getattr(metadata, "storage_meta", None) is None:
            metadata.storage_meta = StorageMeta()
        assert metadata.storage_meta is not None
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Take where everything lies."""
        if metadata.storage_data is None:
            raise AssertionError("storage_data must not be None in metadata")
        self.storage_data = metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """As it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """As they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Any:
        """Read, file by file, every stored piece once."""
        wanted: dict[str, dict[Any, list[Any]]] = {}
        for item in plan.items:
            info = self.storage_data[item.storage_index]
            wanted.setdefault(info.relative_path, {}).setdefault(item.storage_index, []).append(item)
        for name, pieces in wanted.items():
            with self.fs.create_stream(self.fs.concat_path(self.path, name), "rb") as stream:
                for index in sorted(pieces, key=lambda each: self.storage_data[each].offset):
                    info = self.storage_data[index]
                    if getattr(info, "transform_descriptors", None):
                        raise NotImplementedError(f"{name}: items that were transformed are not read")
                    stream.seek(info.offset)
                    self._read(io.BytesIO(stream.read(info.length)), pieces[index], planner)
        done: Any = Future()
        done.set_result(None)
        return done

    @staticmethod
    def _read(data: io.BytesIO, items: list[Any], planner: LoadPlanner) -> None:
        from ... import load

        if items[0].type == LoadItemType.BYTE_IO:
            for item in items:
                data.seek(0)
                planner.load_bytes(item, data)
            return
        stored = load(data, map_location="cpu", weights_only=True)
        for item in items:
            part = stored
            for dim, (start, length) in enumerate(zip(item.storage_offsets, item.lengths)):
                part = part.narrow(dim, start, length)
            target = planner.resolve_tensor(item).detach()
            if target.size() != part.size():
                raise AssertionError(f"req {item.storage_index} mismatch sizes {target.size()} vs {part.size()}")
            target.copy_(part)
            planner.commit_tensor(item, target)

    @property
    def checkpoint_id(self) -> str | os.PathLike[str]:
        """The directory."""
        return self.path  # type: ignore[no-any-return]

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it is a path that can be."""
        return FileSystem.validate_checkpoint_id(checkpoint_id)
