"""What is called: the public functions, methods, operators and modules, with what is known of their parameters.

Invariant: names are paths from `torch`, in the order of the alphabet, so that a seed names the same function twice.
"""

from __future__ import annotations

import inspect
import re
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple


class Param(NamedTuple):
    """A parameter; `kind` is a kind of the schema language, or `Any`."""

    name: str
    kind: str
    is_list: bool = False
    size: int = 0
    optional: bool = False
    kwonly: bool = False
    default: bool = False


class Target(NamedTuple):
    """Something to call. `Tensor.name` is called as a method, `nn.Name` is made and then called."""

    path: str
    signatures: tuple[tuple[Param, ...], ...]
    out: bool = False
    mark: int = 0  # a number made from the path

    @property
    def is_method(self) -> bool:
        return self.path.startswith("Tensor.")

    @property
    def is_module(self) -> bool:
        return re.fullmatch(r"nn\.[A-Z]\w*", self.path) is not None


NAMESPACES = (
    "",
    "Tensor",
    "nn.functional",
    "linalg",
    "special",
    "fft",
    "signal.windows",
    "nn.init",
    "nn",
    "masked",
    "autograd.functional",
)
# They change the process (threads, defaults, seeds), or are part of every object in Python.
SKIPPED = frozenset(
    """set_num_threads set_default_device set_default_dtype set_default_tensor_type set_printoptions printoptions
    set_anomaly_enabled set_grad_enabled set_rng_state seed initial_seed manual_seed no_grad enable_grad inference_mode
    load save Tensor.__class__ Tensor.share_memory_ Tensor.pin_memory Tensor.register_hook Tensor.__dir__
    Tensor.__init_subclass__ Tensor.__subclasshook__ Tensor.__new__ Tensor.__reduce__ Tensor.__reduce_ex__
    Tensor.__getattribute__ Tensor.__setattr__ Tensor.__delattr__ Tensor.__sizeof__ Tensor.__hash__ Tensor.__str__
    Tensor.__init__ Tensor.__torch_function__ Tensor.__torch_dispatch__ Tensor.__subclasscheck__ functionalize
    Tensor.__format__ Tensor.__repr__""".split()
)
_BY_NAME = {
    "input": "Tensor",
    "target": "Tensor",
    "weight": "Tensor",
    "tensor": "Tensor",
    "other": "Tensor",
    "dim": "int",
    "size": "ints",
    "kernel_size": "ints",
    "stride": "ints",
    "padding": "ints",
    "dilation": "ints",
    "dtype": "ScalarType",
    "p": "float",
    "eps": "float",
    "inplace": "bool",
    "training": "bool",
    "device": "Device",
    "mode": "str",
    "reduction": "str",
    "output_size": "ints",
    "tensors": "Tensors",
    "out": "Tensor",
    "bias": "Tensor",
    "M": "int",
}


def find(torch: Any) -> list[Target]:
    """Everything there is, and the operators of `torch.ops.aten` by overload."""
    found = [target for space in NAMESPACES for target in _in_space(torch, space)]
    return [target._replace(mark=zlib.crc32(target.path.encode())) for target in [*found, *_operators(torch)]]


def _in_space(torch: Any, space: str) -> Iterator[Target]:
    holder = torch
    for part in space.split("."):
        holder = getattr(holder, part, None) if part else holder
    for name in sorted(dir(holder)):
        path = f"{space}.{name}" if space else name
        if path in SKIPPED or not _wanted(name, space):
            continue
        value = getattr(holder, name, None)
        is_module = space == "nn" and isinstance(value, type) and issubclass(value, torch.nn.Module)
        if is_module or (space != "nn" and callable(value) and not inspect.ismodule(value)):
            yield target_of(path, value)


def _wanted(name: str, space: str) -> bool:
    if space == "Tensor" and re.fullmatch(r"__\w+__", name):
        return True
    return not name.startswith("_") or name.startswith("_foreach_")


def _operators(torch: Any) -> Iterator[Target]:
    for name in sorted(dir(torch.ops.aten)):
        packet = getattr(torch.ops.aten, name, None)
        overloads = getattr(packet, "overloads", None)
        if overloads is None:
            continue
        for overload in overloads():
            op = getattr(packet, overload)
            params = tuple(_of_argument(argument) for argument in op._schema.arguments)
            yield Target(f"ops.aten.{name}.{overload}", (params,))


def target_of(path: str, value: Any) -> Target:
    overloads = getattr(value, "__overloads__", None)
    if overloads is None:
        return Target(path, (_of_signature(value, path),))
    signatures = [tuple(_of_schema(argument) for argument in op.schema.args) for op in overloads.ops]
    out = any(op.row is not None and op.row.out_op is not None for op in overloads.ops)
    return Target(path, tuple(signatures), out and not path.startswith("Tensor."))


def _of_schema(argument: Any) -> Param:
    return Param(
        argument.name,
        argument.kind,
        argument.is_list,
        argument.size,
        argument.optional,
        argument.kwonly,
        argument.has_default,
    )


def _of_argument(argument: Any) -> Param:
    """Of `torch.ops`, in whose schemas types are Python's words."""
    return _of_text(argument.name, str(argument.type), bool(argument.kwarg_only), bool(argument.has_default_value()))


def _of_signature(value: Any, path: str) -> tuple[Param, ...]:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return (Param("input", "Any"),)
    found: list[Param] = []
    for name, parameter in signature.parameters.items():
        if name in ("self", "cls") and not path.startswith("Tensor."):
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            found.extend([Param("input", "Any")] * 2)
            continue
        kwonly = parameter.kind is parameter.KEYWORD_ONLY
        default = parameter.default is not parameter.empty
        note = "" if parameter.annotation is parameter.empty else str(parameter.annotation)
        found.append(_of_text(name, note, kwonly, default))
    return tuple(found)


def _of_text(name: str, note: str, kwonly: bool, default: bool) -> Param:
    """From an annotation, or else from the name."""
    optional = "None" in note or "Optional" in note
    is_list = "list" in note.lower() or "sequence" in note.lower() or "tuple" in note.lower() or "_size" in note
    for kind in ("Tensor", "bool", "int", "float", "str", "number", "Device", "ScalarType", "dtype", "device"):
        if kind in note:
            kind = {"number": "Scalar", "dtype": "ScalarType", "device": "Device"}.get(kind, kind)
            return Param(name, kind, is_list, 0, optional, kwonly, default)
    if "size" in note.lower():
        return Param(name, "int", True, 0, optional, kwonly, default)
    guess = _BY_NAME.get(name, "Tensor" if name == "self" else "Any")
    return Param(name, guess.rstrip("s"), guess.endswith("s"), 0, optional, kwonly, default)
