"""The closed table of what a file may name when only weights are loaded, and what calling it does.

Invariant: a name in a file is a key of this table or of the user's list, never an import. Calling one of ours goes
through a function here that checks its arguments: it takes no memory that the file does not justify, imports nothing
and runs no code of anybody else.
"""

from __future__ import annotations

from _codecs import encode
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import mindtorch_v2 as torch

from .. import _utils
from .._layout import _get_layout
from .._storage import UntypedStorage
from .._tensor import Tensor
from .._typed_storage import CLASSES, TypedStorage
from .errors import CheckpointError, Refused, UnsupportedCheckpoint, shown
from .names import theirs

# Never, also when the user asks for it.
BLOCKED = ("sys", "os", "posix", "nt")
_ENCODINGS = ("latin1", "latin-1", "utf-8", "utf8", "ascii")
# Hashing a tuple looks at everything in it again, however often a part is shared; both numbers stop that in time.
_DEEPEST_KEY, _LARGEST_KEY = 50, 10_000
_QUANTIZED = ("QUInt8", "QInt8", "QInt32", "QUInt4x2", "QUInt2x4")
_SCHEMES = """per_tensor_affine per_tensor_symmetric per_channel_affine per_channel_symmetric
per_channel_affine_float_qparams""".split()


class StorageType:
    """Stands for a storage class of one dtype while a file is loaded."""

    __module__ = "mindtorch_v2.serialization"

    def __init__(self, name: str) -> None:
        from ..storage import _get_dtype_from_pickle_storage_type

        self._dtype = _get_dtype_from_pickle_storage_type(name)

    @property
    def dtype(self) -> Any:
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


class Unsupported:
    """Stands for something that PyTorch has and this package has not; only its use is an error."""

    def __init__(self, name: str, what: str) -> None:
        self.name = name
        self.what = what

    def refuse(self) -> UnsupportedCheckpoint:
        return UnsupportedCheckpoint(f"the file names {self.name}; {self.what} are not supported")

    @property
    def dtype(self) -> Any:
        raise self.refuse()


class Purse:
    """How many elements calls may still copy. A pickle can ask for the same copy again in a few bytes."""

    def __init__(self, bytes_of_pickle: int) -> None:
        self.left = 16 * bytes_of_pickle + (1 << 12)

    def pay(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise Refused("the file copies more than it holds")


Caller = Callable[[Purse, "tuple[Any, ...]"], Any]


# -- keys of dicts, members of sets -----------------------------------------------------------------------------------
def check_key(key: Any) -> None:
    """Refuse what cannot be hashed, or not in reasonable time."""
    if not isinstance(key, tuple):
        if isinstance(key, (list, dict, set, bytearray)):
            raise Refused(f"unhashable type: '{type(key).__name__}'")
        return
    level: list[Any] = list(key)
    seen = 0
    for _ in range(_DEEPEST_KEY):
        below: list[Any] = []
        for item in level:
            if isinstance(item, tuple):
                below.extend(item)
            elif isinstance(item, (list, dict, set, bytearray)):
                raise Refused(f"unhashable type: '{type(item).__name__}'")
            seen += 1
            if seen > _LARGEST_KEY or len(below) > _LARGEST_KEY:
                raise Refused("a key of a dict is too large")
        if not below:
            return
        level = below
    raise Refused("a key of a dict is nested too deeply")


# -- calls ------------------------------------------------------------------------------------------------------------
def _pairs(purse: Purse, items: Iterable[Any]) -> list[tuple[Any, Any]]:
    out = []
    for pair in items:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise Refused("a dict is made of pairs")
        purse.pay(1)
        check_key(pair[0])
        out.append((pair[0], pair[1]))
    return out


def _ordered_dict(purse: Purse, args: tuple[Any, ...]) -> Any:
    if len(args) > 1 or (args and not isinstance(args[0], (list, tuple, dict))):
        raise Refused("an OrderedDict is made of a list of pairs")
    if not args:
        return OrderedDict()
    return OrderedDict(_pairs(purse, args[0].items() if isinstance(args[0], dict) else args[0]))


def _counter(purse: Purse, args: tuple[Any, ...]) -> Any:
    if len(args) > 1 or (args and not isinstance(args[0], (dict, list, tuple))):
        raise Refused("a Counter is made of a dict")
    for key in args[0] if args else ():
        purse.pay(1)
        check_key(key)
    return Counter(*args)


def _set(purse: Purse, args: tuple[Any, ...]) -> Any:
    if len(args) > 1 or (args and not isinstance(args[0], (list, tuple, set))):
        raise Refused("a set is made of a list")
    for key in args[0] if args else ():
        purse.pay(1)
        check_key(key)
    return set(*args)


def _bytearray(purse: Purse, args: tuple[Any, ...]) -> Any:
    if not args:
        return bytearray()
    data = args[0]
    purse.pay(len(data) if isinstance(data, (bytes, bytearray, str, list)) else 0)
    if isinstance(data, (bytes, bytearray, list)) and len(args) == 1:
        return bytearray(data)
    if isinstance(data, str) and len(args) == 2 and args[1] in _ENCODINGS:
        return bytearray(data, args[1])
    raise Refused("a bytearray is made of bytes")


def _encode(purse: Purse, args: tuple[Any, ...]) -> Any:
    if len(args) not in (1, 2) or not isinstance(args[0], str) or (len(args) == 2 and args[1] not in _ENCODINGS):
        raise Refused("bytes are made of a text in latin1, ascii or utf-8")
    purse.pay(len(args[0]))
    return encode(*args)


def _complex(purse: Purse, args: tuple[Any, ...]) -> Any:
    if len(args) > 2 or not all(isinstance(a, (int, float)) for a in args):
        raise Refused("a complex number is made of two numbers")
    return complex(*args)


def _size(purse: Purse, args: tuple[Any, ...]) -> Any:
    if len(args) > 1 or (args and not isinstance(args[0], (tuple, list))):
        raise Refused("a torch.Size is made of a tuple")
    purse.pay(len(args[0]) if args else 0)
    return torch.Size(*args)


def _device(purse: Purse, args: tuple[Any, ...]) -> Any:
    if not 1 <= len(args) <= 2 or not isinstance(args[0], str) or len(args[0]) > 100:
        raise Refused("a torch.device is made of a text and a number")
    return torch.device(*args)


def _layout(purse: Purse, args: tuple[Any, ...]) -> Any:
    if len(args) != 1 or not isinstance(args[0], str):
        raise Refused("a torch.layout is found by its text")
    return _get_layout(args[0])


def _parameter(purse: Purse, args: tuple[Any, ...]) -> Any:
    if len(args) > 2 or not all(isinstance(a, Tensor) for a in args[:1]):
        raise Refused("a Parameter is made of a tensor")
    return torch.nn.Parameter(*args[:1], *(bool(a) for a in args[1:]))


def _empty(cls: Any) -> Caller:
    def make(purse: Purse, args: tuple[Any, ...]) -> Any:
        if args:
            raise Refused(f"a file may only make an empty {cls.__name__}")
        return cls()

    return make


def _rebuilding(function: Callable[..., Any]) -> Caller:
    def call(purse: Purse, args: tuple[Any, ...]) -> Any:
        purse.pay(len(args))
        return function(*args)

    return call


def _from_type(purse: Purse, args: tuple[Any, ...]) -> Any:
    if len(args) != 4 or not isinstance(args[2], tuple):
        raise Refused("a tensor of a class is made of a function, a class, a tuple and a state")
    function, new_type, inner, state = args
    if not is_known(new_type):
        raise Refused(f"Trying to make a tensor of the class {shown(new_type)}, which is not allowed")
    return _utils.dressed(call(purse, function, inner), new_type, state)


class UsersError(Exception):
    """Carries what code of the user's raised past those who take exceptions for faults of the file."""

    def __init__(self, inner: Exception) -> None:
        self.inner = inner


def by_user(function: Any, args: Any) -> Any:
    """Call code of the user's."""
    try:
        return function(*args)
    except CheckpointError:
        raise
    except Exception as error:
        raise UsersError(error) from None


def call(purse: Purse, function: Any, args: Any) -> Any:
    """Call something that the unpickler found in the table."""
    if isinstance(function, Unsupported):
        raise function.refuse()
    if not isinstance(args, tuple):
        raise Refused(f"arguments must be a tuple, got {type(args).__name__}")
    ours = callers().get(id(function))
    if ours is not None:
        return ours(purse, args)
    if any(function is f for f in user_globals().values()):
        return by_user(function, args)
    text = f"Trying to call reduce for unrecognized function {shown(function)}"
    if hasattr(function, "__self__"):
        text += f" which belongs to {shown(function.__self__)}"
    raise Refused(text)


@cache
def callers() -> dict[int, Caller]:
    """What is done to call an entry of the table, by its identity."""
    table = default_globals()
    out: dict[int, Caller] = {
        id(OrderedDict): _ordered_dict,
        id(Counter): _counter,
        id(set): _set,
        id(bytearray): _bytearray,
        id(encode): _encode,
        id(complex): _complex,
        id(torch.Size): _size,
        id(torch.device): _device,
        id(_get_layout): _layout,
        id(torch.nn.Parameter): _parameter,
        id(_utils._rebuild_from_type_v2): _from_type,
    }
    for name, value in table.items():
        if name.startswith("torch._utils."):
            out[id(value)] = _rebuilding(value)
        elif name == "torch.Tensor" or (name.endswith("Tensor") and not isinstance(value, Unsupported)):
            out[id(value)] = _empty(value)
    return out


# -- the table --------------------------------------------------------------------------------------------------------
_REBUILD = """_rebuild_parameter _rebuild_parameter_with_state _rebuild_qtensor _rebuild_tensor _rebuild_tensor_v2
_rebuild_tensor_v3 _rebuild_sparse_tensor _rebuild_meta_tensor_no_storage _rebuild_nested_tensor
_rebuild_wrapper_subclass _rebuild_device_tensor_from_numpy _rebuild_device_tensor_from_cpu_tensor""".split()
_DTYPES = """float64 float32 float16 int64 int32 int16 int8 uint8 bool bfloat16 complex128 complex64 complex32
float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz float8_e8m0fnu float4_e2m1fn_x2 bits8 bits16 bits1x8 bits2x4
bits4x2 uint16 uint32 uint64 uint1 uint2 uint3 uint4 uint5 uint6 uint7 int1 int2 int3 int4 int5 int6 int7""".split()


@cache
def default_globals() -> dict[str, Any]:
    """What files may always name."""
    table: dict[str, Any] = {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "torch.nn.parameter.Parameter": torch.nn.Parameter,
        "torch.serialization._get_layout": _get_layout,
        "torch.Size": torch.Size,
        "torch.Tensor": Tensor,
        "torch.device": torch.device,
        "_codecs.encode": encode,
        "builtins.bytearray": bytearray,
        "builtins.set": set,
        "builtins.complex": complex,
        "torch.storage.UntypedStorage": UntypedStorage,
        "torch.storage.TypedStorage": TypedStorage,
        "torch._tensor._rebuild_from_type_v2": _utils._rebuild_from_type_v2,
    }
    for name in _DTYPES:
        value = getattr(torch, name, None)
        table[f"torch.{name}"] = value if value is not None else Unsupported(f"torch.{name}", "tensors of that dtype")
    for title in CLASSES.values():
        for where in ("torch", "torch.cuda"):
            table[f"{where}.{title}Storage"] = StorageType(f"{title}Storage")
            made = getattr(torch, f"{title}Tensor", None) if where == "torch" else None
            table[f"{where}.{title}Tensor"] = made or Unsupported(f"{where}.{title}Tensor", "tensors of that class")
            sparse = f"{where}.sparse.{title}Tensor"
            table[sparse] = Unsupported(sparse, "sparse tensors")
    for title in _QUANTIZED:
        for kind in ("Storage", "Tensor"):
            name = f"torch.{title}{kind}"
            table[name] = Unsupported(name, "quantized tensors")
        table[f"torch.{title.lower()}"] = Unsupported(f"torch.{title.lower()}", "quantized tensors")
    for name in _SCHEMES:
        table[f"torch.{name}"] = Unsupported(f"torch.{name}", "quantized tensors")
    for name in _REBUILD:
        table[f"torch._utils.{name}"] = getattr(_utils, name)
    return table


# -- the user's list --------------------------------------------------------------------------------------------------
class _User:
    marked: set[Any] = set()


def add(items: list[Any]) -> None:
    _User.marked = _User.marked | set(items)


def remove(items: list[Any]) -> None:
    _User.marked = _User.marked - set(items)


def clear() -> None:
    _User.marked = set()


def listed() -> list[Any]:
    return list(_User.marked)


# What modules that are not always loaded let files name, by the names files use.
KNOWN: dict[str, Any] = {}


def user_globals() -> dict[str, Any]:
    """What the user allowed, by the names files use, and what loaded modules did."""
    table: dict[str, Any] = dict(KNOWN)
    for item in _User.marked:
        if not isinstance(item, tuple):
            table[".".join(theirs(item.__module__, item.__qualname__))] = item
            continue
        if len(item) != 2:
            raise ValueError(
                f"Expected tuple of length 2 (global, str of callable full path), but got tuple of length: {len(item)}"
            )
        if type(item[1]) is not str:
            raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(item[1])}")
        table[item[1]] = item[0]
    return table


def is_known(value: Any) -> bool:
    """Whether a value is one that files may name."""
    return any(value is v for v in default_globals().values()) or any(value is v for v in user_globals().values())
