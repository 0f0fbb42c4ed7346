"""The launcher and the vocabulary of lines: what reaches the vendor, what is kept, what a wrong line says."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _native
from mindtorch_v2._backends.npu import aclnn, kernels, launch, lines, load, table
from mindtorch_v2._backends.npu.acl_loader import ensure_acl
from mindtorch_v2._dispatch import registry

from .. import _npu


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    _npu.start()
    load.load_kernels()


# -- packing -----------------------------------------------------------------------------------------------------------


def packed(t: Any, function: str = "aclnnAdd", parameter: int = 0) -> dict[str, Any]:
    """A tensor as the vendor has it."""
    acl, api, f = ensure_acl(), launch.api(), launch.resolve(function)
    shape, strides, code, offset, form, nbytes, item, address = launch.description(f, t, f.lifted[parameter])
    rank, count = len(shape), ctypes.c_int64(nbytes // item)
    steps = None if strides is None else (ctypes.c_int64 * rank)(*strides)
    dims = (ctypes.c_int64 * rank)(*shape)
    handle = acl.aclCreateTensor(dims, rank, code, steps, offset, form, ctypes.byref(count), 1, address)

    def sizes(read: Any) -> tuple[int, ...]:
        pointer, count = ctypes.c_void_p(), ctypes.c_uint64()
        assert read(handle, ctypes.byref(pointer), ctypes.byref(count)) == 0
        found = tuple((ctypes.c_int64 * count.value).from_address(pointer.value)) if count.value else ()
        if pointer.value:
            api.delete_array(pointer)
        return found

    def number(read: Any, kind: Any) -> Any:
        out = kind()
        assert read(handle, ctypes.byref(out)) == 0
        return out.value

    try:
        return {
            "dims": sizes(acl.aclGetViewShape),
            "stride": sizes(acl.aclGetViewStrides),
            "storage": sizes(acl.aclGetStorageShape),
            "offset": number(acl.aclGetViewOffset, ctypes.c_int64),
            "dtype": number(acl.aclGetDataType, ctypes.c_int32),
            "format": number(acl.aclGetFormat, ctypes.c_int32),
            "data": number(acl.aclGetRawTensorAddr, ctypes.c_void_p),
        }
    finally:
        acl.aclDestroyTensor(handle)


def test_a_view_is_described_by_its_storage() -> None:
    base = torch.zeros(4, 6, device="npu")
    view = base[1:, 2:].t()
    got = packed(view)
    assert got == {
        "dims": (4, 3),
        "dtype": 0,
        "stride": (1, 6),
        "offset": 8,
        "format": 2,
        "storage": (24,),
        "data": base.data_ptr(),
    }


def test_a_part_of_a_row_major_tensor_keeps_the_base_pointer() -> None:
    base = torch.zeros(4, 6, dtype=torch.int64, device="npu")
    assert packed(base[2:]) == {
        "dims": (2, 6),
        "dtype": 9,
        "stride": (6, 1),
        "offset": 12,
        "format": 2,
        "storage": (24,),
        "data": base.data_ptr(),
    }
    whole = packed(base)
    assert (whole["dims"], whole["stride"], whole["offset"]) == ((4, 6), (6, 1), 0)
    assert whole["storage"] in ((24,), (4, 6))


def test_a_0_dim_tensor_is_lifted_where_the_documents_ask_for_dimensions() -> None:
    assert packed(torch.tensor(1.0, device="npu"))["dims"] == ()
    assert packed(torch.tensor(1.0, device="npu"), "aclnnInplaceCopy")["dims"] == (1,)


def test_formats_follow_the_rank_where_the_documents_ask_for_channels() -> None:
    name = next(n for n in table.names() if table.signature(n).channels and aclnn.symbols_ok(n))
    for rank, fmt in ((2, 35), (3, 47), (4, 0), (5, 30)):
        assert packed(torch.zeros((2,) * rank, device="npu"), name)["format"] == fmt


@pytest.mark.parametrize(
    ("value", "letters", "code"),
    [
        (True, "", 12),
        (3, "", 9),
        (2**63, "", 10),
        (0.5, "", 11),
        (1j, "", 17),
        (3, "f4", 3),
        (3, "f", 0),
        (0.5, "fh", 0),
        (1j, "F", 16),
        (True, "f8", 9),
        (2**40, "f4", 0),
    ],
)
def test_a_number_is_passed_in_a_dtype_the_function_is_documented_for(value: Any, letters: str, code: int) -> None:
    p = table.Param(table.SCALAR, "x", False, False, True, False, False, letters)
    assert launch.scalar_dtype(value, p) == code


# -- what is kept ------------------------------------------------------------------------------------------------------


@_npu.emulator_only
def test_recurring_scalars_and_arrays_are_made_once(emulator: _npu.Emulator) -> None:
    a = torch.ones(3, device="npu")
    launch.release_caches()
    for _ in range(5):
        a + 2.5, a.sum(0)
    kept = launch.cached_handles()
    before = emulator.calls("aclCreateScalar"), emulator.calls("aclCreateIntArray")
    for _ in range(5):
        a + 2.5, a.sum(0)
    assert (emulator.calls("aclCreateScalar"), emulator.calls("aclCreateIntArray")) == before
    assert launch.cached_handles() == kept


@_npu.emulator_only
def test_launches_of_one_step_do_not_push_each_other_out(emulator: _npu.Emulator) -> None:
    """Whatever their addresses hash to: after a few rounds every launch is its second phase."""
    launch.release_caches()
    tensors = [torch.zeros(128 + n, device="npu") for n in range(150)]
    for _ in range(4):
        for t in tensors:
            t.add_(1.0)
    torch.npu.synchronize()
    before = emulator.calls("aclnnInplaceAdds"), emulator.calls("aclCreateTensor"), emulator.calls()
    for t in tensors:
        t.add_(1.0)
    after = emulator.calls("aclnnInplaceAdds"), emulator.calls("aclCreateTensor"), emulator.calls()
    assert [a - b for a, b in zip(after, before)] == [150, 0, 150]
    assert all(t[0].item() == 5.0 for t in tensors[::50])


@_npu.emulator_only
def test_a_launch_that_recurs_is_its_second_phase(emulator: _npu.Emulator) -> None:
    launch.release_caches()
    a, b, out = torch.arange(4.0, device="npu"), torch.ones(4, device="npu"), torch.zeros(4, device="npu")
    for _ in range(3):
        torch.add(a, b, out=out)
    before = emulator.calls(), emulator.calls("aclnnAdd")
    for _ in range(5):
        torch.add(a, b, out=out)
    assert (emulator.calls() - before[0], emulator.calls("aclnnAdd") - before[1]) == (5, 5)
    # What is read is what stands there now, and nothing else looks alike.
    a.mul_(3)
    assert torch.add(a, b, out=out).tolist() == [1.0, 4.0, 7.0, 10.0]
    assert torch.add(a, b, alpha=2, out=out).tolist() == [2.0, 5.0, 8.0, 11.0]
    assert torch.add(a.view(2, 2).t(), b.view(2, 2), out=out.view(2, 2)).tolist() == [[1.0, 7.0], [4.0, 10.0]]
    assert torch.add(a, b, out=out).tolist() == [1.0, 4.0, 7.0, 10.0]
    assert launch.cached_handles() > 0
    torch.npu.empty_cache()
    assert _native.vendor_kept() == 0
    assert torch.add(a, b, out=out).tolist() == [1.0, 4.0, 7.0, 10.0]


@_npu.emulator_only
def test_executors_run_once_where_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert launch.Api().make_repeatable != 0
    monkeypatch.setenv("MINDTORCH_NPU_REPEAT", "0")
    assert launch.Api().make_repeatable == 0


def test_zeros_of_both_signs_and_nan_are_told_apart() -> None:
    a = torch.ones(1, device="npu")
    for value in (0.0, -0.0, float("nan"), 0, False):
        assert repr((a * value).tolist()) == repr((torch.ones(1) * value).tolist())


@_npu.emulator_only
def test_the_caches_are_bounded(emulator: _npu.Emulator) -> None:
    a = torch.ones(1, device="npu")
    torch.npu.synchronize()
    before = emulator.live_handles() - launch.cached_handles()
    for i in range(2000):
        a + (i + 0.5)
    assert launch.cached_handles() <= 1024
    assert emulator.live_handles() == before + launch.cached_handles()


def test_threads_launch_at_once() -> None:
    wrong: list[Any] = []

    def work(k: int) -> None:
        try:
            for i in range(40):
                t = torch.full((17,), float(k), device="npu") * (i + 0.25) + k
                if t.tolist() != [k * (i + 0.25) + k] * 17:
                    wrong.append((k, i))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_tensors_of_two_devices_are_refused() -> None:
    if torch.npu.device_count() < 2:
        return
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device.*npu:0 and npu:1"):
        torch.ones(2, device="npu:0") + torch.ones(2, device="npu:1")


# -- memory that is read and written -----------------------------------------------------------------------------------


@_npu.emulator_only
def test_writing_into_an_operand_uses_the_function_made_for_it(emulator: _npu.Emulator) -> None:
    a = torch.ones(3, device="npu")
    before = emulator.calls("aclnnInplaceAdd"), emulator.calls("aclnnAdd")
    a.add_(torch.ones(3, device="npu"))
    assert (emulator.calls("aclnnInplaceAdd"), emulator.calls("aclnnAdd")) == (before[0] + 1, before[1])
    # An operand that is also another operand is nothing the vendor promises to handle.
    a.add_(a)
    assert (emulator.calls("aclnnInplaceAdd"), emulator.calls("aclnnAdd")) == (before[0] + 1, before[1] + 1)
    assert a.tolist() == [4.0, 4.0, 4.0]


@_npu.emulator_only
def test_out_is_written_directly(emulator: _npu.Emulator) -> None:
    a, out = torch.ones(3, device="npu"), torch.empty(3, device="npu")
    copies = emulator.calls("aclrtMemcpyAsync"), emulator.calls("aclnnInplaceCopy")
    torch.add(a, a, out=out)
    assert (emulator.calls("aclrtMemcpyAsync"), emulator.calls("aclnnInplaceCopy")) == copies
    assert out.tolist() == [2.0, 2.0, 2.0]


@_npu.emulator_only
def test_results_without_elements_are_not_launched_for(emulator: _npu.Emulator) -> None:
    a = torch.ones(0, 3, device="npu")
    before = emulator.calls("aclnnAdd")
    assert (a + a).shape == (0, 3)
    assert emulator.calls("aclnnAdd") == before
    assert a.sum().item() == 0.0 and a.sum(0).tolist() == [0.0, 0.0, 0.0]


# -- lines -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("aclnnAbs(selff, out)", {}, "'selff' is no argument; names: self, out"),
        ("aclnnAbs(self)", {}, "aclnnAbs takes 2 parameters (self, out), got 1"),
        ("aclnnNothing(self, out)", {}, "aclnnNothing has no line in table.py"),
        ("aclnnAbs(nothing(self), out)", {}, "no helper is called 'nothing'; helpers:"),
        ("aclnnAbs(out, self)", {}, "parameter self is not written, but a result is passed"),
        ("aclnnAbs(self, out) more", {}, "nothing may follow the call"),
        ("aclnnAbs(self, out", {}, "unexpected end"),
        ("aclnnAbs(self, @)", {}, "cannot read"),
        ("aclnnAbs(self, out)", {"cast": ("other",)}, "names ['other']; arguments: ['self']"),
        ("aclnnAbs(self, out)", {"numbers": {"x": "aclnnAbs(self, out)"}}, "numbers= names 'x'"),
    ],
)
def test_a_wrong_line_says_which_names_exist(text: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError) as caught:
        lines.line(text, **options).bind(registry.get("abs"))
    assert says in str(caught.value) and "abs" in str(caught.value)


def test_a_line_of_no_row_is_refused() -> None:
    with pytest.raises(KeyError, match="no operator is called 'nothing'"):
        lines.npu("nothing", "aclnnAbs(self, out)")


def test_every_row_is_served_or_declared_missing() -> None:
    assert lines.holes() == []


def test_a_missing_operator_names_itself_and_the_reason() -> None:
    op = registry.get("abs")
    with pytest.raises(NotImplementedError, match="'abs' is not available on NPU: no reason"):
        kernels.Missing("no reason").run(op, (torch.ones(1, device="npu"),), 4)


@pytest.mark.parametrize(
    ("dtype", "letters", "found"),
    [
        ("float32", "", "float32"),
        ("float32", "fh", "float32"),
        ("float16", "f", "float32"),
        ("uint8", "f48", "int32"),
        ("int64", "f4", None),
        ("int32", "fh", None),
        ("bool", "1f", "int8"),
        ("float64", "fh", None),
        ("complex64", "f", None),
    ],
)
def test_the_nearest_dtype_holds_every_value(dtype: str, letters: str, found: str | None) -> None:
    got = kernels.nearest(getattr(torch, dtype), table.mask_of(letters))
    assert (None if got is None else got.name) == found


def test_cpu_scalars_stand_beside_npu_tensors() -> None:
    a = torch.arange(3.0, device="npu")
    assert (a + torch.tensor(1.5)).tolist() == [1.5, 2.5, 3.5]
    assert (torch.tensor(2) * a).tolist() == [0.0, 2.0, 4.0]
    assert torch.where(a > 1, a, torch.tensor(7.0)).tolist() == [7.0, 7.0, 2.0]
    with pytest.raises(RuntimeError, match="device"):
        a + torch.ones(3)


def test_cpu_tensors_index_npu_tensors() -> None:
    a = torch.arange(6.0, device="npu").view(2, 3)
    assert a[torch.tensor([1, 0])].tolist() == [[3.0, 4.0, 5.0], [0.0, 1.0, 2.0]]
    assert a[:, torch.tensor([True, False, True])].tolist() == [[0.0, 2.0], [3.0, 5.0]]
    a[torch.tensor([0])] = 5.0
    assert a.tolist() == [[5.0, 5.0, 5.0], [3.0, 4.0, 5.0]] and a._version == 1
    x = torch.zeros(3, device="npu", requires_grad=True)
    x[torch.tensor([1, 1])].sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 0.0]
    with pytest.raises(RuntimeError, match="indices should be either on cpu or on the same device as the indexed"):
        torch.zeros(3)[torch.tensor([1], device="npu")]


def test_filling_more_than_eight_dimensions() -> None:
    made = torch.ones([2] * 9, device="npu")
    assert made.cpu().numpy().sum() == 2**9
    made.transpose(0, 8).fill_(3)
    assert made.cpu().numpy().sum() == 3 * 2**9
    assert torch.full([1] * 65, 2, device="npu").item() == 2
    with pytest.raises(RuntimeError, match="only tensors with up to 64 dims are supported"):
        torch.softmax(torch.zeros([1] * 65, device="npu"), 0)


def test_cpu_scalars_in_a_composed_operator() -> None:
    """The vendor's function takes no complex numbers, and the operators that replace it want tensors."""
    z = torch.ones(3, dtype=torch.complex64)
    for given in (torch.tensor(2), torch.tensor(1.5), torch.tensor(1 + 2j)):
        for pair in ((given, z), (z, given)):
            there = torch.logaddexp(*(t if t is given else t.to("npu") for t in pair))
            assert there.device.type == "npu"
            torch.testing.assert_close(there.cpu(), torch.logaddexp(*pair))


def test_more_than_eight_dimensions_are_joined() -> None:
    plain = torch.arange(2.0**10).view((2,) * 10)
    a = plain.npu()
    assert (a + 1).tolist() == (plain + 1).tolist()
    turned = a.permute(9, *range(9))
    assert (turned * turned).tolist() == (plain * plain).permute(9, *range(9)).tolist()
    assert torch.where(a > 5, a, 0).tolist() == torch.where(plain > 5, plain, 0).tolist()
    b = a.clone()
    b.add_(a)
    assert b.tolist() == (plain * 2).tolist()
    with pytest.raises(RuntimeError, match="add: tensors of 10 dimensions that cannot be joined to 8.*aclnnAdd"):
        a + a.permute(*range(9, -1, -1))
