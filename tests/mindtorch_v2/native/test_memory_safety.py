"""Calls that try to make the native module touch memory it does not own: sizes that wrap, indices that change while
they are read, results that share memory with what they are computed from, storages whose address was given away.

Invariant: a call that could end the process runs in a child, so that a failure here is a report and not the end.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import _native

from .._npu import start

SHARED = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)
FIXED = "^Trying to resize storage that is not resizable$"
I64 = 4
F32 = 6


def survives(code: str, seconds: int = 120) -> str:
    """Runs statements in a child and returns what they print; a child that dies of a signal fails the test."""
    head = "import mindtorch_v2 as torch, numpy as np\nimport mindtorch_v2.nn.functional as F\n"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", head + code], capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, f"{code}\n{done.returncode}\n{done.stderr[-3000:]}"
    return done.stdout


def outcomes(calls: list[str], before: str = "") -> dict[str, str]:
    """What each call ends with, "ok" or its error; one child makes them all, and names each before it is made."""
    body = [before, f"for call in {calls!r}:", "    print('>', call, flush=True)", "    try:"]
    body += ["        exec(call)", "        print('ok')", "    except Exception as e:"]
    body += ["        print(type(e).__name__ + ': ' + str(e).splitlines()[0])"]
    said = survives("\n".join(body) + "\n", 300).split("> ")[1:]
    return dict(part.strip().rsplit("\n", 1) for part in said)


# -- sizes that do not fit 64 bits ------------------------------------------------------------------------------------
WRAPPING = [
    "torch.eye(2**61 + 1, 8)",
    "torch.eye(2**62, 3)",
    "F.fold(torch.ones(1, 240, 1), (2**61 + 1, 8), (30, 8), stride=2**61)",
    "torch.cat([torch.zeros(1).expand(2**62)] * 4 + [torch.ones(3)])",
    "torch.ones(1, 1, dtype=torch.int8).expand(1, 2**62).mm(torch.ones(1, 1, dtype=torch.int8).expand(2**62, 1))",
    "torch.ones(1, 1).expand(1, 2**62).mm(torch.ones(1, 1).expand(2**62, 1))",
    "torch.zeros(4, 1, dtype=torch.float16).index_add(0, torch.zeros(1, dtype=torch.int64).expand(2**62), "
    "torch.ones(1, 1, dtype=torch.float16).expand(2**62, 1))",
    "torch.zeros(4, dtype=torch.float16).scatter_add(0, torch.zeros(1, dtype=torch.int64).expand(2**62), "
    "torch.ones(1, dtype=torch.float16).expand(2**62))",
    "torch.ones(1, 1).expand(2**32, 1).mm(torch.ones(1, 1).expand(1, 2**32))",
    "F.embedding(torch.zeros(8, dtype=torch.int64), torch.ones(1, 1).expand(1, 2**61 + 1))",
    "torch.zeros(1).expand(2**62) + 1",
    "torch.zeros(1, dtype=torch.float64).expand(2**61 + 1) * 2",
    "torch.arange(2**62)",
    "torch.zeros(1).expand(2**61 + 1).index_select(0, torch.zeros(1, dtype=torch.int64).expand(2**62))",
    "torch.zeros(1).expand(2**62).softmax(0)",
    "torch.zeros(1).expand(2**62).cumsum(0)",
    "torch.zeros(1).expand(2**61, 1).sum(1)",
    "torch.zeros(1).expand(2**62).sort()",
    "torch.zeros(1).expand(2**62).bernoulli()",
    "F.avg_pool2d(torch.ones(1, 1, 4, 4, dtype=torch.int64), 2**32, padding=2**31)",
    "F.conv_transpose2d(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2), dilation=2**62)",
]


def test_a_size_that_wraps_is_an_error() -> None:
    for call, outcome in outcomes(WRAPPING).items():
        assert "Error: " in outcome, call


def test_the_error_of_a_size_that_wraps() -> None:
    words = r"^Storage size calculation overflowed with sizes=\[4611686018427387904"
    with pytest.raises(RuntimeError, match=words + r"\]$"):
        torch.zeros(1).expand(2**62) + 1
    with pytest.raises(RuntimeError, match=words + r", 3\]$"):
        _native.eye(None, F32, 2**62, 3)


def test_kernels_multiply_with_checks() -> None:
    """What no rule lets through, a kernel refuses by itself."""
    one = _native.Storage(8)
    triple = (1, 1, 2**61)
    unit = (1, 1, 1)
    for args in (
        (one, 0, F32, one, 0, F32, 8, 1, unit, triple, unit, unit, (0, 0, 0), unit),
        (one, 0, F32, one, 0, F32, 2**32, 2**32, unit, unit, unit, unit, (0, 0, 0), unit),
        (one, 0, F32, one, 0, F32, 1, 1, unit, unit, unit, (1, 1, 0), (0, 0, 0), unit),
        (one, 0, F32, one, 0, F32, 1, 1, unit, unit, unit, unit, (0, 0, -(2**62)), unit),
    ):
        with pytest.raises((RuntimeError, ValueError)):
            _native.im2col(*args)
        with pytest.raises((RuntimeError, ValueError)):
            _native.col2im(*args)
    with pytest.raises(RuntimeError):
        _native.item(one, 2**61, I64)
    with pytest.raises(RuntimeError):
        _native.dot(one, 0, 2**62, one, 0, 1, 4, F32, None, 0)
    with pytest.raises(RuntimeError):
        _native.layer_norm(one, 0, (), F32, *(None,) * 8, None, 0, (), F32, *(None,) * 8, 2**33, 2**33, 0.1)
    with pytest.raises(RuntimeError):
        _native.random_permutation(torch.Generator()._state, one, I64, 2**61)


def test_integer_means_do_not_trap() -> None:
    one = _native.Storage(8)
    unit = (1, 1, 1)
    with pytest.raises(RuntimeError, match="^ZeroDivisionError$"):
        _native.pool_mean(one, 0, I64, one, 0, I64, 1, unit, unit, (0, 0, 0), unit, (2**32, 2**32, 1), 0)
    least = -(2**63)
    got = F.avg_pool2d(torch.full((1, 1, 2, 2), least, dtype=torch.int64), 1, divisor_override=-1)
    assert got.flatten().tolist() == [least] * 4


# -- memory shared with the result ------------------------------------------------------------------------------------
INDEXED = [
    "x.scatter_(0, x, 2**40)",
    "x.scatter_(0, x, ones)",
    "x.scatter_(0, x, ones, reduce='add')",
    "x.scatter_add_(0, x, ones)",
    "x.scatter_add_(0, order, x)",
    "x.scatter_reduce_(0, x, ones, 'sum')",
    "x.scatter_reduce_(0, order, x, 'amax')",
    "x.index_add_(0, x, ones)",
    "x.index_add_(0, order, x)",
    "x.index_copy_(0, x, ones)",
    "x.index_copy_(0, order, x)",
    "x.index_fill_(0, x, 7)",
    "x.index_reduce_(0, x, ones, 'amax')",
    "x.index_put_((x,), ones)",
    "x.index_put_((order,), b[1:5])",
    "x.put_(x, ones)",
    "x.put_(order, x)",
    "torch.gather(x, 0, order, out=b[1:5])",
    "torch.index_select(x, 0, order, out=x)",
    "torch.take(ones, x, out=x)",
    "torch.scatter(ones, 0, x, 1, out=x)",
    "torch.index_add(ones, 0, x, ones, out=x)",
    "torch.cat([x[:2], ones[:2]], out=x)",
    "torch.stack([x[0], ones[0]], out=b[0:2])",
    "torch.masked_select(x, x > 0, out=x)",
    "torch.nonzero(x, out=b[0:3].view(3, 1))",
    "torch.topk(x, 2, out=(b[0:2], order))",
    "x.copy_(b[1:5])",
    "x.add_(b[1:5])",
]


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("call", INDEXED)
def test_a_result_that_shares_memory_with_an_index_or_a_source(call: str, device: str) -> None:
    if device == "npu":
        start()
    b = torch.tensor([1, 0, 2, 3, 1, 0, 2, 3], device=device)
    names: dict[str, Any] = {
        "torch": torch,
        "b": b,
        "x": b[0:4],
        "ones": torch.ones(4, dtype=torch.int64, device=device),
        "order": torch.arange(4, device=device),
    }
    before = b.tolist()
    with pytest.raises(RuntimeError) as error:
        exec(call, names)
    assert str(error.value) == SHARED
    assert b.tolist() == before


def test_what_may_share_memory_is_still_computed_from_the_old_values() -> None:
    b = torch.arange(16.0)
    x = b.view(4, 4).clone()
    y = x.clone()
    assert torch.equal(torch.mm(x, y, out=x), y @ y)
    x = y.clone()
    assert torch.equal(x.addmm_(x.t(), y), y + y.t() @ y)
    x = y.clone()
    assert torch.equal(torch.sum(x, 0, out=x[1]), y.sum(0))


# -- indices that change while they are read --------------------------------------------------------------------------
RACE = """
import threading
n = 100_000
rows = torch.ones(50, 16)
index = torch.zeros(n, dtype=torch.int64)
view = index.numpy()
def disturb():
    while True:
        view[:] = 0
        view[::7] = 2**40
other = threading.Thread(target=disturb, daemon=True)
other.start()
"""
RACING = [
    "torch.ones(50).gather(0, index)",
    "rows.index_select(0, index)",
    "F.embedding(index, rows)",
    "rows[index]",
    "torch.zeros(50).scatter_(0, index, 1.0)",
    "torch.zeros(50).scatter_add_(0, index, torch.ones(n))",
    "torch.zeros(50).index_add_(0, index, torch.ones(n))",
    "torch.zeros(50, 2).index_put_((index,), torch.ones(2))",
    "F.embedding(torch.zeros(n, dtype=torch.int64), w := torch.ones(50, 2, requires_grad=True), "
    "scale_grad_by_freq=True).sum().backward(); F.embedding(index, w, scale_grad_by_freq=True).sum().backward()",
    "F.nll_loss(torch.ones(1, 3).expand(n, 3), index)",
    "torch.ones(50).take(index)",
    "torch.zeros(50).put_(index, torch.ones(n))",
    "torch.zeros(50).put_(index, torch.ones(n), accumulate=True)",
    "torch.zeros(50).index_fill_(0, index, 1.0)",
    "torch.zeros(50).index_copy_(0, index, torch.ones(n))",
    "torch.zeros(50).index_reduce_(0, index, torch.ones(n), 'prod')",
    "torch.zeros(50).scatter_reduce_(0, index, torch.ones(n), 'amax')",
    "torch.searchsorted(torch.ones(n), torch.ones(3), sorter=index)",
    "torch.bincount(index[:100].clamp(max=1000))",
    "F.embedding_bag(index, rows, torch.tensor([0, 5]))",
    "F.embedding(index, torch.ones(50, 2), max_norm=1.0)",
    "F.max_unpool1d(torch.ones(1, 1, n), index.reshape(1, 1, n), 1)",
    "F.multi_margin_loss(torch.ones(1, 3).expand(n, 3), index)",
    "torch.lu_unpack(torch.eye(10), index[:10].to(torch.int32))",
]


def test_an_index_that_another_thread_changes() -> None:
    for call, outcome in outcomes(RACING * 4, RACE).items():
        assert outcome == "ok" or outcome.startswith(("IndexError: ", "RuntimeError: ")), (call, outcome)


def test_a_mask_that_another_thread_changes() -> None:
    out = survives(
        """
import threading
n = 100_000
mask = torch.zeros(n, dtype=torch.bool)
view = mask.numpy()
def disturb():
    while True:
        view[:] = False
        view[:] = True
other = threading.Thread(target=disturb, daemon=True)
other.start()
data, source = torch.zeros(n), torch.ones(n // 3)
for i in range(10):
    for call in (lambda: data.masked_scatter_(mask, source), lambda: data.masked_select(mask), lambda: mask.nonzero()):
        try:
            call()
        except RuntimeError as e:
            assert "Number of elements of source" in str(e) or "number of elements changed" in str(e), e
print("done")
"""
    )
    assert "done" in out


def test_embedding_backward_reads_an_index_once() -> None:
    grad = _native.Storage(4 * 8)
    index = _native.Storage(8 * 4)
    memoryview(index)[:] = np.array([0, 1, 2, 1]).tobytes()
    for scaled in (False, True):
        with pytest.raises(IndexError, match="^index out of range in self$"):
            _native.embedding_backward(grad, 0, (2, 1), F32, index, 0, (), I64, None, 0, (), F32, 4, 2, 2, -1, scaled)


def test_filling_an_expanded_tensor_writes_each_place_once() -> None:
    t = torch.ones(2, dtype=torch.uint16)
    t[:, None].expand(2, 2**50).zero_()
    assert t.tolist() == [0, 0]
    t.expand(2**40, 2).fill_(7)
    assert t.tolist() == [7, 7]


def test_a_dlpack_struct_that_lies_about_its_size() -> None:
    import ctypes

    class Tensor(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_void_p),
            ("device", ctypes.c_int32 * 2),
            ("ndim", ctypes.c_int32),
            ("dtype", ctypes.c_uint8 * 4),
            ("shape", ctypes.c_void_p),
            ("strides", ctypes.c_void_p),
            ("byte_offset", ctypes.c_uint64),
            ("context", ctypes.c_void_p),
            ("deleter", ctypes.c_void_p),
        ]

    memory = (ctypes.c_float * 4)()
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    for dimensions, sizes, words in (
        (-1, [], "-1 dimensions without a shape"),
        (3, [], "3 dimensions without a shape"),
        (10**6, [4], "at most 1024"),
        (1, [-5], "negative sizes"),
        (2, [2**62, 4], "overflowed"),
        (1, [2**62], "bytes of memory"),
    ):
        tensor = Tensor()
        tensor.data, tensor.ndim = ctypes.addressof(memory), dimensions
        tensor.device[:], tensor.dtype[:] = [1, 0], [2, 32, 1, 0]
        shape = (ctypes.c_int64 * len(sizes))(*sizes)
        if sizes:
            tensor.shape = ctypes.addressof(shape)
        with pytest.raises(RuntimeError, match=words):
            torch.from_dlpack(new(ctypes.addressof(tensor), b"dltensor", None))


# -- memory whose address was given away ------------------------------------------------------------------------------
def test_a_storage_does_not_move_under_an_array() -> None:
    t = torch.arange(1000.0)
    n = t.numpy()
    assert not t.untyped_storage().resizable()
    with pytest.raises(RuntimeError, match=FIXED):
        t.resize_(100_000)
    with pytest.raises(RuntimeError, match=FIXED):
        t.untyped_storage().resize_(0)
    t.resize_(10)  # smaller: nothing moves
    assert n.sum() == 499_500
    del n
    assert not t.untyped_storage().resizable()  # for good, as in PyTorch


@pytest.mark.parametrize("look", [np.asarray, np.from_dlpack, lambda t: memoryview(t._storage), np.array])
def test_every_way_to_the_bytes(look: Any) -> None:
    t = torch.arange(1000.0)
    seen = look(t)
    for grow in (lambda: t.resize_(100_000), lambda: t.untyped_storage().resize_(0)):
        with pytest.raises(RuntimeError, match=FIXED):
            grow()
    assert len(seen) in (1000, 4000)


def test_an_exported_storage_may_move_when_the_consumer_is_done() -> None:
    t = torch.arange(10.0)
    seen = np.from_dlpack(t)
    assert not t.untyped_storage().resizable()
    del seen
    assert t.untyped_storage().resizable()
    assert t.resize_(100).shape == (100,)


def test_a_part_of_a_storage_keeps_the_whole_in_place() -> None:
    t = torch.arange(10.0)
    part = t.untyped_storage()[4:8]
    assert not part.resizable()
    with pytest.raises(RuntimeError, match=FIXED):
        t.resize_(100_000)
    del part
    t.resize_(100_000)


def test_memory_from_outside_is_not_resizable() -> None:
    for t in (
        torch.from_numpy(np.ones(3)),
        torch.frombuffer(bytearray(8), dtype=torch.uint8),
        torch.from_dlpack(np.ones(3)),
        torch.asarray(np.ones(3)),
    ):
        assert not t.untyped_storage().resizable()
        with pytest.raises(RuntimeError, match=FIXED):
            t.resize_(100)
    assert torch.tensor(np.ones(3)).untyped_storage().resizable()


def test_an_array_of_a_kernel_in_python_keeps_memory_in_place() -> None:
    from mindtorch_v2._backends.cpu.numpy_view import np_view

    t = torch.arange(10.0)
    a = np_view(t)
    with pytest.raises(RuntimeError, match=FIXED):
        t.resize_(1000)
    del a
    t.resize_(1000)


def test_a_storage_that_is_resized_while_another_thread_reads_it() -> None:
    out = survives(
        """
import threading
x = torch.ones(1 << 20)
def work():
    for i in range(60):
        try:
            (x * 2).sum()
        except RuntimeError:
            pass  # it was short at that moment
threads = [threading.Thread(target=work) for _ in range(3)]
[t.start() for t in threads]
for i in range(200):
    x.untyped_storage().resize_(0)
    x.untyped_storage().resize_(4 << 20)
[t.join() for t in threads]
print("done")
"""
    )
    assert "done" in out


# -- states and lists -------------------------------------------------------------------------------------------------
def test_a_generator_state_that_points_outside_itself() -> None:
    g = torch.Generator()
    state = g.get_state()
    bad = state.clone()
    bad.numpy()[8:12] = np.frombuffer(np.int32(600).tobytes(), np.uint8)
    bad.numpy()[16:24] = np.frombuffer(np.int64(500).tobytes(), np.uint8)
    raw = _native.Storage(5056)
    memoryview(raw)[:] = bad.numpy().tobytes()
    out = _native.Storage(4000)
    with pytest.raises(RuntimeError, match="^Invalid mt19937 state$"):
        _native.random_fill(0, raw, out, 0, (1,), F32, (1000,), 0.0, 1.0)


def test_a_list_that_changes_while_it_is_read() -> None:
    items: list[Any] = [0.0] * 1000

    class Clears:
        def __float__(self) -> float:
            items.clear()
            return 1.0

    items[1] = Clears()
    with pytest.raises(ValueError, match="shape it was said to have"):
        _native.from_list(items, (1000,), F32)


def test_pivots_outside_the_matrix() -> None:
    a, b = torch.eye(3), torch.ones(3, 1)
    solve = torch.linalg.ldl_solve
    advice = "Did you properly pass the result of ldl_factor[?]$"
    for pivots, words in (
        ([1, 2, 9], r"^Pivots given to ldl_solve must all satisfy \|pivot\| <= LD.size\(-2\). "),
        ([1, 2, -9], r"^Pivots given to ldl_solve must all satisfy \|pivot\| <= LD.size\(-2\). "),
        ([0, 1, 2], r"^Pivots given to ldl_solve must all satisfy \|pivot\| >= 1. "),
        ([-1, 2, 3], "^Pivots given to ldl_solve must be negative in pairs. "),
        ([1, 2, -3], "^Pivots given to ldl_solve must be negative in pairs. "),
    ):
        with pytest.raises(RuntimeError, match=words + advice):
            solve(a, torch.tensor(pivots, dtype=torch.int32), b)
    assert torch.equal(solve(a, torch.tensor([1, 2, 3], dtype=torch.int32), b), b)
