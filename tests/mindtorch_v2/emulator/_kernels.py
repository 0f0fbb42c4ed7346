"""Calls one aclnn function of the emulator through plain ctypes, its prototype taken from the vendor's facts.

    call("aclnnAdd", self=x, other=y, alpha=1, out=Out((2, 3), "float32"))

Tensors are NumPy arrays or PyTorch tensors, strided ones included; outputs come back as NumPy arrays (bfloat16 as
ml_dtypes has it). Invariant: every handle and byte is released, and no call leaves a violation behind.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from ctypes import (
    POINTER,
    byref,
    c_bool,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int8,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "csrc" / "ascend_emulator"))

from generate import facts as known  # noqa: E402
from generate import implemented as implemented  # noqa: E402
from generate import written as written  # noqa: E402

CODES = {
    "float32": 0,
    "float16": 1,
    "int8": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 6,
    "uint16": 7,
    "uint32": 8,
    "int64": 9,
    "uint64": 10,
    "float64": 11,
    "bool": 12,
    "complex64": 16,
    "complex128": 17,
    "bfloat16": 27,
    "int4": 29,
    "float8_e5m2": 35,
    "float8_e4m3fn": 36,
    "float8_e8m0fnu": 37,
    "float4_e2m1fn": 40,
}
HALF_BYTES = ("int4", "float4_e2m1fn")  # NumPy has a byte for each element, the device half of one
FORMATS = {"NCHW": 0, "NHWC": 1, "ND": 2, "NDHWC": 27, "FRACTAL_NZ": 29, "NCDHW": 30, "NC": 35, "NCL": 47}
CTYPES: dict[str, Any] = {
    "bool": c_bool,
    "int8_t": c_int8,
    "int": c_int,
    "int32_t": c_int32,
    "int64_t": c_int64,
    "uint32_t": c_uint32,
    "uint64_t": c_uint64,
    "double": c_double,
    "float": c_float,
    "char*": c_char_p,
    "aclDataType": c_int32,
}


def numpy_dtype(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name, name))


def packed(array: np.ndarray) -> bytes:
    """Elements of four bits, two in each byte, the first in its lower half."""
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & 15
    codes = np.append(codes, np.zeros(codes.size % 2, np.uint8))
    return (codes[0::2] | codes[1::2] << 4).astype(np.uint8).tobytes()


def unpacked(data: bytes, count: int, dtype: Any) -> np.ndarray:
    codes = np.frombuffer(data, np.uint8)
    both = np.stack([codes & 15, codes >> 4], -1).reshape(-1)[:count]
    if np.dtype(dtype).name == "int4":
        both = both.astype(np.int8)
        return np.asarray(np.where(both > 7, both - 16, both).astype(dtype))
    return both.view(dtype)


@functools.cache
def library_folder() -> Path:
    """Where the emulator's libraries are: MINDTORCH_EMULATOR_LIB (a sanitised build), or inside the package."""
    given = os.environ.get("MINDTORCH_EMULATOR_LIB")
    if given:
        return Path(given)
    import mindtorch_v2

    return Path(mindtorch_v2.__file__).parent / "_emulator" / "lib64"


@functools.cache
def facts() -> dict[str, dict[str, Any]]:
    return {f["name"]: f for f in known()}


class Refused(Exception):
    """A vendor function answered a code."""

    def __init__(self, function: str, code: int, message: str) -> None:
        super().__init__(f"{function}: {code}: {message}")
        self.code = code
        self.message = message


@dataclass
class Out:
    """An output to allocate. `strides`: in elements; what lies between a strided output's elements must stay."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    strides: tuple[int, ...] | None = None
    format: str = "ND"


@dataclass
class In:
    """A tensor argument with a format other than ND; `view`: the sizes of what the blocks of a private one hold."""

    array: Any
    format: str = "ND"
    view: tuple[int, ...] | None = None


@dataclass
class Reuse:
    """An output over the memory of another parameter."""

    parameter: str


@dataclass
class Scalar:
    value: Any
    dtype: str


@dataclass
class Block:
    """A tensor on the device."""

    handle: int
    address: int
    nbytes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    fresh: bool  # an `Out`, not an array that came from the host


class Device:
    """The emulator, initialised once in this process on device 0."""

    def __init__(self) -> None:
        folder = library_folder()
        self.control = ctypes.CDLL(str(folder / "libascend_emulator.so"), mode=ctypes.RTLD_GLOBAL)
        self.rt = ctypes.CDLL(str(folder / "libacl_rt.so"))
        self.base = ctypes.CDLL(str(folder / "libnnopbase.so"))
        self.ops = ctypes.CDLL(str(folder / "libopapi.so"))
        self.rt.aclGetRecentErrMsg.restype = c_char_p
        code = self.rt.aclInit(None)
        assert code in (0, 100002), code
        self.check("aclrtSetDevice", self.rt.aclrtSetDevice(0))
        for name in ("Tensor", "Scalar", "IntArray", "FloatArray", "BoolArray", "TensorList", "ScalarList"):
            getattr(self.base, f"aclCreate{name}").restype = c_void_p
            getattr(self.base, f"aclDestroy{name}").argtypes = [c_void_p]
        self.base.aclCreateTensor.argtypes = [
            POINTER(c_int64),
            c_uint64,
            c_int32,
            POINTER(c_int64),
            c_int64,
            c_int32,
            POINTER(c_int64),
            c_uint64,
            c_void_p,
        ]
        self.rt.aclrtMalloc.argtypes = [POINTER(c_void_p), c_size_t, c_int]
        self.rt.aclrtFree.argtypes = [c_void_p]
        self.rt.aclrtMemcpy.argtypes = [c_void_p, c_size_t, c_void_p, c_size_t, c_int]

    def message(self) -> str:
        text = self.rt.aclGetRecentErrMsg()
        return text.decode() if text else ""

    def check(self, function: str, code: int) -> None:
        if code:
            raise Refused(function, code, self.message())

    def violations(self) -> str:
        buffer = ctypes.create_string_buffer(1 << 16)
        self.control.ascendEmulatorViolations(buffer, c_size_t(len(buffer)))
        self.control.ascendEmulatorClearViolations()
        return buffer.value.decode()

    def malloc(self, nbytes: int) -> int:
        pointer = c_void_p()
        self.check("aclrtMalloc", self.rt.aclrtMalloc(byref(pointer), max(nbytes, 1), 0))
        return int(pointer.value or 0)

    def upload(self, data: bytes) -> int:
        address = self.malloc(len(data))
        self.check("aclrtMemcpy", self.rt.aclrtMemcpy(address, len(data), data, len(data), 1))
        return address

    def download(self, address: int, nbytes: int) -> bytes:
        buffer = ctypes.create_string_buffer(max(nbytes, 1))
        self.check("aclrtMemcpy", self.rt.aclrtMemcpy(buffer, nbytes, address, nbytes, 2))
        return buffer.raw[:nbytes]


@functools.cache
def device() -> Device:
    return Device()


def int64s(values: Any) -> Any:
    values = tuple(values)
    return (c_int64 * len(values))(*values)


def as_numpy(x: Any) -> np.ndarray:
    """An array of the same dtype, shape and strides."""
    if isinstance(x, np.ndarray):
        return x
    if type(x).__module__.startswith("torch"):
        import torch

        x = x.detach()
        if x.dtype == torch.bfloat16:
            return x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        return x.numpy()
    return np.asarray(x)


class Call:
    """One call: packs, runs both phases, fetches outputs, releases everything."""

    def __init__(self) -> None:
        self.device = device()
        self.blocks: list[Block] = []
        self.fetched: list[Block] = []
        self.releases: list[tuple[str, int]] = []
        self.keep: list[Any] = []
        self.memory: list[int] = []
        self.outputs: set[str] = set()
        self.named: dict[str, Block] = {}

    def reused(self, of: Block) -> Block:
        handle = self.device.base.aclCreateTensor(
            int64s(of.shape), len(of.shape), CODES[of.dtype], int64s(of.strides), 0, FORMATS["ND"],
            int64s([of.nbytes // numpy_dtype(of.dtype).itemsize]), 1, of.address,
        )  # fmt: skip
        return Block(handle, of.address, of.nbytes, of.shape, of.strides, of.dtype, False)

    def tensor(self, value: Any) -> Block:
        form, view = "ND", None
        if isinstance(value, In):
            value, form, view = value.array, value.format, value.view
        if isinstance(value, Out):
            form = value.format
            dtype = numpy_dtype(value.dtype)
            strides = value.strides or tuple(
                int(np.prod([s or 1 for s in value.shape[i + 1 :]])) for i in range(len(value.shape))
            )
            count = 1 + sum(s * (n - 1) for s, n in zip(strides, value.shape)) if 0 not in value.shape else 0
            data = b"\x5a" * (count * dtype.itemsize if value.dtype not in HALF_BYTES else (count + 1) // 2)
            shape, name = value.shape, value.dtype
        else:
            array = as_numpy(value)
            shape, dtype, name = array.shape, array.dtype, array.dtype.name
            strides = tuple(s // dtype.itemsize for s in array.strides)
            count = 1 + sum(s * (n - 1) for s, n in zip(strides, shape)) if array.size else 0
            pointer = array.__array_interface__["data"][0] if array.size else 0
            data = ctypes.string_at(pointer, count * dtype.itemsize) if count else b""
            if name in HALF_BYTES:
                data = packed(array)
            self.keep.append(array)
        address = self.device.upload(data) if data else 0
        if address:
            self.memory.append(address)
        storage: tuple[int, ...] = (count,)
        if view is not None:
            storage, shape = shape, view
            strides = tuple(int(np.prod(view[i + 1 :])) for i in range(len(view)))
        handle = self.device.base.aclCreateTensor(
            int64s(shape),
            len(shape),
            CODES[name],
            int64s(strides),
            0,
            FORMATS[form],
            int64s(storage),
            len(storage),
            address or None,
        )
        assert handle, self.device.message()
        block = Block(handle, address, len(data), tuple(shape), tuple(strides), name, isinstance(value, Out))
        self.blocks.append(block)
        return block

    def scalar(self, value: Any) -> int:
        if not isinstance(value, Scalar):
            kind = (
                "bool"
                if isinstance(value, bool)
                else "int64"
                if isinstance(value, int)
                else ("complex128" if isinstance(value, complex) else "float64")
            )
            value = Scalar(value, kind)
        data = np.asarray(value.value, numpy_dtype(value.dtype)).tobytes()
        handle = self.device.base.aclCreateScalar(c_char_p(data), CODES[value.dtype])
        assert handle, self.device.message()
        return int(handle)

    def held(self, kind: str, handle: int) -> c_void_p:
        self.releases.append((kind, handle))
        return c_void_p(handle)

    def argument(self, p: dict[str, Any], value: Any) -> Any:
        kind = p["type"]
        if kind in CTYPES:
            if kind == "aclDataType" and isinstance(value, str):
                value = CODES[value]
            if kind == "char*":
                value = value.encode() if isinstance(value, str) else value
            return CTYPES[kind](value)
        if value is None:
            return c_void_p(None)
        base = self.device.base
        output = p["name"] in self.outputs
        if kind == "aclTensor*":
            block = self.reused(self.named[value.parameter]) if isinstance(value, Reuse) else self.tensor(value)
            self.named[p["name"]] = block
            if output:
                self.fetched.append(block)
            return self.held("Tensor", block.handle)
        if kind == "aclScalar*":
            return self.held("Scalar", self.scalar(value))
        if kind == "aclIntArray*":
            return self.held("IntArray", base.aclCreateIntArray(int64s(value), c_uint64(len(value))))
        if kind == "aclFloatArray*":
            return self.held(
                "FloatArray", base.aclCreateFloatArray((c_float * len(value))(*value), c_uint64(len(value)))
            )
        if kind == "aclBoolArray*":
            return self.held("BoolArray", base.aclCreateBoolArray((c_bool * len(value))(*value), c_uint64(len(value))))
        if kind == "aclTensorList*":
            blocks = [self.tensor(v) for v in value]
            if output:
                self.fetched.extend(blocks)
            items = (c_void_p * len(blocks))(*[b.handle for b in blocks])
            return self.held("TensorList", base.aclCreateTensorList(items, c_uint64(len(blocks))))
        if kind == "aclScalarList*":
            items = (c_void_p * len(value))(*[self.scalar(v) for v in value])
            return self.held("ScalarList", base.aclCreateScalarList(items, c_uint64(len(value))))
        raise TypeError(f"no way to pass {kind}")

    def run(self, name: str, values: dict[str, Any]) -> list[np.ndarray]:
        dev = self.device
        parameters = facts()[name]["params"]
        self.outputs = written(facts()[name])[0]
        unknown = set(values) - {p["name"] for p in parameters}
        assert not unknown, f"{name} has no parameter {unknown}; it has {[p['name'] for p in parameters]}"
        try:
            arguments = [self.argument(p, values.get(p["name"])) for p in parameters]
            size, executor = c_uint64(), c_void_p()
            dev.check(
                name + "GetWorkspaceSize",
                getattr(dev.ops, name + "GetWorkspaceSize")(*arguments, byref(size), byref(executor)),
            )
            workspace = dev.malloc(size.value) if size.value else 0
            if workspace:
                self.memory.append(workspace)
            dev.check(name, getattr(dev.ops, name)(c_void_p(workspace or None), size, executor, c_void_p(None)))
            dev.check(f"{name} on the stream", dev.rt.aclrtSynchronizeStream(c_void_p(None)))
            return [self.fetch(block) for block in self.fetched]
        finally:
            for kind, handle in self.releases:
                getattr(dev.base, f"aclDestroy{kind}")(handle)
            for address in self.memory:
                dev.rt.aclrtFree(address)
            broken = dev.violations()
            assert not broken, broken

    def fetch(self, block: Block) -> np.ndarray:
        """An output's values, in the shape the vendor says it has now."""
        dims, count = POINTER(c_int64)(), c_uint64()
        self.device.check(
            "aclGetViewShape", self.device.base.aclGetViewShape(c_void_p(block.handle), byref(dims), byref(count))
        )
        shape = tuple(dims[i] for i in range(count.value))
        strides = block.strides
        dtype = numpy_dtype(block.dtype)
        if shape != block.shape:
            strides = tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
        data = self.device.download(block.address, block.nbytes) if block.nbytes else b""
        if block.dtype in HALF_BYTES:
            return unpacked(data, int(np.prod(shape)), dtype).reshape(shape)
        flat = np.frombuffer(data, dtype) if data else np.empty(0, dtype)
        if 0 in shape:
            return np.empty(shape, dtype)
        steps = tuple(s * dtype.itemsize for s in strides)
        if block.fresh:
            written = np.zeros(flat.shape, bool)
            np.lib.stride_tricks.as_strided(written, shape, strides)[...] = True
            gaps = np.frombuffer(data, np.uint8).reshape(len(flat), dtype.itemsize)[~written]
            assert (gaps == 0x5A).all(), "memory between the elements of an output was written"
        return np.ndarray(shape, dtype, data, strides=steps).copy()


_TRIED: set[str] = set()


def call(name: str, **values: Any) -> Any:
    """The outputs in parameter order; one output alone is not in a list. What a function accepts the first time is
    tried again with the mistakes that its facts name, with the liberties that they give, and with nothing in it."""
    outputs = Call().run(name, values)
    if name not in _TRIED:
        _TRIED.add(name)
        from ._empties import try_empties
        from ._liberties import try_each_dtype, try_liberties
        from ._mistakes import try_mistakes

        try_mistakes(name, values)
        try_liberties(name, values)
        try_each_dtype(name, values)
        try_empties(name, values)
    return outputs[0] if len(outputs) == 1 else outputs


def refused(name: str, **values: Any) -> int:
    """The code a wrong call is answered with."""
    try:
        Call().run(name, values)
    except Refused as e:
        assert e.message, f"{name} answered {e.code} without a message"
        return e.code
    raise AssertionError(f"{name} accepted the call")


# Relative and absolute tolerance by dtype: results are rounded once from double, PyTorch's once or more.
TOLERANCES: dict[str, tuple[float, float]] = {
    "float64": (1e-12, 1e-12),
    "float32": (2e-6, 1e-6),
    "float16": (2e-3, 1e-3),
    "bfloat16": (1.6e-2, 1e-2),
    "complex64": (2e-6, 1e-6),
    "complex128": (1e-12, 1e-12),
}


def assert_same(got: np.ndarray, want: Any, scale: float = 1) -> None:
    """Equal dtype and shape; equal values, floats within the dtype's tolerance times `scale`."""
    expected = as_numpy(want)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    if got.dtype.name in TOLERANCES:
        relative, absolute = TOLERANCES[got.dtype.name]
        wide: Callable[[np.ndarray], np.ndarray] = lambda a: a.astype(  # noqa: E731
            np.complex128 if a.dtype.kind == "c" else np.float64
        )
        np.testing.assert_allclose(
            wide(got), wide(expected), rtol=relative * scale, atol=absolute * scale, equal_nan=True
        )
    else:
        np.testing.assert_array_equal(got, expected)
