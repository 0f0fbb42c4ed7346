"""Questions about types: promotion, casting, and what kind of thing an object is."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from ._core_operators import HOOKS
from ._device import CPU
from ._device import device as Device
from ._dispatch.keys import BATCHED
from ._dispatch.op import type_name
from ._dispatch.registry import get
from ._dispatch.state import current_default_device
from ._dtype import dtype as DType
from ._dtype import set_default_dtype
from ._dtype_names import type_string
from ._numbers import is_number
from ._overrides import overridable
from ._promotion import can_cast as _can_cast
from ._promotion import number_dtype, promote, result_type_of
from ._storage import UntypedStorage
from ._tensor_base import TensorBase
from ._tensor_base import numel as _numel
from ._typed_storage import TypedStorage
from ._warn import warn_once


def promote_types(type1: DType, type2: DType) -> DType:
    """The smallest dtype that holds both."""
    if not (isinstance(type1, DType) and isinstance(type2, DType)):
        raise _no_dtype("promote_types", (("type1", type1), ("type2", type2)))
    return promote(type1, type2)


def can_cast(from_: DType, to: DType) -> bool:
    """Whether PyTorch's promotion rules allow this conversion."""
    if not (isinstance(from_, DType) and isinstance(to, DType)):
        raise _no_dtype("can_cast", (("from_", from_), ("to", to)))
    return _can_cast(from_, to)


def _no_dtype(fname: str, given: tuple[tuple[str, object], ...]) -> TypeError:
    i, (name, value) = next((i, each) for i, each in enumerate(given) if not isinstance(each[1], DType))
    return TypeError(f"{fname}(): argument '{name}' (position {i + 1}) must be torch.dtype, not {type_name(value)}")


@overridable
def result_type(tensor1: Any, tensor2: Any) -> DType:
    """The dtype of an arithmetic result of two tensors or numbers."""
    if isinstance(tensor1, TensorBase) and isinstance(tensor2, TensorBase) and tensor1._shape and tensor2._shape:
        return promote(tensor1._dtype, tensor2._dtype)
    dim: DType | None = None
    zero: DType | None = None
    wrapped: DType | None = None
    for i, x in enumerate((tensor1, tensor2)):
        if isinstance(x, TensorBase):
            if x._shape:
                dim = x._dtype if dim is None else promote(dim, x._dtype)
            else:
                zero = x._dtype if zero is None else promote(zero, x._dtype)
        elif is_number(x):
            d = number_dtype(x)
            wrapped = d if wrapped is None else promote(wrapped, d)
        else:
            raise TypeError(
                f"result_type(): argument 'tensor{i + 1}' (position {i + 1}) must be Tensor, not {type_name(x)}"
            )
    return result_type_of(dim, zero, wrapped)


def is_tensor(obj: Any) -> bool:
    return isinstance(obj, TensorBase)


def is_storage(obj: Any) -> bool:
    return isinstance(obj, (UntypedStorage, TypedStorage))


def _need(name: str, x: Any) -> TensorBase:
    if not isinstance(x, TensorBase):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type_name(x)}")
    return x


@overridable
def is_floating_point(input: Any) -> bool:
    return bool(_need("is_floating_point", input)._dtype.is_floating_point)


@overridable
def is_complex(input: Any) -> bool:
    return bool(_need("is_complex", input)._dtype.is_complex)


@overridable
def is_nonzero(input: Any) -> bool:
    t = _need("is_nonzero", input)
    if t._keys & BATCHED:
        return bool(t)
    if _numel(t) != 1:
        raise RuntimeError(
            "Boolean value of Tensor with "
            + ("no values" if _numel(t) == 0 else "more than one value")
            + " is ambiguous"
        )
    return bool(t.item())


@overridable
def numel(input: Any) -> int:
    return int(_numel(_need("numel", input)))


def typename(obj: Any) -> str:
    """The type's name; a tensor's legacy type."""
    if isinstance(obj, TensorBase):
        return type_string(obj._dtype, obj._device)
    kind = type(obj)
    if kind.__module__.startswith("mindtorch_v2._"):
        # The package's private modules are nobody's business.
        return f"mindtorch_v2.{kind.__qualname__}"
    return kind.__qualname__ if kind.__module__ in ("builtins", None) else f"{kind.__module__}.{kind.__qualname__}"


def get_default_device() -> Device:
    found = current_default_device()
    return CPU if found is None else found


def set_default_tensor_type(t: Any) -> None:
    """Only the dtype of the type matters; a type name or a class such as `torch.FloatTensor`."""
    warn_once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives."
    )
    if isinstance(t, str):
        import mindtorch_v2 as torch

        t = attrgetter(t.removeprefix("torch."))(torch)
    if not isinstance(t, type) or not hasattr(t, "dtype"):
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    if getattr(t, "is_cuda", False) is True:
        t()  # says that there is no CUDA
    if not t.dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    set_default_dtype(t.dtype)


@overridable
def nonzero(input: Any, *, out: Any = None, as_tuple: bool = False) -> Any:
    """Positions of the elements that are not zero."""
    t: Any = _need("nonzero", input)
    if not isinstance(as_tuple, bool):
        raise TypeError(f"nonzero(): argument 'as_tuple' must be bool, not {type_name(as_tuple)}")
    if out is None:
        return t.nonzero(as_tuple=as_tuple)
    if as_tuple:
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    return get("nonzero.out").call((t, out))


@overridable
def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    return HOOKS.public_index_put(_need("index_put", input), indices, values, accumulate)


@overridable
def index_put_(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    return HOOKS.public_index_put_(_need("index_put_", input), indices, values, accumulate)
