"""Fake tensors: shape, dtype, strides and a device that they claim, and no memory.

Invariant: what an operator gives for fake tensors has the shape, strides, dtype and device that it gives for real ones,
because the same rule decides both; where a result depends on values, an exception says so.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

import mindtorch_v2 as torch

from .._autograd.inplace import replayed, strided_in, view_chain
from .._dispatch.keys import LAZY, device_bit
from .._overrides import TorchFunctionMode
from .._tags import Tag
from .._tensor import Tensor
from .._tensor_base import instance_of
from .._torch_dispatch import DisableTorchDispatch, TorchDispatchMode, make_wrapper, mode_stack, without_modes
from .._unserved import offer as _offer
from ..utils._pytree import tree_leaves, tree_map_only
from .meta_utils import MetaConverter
from .tensor_metadata import TensorMetadata as TensorMetadata
from .tensor_metadata import extract_tensor_metadata as extract_tensor_metadata

_offer(__name__, "", "_CacheKeyState", "{name}: what operators give for fake tensors is not kept here")

_resize_: Any = vars(Tensor)["resize_"]
# Values of so few elements are kept, so that a program may ask for them.
CONSTANT_NUMEL_LIMIT = 1
_META = torch.device("meta")
_CPU = torch.device("cpu")


# -- errors ---------------------------------------------------------------------------------------------------------
class UnsupportedFakeTensorException(RuntimeError):
    """A tensor that cannot be made a fake one."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _OperatorException(RuntimeError):
    def __init__(self, func: Any) -> None:
        super().__init__(func)
        self.func = func


class DynamicOutputShapeException(_OperatorException):
    """The shape of the result depends on values."""


class DataDependentOutputException(_OperatorException):
    """The result is a value."""


class UnsupportedOperatorException(_OperatorException):
    """The operator has no rule for tensors without values."""


class UnsupportedMutationAliasingException(RuntimeError):
    """Writing would be seen through another tensor."""


class MetadataMismatchError(RuntimeError):
    """Real and fake results differ."""


class FakeTensorDeviceMismatchError(RuntimeError):
    """Tensors claim different devices."""


# Operators whose result has as many elements as their values say.
_DYNAMIC = frozenset(
    """nonzero masked_select _unique unique_dim unique_consecutive _unique2 repeat_interleave bincount""".split()
)
_DATA_DEPENDENT = frozenset(("_local_scalar_dense", "item", "equal", "is_nonzero"))
# Operators whose tensors may be on several devices: the first one's is the result's.
_FIRST_DEVICE = frozenset(
    "copy_ copy set_ index index_put index_put_ _unsafe_index _index_put_impl_ _to_copy to resize_as_".split()
)


# -- the tensor -----------------------------------------------------------------------------------------------------
def _text(self: Any, *, tensor_contents: Any = None) -> str:
    """A fake tensor as printed: all but its values."""
    parts = ["..."]
    if self.device.type != torch.get_default_device().type:
        parts.append(f"device='{self.device}'")
    parts.append(f"size={tuple(self.shape)}")
    if self.dtype != torch.get_default_dtype():
        parts.append(f"dtype={str(self.dtype).replace('mindtorch_v2', 'torch')}")
    if self.grad_fn is not None:
        parts.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
    elif self.requires_grad:
        parts.append("requires_grad=True")
    text = f"FakeTensor({', '.join(parts)})"
    return f"Parameter({text})" if getattr(self, "_is_param", False) else text


def _dispatched(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The mode of the tensors serves operators on them, inside of it and outside."""
    mode = next(t.fake_mode for t in tree_leaves((args, kwargs or {})) if isinstance(t, FakeTensor))
    return mode._serve(func, tuple(args), kwargs or {})


class FakeTensor(Tensor):
    """A tensor without memory that claims a device. Operators on it give fake tensors, by the rules alone."""

    fake_device: Any
    fake_mode: FakeTensorMode
    constant: Any
    real_tensor: Any

    def __new__(
        cls, fake_mode: FakeTensorMode, elem: Any, device: Any, constant: Any = None, real_tensor: Any = None
    ) -> Any:
        if elem.device.type != "meta":
            raise AssertionError(f"elem.device.type must be 'meta', got {elem.device.type}")
        if real_tensor is not None:
            raise NotImplementedError("FakeTensor(): argument 'real_tensor': values are not carried along")
        device = _normalized(device)
        made = make_wrapper(
            cls,
            elem.shape,
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            device=device,
        )
        made._storage = elem._storage
        made._keys |= elem._keys & LAZY
        made.fake_device = device
        made.fake_mode = fake_mode
        made.constant = constant
        made.real_tensor = None
        if elem.requires_grad:
            made.requires_grad_(True)
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    @staticmethod
    def from_tensor(t: Any, fake_mode: FakeTensorMode) -> Any:
        """A fake tensor like `t`."""
        return fake_mode.from_tensor(t)

    __torch_dispatch__: Any = classmethod(_dispatched)

    # Values and not methods: mypy cannot compare the keyword arguments of two `__repr__`.
    __repr__: Any = _text
    __str__: Any = _text

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def tolist(self) -> Any:
        """Values, which there are none of unless the tensor is a constant."""
        return self.item() if self.dim() == 0 else [part.tolist() for part in self.unbind(0)]

    def resize_(self, *size: Any, memory_format: Any = None) -> Any:
        """Another shape over the same storage; values that were known are so no more."""
        if self.constant is not None:
            self.fake_mode.fake_tensor_converter.invalidate_constant_aliases(self.constant)
            self.constant = None
        return _resize_(self, *size, memory_format=memory_format)

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError(
            "FakeTensor has no values that could be written; convert what you save to real tensors, or save it outside "
            "of FakeTensorMode"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        known = memo.get(id(self))
        if known is None:
            with torch.no_grad():
                known = self.detach().clone()
            if getattr(self, "_is_param", False):
                known._is_param = True
            known.requires_grad_(self.requires_grad)
            memo[id(self)] = known
        return known


def _normalized(device: Any) -> Any:
    """A device with its index."""
    device = torch.device(device)
    if device.type in ("cpu", "meta") or device.index is not None:
        return device
    return torch.device(device.type, 0)


def _meta(t: Any) -> Any:
    """A plain tensor of the meta device with a fake tensor's shape, strides and storage."""
    plain: Any = instance_of(Tensor, t)
    plain._device = _META
    plain._keys = device_bit("meta") | (t._keys & LAZY)
    return plain


# -- real tensors ---------------------------------------------------------------------------------------------------
class FakeTensorConverter:
    """Makes fake tensors of real ones: the same one each time, views of the same base, parameters as parameters."""

    def __init__(self, *, copy_data: bool = False, export: bool = False) -> None:
        if copy_data:
            raise NotImplementedError("FakeTensorConverter(): argument 'copy_data': values are not carried along")
        self.export = export
        # Numbers of real tensors and storages, and what was made of them for as long as somebody has it.
        self.meta_converter = MetaConverter()
        # By storage of values that are known: the fake tensors that have them.
        self.constant_storage_mapping: dict[int, list[Any]] = {}

    @property
    def tensor_memo(self) -> Any:
        """The fake tensors that live, by the number of the real one."""
        return self.meta_converter.tensor_memo

    def add_constant_storage_mapping(self, fake_tensor: Any) -> None:
        """Remember whose values are those of a fake tensor."""
        key = fake_tensor.constant.untyped_storage()._cdata
        known = [ref for ref in self.constant_storage_mapping.get(key, ()) if ref() is not None]
        self.constant_storage_mapping[key] = [*known, weakref.ref(fake_tensor)]

    def invalidate_constant_aliases(self, tensor: Any) -> None:
        """Forget the values of all fake tensors that share memory with a value."""
        for ref in self.constant_storage_mapping.pop(tensor.untyped_storage()._cdata, ()):
            fake = ref()
            if fake is not None:
                fake.constant = None

    def from_real_tensor(self, fake_mode: FakeTensorMode, t: Any, make_constant: bool = False, **options: Any) -> Any:
        """The fake tensor of a real one."""
        for name, value in options.items():
            if value not in (None, True) or name in ("shape_env", "symbolic_context"):
                if value is not None:
                    raise NotImplementedError(f"from_real_tensor(): argument '{name}' is not supported, got {value}")
        known = self.meta_converter.get_tensor_memo(t)
        if known is not None and not make_constant:
            return known
        if t.layout is not torch.strided or getattr(t, "is_quantized", False):
            raise UnsupportedFakeTensorException(f"meta converter nyi with {t.layout} tensors")
        made = self._made(fake_mode, t)
        if make_constant:
            made.constant = t
            self.add_constant_storage_mapping(made)
        else:
            self.tensor_memo[self.meta_converter.describer.get_tensor_id(t)] = made
        return made

    def _made(self, mode: FakeTensorMode, t: Any) -> Any:
        device = t.fake_device if isinstance(t, FakeTensor) else t.device
        base = t._base
        if base is not None:
            source = self.from_real_tensor(mode, base)
            with mode, torch.set_grad_enabled(t.grad_fn is not None):
                if strided_in(base, t):
                    return source.as_strided(t.shape, t.stride(), t.storage_offset())
                return replayed(source, view_chain(t))
        with DisableTorchDispatch(), torch.no_grad():
            elem = self.meta_converter.of_storage(t)
        elem._keys |= t._keys & LAZY
        made: Any = FakeTensor(mode, elem, device)
        if t.requires_grad:
            made.requires_grad_(True)
        if isinstance(t, torch.nn.Parameter):
            made._is_param = True
        elif not t.is_leaf:
            with mode, torch.enable_grad():
                made = made.clone()
        if t.is_leaf and t.grad is not None:
            made.grad = self.from_real_tensor(mode, t.grad)
        return made

    def from_meta_and_device(self, fake_mode: FakeTensorMode, t: Any, device: Any, **options: Any) -> Any:
        """The fake tensor that a tensor of the meta device stands for."""
        for name, value in options.items():
            if value is not None:
                raise NotImplementedError(f"from_meta_and_device(): argument '{name}' is not supported, got {value}")
        if t.device.type != "meta":
            raise AssertionError(f"tensor's device must be `meta`, got {t.device.type} instead")
        made = self.meta_converter.get_tensor_memo(t)
        if made is None:
            made = self.tensor_memo[self.meta_converter.describer.get_tensor_id(t)] = FakeTensor(fake_mode, t, device)
        return made


# -- the mode -------------------------------------------------------------------------------------------------------
class FakeTensorMode(TorchDispatchMode):
    """Inside, new tensors are fake, and operators take fake tensors only, unless `allow_non_fake_inputs`."""

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        super().__init__()
        if static_shapes is False:
            raise NotImplementedError("FakeTensorMode(): static_shapes=False: there are no symbolic sizes here")
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        # A tensor that is made fake would have symbols for sizes by this: it is refused.
        self.shape_env = shape_env
        self.static_shapes = shape_env is None if static_shapes is None else static_shapes
        self.export = export
        self.in_kernel_invocation = False
        self.cache_enabled = False
        self.enter_stack: list[Any] = []
        self.fake_tensor_converter = FakeTensorConverter(export=export)

    @classmethod
    def is_infra_mode(cls) -> bool:
        return True

    def is_our_fake(self, t: Any) -> bool:
        """Whether a tensor is a fake one of this mode."""
        return isinstance(t, FakeTensor) and t.fake_mode is self

    def from_tensor(
        self,
        tensor: Any,
        *,
        static_shapes: bool | None = None,
        source: Any = None,
        symbolic_context: Any = None,
        trace: bool = True,
    ) -> Any:
        """The fake tensor of a real one: the same each time it is asked for."""
        static = self.static_shapes if static_shapes is None else static_shapes
        if not static or symbolic_context is not None:
            raise NotImplementedError(
                "from_tensor(): sizes are numbers here: neither static_shapes=False nor a context"
            )
        with without_modes():
            return self.fake_tensor_converter.from_real_tensor(self, tensor)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._serve(func, tuple(args), kwargs or {})

    def _serve(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = func._opname
        if name == "lift_fresh":
            return self._lifted(args[0])
        args, kwargs = self._checked(func, args, kwargs)
        fakes = [t for t in tree_leaves((args, kwargs)) if isinstance(t, FakeTensor)]
        constant, known = self._constant(func, args, kwargs, fakes)
        if name in _DATA_DEPENDENT:
            if not known:
                raise DataDependentOutputException(func)
            return constant
        if name in _DYNAMIC and (name != "repeat_interleave" or func._overloadname == "Tensor") or _by_mask(name, args):
            raise DynamicOutputShapeException(func)
        args, kwargs, device = _placed(func, args, kwargs, fakes)
        plain = {id(t): _meta(t) for t in fakes}
        was: dict[int, Any] = {id(p): t for t, p in zip(fakes, (plain[id(t)] for t in fakes))}
        given, named = tree_map_only(FakeTensor, lambda t: plain[id(t)], (args, kwargs))
        before, self.in_kernel_invocation = self.in_kernel_invocation, True
        try:
            with DisableTorchDispatch():
                result = func(*given, **named)
        except NotImplementedError as error:
            raise UnsupportedOperatorException(func) from error
        finally:
            self.in_kernel_invocation = before
        for t in fakes:
            _refresh(t, plain[id(t)])
        if func._schema.is_mutable and not known:
            self._forget(func, args, kwargs)

        def wrapped(r: Any) -> Any:
            found = was.get(id(r))
            if found is not None:
                return found
            if r.device.type != "meta":
                # What numbers alone give.
                return self._lifted(r)
            return FakeTensor(self, r.detach() if r.requires_grad else r, device)

        made = tree_map_only(Tensor, wrapped, result)
        if known:
            for fake, value in zip(tree_leaves(made), tree_leaves(constant)):
                if isinstance(fake, FakeTensor) and fake.constant is None:
                    fake.constant = value
                    self.fake_tensor_converter.add_constant_storage_mapping(fake)
        return made

    def _lifted(self, t: Any) -> Any:
        """A tensor that a program made of numbers."""
        if isinstance(t, FakeTensor):
            return t
        small = t.numel() <= CONSTANT_NUMEL_LIMIT and t.device.type == "cpu"
        with without_modes():
            return self.fake_tensor_converter.from_real_tensor(self, t, make_constant=small)

    def _checked(self, func: Any, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with fake tensors only."""

        def converted(t: Any) -> Any:
            if isinstance(t, FakeTensor):
                if t.fake_mode is not self:
                    raise AssertionError(f"Mixing fake modes NYI x.fake_mode={t.fake_mode} vs self={self}")
                return t
            if not self.allow_non_fake_inputs:
                raise AssertionError(
                    "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
                    f"'allow_non_fake_inputs'. Found in {_call_text(func, args, kwargs)}"
                )
            return self.from_tensor(t)

        found: tuple[tuple[Any, ...], dict[str, Any]] = tree_map_only(Tensor, converted, (args, kwargs))
        return found

    def _constant(self, func: Any, args: Any, kwargs: Any, fakes: list[Any]) -> tuple[Any, bool]:
        """What a call gives whose tensors are all known, and whether they are. What writes writes values too."""
        if not fakes or any(t.constant is None for t in fakes):
            return None, False
        if Tag.inplace_view in func.tags or any(a.name == "generator" for a in func._schema.arguments):
            return None, False
        given, named = tree_map_only(FakeTensor, lambda t: t.constant, (args, kwargs))
        with DisableTorchDispatch(), torch.no_grad():
            if func._opname == "_local_scalar_dense":
                return given[0].item(), True
            result = func(*given, **named)
        found = [t for t in tree_leaves(result) if isinstance(t, Tensor)]
        if all(t.numel() <= CONSTANT_NUMEL_LIMIT for t in found):
            return result, True
        for t in found:
            # Nobody will see what is written to it.
            self.fake_tensor_converter.invalidate_constant_aliases(t)
        return None, False

    def _forget(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Tensors that were written to are constants no more, nor those over the same memory."""
        for a, value in _by_argument(func, args, kwargs):
            if a.is_write:
                for t in tree_leaves(value):
                    if isinstance(t, FakeTensor) and t.constant is not None:
                        self.fake_tensor_converter.invalidate_constant_aliases(t.constant)
                        t.constant = None


def _by_mask(name: str, args: tuple[Any, ...]) -> bool:
    """Whether as many elements are read as a mask has true ones."""
    return name in ("index", "_unsafe_index") and any(
        isinstance(t, Tensor) and t.dtype in (torch.bool, torch.uint8) for t in args[1]
    )


def _refresh(t: Any, plain: Any) -> None:
    """What an operator that writes changed of a tensor's shape."""
    t._shape, t._stride, t._offset, t._storage = plain._shape, plain._stride, plain._offset, plain._storage


def _by_argument(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    for i, a in enumerate(func._schema.arguments):
        if a.name in kwargs:
            yield a, kwargs[a.name]
        elif i < len(args):
            yield a, args[i]


def _placed(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], fakes: list[Any]
) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """The call with the meta device where it names one, and the device of its result."""
    names = [a.name for a in func._schema.arguments]
    common = _common_device(func, fakes)
    if "device" not in names:
        return args, kwargs, common if common is not None else _CPU
    at = names.index("device")
    given = kwargs.get("device", args[at] if at < len(args) else None)
    device = _normalized(given) if given is not None else common if common is not None else _CPU
    kwargs = {k: v for k, v in kwargs.items() if k != "pin_memory"}
    if at < len(args):
        return (*args[:at], _META, *args[at + 1 :]), kwargs, device
    return args, {**kwargs, "device": _META}, device


def _common_device(func: Any, fakes: list[Any]) -> Any:
    """The device that the tensors share; tensors of one number on the CPU go with any."""
    if not fakes:
        return None
    if func._opname in _FIRST_DEVICE:
        return fakes[0].fake_device
    device, is_number = fakes[0].fake_device, _is_host_number(fakes[0])
    for t in fakes[1:]:
        if t.fake_device == device or _is_host_number(t):
            continue
        if not is_number:
            raise FakeTensorDeviceMismatchError(
                f"Expected all tensors to be on the same device, but found at least two devices, {device} and "
                f"{t.fake_device}!"
            )
        device, is_number = t.fake_device, False
    return device


def _is_host_number(t: Any) -> bool:
    return bool(t.fake_device == _CPU and t.dim() == 0)


def _call_text(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    def shown(v: Any) -> str:
        if isinstance(v, Tensor) and not isinstance(v, FakeTensor):
            return f"tensor([...], size={tuple(v.shape)})"
        if isinstance(v, (list, tuple)):
            inner = ", ".join(shown(x) for x in v)
            return f"[{inner}]" if isinstance(v, list) else f"({inner})"
        return repr(v)

    return f"{func}({', '.join([*(shown(a) for a in args), *(f'{k}={shown(v)}' for k, v in kwargs.items())])})"


# -- questions and helpers ------------------------------------------------------------------------------------------
def is_fake(x: Any) -> bool:
    """Whether a tensor is fake."""
    return isinstance(x, FakeTensor)


def maybe_get_fake_mode(t: Any) -> FakeTensorMode | None:
    """The mode of a fake tensor."""
    return t.fake_mode if isinstance(t, FakeTensor) else None


def get_plain_tensors(subclass: Any, *, out: list[Any]) -> list[Any]:
    """The tensors that `subclass` consists of; a fake tensor is one."""
    out.append(subclass)
    return out


@contextlib.contextmanager
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """Inside, no fake mode is on."""
    stack = mode_stack()
    found = next((m for m in reversed(stack) if isinstance(m, FakeTensorMode)), None)
    if found is None:
        yield None
        return
    with without_modes() as taken:
        others = [m for m in taken if not isinstance(m, FakeTensorMode)]
        with contextlib.ExitStack() as again:
            for mode in others:
                again.enter_context(mode)
            yield found


class FakeCopyMode(TorchFunctionMode):
    """Inside, copies of tensors (`clone`, `copy.deepcopy`) are fake."""

    def __init__(self, fake_mode: FakeTensorMode) -> None:
        self.fake_mode = fake_mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "clone":
            return func(self.fake_mode.from_tensor(args[0]), **kwargs)
        if name == "__deepcopy__":
            tensor, memo = args[0], args[1]
            if id(tensor) not in memo:
                memo[id(tensor)] = self.fake_mode.from_tensor(tensor)
            return memo[id(tensor)]
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)


def deepcopy_to_fake_tensor(obj: Any, fake_mode: FakeTensorMode) -> Any:
    """A deep copy whose tensors are fake."""
    import copy

    with FakeCopyMode(fake_mode):
        return copy.deepcopy(obj)
