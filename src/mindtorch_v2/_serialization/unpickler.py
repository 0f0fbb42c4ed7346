"""The restricted unpickler: the opcodes that PyTorch's `weights_only` knows, over the closed table in `allowed`.

Invariant: it allocates in proportion to the pickle, ends after one pass over it, calls nothing but the table's entries,
and whatever is wrong with the pickle is a `CheckpointError`.
"""

from __future__ import annotations

import struct
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable
from pickle import decode_long
from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from .._utils import _set_obj_state
from . import allowed
from .errors import CheckpointError, Refused, TruncatedCheckpoint, shown

_SHORT, _INT, _UNSIGNED, _FLOAT = struct.Struct("<H"), struct.Struct("<i"), struct.Struct("<I"), struct.Struct(">d")
_JAGGED = (
    "torch.nested._internal.nested_tensor.NestedTensor",
    "torch.nested._internal.nested_tensor._rebuild_njt",
    "torch._dynamo.decorators._DimRange",
)
_DTENSOR = tuple(
    f"torch.distributed.{name}"
    for name in """device_mesh.DeviceMesh tensor._dtensor_spec.DTensorSpec tensor._dtensor_spec.TensorMeta
    tensor.DTensor tensor.placement_types.Partial tensor.placement_types.Replicate
    tensor.placement_types.Shard""".split()
)
# Python 2's names for modules.
_OLD_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg", "UserDict": "collections"}
_MARK = object()
# Faults of a pickle as Python puts them.
_FAULTS = (
    *(IndexError, KeyError, TypeError, ValueError, AttributeError, OverflowError, ArithmeticError, RecursionError),
    *(AssertionError, RuntimeError, struct.error),
)


class Unpickler:
    """Loads one object from `data`, from `at` on; `end` is then where the pickle ended."""

    def __init__(
        self, data: Any, persistent_load: Callable[[Any], Any] | None, encoding: str = "utf-8", at: int = 0
    ) -> None:
        self.data = data
        self.at = at
        self.end = at
        self.encoding = encoding
        self.persistent_load = persistent_load
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.purse = allowed.Purse(len(data) - at)
        self.user = allowed.user_globals()

    def load(self) -> Any:
        try:
            return self._run()
        except allowed.UsersError as error:
            raise error.inner from None
        except CheckpointError:
            raise
        except _FAULTS as error:
            raise Refused(f"{type(error).__name__}: {shown(error)}") from error

    def _run(self) -> Any:
        data, stack, memo = self.data, self.stack, self.memo
        push = stack.append
        actions = _ACTIONS
        at = self.at
        size = len(data)
        while at < size:
            code = data[at]
            at += 1
            # In the order of how often they occur; the rest is in the table.
            if code == 0x71:  # BINPUT
                memo[data[at]] = stack[-1]
                at += 1
            elif code == 0x4B:  # BININT1
                push(data[at])
                at += 1
            elif code == 0x68:  # BINGET
                push(memo[data[at]])
                at += 1
            elif code == 0x72:  # LONG_BINPUT
                memo[_UNSIGNED.unpack_from(data, at)[0]] = stack[-1]
                at += 4
            elif code == 0x6A:  # LONG_BINGET
                push(memo[_UNSIGNED.unpack_from(data, at)[0]])
                at += 4
            elif code == 0x28:  # MARK
                push(_MARK)
            elif code == 0x58:  # BINUNICODE
                start = at + 4
                at = start + _UNSIGNED.unpack_from(data, at)[0]
                if at > size:
                    raise TruncatedCheckpoint("pickle data was truncated")
                push(str(data[start:at], "utf-8", "surrogatepass"))
            elif code == 0x4A:  # BININT
                push(_INT.unpack_from(data, at)[0])
                at += 4
            elif code == 0x4D:  # BININT2
                push(_SHORT.unpack_from(data, at)[0])
                at += 2
            elif code == 0x2E:  # STOP
                self.end = at
                return _result(stack)
            else:
                action = actions.get(code)
                if action is None:
                    raise Refused(f"Unsupported operand {code}")
                self.at = at
                action(self)
                at = self.at
        raise TruncatedCheckpoint("Ran out of input")

    # -- helpers ------------------------------------------------------------------------------------------------------
    def read(self, count: int) -> bytes:
        start = self.at
        self.at += count
        if self.at > len(self.data):
            raise TruncatedCheckpoint("pickle data was truncated")
        return bytes(self.data[start : self.at])

    def line(self) -> str:
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise TruncatedCheckpoint("pickle data was truncated")
        text = self.read(end - self.at)
        self.at += 1
        return text.decode("utf-8")

    def marked(self) -> list[Any]:
        """What was pushed since the last mark."""
        stack = self.stack
        at = len(stack) - 1
        while at >= 0 and stack[at] is not _MARK:
            at -= 1
        if at < 0:
            raise Refused("unexpected MARK found")
        items = stack[at + 1 :]
        del stack[at:]
        return items

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise Refused("unexpected MARK found")
        return value

    def top(self) -> Any:
        value = self.stack[-1]
        if value is _MARK:
            raise Refused("unexpected MARK found")
        return value

    # -- names, calls, states -----------------------------------------------------------------------------------------
    def global_(self) -> None:
        module, name = self.line(), self.line()
        module = _OLD_MODULES.get(module, module)
        path = f"{module}.{name}"
        if module in allowed.BLOCKED:
            raise Refused(f"Trying to load unsupported GLOBAL {shown(path)} whose module {module} is blocked.")
        table = allowed.default_globals()
        if path in table:
            self.stack.append(table[path])
        elif path in self.user:
            self.stack.append(self.user[path])
        elif path in _JAGGED:
            raise Refused(
                "``torch.nested`` and ``torch._dynamo`` must be imported to load nested jagged tensors (NJTs)"
            )
        elif path in _DTENSOR:
            raise Refused("``torch.distributed.tensor`` must be imported to load DTensors")
        else:
            path = shown(path.removeprefix("builtins."))
            raise Refused(
                f"Unsupported global: GLOBAL {path} was not an allowed global by default. Please use "
                f"`torch.serialization.add_safe_globals([{path}])` or the `torch.serialization.safe_globals([{path}])` "
                "context manager to allowlist this global if you trust this class/function."
            )

    def reduce(self) -> None:
        args, function = self.pop(), self.top()
        self.stack[-1] = allowed.call(self.purse, function, args)

    def new_object(self) -> None:
        args, cls = self.pop(), self.pop()
        if not isinstance(args, tuple):
            raise Refused(f"arguments must be a tuple, got {type(args).__name__}")
        if any(cls is v for v in self.user.values()):
            made = allowed.by_user(cls.__new__, (cls, *args))
        elif isinstance(cls, type) and id(cls) in allowed.callers() or isinstance(cls, allowed.Unsupported):
            made = allowed.call(self.purse, cls, args)
        else:
            raise Refused(
                "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got "
                f"{shown(cls)}"
            )
        self.stack.append(made)

    def build(self) -> None:
        state, made = self.pop(), self.top()
        kind = type(made)
        if kind is Tensor or kind is torch.nn.Parameter:
            made.__setstate__(state)
        elif kind is OrderedDict:
            if not isinstance(state, dict) or not all(isinstance(k, str) for k in state):
                raise Refused("the attributes of an OrderedDict must be a dict")
            self.purse.pay(len(state))
            made.__dict__.update(state)
        elif any(kind is v for v in self.user.values()):
            allowed.by_user(_build, (made, state))
        else:
            raise Refused(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{kind}"
            )

    def persistent_id(self) -> None:
        pid = self.pop()
        if type(pid) is not tuple and type(pid) is not int:
            raise Refused(f"persistent_load id must be tuple or int, but got {type(pid)}")
        if type(pid) is tuple and pid and _text(pid[0]) != "storage":
            raise Refused(f"Only persistent_load of storage is allowed, but got {type(pid[0])}")
        if self.persistent_load is None:
            raise Refused("unsupported persistent id encountered")
        self.stack.append(allowed.by_user(self.persistent_load, (pid,)))

    # -- containers ---------------------------------------------------------------------------------------------------
    def append(self) -> None:
        item, target = self.pop(), self.top()
        if type(target) is not list:
            raise Refused(f"Can only append to lists, but got {type(target)}")
        target.append(item)

    def appends(self) -> None:
        items, target = self.marked(), self.top()
        if type(target) is not list:
            raise Refused(f"Can only extend lists, but got {type(target)}")
        target.extend(items)

    def set_item(self) -> None:
        value, key = self.pop(), self.pop()
        self._fill("SETITEM", [key, value])

    def set_items(self) -> None:
        self._fill("SETITEMS", self.marked())

    def _fill(self, opcode: str, items: list[Any]) -> None:
        target = self.top()
        kind = type(target)
        if kind is not dict and kind is not OrderedDict and kind is not Counter:
            raise Refused(
                f"Can only {opcode} for dict, collections.OrderedDict, collections.Counter, but got {type(target)}"
            )
        if len(items) % 2:
            raise Refused("a dict is filled with pairs")
        for i in range(0, len(items), 2):
            key = items[i]
            if type(key) is not str:
                allowed.check_key(key)
            target[key] = items[i + 1]

    def tuple_(self) -> None:
        items = self.marked()
        self.stack.append(tuple(items))

    def _last(self, count: int) -> None:
        items = self.stack[-count:]
        if len(items) != count or any(i is _MARK for i in items):
            raise Refused("unexpected MARK found")
        self.stack[-count:] = [tuple(items)]

    # -- values -------------------------------------------------------------------------------------------------------
    def string(self) -> None:
        text: Any = self.read(self.read(1)[0])
        self.stack.append(text if self.encoding == "bytes" else text.decode(self.encoding, "strict"))

    def protocol(self) -> None:
        number = self.read(1)[0]
        if number != 2:
            warnings.warn(
                f"Detected pickle protocol {number} in the checkpoint, which was not the default pickle protocol used "
                "by `torch.load` (2). The weights_only Unpickler might not support all instructions implemented by "
                "this protocol, please file an issue for adding support if you encounter this.",
                stacklevel=2,
            )


def _result(stack: list[Any]) -> Any:
    value = stack.pop()
    if value is _MARK:
        raise Refused("unexpected MARK found")
    return value


def _text(value: Any) -> Any:
    return value.decode("ascii") if isinstance(value, bytes) else value


def _build(made: Any, state: Any) -> None:
    """What pickle does with the state of an object."""
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
    else:
        _set_obj_state(made, state)


_ACTIONS: dict[int, Callable[[Unpickler], None]] = {
    0x63: Unpickler.global_,
    0x81: Unpickler.new_object,
    0x52: Unpickler.reduce,
    0x62: Unpickler.build,
    0x61: Unpickler.append,
    0x65: Unpickler.appends,
    0x73: Unpickler.set_item,
    0x75: Unpickler.set_items,
    0x74: Unpickler.tuple_,
    0x85: lambda self: self._last(1),
    0x86: lambda self: self._last(2),
    0x87: lambda self: self._last(3),
    0x4E: lambda self: self.stack.append(None),
    0x89: lambda self: self.stack.append(False),
    0x88: lambda self: self.stack.append(True),
    0x29: lambda self: self.stack.append(()),
    0x5D: lambda self: self.stack.append([]),
    0x7D: lambda self: self.stack.append({}),
    0x8F: lambda self: self.stack.append(set()),
    0x47: lambda self: self.stack.append(_FLOAT.unpack(self.read(8))[0]),
    0x55: Unpickler.string,
    0x51: Unpickler.persistent_id,
    0x8A: lambda self: self.stack.append(decode_long(self.read(self.read(1)[0]))),
    0x80: Unpickler.protocol,
}
