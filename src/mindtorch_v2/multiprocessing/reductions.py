"""How tensors and storages are pickled on their way to another process.

Invariant: a storage of the CPU is sent as the memory itself, and the same memory arrives as one storage however often
it is sent (`shared_cache`). An NPU's memory belongs to its process: such tensors are sent as copies.
"""

from __future__ import annotations

import os
import threading
from multiprocessing import reduction
from multiprocessing.util import register_after_fork
from typing import Any

import mindtorch_v2 as torch

from .._storage import UntypedStorage
from .._typed_storage import TypedStorage
from ..nn.parameter import Parameter


class StorageWeakRef:
    """A reference to a storage that does not keep it alive; `cdata` is a number that stands for the storage."""

    __slots__ = ("cdata",)

    def __init__(self, storage: Any) -> None:
        self.cdata = int(storage._weak_ref())

    @classmethod
    def from_weakref(cls, cdata: int) -> StorageWeakRef:
        """A reference from its number."""
        made = cls.__new__(cls)
        made.cdata = cdata
        return made

    def expired(self) -> bool:
        """Whether the storage is gone."""
        return UntypedStorage._expired(self.cdata)

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, StorageWeakRef) and self.cdata == other.cdata)


class SharedCache(dict[Any, StorageWeakRef]):
    """Storages by what identifies their memory on this system; entries of dead ones are dropped as it grows."""

    def __init__(self) -> None:
        super().__init__()
        self.limit = 128
        self._after_fork()
        register_after_fork(self, SharedCache._after_fork)

    def _after_fork(self) -> None:
        self.lock = threading.Lock()

    def get(self, key: Any, default: Any = None) -> Any:
        """The reference under a key, or None."""
        with self.lock:
            return dict.get(self, key, default)

    def __setitem__(self, key: Any, storage_ref: StorageWeakRef) -> None:
        with self.lock:
            dict.__setitem__(self, key, storage_ref)
            if len(self) > self.limit:
                self.free_dead_references()

    def free_dead_references(self) -> None:
        """Forget storages that are gone."""
        for key, reference in list(self.items()):
            if reference.expired():
                del self[key]
        self.limit = max(128, 2 * len(self))


shared_cache = SharedCache()


def fd_id(fd: int) -> tuple[int, int]:
    """What identifies the memory behind a descriptor."""
    found = os.fstat(fd)
    return found.st_ino, found.st_dev


def storage_from_cache(cls: Any, key: Any) -> Any:
    """The storage that is known by a key, if it is alive."""
    reference = shared_cache.get(key)
    return None if reference is None else UntypedStorage._new_with_weak_ptr(reference.cdata)


# -- storages -----------------------------------------------------------------------------------------------------
def reduce_storage(storage: UntypedStorage) -> Any:
    """The memory of a storage, by the strategy of this process."""
    from . import get_sharing_strategy

    kind = storage.device.type
    if kind == "npu":
        raise RuntimeError("Cannot pickle NPU storage; try pickling a NPU tensor instead")
    if kind == "meta":
        raise RuntimeError("Cannot pickle meta storage; try pickling a meta tensor instead")
    if get_sharing_strategy() == "file_system":
        named = storage._share_filename_cpu_()
        storage._shared_incref()
        shared_cache[named[1]] = StorageWeakRef(storage)
        return rebuild_storage_filename, (type(storage), *named)
    if storage.size() == 0:
        return rebuild_storage_empty, (type(storage),)
    fd, size = storage._share_fd_cpu_()
    sent: Any = reduction.DupFd(fd)
    shared_cache[fd_id(fd)] = StorageWeakRef(storage)
    return rebuild_storage_fd, (type(storage), sent, size)


def rebuild_storage_fd(cls: Any, df: Any, size: int) -> Any:
    """The storage behind a descriptor that was sent."""
    fd = df.detach()
    try:
        key = fd_id(fd)
        storage = storage_from_cache(cls, key)
        if storage is None:
            storage = cls._new_shared_fd_cpu(fd, size)
            shared_cache[key] = StorageWeakRef(storage)
        return storage
    finally:
        os.close(fd)


def rebuild_storage_filename(cls: Any, manager: bytes, handle: bytes, size: int, dtype: Any = None) -> Any:
    """The storage behind a name that was sent."""
    storage = storage_from_cache(cls, handle)
    if storage is None:
        nbytes = size if dtype is None else size * dtype.itemsize
        storage = UntypedStorage._new_shared_filename_cpu(manager, handle, nbytes)
        shared_cache[handle] = StorageWeakRef(storage)
    storage._shared_decref()
    return storage if dtype is None else rebuild_typed_storage(storage, dtype)


def rebuild_storage_empty(cls: Any) -> Any:
    """A storage without bytes."""
    return cls()


def reduce_typed_storage(storage: TypedStorage) -> Any:
    """The memory under a typed storage, and how it is read."""
    return rebuild_typed_storage, (storage._untyped_storage, storage.dtype)


def rebuild_typed_storage(storage: Any, dtype: Any) -> TypedStorage:
    """A storage read as elements of a dtype."""
    return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def reduce_typed_storage_child(storage: Any) -> Any:
    """The memory under a storage of one of the old classes."""
    return rebuild_typed_storage_child, (storage._untyped_storage, type(storage))


def rebuild_typed_storage_child(storage: Any, storage_type: Any) -> Any:
    """A storage as one of the old classes."""
    return storage_type(wrap_storage=storage)


# -- tensors ------------------------------------------------------------------------------------------------------
_NON_LEAF = (
    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
    "process boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., "
    "putting it on the queue)."
)


def reduce_tensor(tensor: Any) -> Any:
    """A tensor as its storage and geometry; only leaves can be sent."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(_NON_LEAF)
    torch.utils.hooks.warn_if_has_hooks(tensor)
    kind = tensor.device.type
    if kind == "meta":
        size = tensor.untyped_storage().size()
        place = (tensor.size(), tensor.stride(), tensor.storage_offset())
        return rebuild_meta_tensor, (type(tensor), *place, tensor.dtype, size, tensor.requires_grad)
    if kind != "cpu":
        host = tensor.detach().cpu()
        return rebuild_device_tensor, (type(tensor), host, str(tensor.device), tensor.requires_grad)
    metadata = (tensor.storage_offset(), tensor.size(), tensor.stride(), tensor.requires_grad)
    return rebuild_tensor, (type(tensor), tensor._typed_storage(), metadata)


def rebuild_tensor(cls: Any, storage: Any, metadata: Any) -> Any:
    """A tensor over a storage that arrived."""
    offset, size, stride, requires_grad = metadata
    plain = torch.empty(0, dtype=storage.dtype, device=storage._untyped_storage.device)
    return _of_class(cls, plain.set_(storage._untyped_storage, offset, size, stride), requires_grad)


def rebuild_device_tensor(cls: Any, host: Any, device: str, requires_grad: bool) -> Any:
    """A copy of a tensor whose memory belongs to another process, on the same device."""
    return _of_class(cls, host.to(device), requires_grad)


def rebuild_meta_tensor(
    tensor_cls: Any,
    tensor_size: Any,
    tensor_stride: Any,
    tensor_offset: int,
    dtype: Any,
    storage_size_bytes: int,
    requires_grad: bool,
) -> Any:
    """A tensor of the meta device."""
    storage = rebuild_typed_storage(UntypedStorage(storage_size_bytes, device="meta"), dtype)
    return rebuild_tensor(tensor_cls, storage, (tensor_offset, tensor_size, tensor_stride, requires_grad))


def _of_class(cls: Any, t: Any, requires_grad: bool) -> Any:
    if cls is Parameter:
        return Parameter(t, requires_grad=requires_grad)
    t.requires_grad = requires_grad
    return t


def _refusal(what: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torch.multiprocessing: {what} cannot be sent to another process")

    return refuse


# PyTorch's names for what only CUDA can send, or what has no form here.
rebuild_event = reduce_event = _refusal("events of a device")
rebuild_cuda_tensor = _refusal("memory of CUDA")
rebuild_nested_tensor = reduce_nested_tensor = _refusal("nested tensors")
rebuild_sparse_coo_tensor = rebuild_sparse_compressed_tensor = reduce_sparse_tensor = _refusal("sparse tensors")


def init_reductions() -> None:
    """Let Python's multiprocessing send tensors, parameters and storages this way."""
    reduction.register(torch.Event, reduce_event)
    reduction.register(UntypedStorage, reduce_storage)
    reduction.register(TypedStorage, reduce_typed_storage)
    reduction.register(torch.Tensor, reduce_tensor)
    reduction.register(Parameter, reduce_tensor)
