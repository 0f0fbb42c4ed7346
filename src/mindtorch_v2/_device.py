"""Devices: where a tensor's memory lives and its operators run.

Invariant: a device is a value: two with the same type and index are equal and hash alike, and making one touches no
hardware.
"""

import functools
from collections.abc import Callable
from typing import Any, Final, final

from ._mypyc import i64

__all__ = ["CPU", "META", "PLACES", "add_device_type", "as_device", "device"]

# PyTorch's device types in the order of its error text. `npu` is the name given to PyTorch's place for other
# accelerators (privateuseone), which is therefore an alias of it.
_TYPES: Final = (
    "cpu",
    "cuda",
    "ipu",
    "xpu",
    "mkldnn",
    "opengl",
    "opencl",
    "ideep",
    "hip",
    "ve",
    "fpga",
    "maia",
    "xla",
    "lazy",
    "vulkan",
    "mps",
    "meta",
    "hpu",
    "mtia",
    "npu",
)
# Keeps type and index apart in `device.key`.
_MAX_INDEX: Final = 32767


def _index_types() -> dict[str, int]:
    table: dict[str, int] = {}
    for position, name in enumerate(_TYPES):
        table[name] = position
    return table


_TYPE_CODES: Final = _index_types()


def add_device_type(kind: str) -> None:
    """Make `kind` a name that `device` accepts; a third-party device calls this once."""
    if not _is_word(kind):
        raise ValueError(f"a device type is a word of letters and underscores, got '{kind}'")
    if kind not in _TYPE_CODES:
        _TYPE_CODES[kind] = len(_TYPE_CODES)


@final
class device:
    """`device("npu:1")`, `device("npu", 1)`, `device(type="npu", index=1)`, `device(1)` or `device(another)`."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        kind, index = _arguments(args, kwargs)
        self.type: Final = kind
        self.index: Final = index
        # Two devices are equal exactly when their keys are: one integer comparison in compiled code.
        self.key: Final[i64] = _TYPE_CODES[kind] * 65536 + (0 if index is None else index + 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and other.key == self.key

    def __ne__(self, other: object) -> bool:
        return not isinstance(other, device) or other.key != self.key

    def __hash__(self) -> int:
        return self.key

    def __lt__(self, other: object) -> bool:
        raise TypeError("comparison not implemented")

    def __le__(self, other: object) -> bool:
        raise TypeError("comparison not implemented")

    def __gt__(self, other: object) -> bool:
        raise TypeError("comparison not implemented")

    def __ge__(self, other: object) -> bool:
        raise TypeError("comparison not implemented")

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        if self.index is None:
            return self.type
        return f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[object, ...]:
        if self.index is None:
            return (device, (self.type,))
        return (device, (self.type, self.index))

    def __enter__(self) -> "device":
        from ._dispatch.state import push_default_device

        push_default_device(self)
        return self

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        from ._dispatch.state import pop_default_device

        pop_default_device()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a function so that it runs with this device as the default."""
        if not callable(function):
            raise TypeError("'torch.device' object is not callable")
        return _with_device(self, function)


def _with_device(where: device, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with where:
            return function(*args, **kwargs)

    return run


def _arguments(args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[str, int | None]:
    """Type and index from what the constructor was given."""
    given = len(args) + len(kwargs)
    if given == 1 and "type" not in kwargs:
        return _from_one(args, kwargs)
    if given == 0 or given > 2:
        raise _invalid(args, kwargs, "")
    if not args and "type" not in kwargs:
        raise TypeError('device() missing 1 required positional arguments: "type"')
    for name in kwargs:
        if name != "type" and name != "index":
            raise TypeError(f"device() got an unexpected keyword argument '{name}'")
    if args and "type" in kwargs:
        raise TypeError("device() got multiple values for argument 'type'")
    kind = args[0] if args else kwargs["type"]
    index = args[1] if len(args) == 2 else kwargs.get("index")
    if isinstance(kind, bytes):
        kind = kind.decode()
    if not isinstance(kind, str):
        if given == 1:
            raise _invalid(args, kwargs, "some of the keywords were incorrect: type")
        where = " (position 1)" if args else ""
        raise TypeError(f"device(): argument 'type'{where} must be str, not {_type_name(kind)}")
    if index is not None and (not isinstance(index, int) or isinstance(index, bool)):
        where = " (position 2)" if len(args) == 2 else ""
        raise TypeError(f"device(): argument 'index'{where} must be int, not {_type_name(index)}")
    parsed, inner = _parse(kind)
    if inner is not None:
        raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {kind}")
    if index is None:
        return parsed, None
    return parsed, _checked_index(index)


def _from_one(args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[str, int | None]:
    """Type and index from a single argument that stands for a device."""
    if args:
        value = args[0]
    elif "device" in kwargs:
        value = kwargs["device"]
    else:
        raise _invalid(args, kwargs, f"some of the keywords were incorrect: {', '.join(kwargs)}")
    if isinstance(value, str):
        return _parse(value)
    if isinstance(value, device):
        return value.type, value.index
    if isinstance(value, bytes):
        return _parse(value.decode())
    if isinstance(value, int) and not isinstance(value, bool):
        return "npu", _checked_index(value)
    wrong = f"!{_type_name(value)}!" if args else f"!device={_type_name(value)}!, "
    raise _invalid(args, kwargs, f"some of the arguments have invalid types: ({wrong})")


def _invalid(args: tuple[object, ...], kwargs: dict[str, object], reason: str) -> TypeError:
    """PyTorch's error for arguments that fit no way of naming a device."""
    got = [_type_name(value) for value in args] + [f"{name}={_type_name(kwargs[name])}" for name in kwargs]
    # PyTorch closes a list of keywords alone with a comma.
    listed = ", ".join(got) + (", " if kwargs and not args else "")
    why = f"      didn't match because {reason}\n" if reason else ""
    return TypeError(
        f"device() received an invalid combination of arguments - got ({listed}), but expected one of:\n"
        f" * (torch.device device)\n{why} * (str type, int index = -1)\n"
    )


def _checked_index(index: int) -> int:
    if index < 0:
        raise RuntimeError("Device index must not be negative")
    if index > _MAX_INDEX:
        raise RuntimeError(f"Device index must be at most {_MAX_INDEX}, got {index}")
    return index


def _parse(text: str) -> tuple[str, int | None]:
    """Type and index from a string such as `npu:0`."""
    if text in _TYPE_CODES:
        return text, None
    if not text:
        raise RuntimeError("Device string must not be empty")
    kind, colon, digits = text.partition(":")
    if not _is_word(kind) or (colon and not _is_index(digits)):
        raise RuntimeError(f"Invalid device string: '{text}'")
    if kind == "privateuseone":
        kind = "npu"
    if kind not in _TYPE_CODES:
        expected = ", ".join(_TYPE_CODES)
        raise RuntimeError(f"Expected one of {expected} device type at start of device string: {kind}")
    if not colon:
        return kind, None
    if len(digits) > 5 or int(digits) > _MAX_INDEX:
        raise RuntimeError(f"Could not parse device index '{digits}' in device string '{text}'")
    return kind, int(digits)


def _is_word(text: str) -> bool:
    return bool(text) and text.isascii() and text.replace("_", "a").isalpha()


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdigit() and (len(text) == 1 or text[0] != "0")


def _type_name(value: object) -> str:
    return "torch.device" if isinstance(value, device) else type(value).__name__


CPU: Final = device("cpu")
META: Final = device("meta")

# By device type: a function from an index, or None for the one this thread uses, to the device that is meant.
PLACES: Final[dict[str, Any]] = {}


class _Known:
    """Devices already made from strings, so that naming one costs a dictionary look-up."""

    def __init__(self) -> None:
        self.by_name: dict[str, device] = {"cpu": CPU, "meta": META}


_KNOWN: Final = _Known()


def as_device(value: object) -> device:
    """The device named by a device, a string or an index."""
    if isinstance(value, device):
        return value
    if isinstance(value, str):
        found = _KNOWN.by_name.get(value)
        if found is None:
            found = device(value)
            _KNOWN.by_name[value] = found
        return found
    return device(value)


@final
class Pinning:
    """Who offers page-locked host memory: `allocate(nbytes)` of the device whose copies it is for, None without one."""

    def __init__(self) -> None:
        self.available: Any = None
        self.allocate: Any = None


PINNING: Final = Pinning()


def can_pin() -> bool:
    """Whether some device here offers page-locked memory."""
    return PINNING.available is not None and bool(PINNING.available())


# What a user sees of a class is where it is found.
setattr(device, "__module__", "mindtorch_v2")
