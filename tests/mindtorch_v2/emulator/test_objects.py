"""Objects, executors and the two-phase contract: what is allowed, and how each misuse is told.

Invariant: a misuse is a code, a message for the thread, and a violation that names the calls; never a crash.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from ctypes import POINTER, byref, c_char_p, c_int64, c_uint64, c_void_p
from typing import Any

import numpy as np
import pytest

from ._chips import on_chip
from ._kernels import Call, In, Out, Refused, call, device, int64s, refused

FLOAT, INT64, BOOL, ND = 0, 9, 12, 2
Handle = c_void_p


class Kit:
    """Handles and memory of one test; what it made is released at the end."""

    def __init__(self) -> None:
        self.device = device()
        self.base, self.ops, self.rt = self.device.base, self.device.ops, self.device.rt
        self.memory: list[int] = []
        self.handles: list[tuple[str, Any]] = []

    def block(self, nbytes: int = 64) -> int:
        self.memory.append(self.device.upload(b"\0" * nbytes))
        return self.memory[-1]

    def tensor(
        self,
        shape: Any = (4,),
        address: int | None = None,
        dtype: int = FLOAT,
        strides: Any = None,
        storage: int | None = None,
        offset: int = 0,
        keep: bool = True,
    ) -> Handle:
        if address is None:
            address = self.block()
        count = storage if storage is not None else int(np.prod(shape))
        made = self.base.aclCreateTensor(
            int64s(shape),
            len(shape),
            dtype,
            int64s(strides) if strides else None,
            offset,
            ND,
            int64s([count]),
            1,
            address or None,
        )
        assert made, self.device.message()
        if keep:
            self.handles.append(("Tensor", Handle(made)))
        return Handle(made)

    def scalar(self, value: int = 1) -> Handle:
        made = Handle(self.base.aclCreateScalar(byref(c_int64(value)), INT64))
        self.handles.append(("Scalar", made))
        return made

    def add(self, a: Handle, b: Handle, out: Handle) -> tuple[int, c_uint64, Handle]:
        size, executor = c_uint64(), Handle()
        code = self.ops.aclnnAddGetWorkspaceSize(a, b, self.scalar(), out, byref(size), byref(executor))
        return code, size, executor

    def executor(self) -> Handle:
        code, size, executor = self.add(self.tensor(), self.tensor(), self.tensor())
        assert (code, size.value) == (0, 0)
        return executor

    def run(self, executor: Handle, function: str = "aclnnAdd") -> int:
        return int(getattr(self.ops, function)(None, c_uint64(0), executor, None))

    def wait(self) -> int:
        return int(self.rt.aclrtSynchronizeStream(None))

    def release(self) -> None:
        for kind, handle in self.handles:
            getattr(self.base, f"aclDestroy{kind}")(handle)
        for address in self.memory:
            self.rt.aclrtFree(address)


@pytest.fixture
def kit() -> Iterator[Kit]:
    device().violations()
    made = Kit()
    yield made
    made.wait()
    made.release()
    assert device().violations() == ""


def told(*words: str) -> None:
    """Exactly one violation, with these words."""
    lines = device().violations().splitlines()
    assert len(lines) == 1, lines
    for word in words:
        assert word in lines[0], lines[0]


def live() -> int:
    count = device().control.ascendEmulatorLiveHandles
    count.restype = c_uint64
    return int(count())


# -- handles ---------------------------------------------------------------------------------------------------------
def test_a_handle_is_no_address(kit: Kit) -> None:
    value = kit.tensor().value
    assert value is not None and value >> 48


def test_double_destroy(kit: Kit) -> None:
    t = kit.tensor(keep=False)
    assert kit.base.aclDestroyTensor(t) == 0
    assert kit.base.aclDestroyTensor(t) == 561000
    told("aclDestroyTensor", "aclCreateTensor")


def test_use_after_destroy(kit: Kit) -> None:
    t = kit.tensor(keep=False)
    assert kit.base.aclDestroyTensor(t) == 0
    code, _, _ = kit.add(t, kit.tensor(), kit.tensor())
    assert code == 561103
    assert "self" in kit.device.message()
    told("aclnnAddGetWorkspaceSize", "aclDestroyTensor")


def test_wrong_kind(kit: Kit) -> None:
    assert kit.base.aclDestroyTensor(kit.scalar()) == 561000
    told("aclDestroyTensor", "aclScalar")
    code, _, _ = kit.add(kit.scalar(), kit.tensor(), kit.tensor())
    assert code == 561103
    told("aclScalar")


def test_a_list_owns_its_elements(kit: Kit) -> None:
    before = live()
    t = kit.tensor(keep=False)
    items = (c_void_p * 2)(t, None)
    made = Handle(kit.base.aclCreateTensorList(items, c_uint64(2)))
    size = c_uint64()
    assert kit.base.aclGetTensorListSize(made, byref(size)) == 0 and size.value == 2
    assert kit.base.aclDestroyTensorList(made) == 0
    assert live() == before
    assert kit.base.aclDestroyTensor(t) == 561000
    told("aclDestroyTensorList", "aclDestroyTensor")


def test_null_may_be_destroyed(kit: Kit) -> None:
    for kind in ("Tensor", "Scalar", "IntArray", "FloatArray", "BoolArray", "TensorList", "ScalarList"):
        assert getattr(kit.base, f"aclDestroy{kind}")(None) == 0


def test_what_cannot_be_made(kit: Kit) -> None:
    assert kit.base.aclCreateTensor(None, 1, FLOAT, None, 0, ND, None, 0, None) is None
    assert kit.base.aclCreateScalar(None, FLOAT) is None
    assert "null" in kit.device.message()
    assert kit.base.aclCreateScalar(byref(c_int64(1)), 13) is None


def test_an_empty_array_is_an_object(kit: Kit) -> None:
    made = Handle(kit.base.aclCreateIntArray(None, c_uint64(0)))
    kit.handles.append(("IntArray", made))
    size = c_uint64(7)
    assert kit.base.aclGetIntArraySize(made, byref(size)) == 0 and size.value == 0


def test_device_memory_is_no_host_argument(kit: Kit) -> None:
    address = kit.block()
    assert kit.base.aclCreateScalar(c_void_p(address), FLOAT) is None
    told("aclCreateScalar", "device memory")


def test_getters(kit: Kit) -> None:
    t = kit.tensor((2, 3), strides=(4, 1), storage=8, offset=1)
    for name, want in (("aclGetViewShape", [2, 3]), ("aclGetViewStrides", [4, 1]), ("aclGetStorageShape", [8])):
        values, count = POINTER(c_int64)(), c_uint64()
        assert getattr(kit.base, name)(t, byref(values), byref(count)) == 0
        assert values[: count.value] == want
        assert getattr(kit.base, name)(None, byref(values), byref(count)) == 161001
    offset = c_int64()
    assert kit.base.aclGetViewOffset(t, byref(offset)) == 0 and offset.value == 1
    address = c_void_p()
    other = kit.block()
    assert kit.base.aclSetRawTensorAddr(t, c_void_p(other)) == 0
    assert kit.base.aclGetRawTensorAddr(t, byref(address)) == 0 and address.value == other


# -- executors -------------------------------------------------------------------------------------------------------
def test_an_executor_runs_once(kit: Kit) -> None:
    e = kit.executor()
    assert kit.run(e) == 0
    assert kit.run(e) == 561000
    told("aclnnAdd", "aclnnAddGetWorkspaceSize")


def test_a_consumed_executor_is_not_destroyed(kit: Kit) -> None:
    e = kit.executor()
    assert kit.run(e) == 0
    assert kit.base.aclDestroyAclOpExecutor(e) == 561000
    told("aclDestroyAclOpExecutor", "aclnnAdd")


def test_an_executor_of_another_operator(kit: Kit) -> None:
    e = kit.executor()
    assert kit.run(e, "aclnnMul") == 561000
    told("aclnnMul", "aclnnAddGetWorkspaceSize")
    assert kit.base.aclDestroyAclOpExecutor(e) == 0


def test_an_executor_that_never_ran_is_a_leak(kit: Kit) -> None:
    before = live()
    e = kit.executor()
    buffer = ctypes.create_string_buffer(1 << 16)
    kit.device.control.ascendEmulatorLeaks(buffer, ctypes.c_size_t(len(buffer)))
    assert "aclOpExecutor" in buffer.value.decode()
    assert live() > before
    assert kit.base.aclDestroyAclOpExecutor(e) == 0
    assert kit.base.aclDestroyAclOpExecutor(None) == 561103


def test_handles_live_between_the_phases(kit: Kit) -> None:
    a = kit.tensor(keep=False)
    code, _, e = kit.add(a, kit.tensor(), kit.tensor())
    assert code == 0
    assert kit.base.aclDestroyTensor(a) == 0
    kit.run(e)
    told("self", "destroyed between the two phases", "aclDestroyTensor")


def test_handles_may_go_after_phase_2(kit: Kit) -> None:
    a = kit.tensor(keep=False)
    code, _, e = kit.add(a, kit.tensor(), kit.tensor())
    assert (code, kit.run(e)) == (0, 0)
    assert kit.base.aclDestroyTensor(a) == 0
    assert kit.wait() == 0


def test_a_repeatable_executor(kit: Kit) -> None:
    x, y = (kit.device.upload(np.full(4, v, np.float32).tobytes()) for v in (1, 5))
    out = kit.device.upload(b"\0" * 16)
    kit.memory += [x, y, out]
    a = kit.tensor(address=x)
    code, _, e = kit.add(a, kit.tensor(address=x), kit.tensor(address=out))
    assert code == 0
    assert kit.base.aclSetAclOpExecutorRepeatable(e) == 0
    assert [kit.run(e), kit.run(e), kit.wait()] == [0, 0, 0]
    assert kit.base.aclSetInputTensorAddr(e, ctypes.c_size_t(1), a, c_void_p(y)) == 0
    assert kit.base.aclSetInputTensorAddr(e, ctypes.c_size_t(7), a, c_void_p(y)) == 161002
    assert kit.base.aclSetInputTensorAddr(None, ctypes.c_size_t(0), a, c_void_p(y)) == 561103
    assert [kit.run(e), kit.wait()] == [0, 0]
    np.testing.assert_array_equal(np.frombuffer(kit.device.download(out, 16), np.float32), 6)
    assert kit.base.aclDestroyAclOpExecutor(e) == 0
    assert kit.base.aclSetAclOpExecutorRepeatable(None) == 561103


# -- phase 1 ---------------------------------------------------------------------------------------------------------
X = np.ones((2, 3), np.float32)


def test_null_is_161001() -> None:
    for name in ("self", "other", "alpha", "out"):
        arguments: dict[str, Any] = dict(self=X, other=X, alpha=1, out=Out((2, 3)))
        arguments[name] = None
        assert refused("aclnnAdd", **arguments) == 161001


def test_results_of_phase_1_must_have_a_place(kit: Kit) -> None:
    t = kit.tensor()
    executor = Handle()
    assert kit.ops.aclnnAddGetWorkspaceSize(t, t, kit.scalar(), kit.tensor(), None, byref(executor)) == 161001


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("aclnnAdd", dict(self=X, other=X, alpha=1, out=Out((3, 2)))),
        ("aclnnAdd", dict(self=X, other=np.ones((4,), np.float32), alpha=1, out=Out((2, 3)))),
        ("aclnnAdd", dict(self=X.astype(np.uint16), other=X, alpha=1, out=Out((2, 3)))),
        ("aclnnAdd", dict(self=X, other=X, alpha=1, out=Out((2, 3), "bool"))),
        ("aclnnAdd", dict(self=np.ones((1,) * 9, np.float32), other=X, alpha=1, out=Out((1,) * 7 + (2, 3)))),
        ("aclnnAdd", dict(self=In(X, "NCHW"), other=X, alpha=1, out=Out((2, 3)))),
        ("aclnnMatmul", dict(self=X, mat2=X, out=Out((2, 3)), cubeMathType=0)),
        (
            "aclnnAvgPool2d",
            dict(
                self=np.ones((1, 1, 4, 4), np.float32),
                kernelSize=[2, 2],
                strides=[2, 2],
                paddings=[0, 0],
                ceilMode=False,
                countIncludePad=True,
                divisorOverride=0,
                cubeMathType=0,
                out=Out((1, 1, 2, 2)),
            ),
        ),
        ("aclnnReduceSum", dict(self=X, dims=[0, 0], keepDims=False, dtype="float32", out=Out((3,)))),
    ],
)
def test_what_the_documents_exclude_is_161002(function: str, arguments: dict[str, Any]) -> None:
    assert refused(function, **arguments) == 161002


def test_a_view_outside_its_storage_is_561103(kit: Kit) -> None:
    code, _, _ = kit.add(kit.tensor((2, 2), strides=(8, 1), storage=4), kit.tensor((2, 2)), kit.tensor((2, 2)))
    assert code == 561103
    assert "ViewShape overlap" in kit.device.message()


def test_a_failed_phase_1_leaves_nothing(kit: Kit) -> None:
    a, b, out = kit.tensor(), kit.tensor(), kit.tensor((5,))
    scalar = kit.scalar()
    before = live()
    size, executor = c_uint64(), Handle()
    assert kit.ops.aclnnAddGetWorkspaceSize(a, b, scalar, out, byref(size), byref(executor)) == 161002
    assert live() == before and not executor.value


def test_messages_are_per_thread_and_read_once(kit: Kit) -> None:
    assert kit.add(kit.tensor(), kit.tensor(), kit.tensor((5,)))[0] == 161002
    seen: list[str] = []
    thread = threading.Thread(target=lambda: seen.append(kit.device.message()))
    thread.start()
    thread.join()
    assert seen == [""]
    assert "AclNN_Parameter_Error" in kit.device.message()
    assert kit.device.message() == ""


# -- phase 2 ---------------------------------------------------------------------------------------------------------
def strided(kit: Kit) -> tuple[c_uint64, Handle]:
    a = kit.tensor((2, 2), strides=(1, 2), storage=4)
    code, size, executor = kit.add(a, kit.tensor((2, 2)), kit.tensor((2, 2)))
    assert code == 0 and size.value > 0
    return size, executor


def test_a_strided_input_needs_workspace(kit: Kit) -> None:
    size, e = strided(kit)
    assert kit.ops.aclnnAdd(None, size, e, None) == 161001
    assert not device().violations()
    size, e = strided(kit)
    assert kit.ops.aclnnAdd(c_void_p(kit.block()), c_uint64(8), e, None) == 161002
    size, e = strided(kit)
    assert kit.ops.aclnnAdd(c_void_p(kit.block(int(size.value))), size, e, None) == 0
    assert kit.wait() == 0


def test_workspace_is_device_memory(kit: Kit) -> None:
    size, e = strided(kit)
    host = ctypes.create_string_buffer(4096)
    assert kit.ops.aclnnAdd(host, size, e, None) == 361001
    told("workspace")


def test_workspace_is_overwritten(kit: Kit) -> None:
    size, e = strided(kit)
    scratch = kit.block(int(size.value))
    assert kit.ops.aclnnAdd(c_void_p(scratch), size, e, None) == 0
    assert kit.wait() == 0
    assert kit.device.download(scratch, 4) != b"\0\0\0\0"


def test_host_memory_is_no_tensor(kit: Kit) -> None:
    host = ctypes.create_string_buffer(64)
    code, _, e = kit.add(kit.tensor(address=ctypes.addressof(host)), kit.tensor(), kit.tensor())
    assert code == 0
    assert kit.run(e) == 361001
    told("host-pointer", "self")


def test_an_output_shares_no_memory_with_an_input(kit: Kit) -> None:
    address = kit.block()
    code, _, e = kit.add(kit.tensor(address=address), kit.tensor(), kit.tensor(address=address))
    assert (code, kit.run(e)) == (0, 0)
    told("alias", "out", "self")


def test_interleaved_views_are_apart(kit: Kit) -> None:
    address = kit.block()
    even = kit.tensor((2,), address, strides=(2,), storage=4)
    odd = kit.tensor((2,), address, strides=(2,), storage=4, offset=1)
    code, size, e = kit.add(even, kit.tensor((2,)), odd)
    assert code == 0
    assert kit.ops.aclnnAdd(c_void_p(kit.block(int(size.value))), size, e, None) == 0


def test_a_tensor_beyond_its_memory_faults_at_the_next_wait(kit: Kit) -> None:
    address = kit.block(64)
    code, _, e = kit.add(
        kit.tensor((4096,), address), kit.tensor((4096,), kit.block(1 << 14)), kit.tensor((4096,), kit.block(1 << 14))
    )
    assert (code, kit.run(e)) == (0, 0)
    assert kit.wait() == 507015
    assert "aclnnAdd" in kit.device.message()


def test_without_a_context(kit: Kit) -> None:
    e = kit.executor()
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(kit.run(e)))
    thread.start()
    thread.join()
    assert codes == [361001]


def test_phases_on_two_threads(kit: Kit) -> None:
    e = kit.executor()
    codes: list[int] = []

    def work() -> None:
        kit.rt.aclrtSetDevice(0)
        codes.append(kit.run(e))
        kit.rt.aclrtResetDevice(0)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert codes == [0]


def test_the_shape_of_a_dynamic_output() -> None:
    got = call("aclnnNonzero", self=np.array([[0, 2, 0], [1, 0, 3]], np.int32), out=Out((6, 2), "int64"))
    np.testing.assert_array_equal(got, [[0, 1], [1, 0], [1, 2]])


# -- faults ----------------------------------------------------------------------------------------------------------
def test_injected_faults(kit: Kit) -> None:
    control = kit.device.control
    a, b, out, scalar = kit.tensor(), kit.tensor(), kit.tensor(), kit.scalar()
    for spec, codes in (
        ("aclnnAddGetWorkspaceSize:1:561103", (561103, None, 0)),
        ("aclnnAdd:1:561000", (0, 561000, 0)),
        ("aclnnAdd:1:507015:async", (0, 0, 507015)),
    ):
        before = live()
        assert control.ascendEmulatorSetFault(c_char_p(spec.encode())) == 0
        size, e = c_uint64(), Handle()
        assert kit.ops.aclnnAddGetWorkspaceSize(a, b, scalar, out, byref(size), byref(e)) == codes[0]
        if codes[1] is not None:
            assert kit.run(e) == codes[1]
        assert kit.wait() == codes[2]
        control.ascendEmulatorClearFaults()
        assert live() == before, spec
        assert kit.device.message()


def test_a_failed_creation_is_null(kit: Kit) -> None:
    kit.device.control.ascendEmulatorSetFault(c_char_p(b"aclCreateTensor:1:500000"))
    assert kit.base.aclCreateTensor(None, 0, FLOAT, None, 0, ND, None, 0, None) is None
    kit.device.control.ascendEmulatorClearFaults()


# -- chips -----------------------------------------------------------------------------------------------------------
def on_910a() -> None:
    import ml_dtypes

    half = X.astype(ml_dtypes.bfloat16)
    assert refused("aclnnAdd", self=half, other=half, alpha=1, out=Out((2, 3), "bfloat16")) == 161002
    assert refused("aclnnMatmul", self=X, mat2=X.T.copy(), out=Out((2, 2)), cubeMathType=0) == 161002
    call("aclnnMatmul", self=X, mat2=X.T.copy(), out=Out((2, 2)), cubeMathType=1)


def on_310p() -> None:
    call("aclnnAdd", self=X, other=X, alpha=1, out=Out((2, 3)))


def quantized(code: int, name: str) -> int:
    """What the function answers that takes 8-bit floats on the newest chip only; 0 where it computes."""
    outs = {"yOut": Out((2, 3), name), "scaleOut": Out((2,))}
    try:
        call("aclnnDynamicQuantV2", x=X.astype(np.float16), dstType=code, **outs, offsetOut=Out((2,)))
    except Refused as refusal:
        return refusal.code
    return 0


def on_950() -> None:
    import ml_dtypes

    half = X.astype(ml_dtypes.bfloat16)
    call("aclnnAdd", self=half, other=half, alpha=1, out=Out((2, 3), "bfloat16"))
    call("aclnnMatmul", self=X, mat2=X.T.copy(), out=Out((2, 2)), cubeMathType=0)
    assert quantized(36, "float8_e4m3fn") == 0
    picture, few = In(np.ones((2, 3, 4, 4), np.float32), "NCHW"), Out((2, 3, 1, 1), format="NCHW")
    with pytest.raises(Refused, match="not supported on this chip .950.; documents list 310P"):
        call(
            "aclnnInstanceNorm", x=picture, gamma=np.ones(3, np.float32), beta=np.ones(3, np.float32),
            dataFormat="NCHW", eps=1e-5, y=Out((2, 3, 4, 4), format="NCHW"), mean=few, variance=few,
        )  # fmt: skip


def test_the_newest_chip_alone_takes_small_floats_there() -> None:
    assert quantized(36, "float8_e4m3fn") == 161002
    assert quantized(2, "int8") == 0


@pytest.mark.parametrize(("chip", "check"), [("910A", on_910a), ("310P", on_310p), ("310B", on_310p), ("950", on_950)])
def test_a_chip_refuses_what_it_lacks(chip: str, check: Any) -> None:
    on_chip(chip, check)


def test_every_function_has_a_kernel_and_a_fact() -> None:
    """The exported names come from the sources; each answers something else than 'no kernel' to a call of nulls."""
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "csrc" / "ascend_emulator"))
    from generate import implemented

    names = implemented()
    assert len(names) >= 450
    Call()
    for name in names:
        assert getattr(device().ops, name + "GetWorkspaceSize") and getattr(device().ops, name)
