"""The one launcher of vendor functions: pack the arguments, phase 1, workspace, phase 2, release.

A tensor is described to the vendor by its storage's base pointer, an offset in elements, its strides, and the storage's
whole size: never by an interior pointer, which the vendor does not promise to accept.

A launch whose arguments are those of an earlier one, addresses included, as most are in a loop whose memory comes from
the caching allocator, runs that one's executor again if the vendor can do that (`aclSetAclOpExecutorRepeatable`).
MINDTORCH_NPU_REPEAT=0 switches that off, for versions of the vendor's libraries that cannot and do not say so.

Invariant: every object made through the C API is destroyed on every path, errors included. An executor is consumed by
phase 2, kept to be run again, or destroyed if phase 2 was never reached. Scalars, integer arrays, tensors and executors
that recur are kept, counted, and destroyed by `release_caches`.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, Final, final

from ... import _native
from ..._device import device
from ..._dispatch.keys import NPU
from ..._dtype import dtype
from ..._mypyc import i64
from ..._tensor_base import TensorBase, is_contiguous
from . import errors, memory, runtime, table
from .acl_loader import ensure_acl
from .memory import NpuStorage
from .table import Param, Signature

# aclDataType by our dtype code.
ACL_DTYPE: Final[list[int]] = [4, 2, 6, 3, 9, 1, 0, 11, -1, 16, 17, 12, 27, 35, 36, 7, 8, 10]
_BOOL: Final = 12
_INT64: Final = 9
_UINT64: Final = 10
_INT32: Final = 3
_DOUBLE: Final = 11
_FLOAT: Final = 0
_COMPLEX64: Final = 16
_COMPLEX128: Final = 17

# What every launch calls is called by address from the native module: ctypes takes a microsecond for a call.
_function: Final[Any] = _native.vendor_function
_both: Final[Any] = _native.vendor_launch
_phase2: Final[Any] = _native.vendor_phase2
_destroy: Final[Any] = _native.vendor_destroy
_forget: Final[Any] = _native.vendor_forget
# Device memory for workspaces.
_take: Final[Any] = memory.allocate
# Where `vendor_launch` stopped.
_NO_TENSOR: Final = 0
_WORKSPACE: Final = 2
_NO_LIST: Final = 5
# What later launches may use again: descriptions of tensors; executors too, where numbers and arrays are kept as well.
_KEEP_TENSORS: Final = 1
_KEEP_ALL: Final = 2
_MOST_DIMS: Final = 64
# aclFormat: ND, and channels-first formats by rank: NC, NCL, NCHW, NCDHW; other ranks have only ND.
_ND: Final = 2
_CHANNELS: Final[list[int]] = [2, 2, 35, 47, 0, 30]
# The same with channels last, NHWC and NDHWC.
_LAST: Final[list[int]] = [2, 2, 2, 2, 1, 27]

# How arguments that are no pointers or integers are passed: letters of `vendor_function`.
_LETTERS: Final[dict[int, bytes]] = {
    table.TENSOR: b"t",
    table.TENSORS: b"l",
    table.F64: b"d",
    table.F32: b"f",
    table.STRING: b"s",
}

_REPEATABLE: Final = "aclSetAclOpExecutorRepeatable"
# How many recurring scalars and arrays are kept.
_KEEP_HANDLES: Final = 512


@final
class Function:
    """A vendor function: its line in the table and its two entry points."""

    def __init__(self, sig: Signature, a: Api, phase1: int, phase2: Any) -> None:
        self.name: Final = sig.name
        self.sig: Final = sig
        self.kinds: Final[list[int]] = [p.kind for p in sig.params]
        self.formats: Final = _CHANNELS if sig.channels else _LAST if sig.last else None
        # Parameters for which a 0-dim tensor must be passed as one element of one dimension.
        self.lifted: Final[list[bool]] = [p.lifted for p in sig.params]
        # The number each scalar parameter was last given, with its kept handle.
        self.recent: Final[list[Any]] = [None] * len(sig.params)
        self.phase2: Final[int] = address_of(phase2)
        letters = b"".join([_LETTERS.get(p.kind, b"i") for p in sig.params])
        self.native: Final[Any] = _function(
            a.create_tensor,
            a.destroy_tensor,
            a.create_tensors,
            a.destroy_tensors,
            phase1,
            self.phase2,
            a.drop_executor,
            letters,
            sig.name,
            a.make_repeatable,
            a.last_message,
        )
        # While launches are watched: what is called instead of the second phase.
        self.vendor_phase2: Final[Any] = phase2
        self.watched: Any = None

    def second(self, workspace: int, size: int, executor: int, stream: int) -> int:
        if self.watched is not None:
            code: int = self.watched(workspace, size, executor, stream)
            return code
        code = _phase2(self.phase2, workspace, size, executor, stream)
        return code


def address_of(function: Any) -> int:
    """Where a function that ctypes has found lies."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@final
class Api:
    """The object functions, looked up once."""

    def __init__(self) -> None:
        acl = ensure_acl()
        # Addresses: the native module calls these.
        self.create_tensor: Final[int] = address_of(acl.aclCreateTensor)
        self.destroy_tensor: Final[int] = address_of(acl.aclDestroyTensor)
        self.create_tensors: Final[int] = address_of(acl.aclCreateTensorList)
        self.destroy_tensors: Final[int] = address_of(acl.aclDestroyTensorList)
        self.create_scalar: Final[Any] = acl.aclCreateScalar
        self.create_ints: Final[Any] = acl.aclCreateIntArray
        self.create_floats: Final[Any] = acl.aclCreateFloatArray
        self.create_bools: Final[Any] = acl.aclCreateBoolArray
        self.create_scalars: Final[Any] = acl.aclCreateScalarList
        self.destroy_scalar: Final[Any] = acl.aclDestroyScalar
        self.destroy_ints: Final[Any] = acl.aclDestroyIntArray
        self.destroy_floats: Final[Any] = acl.aclDestroyFloatArray
        self.destroy_bools: Final[Any] = acl.aclDestroyBoolArray
        self.destroy_scalars: Final[Any] = acl.aclDestroyScalarList
        self.destroy_executor: Final[Any] = acl.aclDestroyAclOpExecutor
        self.drop_executor: Final[int] = address_of(acl.aclDestroyAclOpExecutor)
        repeats = os.environ.get("MINDTORCH_NPU_REPEAT", "1") != "0" and acl.has(_REPEATABLE)
        self.make_repeatable: Final[int] = address_of(acl.fn(_REPEATABLE)) if repeats else 0
        self.last_message: Final[int] = address_of(acl.aclGetRecentErrMsg)
        self.view_shape: Final[Any] = acl.aclGetViewShape
        self.synchronize: Final[Any] = acl.aclrtSynchronizeStream
        # The vendor hands out arrays made with C++'s new[].
        self.delete_array: Final[Any] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(
            ("_ZdaPv", ctypes.CDLL("libstdc++.so.6"))
        )


@final
class State:
    """What the launcher remembers of this process."""

    def __init__(self) -> None:
        self.api: Api | None = None
        self.functions: dict[str, Function] = {}
        self.scalars: dict[tuple[int, Any], int] = {}
        self.arrays: dict[tuple[int, ...], int] = {}
        self.bools: dict[tuple[bool, ...], int] = {}
        # While launches are watched: makes of a function's name and its second phase what is called instead.
        self.around: Any = None


STATE: Final = State()


def api() -> Api:
    found = STATE.api
    if found is None:
        found = Api()
        STATE.api = found
        runtime.on_shutdown(10, _leave)
        memory.add_cache(_forget)
    return found


def resolve(name: str) -> Function:
    """A vendor function by name; its symbols are looked up on first use, and a missing one is named."""
    found = STATE.functions.get(name)
    if found is None:
        sig = table.signature(name)
        acl = ensure_acl()
        pointer = ctypes.c_void_p
        phase1 = acl.prototype(name + "GetWorkspaceSize", ctypes.c_int32, (), False)
        phase2 = acl.prototype(name, ctypes.c_int32, (pointer, ctypes.c_uint64, pointer, pointer), True)
        found = Function(sig, api(), address_of(phase1), phase2)
        if STATE.around is not None:
            found.watched = STATE.around(name, phase2)
        STATE.functions[name] = found
    return found


def watch(around: Any) -> None:
    """Have `around(name, phase2)` stand in for the second phase of every function; None leaves them as they are."""
    STATE.around = around
    for name, f in STATE.functions.items():
        f.watched = None if around is None else around(name, f.vendor_phase2)


def available(name: str) -> bool:
    """Whether both entry points of a function exist in the loaded libraries."""
    acl = ensure_acl()
    return acl.symbol(name) is not None and acl.symbol(name + "GetWorkspaceSize") is not None


def release_caches() -> None:
    """Destroy the scalars and arrays that were kept."""
    code = _release()
    errors.check(code, "aclDestroyScalar, aclDestroyIntArray or aclDestroyBoolArray")


def _release() -> int:
    """The first code that is not 0; everything is let go whatever the vendor answers."""
    found = STATE.api
    if found is None:
        return 0
    # Executors first: they point to everything else.
    worst: int = _forget()
    scalars, arrays, bools = STATE.scalars, STATE.arrays, STATE.bools
    STATE.scalars, STATE.arrays, STATE.bools = {}, {}, {}
    for f in list(STATE.functions.values()):
        for i in range(len(f.recent)):
            f.recent[i] = None
    for h in scalars.values():
        code: int = found.destroy_scalar(h)
        worst = worst or code
    for h in arrays.values():
        code = found.destroy_ints(h)
        worst = worst or code
    for h in bools.values():
        code = found.destroy_bools(h)
        worst = worst or code
    return worst


def _leave() -> None:
    """At the end of the runtime: nobody hears of a failure any more."""
    _release()


def cached_handles() -> int:
    """How many vendor objects are kept for later launches."""
    native: int = _native.vendor_kept()
    return native + len(STATE.scalars) + len(STATE.arrays) + len(STATE.bools)


# -- packing --------------------------------------------------------------------------------------------------------
_ONE: Final = (1,)
_NO_HANDLES: Final[list[int]] = []


def description(f: Function, t: TensorBase, lifted: bool) -> Any:
    """What the native module makes an aclTensor of. Of the storage's sizes only the product counts."""
    shape = t._shape
    n = len(shape)
    if n > _MOST_DIMS:
        raise RuntimeError("only tensors with up to 64 dims are supported")
    # Without strides the vendor takes row-major ones.
    strides: Any = None if is_contiguous(t) else t._stride
    if n == 0 and lifted:
        shape = _ONE
        n = 1
    dt = t._dtype
    if dt.code >= len(ACL_DTYPE):
        raise RuntimeError(f"{f.name}: {dt.name} is not available on NPU")
    storage: NpuStorage = t._storage
    if storage.nbytes == 0:
        memory.check_allocated(t)
    form = _ND
    formats = f.formats
    if formats is not None and n < 6:
        form = formats[n]
    item = int(dt.itemsize)
    return shape, strides, ACL_DTYPE[dt.code], int(t._offset), form, storage.nbytes, item, storage.address


def scalar_dtype(value: Any, p: Param) -> int:
    """The dtype a Python number is passed in: Python's own width, unless the function is documented for less."""
    if isinstance(value, bool):
        return _BOOL if p.mask == 0 or p.mask >> 11 & 1 else _INT64
    if isinstance(value, int):
        if value > 0x7FFF_FFFF_FFFF_FFFF:
            return _UINT64
        if p.mask == 0 or p.mask >> 4 & 1:
            return _INT64
        if p.mask >> 3 & 1 and -0x8000_0000 <= value < 0x8000_0000:
            return _INT32
        return _DOUBLE if p.mask >> 7 & 1 else _FLOAT
    if isinstance(value, float):
        return _DOUBLE if p.mask == 0 or p.mask >> 7 & 1 else _FLOAT
    if isinstance(value, complex):
        return _COMPLEX128 if p.mask == 0 or p.mask >> 10 & 1 else _COMPLEX64
    raise TypeError(f"{p.name} must be a number, got {type(value).__name__}")


def _scalar(a: Api, value: Any, code: int) -> Any:
    if code == _DOUBLE:
        return a.create_scalar(ctypes.byref(ctypes.c_double(value)), code)
    if code == _INT64:
        return a.create_scalar(ctypes.byref(ctypes.c_int64(int(value))), code)
    if code == _FLOAT:
        return a.create_scalar(ctypes.byref(ctypes.c_float(value)), code)
    if code == _BOOL:
        return a.create_scalar(ctypes.byref(ctypes.c_bool(value)), code)
    if code == _INT32:
        return a.create_scalar(ctypes.byref(ctypes.c_int32(value)), code)
    if code == _UINT64:
        return a.create_scalar(ctypes.byref(ctypes.c_uint64(value)), code)
    if code == _COMPLEX128:
        return a.create_scalar(ctypes.byref((ctypes.c_double * 2)(value.real, value.imag)), code)
    return a.create_scalar(ctypes.byref((ctypes.c_float * 2)(value.real, value.imag)), code)


@final
class Packed:
    """One launch's arguments, and what must be destroyed after it."""

    def __init__(self, f: Function, op: str, count: int) -> None:
        self.f: Final = f
        self.op: Final = op
        self.args: Final[list[Any]] = [None] * count
        # Handles of tensors and lists that were alive where the launch stopped.
        self.tensors: list[int] = _NO_HANDLES
        self.lists: list[int] = _NO_HANDLES
        # Destroy functions and handles of everything else, in turn; made when something is kept.
        self.others: list[Any] | None = None

    def made(self, handle: Any, maker: str) -> Any:
        """A new handle, or the error of a vendor that made none."""
        if handle is None:
            raise creation_failed(maker, self.f.name, self.op)
        return handle

    def checked(self, t: Any, i: int) -> TensorBase:
        if not isinstance(t, TensorBase) or not t._keys & NPU:
            where = t._device if isinstance(t, TensorBase) else type(t).__name__
            raise RuntimeError(
                f"{self.op}: argument '{self.f.sig.params[i].name}' of {self.f.name} must be a tensor on the NPU, "
                f"got {where}"
            )
        return t

    def scalar(self, a: Api, value: Any, i: int) -> Any:
        recent: Any = self.f.recent[i]
        if recent is not None and recent[0] is value:
            return recent[1]
        p = self.f.sig.params[i]
        code = scalar_dtype(value, p)
        # Zeros of either sign are equal and nothing equals NaN, so neither can be a key.
        if value != value or value == 0 and code == _DOUBLE:
            h = self.made(_scalar(a, value, code), "aclCreateScalar")
            self.keep(a.destroy_scalar, h)
            return h
        key = (code, value)
        found = STATE.scalars.get(key)
        if found is not None:
            self.f.recent[i] = (value, found)
            return found
        h = self.made(_scalar(a, value, code), "aclCreateScalar")
        if len(STATE.scalars) >= _KEEP_HANDLES:
            self.keep(a.destroy_scalar, h)
            return h
        kept = STATE.scalars.setdefault(key, h)
        if kept != h:
            self.keep(a.destroy_scalar, h)
        return h

    def ints(self, a: Api, values: Any) -> Any:
        key = tuple(values)
        found = STATE.arrays.get(key)
        if found is not None:
            return found
        h = self.made(a.create_ints((ctypes.c_int64 * len(key))(*key), len(key)), "aclCreateIntArray")
        if len(STATE.arrays) >= _KEEP_HANDLES:
            self.keep(a.destroy_ints, h)
            return h
        kept = STATE.arrays.setdefault(key, h)
        if kept != h:
            self.keep(a.destroy_ints, h)
        return h

    def floats(self, a: Api, values: Any) -> Any:
        h = self.made(a.create_floats((ctypes.c_float * len(values))(*values), len(values)), "aclCreateFloatArray")
        self.keep(a.destroy_floats, h)
        return h

    def bools(self, a: Api, values: Any) -> Any:
        key = tuple([bool(v) for v in values])
        found = STATE.bools.get(key)
        if found is not None:
            return found
        h = self.made(a.create_bools((ctypes.c_bool * len(key))(*key), len(key)), "aclCreateBoolArray")
        if len(STATE.bools) >= _KEEP_HANDLES or STATE.bools.setdefault(key, h) != h:
            self.keep(a.destroy_bools, h)
        return h

    def tensor_list(self, values: Any, i: int) -> list[Any]:
        """Descriptions of the tensors of a list; None for a place that is left out."""
        lifted = self.f.lifted[i]
        found: list[Any] = []
        for t in values:
            found.append(None if t is None else description(self.f, self.checked(t, i), lifted))
        return found

    def scalar_list(self, a: Api, values: Any, p: Param) -> Any:
        n = len(values)
        mine: list[Any] = []
        try:
            for v in values:
                mine.append(self.made(_scalar(a, v, scalar_dtype(v, p)), "aclCreateScalar"))
            h = self.made(a.create_scalars((ctypes.c_void_p * n)(*mine), n), "aclCreateScalarList")
        except BaseException:
            for s in mine:
                self.keep(a.destroy_scalar, s)
            raise
        self.keep(a.destroy_scalars, h)
        return h

    def keep(self, destroy: Any, handle: Any) -> None:
        others = self.others
        if others is None:
            others = []
            self.others = others
        others.append(destroy)
        others.append(handle)

    def pack(self, a: Api, values: list[Any]) -> None:
        args = self.args
        kinds = self.f.kinds
        i: i64 = 0
        for v in values:
            kind = kinds[i]
            if kind == table.TENSOR:
                if v is not None:
                    args[i] = description(self.f, self.checked(v, int(i)), self.f.lifted[i])
            elif kind >= table.I64:
                if kind == table.STRING:
                    args[i] = v.encode() if v is not None else None
                elif kind == table.DTYPE:
                    args[i] = ACL_DTYPE[v.code] if isinstance(v, dtype) else v
                else:
                    args[i] = v
            elif v is not None:
                if kind == table.SCALAR:
                    args[i] = self.scalar(a, v, int(i))
                elif kind == table.INTS:
                    args[i] = self.ints(a, v)
                elif kind == table.TENSORS:
                    args[i] = self.tensor_list(v, int(i))
                elif kind == table.SCALARS:
                    args[i] = self.scalar_list(a, v, self.f.sig.params[i])
                elif kind == table.FLOATS:
                    args[i] = self.floats(a, v)
                else:
                    args[i] = self.bools(a, v)
            i += 1

    def release(self, a: Api) -> int:
        """Destroy everything; the first code that is not 0."""
        worst = 0
        if self.tensors:
            worst = _destroy(a.destroy_tensor, self.tensors)
        if self.lists:
            code: int = _destroy(a.destroy_tensors, self.lists)
            worst = worst or code
        others = self.others
        if others is not None:
            j = 0
            while j < len(others):
                code = others[j](others[j + 1])
                if code != 0 and worst == 0:
                    worst = code
                j += 2
        return worst


_NO_SHAPES: Final[list[tuple[int, ...]]] = []


# -- launching ------------------------------------------------------------------------------------------------------
def device_index(f: Function, values: list[Any], op: str) -> int:
    """The one device all tensors are on."""
    home: Any = None
    for v in values:
        if isinstance(v, TensorBase):
            if home is None:
                home = v._device
            elif v._device is not home and v._device != home:
                raise elsewhere(home, v._device, op)
        elif isinstance(v, (tuple, list)) and len(v) > 0 and isinstance(v[0], TensorBase):
            for t in v:
                if isinstance(t, TensorBase):
                    if home is None:
                        home = t._device
                    elif t._device is not home and t._device != home:
                        raise elsewhere(home, t._device, op)
    if home is None:
        raise RuntimeError(f"{op}: {f.name} was called without a tensor")
    if home.type != "npu":
        # A number of the CPU is the only operand, and the result is on an NPU.
        raise RuntimeError(f"{op}: expected its tensors to be on an NPU, but found one on {home}")
    index: int = home.index
    return index


def elsewhere(home: device, other: device, op: str) -> RuntimeError:
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {home} and {other}! (in {op})"
    )


def launch(f: Function, values: list[Any], op: str) -> None:
    """Run a vendor function on the current stream of its tensors' device. `values` are in the vendor's order; `op` is
    the name the user called."""
    _launch(f, values, op, False)


def launch_dynamic(f: Function, values: list[Any], op: str) -> list[tuple[int, ...]]:
    """The same for a function that decides its outputs' shapes on the device: waits, and returns them."""
    if runtime.STATE.waits != runtime.QUIET:
        runtime.unasked_wait()
    return _launch(f, values, op, True)


def _launch(f: Function, values: list[Any], op: str, shapes: bool) -> list[tuple[int, ...]]:
    index = device_index(f, values, op)
    state = runtime.use(index)
    stream = state.raw[index]
    a = api()
    found = _NO_SHAPES
    packed = Packed(f, op, len(f.kinds))
    code = 0
    worst = 0
    text = ""
    try:
        packed.pack(a, values)
        whole: Any = False if shapes or f.watched is not None else _take
        keep = _KEEP_ALL if packed.others is None else _KEEP_TENSORS
        stopped: Any = _both(f.native, packed.args, op, index, stream, whole, keep)
        if stopped is not None:
            stage: int
            stage, code, size, executor, packed.tensors, packed.lists = stopped
            if stage == _NO_TENSOR:
                raise creation_failed("aclCreateTensor", f.name, op)
            if stage == _NO_LIST:
                raise creation_failed("aclCreateTensorList", f.name, op)
            if stage == _WORKSPACE:
                if size == 0:
                    code = f.second(0, 0, executor, stream)
                else:
                    code = run_with_workspace(a, f, executor, size, index, stream)
                errors.record(f.name, op, index, stream)
                if code == 0 and shapes:
                    found = written_shapes(a, packed)
            if code != 0:
                text = errors.vendor_text()
    finally:
        if packed.tensors or packed.lists or packed.others is not None:
            worst = packed.release(a)
    if code != 0:
        raise launch_failed(f, values, op, index, code, text)
    if worst != 0:
        raise launch_failed(f, values, op, index, worst, errors.vendor_text())
    if runtime.STATE.blocking:
        errors.check_waited(a.synchronize(stream), "aclrtSynchronizeStream", index, stream)
    return found


def run_with_workspace(a: Api, f: Function, executor: int, size: int, index: int, stream: int) -> int:
    """Phase 2 with device memory of its own. Freed at once: the block is reused in stream order only."""
    owner = memory.allocator(index)
    try:
        block = memory.take(owner, size)
    except BaseException:
        a.destroy_executor(executor)
        raise
    code = f.second(block.ptr, size, executor, stream)
    owner.free(block)
    return code


def written_shapes(a: Api, packed: Packed) -> list[tuple[int, ...]]:
    """The shapes a dynamic function gave its outputs."""
    found: list[tuple[int, ...]] = []
    at = 0
    for i, p in enumerate(packed.f.sig.params):
        if p.kind != table.TENSOR or packed.args[i] is None:
            continue
        # Handles stand in the order of the tensors that were given.
        handle = packed.tensors[at]
        at += 1
        if p.written:
            pointer = ctypes.c_void_p(None)
            count = ctypes.c_uint64(0)
            errors.check(a.view_shape(handle, ctypes.byref(pointer), ctypes.byref(count)), "aclGetViewShape")
            n: int = count.value
            address: Any = pointer.value
            found.append(tuple((ctypes.c_int64 * n).from_address(address)) if n else ())
            if address is not None:
                a.delete_array(address)
    return found


# -- errors ---------------------------------------------------------------------------------------------------------
def creation_failed(maker: str, function: str, op: str) -> RuntimeError:
    vendor = errors.vendor_text()
    said = f"\n  vendor: {vendor}" if vendor else ""
    return errors.AclError(
        f"{maker} failed for {op} ({function}): no object was made{said}\n  launched at {errors.here()}",
        0,
        maker,
        vendor,
    )


def launch_failed(f: Function, values: list[Any], op: str, index: int, code: int, vendor: str) -> RuntimeError:
    """The error of a launch: function, operator, device, chip, code, arguments, the vendor's text and the line."""
    lines = [f"{f.name} failed for {op} on npu:{index} ({runtime.soc_name()}, status {code} {errors.name_of(code)})"]
    for i, p in enumerate(f.sig.params):
        lines.append("  " + described(p, values[i], code == 161002))
    if vendor:
        lines.append(f"  vendor: {vendor}")
    lines.append(f"  launched at {errors.here()}")
    error = errors.AclError("\n".join(lines), code, f.name, vendor)
    errors.note_loss(code, str(error))
    return error


def described(p: Param, v: Any, accepted: bool) -> str:
    """An argument as an error shows it: name, dtype, shape, and what the function is documented to accept."""
    if isinstance(v, TensorBase):
        text = f"{p.name} {v._dtype.name} {tuple(v._shape)}"
        if not is_contiguous(v):
            text += f" strides {tuple(v._stride)} offset {int(v._offset)}"
        if accepted and p.mask:
            text += f"; accepted: {' '.join([d.name for d in table.dtypes_of(p.mask)])}"
        return text
    if isinstance(v, (tuple, list)) and len(v) > 0 and isinstance(v[0], TensorBase):
        parts = [f"{t._dtype.name} {tuple(t._shape)}" for t in v if isinstance(t, TensorBase)]
        return f"{p.name} [{', '.join(parts)}]"
    return f"{p.name} {v!r}"
