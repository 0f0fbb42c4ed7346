"""Hand-written functions and methods that stand beside the rows: creation, conversion, properties that are views.

Invariant: nothing here computes; a name is attached once, before the rows' own methods are.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from ._autograd import leaf_policy

# Methods in `_tensor_rest`, which is loaded when one of them is first asked for.
LATE_METHODS = (
    "__long__ __nonzero__ _is_all_true _is_any_true _rev_view_func_unsafe _view_func _view_func_unsafe "
    "apply_ const_data_ptr cuda eig ipu is_distributed is_nonzero "
    "is_set_to lstsq map2_ map_ mtia reinforce resize resize_as solve storage_type symeig xpu"
).split()
# The same in `_sparse.methods`.
SPARSE_METHODS = (
    "to_dense to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc _to_sparse "
    "_to_sparse_csr _to_sparse_csc _to_sparse_bsr _to_sparse_bsc dense_dim sparse_dim _dimI _dimV is_coalesced "
    "coalesce _coalesced_ _nnz indices values _indices _values crow_indices col_indices ccol_indices row_indices "
    "sparse_mask _sparse_mask_projection sparse_resize_ sparse_resize_and_clear_ resize_as_sparse_ smm sspaddmm"
).split()
# Devices and layouts that are not here.
ABSENT = "is_ipu is_maia is_mps is_mtia is_vulkan is_xla is_xpu _has_symbolic_sizes_strides".split()


class LateMethod:
    """Stands in the Tensor class for a method of `_tensor_rest`, or another module, that nobody used yet."""

    def __init__(self, name: str, module: str = "_tensor_rest") -> None:
        self.name = name
        self.module = module

    def __get__(self, obj: Any, owner: Any = None) -> Any:
        from importlib import import_module

        from ._tensor import Tensor
        from ._unbound import of_tensor

        fn: Any = of_tensor(getattr(import_module("." + self.module, __package__), self.name))
        if Tensor.__dict__.get(self.name) is self:
            setattr(Tensor, self.name, fn)
        return fn if obj is None else fn.__get__(obj, owner)


_CDATA = count(0x1000, 0x100)


def _cdata(self: Any) -> int:
    """A number for what is in a tensor, which goes with it when tensors are swapped."""
    number: int | None = self.__dict__.get("_cdata")
    if number is None:
        number = self.__dict__["_cdata"] = next(_CDATA)
    return number


def _volatile(self: Any) -> bool:
    """Always False: use `torch.no_grad`."""
    from ._tensor_rest import volatile

    return volatile(self)


def _set_volatile(self: Any, value: Any) -> None:
    from ._tensor_rest import set_volatile

    set_volatile(self, value)


def _grad_dtype(self: Any) -> Any:
    """The dtype that gradients of this leaf have: its own unless set; None allows any."""
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return leaf_policy.grad_dtype(self)


def _cuda_array_interface(self: Any) -> Any:
    """Only memory of a CUDA device has one."""
    from ._tensor_rest import __cuda_array_interface__

    return __cuda_array_interface__(self)


def _set_real(self: Any, value: Any) -> None:
    self.real.copy_(value)


def _set_imag(self: Any, value: Any) -> None:
    self.imag.copy_(value)


# Views that can be assigned to: the values are copied.
_SETTERS = {"real": _set_real, "imag": _set_imag}


# Factories whose usual calls the native module binds, made when first asked for: their rows in `_ops.create` and
# `_ops.random` have the same names in capitals.
FACTORIES = frozenset(
    """arange empty empty_like empty_strided eye full full_like linspace logspace ones ones_like rand rand_like randint
    randint_like randn randn_like randperm scalar_tensor tril_indices triu_indices zeros zeros_like""".split()
)


def factory(name: str) -> Callable[..., Any]:
    """The public function of a factory."""
    from . import _creation, _random
    from ._api import bound
    from ._ops import create, random
    from ._overrides import overridable

    drawn = name in _random.__all__
    plain: Any = getattr(_random if drawn else _creation, name)
    op: Any = getattr(random if drawn else create, name.upper())
    forms: list[bound.Signature] = [(op, op.call)]
    if name == "arange":
        forms.insert(0, (op, _creation.arange_to, (0, 2)))
    elif name == "eye":
        forms.insert(0, (op, _creation.eye_square, (1,)))
    elif name in ("randint", "randint_like"):
        # The lower bound comes first, or after the tensor.
        at = int(name == "randint_like")
        forms.insert(0, (op, lambda args: op.call((*args[:at], 0, *args[at:])), (at,)))
    return bound.factory(name, overridable(plain) if name in ("linspace", "logspace") else plain, *forms)


def functions() -> dict[str, Callable[..., Any]]:
    """Functions of the `torch` namespace."""
    from . import _random
    from ._ops import shape, view
    from ._overrides import overridable

    out: dict[str, Callable[..., Any]] = {name: getattr(_random, name) for name in _random.__all__}
    for name in FACTORIES:
        out.pop(name, None)
    for module, names in (
        (view, ("broadcast_tensors", "split")),
        (shape, ("atleast_1d", "atleast_2d", "atleast_3d", "meshgrid")),
    ):
        out.update({name: overridable(getattr(module, name)) for name in names})
    return out


def attach(cls: type) -> None:
    """Give the Tensor class its methods and properties."""
    from . import _methods, _random
    from ._ops import inplace_views, view
    from ._read_only import seal

    for methods in (_methods.METHODS, view.METHODS, inplace_views.METHODS, _random.METHODS):
        for name, fn in methods.items():
            if name not in cls.__dict__:
                setattr(cls, name, fn)
    for name, fn in view.PROPERTIES.items():
        if name not in cls.__dict__:
            setattr(cls, name, property(fn, _SETTERS.get(name)))
    for name in LATE_METHODS:
        setattr(cls, name, LateMethod(name))
    for name in SPARSE_METHODS:
        setattr(cls, name, LateMethod(name, "_sparse.methods"))
    for name in ABSENT:
        setattr(cls, name, property(lambda self: False))
    setattr(cls, "name", property(lambda self: None))
    setattr(cls, "_cdata", property(_cdata))
    setattr(cls, "volatile", property(_volatile, _set_volatile, lambda self: _set_volatile(self, None)))
    setattr(cls, "grad_dtype", property(_grad_dtype, leaf_policy.set_grad_dtype))
    setattr(cls, "__cuda_array_interface__", property(_cuda_array_interface))
    seal(cls, "torch._C.TensorBase")
