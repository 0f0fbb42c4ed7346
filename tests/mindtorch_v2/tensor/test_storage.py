"""Storages: shared between views, typed and untyped, resized, copied, mapped from files, empty on meta.

Invariant: everything here also holds for PyTorch (run with MINDTORCH_TEST_SUBJECT=torch), except `storage().data`, the
flat array of contract D2.
"""

from __future__ import annotations

import copy
import gc
import importlib
import pickle
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

from .._subject import mindtorch_only
from .._subject import subject as torch

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")


def test_views_share_one_storage() -> None:
    base = torch.arange(6.0)
    view = base.view(2, 3).t()[1:]
    assert view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    assert view.untyped_storage().nbytes() == base.untyped_storage().nbytes() == 24
    assert base.clone().untyped_storage().data_ptr() != base.untyped_storage().data_ptr()


def test_data_ptr_of_storage_and_tensor() -> None:
    base = torch.arange(6.0)
    assert base[2:].data_ptr() == base.untyped_storage().data_ptr() + 8
    assert base[2:].untyped_storage().data_ptr() == base.data_ptr()


def test_memory_is_aligned() -> None:
    for count in (1, 3, 17, 1000, 100_000):
        assert torch.empty(count).data_ptr() % 64 == 0


def test_untyped_storage_is_bytes() -> None:
    storage = torch.tensor([1, 256], dtype=torch.int16).untyped_storage()
    assert len(storage) == storage.nbytes() == storage.size() == 4
    assert storage.tolist() == [1, 0, 0, 1]
    assert list(storage) == [1, 0, 0, 1]
    assert storage[0] == 1
    assert storage[1:3].tolist() == [0, 0]
    storage[0] = 5
    assert storage.element_size() == 1
    assert storage.device.type == "cpu"
    assert not storage.is_cuda


def test_writes_to_a_storage_are_seen_by_its_tensors() -> None:
    base = torch.zeros(2, dtype=torch.uint8)
    base.untyped_storage()[1] = 9
    assert base.tolist() == [0, 9]
    base.untyped_storage().fill_(3)
    assert base.tolist() == [3, 3]


def test_slices_of_a_storage_share_memory() -> None:
    base = torch.zeros(4, dtype=torch.uint8)
    part = base.untyped_storage()[1:3]
    part.fill_(7)
    assert base.tolist() == [0, 7, 7, 0]


def test_untyped_copy_clone_and_tolist() -> None:
    source = torch.tensor([1, 2, 3], dtype=torch.uint8).untyped_storage()
    target = torch.UntypedStorage(3)
    assert target.copy_(source) is target
    assert target.tolist() == [1, 2, 3]
    cloned = source.clone()
    cloned[0] = 9
    assert source.tolist() == [1, 2, 3]


def test_untyped_resize_keeps_the_prefix() -> None:
    base = torch.tensor([1, 2, 3], dtype=torch.uint8)
    storage = base.untyped_storage()
    storage.resize_(5)
    assert storage.nbytes() == 5
    assert base.tolist() == [1, 2, 3]
    storage.resize_(2)
    assert storage.tolist() == [1, 2]
    assert storage.resizable()


def test_tensor_resize_grows_the_storage() -> None:
    base = torch.arange(4.0)
    assert base.resize_(2, 3) is base
    assert tuple(base.shape) == (2, 3) and base.stride() == (3, 1)
    assert base.view(-1)[:4].tolist() == [0, 1, 2, 3]
    assert base.untyped_storage().nbytes() == 24
    base.resize_(2)
    assert base.untyped_storage().nbytes() == 24


def test_new_untyped_storages() -> None:
    assert torch.UntypedStorage().nbytes() == 0
    assert torch.UntypedStorage(8).nbytes() == 8
    assert torch.UntypedStorage([1, 2]).tolist() == [1, 2]
    meta = torch.UntypedStorage(8, device="meta")
    assert meta.device.type == "meta" and meta.nbytes() == 8


def test_set_points_a_tensor_at_a_storage() -> None:
    source = torch.arange(6.0)
    made = torch.empty(0)
    made.set_(source.untyped_storage(), 1, (2, 2), (2, 1))
    assert made.tolist() == [[1, 2], [3, 4]]
    made[0, 0] = 50
    assert source[1].item() == 50
    other = torch.empty(0).set_(source)
    assert other.data_ptr() == source.data_ptr()


def test_typed_storage() -> None:
    base = torch.tensor([1.5, 2.5, 3.5])
    storage = base.storage()
    assert storage.dtype == torch.float32
    assert len(storage) == storage.size() == 3
    assert storage.tolist() == [1.5, 2.5, 3.5]
    assert storage[1] == 2.5 and storage[-1] == 3.5
    storage[1] = 7
    assert base.tolist() == [1.5, 7.0, 3.5]
    assert storage.data_ptr() == base.data_ptr()
    assert storage.nbytes() == 12 and storage.element_size() == 4
    storage.fill_(2)
    assert base.tolist() == [2, 2, 2]
    assert storage.untyped().nbytes() == 12


def test_typed_storage_is_the_whole_storage() -> None:
    base = torch.arange(6.0)
    assert base[2:4].storage().tolist() == [0, 1, 2, 3, 4, 5]
    assert base.view(2, 3).t().storage().tolist() == [0, 1, 2, 3, 4, 5]


def test_typed_storage_slices_and_copies() -> None:
    base = torch.arange(4.0)
    storage = base.storage()
    storage[1:3] = 9
    assert base.tolist() == [0, 9, 9, 3]
    other = torch.zeros(4).storage()
    other.copy_(storage)
    assert other.tolist() == [0, 9, 9, 3]
    assert storage.clone().tolist() == [0, 9, 9, 3]


def test_typed_storage_conversions() -> None:
    storage = torch.tensor([1.7, 2.2]).storage()
    assert storage.int().tolist() == [1, 2]
    assert storage.double().dtype == torch.float64
    assert storage.float().dtype == torch.float32


@mindtorch_only
def test_typed_storage_data_is_a_flat_array() -> None:
    base = torch.arange(6.0).view(2, 3)
    flat = base.t().storage().data
    assert flat.tolist() == [0, 1, 2, 3, 4, 5]
    flat[0] = 9
    assert base[0, 0].item() == 9


def test_copy_deepcopy_and_pickle_of_storages() -> None:
    base = torch.tensor([1, 2], dtype=torch.uint8)
    storage = base.untyped_storage()
    deep = copy.deepcopy(storage)
    deep[0] = 9
    assert base.tolist() == [1, 2]
    assert pickle.loads(pickle.dumps(base.storage())).tolist() == [1, 2]


def test_from_file_maps_memory(tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(8)))
    storage = torch.UntypedStorage.from_file(str(path), shared=True, nbytes=8)
    assert storage.tolist() == list(range(8))
    storage[0] = 200
    del storage
    gc.collect()
    assert path.read_bytes()[0] == 200
    private = torch.UntypedStorage.from_file(str(path), shared=False, nbytes=4)
    private[1] = 99
    assert private.tolist() == [200, 99, 2, 3]
    assert path.read_bytes()[1] == 1


def test_from_file_creates_a_shared_file(tmp_path: Path) -> None:
    path = tmp_path / "new"
    storage = torch.UntypedStorage.from_file(str(path), shared=True, nbytes=4)
    storage.fill_(1)
    del storage
    gc.collect()
    assert path.read_bytes() == b"\x01\x01\x01\x01"


def test_meta_storage_holds_no_bytes() -> None:
    storage = torch.empty(1 << 30, device="meta").untyped_storage()
    assert storage.nbytes() == 4 << 30
    assert storage.data_ptr() == 0
    assert storage.device.type == "meta"
    with pytest.raises(NotImplementedError, match="meta"):
        torch.empty(2, device="meta").untyped_storage()[0]


def test_frombuffer_shares_memory() -> None:
    buffer = bytearray(b"\x00\x00\x80\x3f\x00\x00\x00\x40")
    t = torch.frombuffer(buffer, dtype=torch.float32)
    assert t.tolist() == [1, 2]
    t[0] = 0
    assert buffer[:4] == b"\x00\x00\x00\x00"
    assert torch.frombuffer(buffer, dtype=torch.float32, offset=4).tolist() == [2]
    assert torch.frombuffer(buffer, dtype=torch.float32, count=1).tolist() == [0]


def test_memory_that_cannot_be_written_warns_once_in_a_process() -> None:
    program = f"""
import warnings, numpy, {torch.__name__} as torch
array = numpy.ones(2)
array.flags.writeable = False
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        torch.from_numpy(array)
        assert torch.frombuffer(b"12", dtype=torch.uint8).tolist() == [49, 50]
print([str(w.message)[:32] for w in caught], {{w.filename for w in caught}})
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "['The given NumPy array is not wri', 'The given buffer is not writable'] {'<string>'}\n"


def test_storage_outlives_its_tensor() -> None:
    base = torch.arange(1000.0)
    storage = base.untyped_storage()
    pointer = base.data_ptr()
    del base
    gc.collect()
    again = torch.empty(0).set_(storage)
    assert again.data_ptr() == pointer
    assert again[999].item() == 999


def test_memory_is_given_back() -> None:
    """Many large tensors one after another: without reuse this would need 40 GB."""
    for _ in range(100):
        t = torch.empty(100_000_000)
        t[0] = 1
        del t


def test_use_count_of_views_does_not_copy() -> None:
    base: Any = torch.zeros(10)
    views = [base[i:] for i in range(10)]
    base.fill_(3)
    assert all(view[0].item() == 3 for view in views)


# -- the Python object lives as long as the memory ----------------------------------------------------------------
class Own(torch.UntypedStorage):
    """A storage of a user's class."""


class Slotted(torch.UntypedStorage):
    __slots__ = ("note",)


DEVICES = ("cpu", "meta")


@pytest.mark.parametrize("device", DEVICES)
def test_the_object_is_kept_while_a_tensor_holds_the_memory(device: str) -> None:
    t = torch.ones(3, device=device)
    alive = weakref.ref(t.untyped_storage())
    t.untyped_storage().note = "mine"
    gc.collect()
    assert t.untyped_storage() is alive()
    assert t[1:].untyped_storage().note == t.detach().untyped_storage().note == "mine"


@pytest.mark.parametrize("device", DEVICES)
def test_the_object_goes_with_the_memory(device: str) -> None:
    t = torch.ones(3, device=device)
    alive = weakref.ref(t.untyped_storage())
    del t
    assert alive() is None


@pytest.mark.parametrize("device", DEVICES)
def test_the_object_keeps_the_memory_and_can_lend_it_again(device: str) -> None:
    t = torch.ones(3, device=device)
    storage = t.untyped_storage()
    alive = weakref.ref(storage)
    for _ in range(3):
        del t
        assert storage.nbytes() == 12
        t = torch.empty(0, device=device).set_(storage)
        del storage
        storage = t.untyped_storage()
        assert storage is alive()
    if device == "cpu":
        assert t.tolist() == [1, 1, 1]
    del storage, t
    assert alive() is None


@pytest.mark.parametrize("device", DEVICES)
def test_storages_of_a_users_class(device: str) -> None:
    for cls in (Own, Slotted):
        storage = cls(4, device=device)
        storage.note = 1
        t = torch.empty(0, dtype=torch.uint8, device=device).set_(storage)
        del storage
        assert type(t.untyped_storage()) is cls and t.untyped_storage().note == 1


def test_a_storage_of_a_users_class_from_another_is_a_copy() -> None:
    t = torch.ones(1)
    made = Own(t.untyped_storage())
    assert type(made) is Own and made.tolist() == [0, 0, 128, 63] and made.data_ptr() != t.data_ptr()


def test_a_finalizer_runs_when_the_memory_goes_and_may_keep_it() -> None:
    kept: list[Any] = []

    class Kept(torch.UntypedStorage):
        def __del__(self) -> None:
            kept.append(self)

    storage = Kept(4)
    storage.fill_(7)
    t = torch.empty(0, dtype=torch.uint8).set_(storage)
    del storage
    assert not kept
    del t
    assert len(kept) == 1 and kept[0].tolist() == [7, 7, 7, 7]
    assert torch.empty(0, dtype=torch.uint8).set_(kept[0]).tolist() == [7, 7, 7, 7]


def test_cycles_through_attributes_are_collected_after_the_memory() -> None:
    class Holder:
        storage: Any

    t = torch.ones(3)
    holder = Holder()
    holder.storage = t.untyped_storage()
    t.untyped_storage().holder = holder
    alive = weakref.ref(holder)
    del holder
    gc.collect()
    assert alive() is not None
    del t
    gc.collect()
    assert alive() is None


def test_storages_compare_by_identity() -> None:
    t = torch.ones(2)
    assert t.untyped_storage() == t.untyped_storage() != torch.ones(2).untyped_storage()
    assert t.storage() != t.storage() and t.storage() != t.untyped_storage()
    assert len({t.untyped_storage(), t[1:].untyped_storage()}) == 1


# -- what is refused ----------------------------------------------------------------------------------------------
FORMS = (
    "received an invalid combination of arguments - got {}, but expected one of:\n"
    " * (*, int allocator = None, torch.device device = None)\n"
    " * (int size, *, int allocator = None, torch.device device = None)\n"
    " * (object sequence, *, int allocator = None, torch.device device = None)\n"
)
ITEMS = "tried to construct a storage from a sequence ({}), but one of the items was of type {} instead of int"


@pytest.mark.parametrize(
    "args, kwargs, kind, text",
    [
        (("a",), {}, RuntimeError, ITEMS.format("str", "str")),
        (([1, 2.5],), {}, RuntimeError, ITEMS.format("list", "float")),
        ((3.5,), {}, RuntimeError, "Expected a sequence type, but got float"),
        ((True,), {}, RuntimeError, "Expected a sequence type, but got bool"),
        ((None,), {}, RuntimeError, "Expected a sequence type, but got NoneType"),
        ((1, 2), {}, TypeError, FORMS.format("(int, int)")),
        ((), {"foo": 1}, TypeError, FORMS.format("(foo=int, )")),
    ],
)
def test_arguments_that_make_no_storage(args: Any, kwargs: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as raised:
        torch.UntypedStorage(*args, **kwargs)
    assert str(raised.value).removeprefix("torch.UntypedStorage()").lstrip(": ") == text


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda s: s["a"], TypeError, "can't index a torch.UntypedStorage with str"),
        (lambda s: s[True], TypeError, "can't index a torch.UntypedStorage with bool"),
        (lambda s: s[1.5], TypeError, "can't index a torch.UntypedStorage with float"),
        (lambda s: s[4], IndexError, "index 4 out of range for storage of size 4"),
        (lambda s: s[-5], IndexError, "index -1 out of range for storage of size 4"),
        (lambda s: s[::2], RuntimeError, "Trying to slice with a step of 2, but only a step of 1 is supported"),
        (lambda s: s.__setitem__("a", 1), RuntimeError, "can't index a torch.UntypedStorage with str"),
        (
            lambda s: s.__setitem__(0, 1.5),
            RuntimeError,
            "can only set storage content with a int types, but got float instead",
        ),
        (lambda s: s.fill_("a"), RuntimeError, "fill_ expects int, but got str"),
        (lambda s: s.resize_("a"), RuntimeError, "resize_ expects an int, but got str"),
        (lambda s: s.copy_(1), TypeError, "copy_(): argument 'src' (position 1) must be torch.Storage, not int"),
        (
            lambda s: s.copy_(torch.UntypedStorage(3)),
            RuntimeError,
            "size does not match, self was 4 bytes but src was 3 bytes",
        ),
    ],
)
def test_wrong_uses_of_a_storage(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as raised:
        call(torch.UntypedStorage(4))
    assert str(raised.value) == text


@pytest.mark.parametrize("typed", (False, True))
def test_storages_without_data_cannot_be_read(typed: bool) -> None:
    t = torch.empty(5, device="meta")
    storage = t.storage() if typed else t.untyped_storage()
    for call in (lambda: storage[0], lambda: storage[1:3], lambda: storage.tolist(), lambda: list(storage)):
        with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
            call()
    storage[0] = 1
    storage.fill_(1)
    assert storage.clone().nbytes() == 20 and str(storage).startswith("...\n[torch.storage.")
    with pytest.raises(TypeError, match="cannot pin 'torch.storage.UntypedStorage' only CPU memory can be pinned"):
        storage.pin_memory()


def test_typed_storages_index_with_integers_only() -> None:
    storage = torch.ones(3).storage()
    with pytest.raises(RuntimeError, match=r"can't index a <class '\w+.storage.TypedStorage'> with <class 'str'>"):
        storage["a"]
    with pytest.raises(RuntimeError, match="slices are only supported in UntypedStorage.__getitem__"):
        storage[0:1]
    with pytest.raises(IndexError, match="index 3 out of range for storage of size 3"):
        storage[3]
    with pytest.raises(RuntimeError, match="cannot set item with value type"):
        storage[0] = storage
    assert storage.resize_(5) is None and storage.type() == "torch.FloatStorage"


def test_bytes_count_in_the_size_of_the_object() -> None:
    assert sys.getsizeof(torch.UntypedStorage(100)) - sys.getsizeof(torch.UntypedStorage(0)) == 100
    typed = [torch.ones(n)._typed_storage() for n in (25, 0)]
    assert sys.getsizeof(typed[0]) - sys.getsizeof(typed[1]) == 100


def test_a_tensor_without_elements_has_no_address() -> None:
    t = torch.ones(5)
    assert t[5:].data_ptr() == t[2:2].data_ptr() == t.expand(0, 5).data_ptr() == torch.empty(0, 3).data_ptr() == 0
    assert t[2:2].untyped_storage().data_ptr() == t.data_ptr()


@pytest.mark.parametrize("name", "bool byte char short int long half float double bfloat16 complex_float".split())
def test_bytes_become_elements(name: str) -> None:
    storage = torch.tensor([0, 1, 200], dtype=torch.uint8).untyped_storage()
    found = getattr(storage, name)()
    assert len(found) == 3 and found.dtype == getattr(torch.empty(0), name if "_" not in name else "cfloat")().dtype
    assert found.tolist()[:2] == [0, 1] and found.data_ptr() != storage.data_ptr()


@pytest.mark.parametrize("kind", ["int16", "uint8", "int64"])
def test_numpys_integers_are_sizes(kind: str) -> None:
    number = getattr(importlib.import_module("numpy"), kind)(3)
    assert torch.FloatStorage(number).size() == torch.Storage(number).size() == 3
    assert torch.UntypedStorage(number).size() == 3
