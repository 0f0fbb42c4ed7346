"""`torch._subclasses.meta_utils`: tensors of the meta device for real ones, and what both must have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import mindtorch_v2 as torch

from .._autograd.inplace import replayed, strided_in, view_chain
from .._dispatch.keys import LAZY
from .._overrides import DisableTorchFunctionSubclass as no_functions
from .._tensor import Tensor
from .._torch_dispatch import without_modes
from ..utils.weak import WeakIdKeyDictionary


def assert_eq(a: Any, b: Any) -> None:
    if a != b:
        raise AssertionError(f"{a} != {b}")


def safe_is_leaf(t: Any) -> bool:
    """Whether a tensor is a leaf; those of inference mode are."""
    return bool(t.is_inference() or t.is_leaf)


def assert_metadata_eq(
    assert_eq: Callable[[Any, Any], None], m1: Any, m2: Any, *, skip_symbolic: bool = False, skip_leaf: bool = False
) -> None:
    """Ask `assert_eq` about dtype, shape, strides and the state of two tensors and of their gradients."""
    same = ["dtype", *([] if skip_symbolic else ["shape"]), "requires_grad", "layout"]
    for name in same:
        assert_eq(getattr(m1, name), getattr(m2, name))
    if not skip_leaf:
        assert_eq(safe_is_leaf(m1), safe_is_leaf(m2))
    for question in ("is_inference", "is_conj", "is_neg"):
        assert_eq(getattr(m1, question)(), getattr(m2, question)())
    grads = [t.grad if t.is_leaf else None for t in (m1, m2)]
    assert_eq(grads[0] is not None, grads[1] is not None)
    if grads[0] is not None:
        assert_metadata_eq(assert_eq, grads[0], grads[1], skip_symbolic=skip_symbolic, skip_leaf=skip_leaf)
    if not skip_symbolic:
        assert_eq(m1.stride(), m2.stride())
        assert_eq(m1.storage_offset(), m2.storage_offset())
    assert_eq(m1._base is not None, m2._base is not None)
    if m1._base is not None:
        assert_metadata_eq(assert_eq, m1._base, m2._base, skip_symbolic=skip_symbolic, skip_leaf=skip_leaf)


# -- kinds of layouts -------------------------------------------------------------------------------------------------
_COMPRESSED = frozenset((torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc))


def is_sparse_coo(t: object) -> bool:
    """Whether it is a sparse tensor by coordinates."""
    return isinstance(t, Tensor) and t.layout is torch.sparse_coo


def is_sparse_compressed_layout(layout: Any) -> bool:
    """Whether a layout has compressed indices."""
    return layout in _COMPRESSED


def is_sparse_compressed(t: object) -> bool:
    """Whether it is a sparse tensor with compressed indices."""
    return isinstance(t, Tensor) and t.layout in _COMPRESSED


def is_sparse_any(t: object) -> bool:
    """Whether it is a sparse tensor of any layout."""
    return is_sparse_coo(t) or is_sparse_compressed(t)


# -- tensors of the meta device ---------------------------------------------------------------------------------------
class MetaTensorDescriber:
    """Numbers tensors and storages, for as long as they live."""

    def __init__(self, *, copy_data: bool = False) -> None:
        if copy_data:
            raise NotImplementedError("MetaTensorDescriber(): argument 'copy_data': values are not carried along")
        self.copy_data = copy_data
        self.lookup_tensor = WeakIdKeyDictionary()
        self.lookup_storage = WeakIdKeyDictionary()
        self.next_tensor_id = 0
        self.next_storage_id = 0

    def get_tensor_id(self, t: Any) -> int:
        """The number of a tensor."""
        if t not in self.lookup_tensor:
            self.lookup_tensor[t] = self.next_tensor_id
            self.next_tensor_id += 1
        number: int = self.lookup_tensor[t]
        return number

    def get_storage_id(self, s: Any) -> int:
        """The number of a storage."""
        if s not in self.lookup_storage:
            self.lookup_storage[s] = self.next_storage_id
            self.next_storage_id += 1
        number: int = self.lookup_storage[s]
        return number


class MetaConverter:
    """Makes tensors of the meta device of real ones: the same one each time, views of the same base, and tensors of one
    storage with one storage. `hit` and `miss` count what could be converted and what could not."""

    def __init__(self, *, copy_data: bool = False) -> None:
        self.describer = MetaTensorDescriber(copy_data=copy_data)
        self.tensor_memo: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self.storage_memo: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self.hit = 0
        self.miss = 0
        self.del_hook = None
        self.arg_cnt = 0

    def successful(self) -> bool:
        """Whether there were tensors, and all of them could be converted."""
        return self.hit > 0 and self.miss == 0

    def get_tensor_memo(self, t: Any) -> Any:
        """The tensor that was made of `t`, or None."""
        return self.tensor_memo.get(self.describer.get_tensor_id(t))

    def __call__(self, t: Any, shape_env: Any = None, **options: Any) -> Any:
        """The meta tensor of a tensor; anything else as it is; NotImplemented for what cannot be converted."""
        given = [name for name, value in {"shape_env": shape_env, **options}.items() if value is not None]
        if given:
            raise NotImplementedError(f"MetaConverter(): argument '{given[0]}': there are no symbolic sizes here")
        if not isinstance(t, Tensor):
            return t
        base = t._base
        if getattr(t, "is_quantized", False) or t.is_nested or base is not None and is_sparse_any(base):
            self.miss += 1
            return NotImplemented
        self.hit += 1
        with without_modes(), no_functions():
            made = self.meta_tensor(t)
        if type(t) is torch.nn.Parameter:
            made._is_param = True
        return made

    def meta_tensor(self, t: Any) -> Any:
        """The meta tensor of a tensor."""
        self.arg_cnt += 1
        known = self.get_tensor_memo(t)
        if known is not None:
            return known
        made = self._sparse(t) if is_sparse_any(t) else self._view(t) if t._base is not None else self._strided(t)
        made._keys |= t._keys & LAZY
        if t.is_leaf and t.grad is not None:
            made.grad = self.meta_tensor(t.grad)
        self.tensor_memo[self.describer.get_tensor_id(t)] = made
        return made

    def _sparse(self, t: Any) -> Any:
        made = torch.empty_like(t.detach(), device="meta")
        if t.layout is torch.sparse_coo:
            made = made._coalesced_(t.is_coalesced())
        return self._recorded(t, made)

    def _view(self, t: Any) -> Any:
        base = t._base
        source = self.meta_tensor(base)
        if t.requires_grad and not t.is_leaf and not base.requires_grad:
            # A view of a leaf that is a view itself.
            with torch.no_grad():
                source = source.view_as(source)
            source.requires_grad_(True)
        with torch.set_grad_enabled(t.grad_fn is not None):
            if strided_in(base, t):
                made = source.as_strided(t.shape, t.stride(), t.storage_offset())
            else:
                made = replayed(source, view_chain(t))
        if t.requires_grad and t.is_leaf:
            made.requires_grad_(True)
        return made

    def _strided(self, t: Any) -> Any:
        return self._recorded(t, self.of_storage(t))

    def of_storage(self, t: Any) -> Any:
        """A meta tensor of the same geometry, over the storage that was made of the tensor's."""
        with torch.no_grad():
            made = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
        storage = t.untyped_storage()
        number = self.describer.get_storage_id(storage)
        shared = self.storage_memo.get(number)
        if shared is None and (made.stride(), made.storage_offset()) == (t.stride(), t.storage_offset()):
            self.storage_memo[number] = made.untyped_storage()
            return made
        if shared is None:
            shared = self.storage_memo[number] = torch.UntypedStorage(storage.nbytes(), device="meta")
        with torch.no_grad():
            made.set_(shared, t.storage_offset(), t.shape, t.stride())
        return made

    def _recorded(self, t: Any, made: Any) -> Any:
        """What was made, as a leaf or with a history of one step, as `t`."""
        if t.requires_grad:
            made.requires_grad_(True)
            if not t.is_leaf:
                with torch.enable_grad():
                    made = made.clone()
        return made
