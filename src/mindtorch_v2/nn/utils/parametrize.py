"""Tensors of a module that are functions of others: parametrizations.

Invariant: a parametrized tensor is a property of the module's class, which is a class of the module's own; its value
is computed from the originals in `module.parametrizations` at every read, or once within `cached()`.
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


class _Cache:
    """How many `cached()` blocks are open, and the values they have seen."""

    depth: int = 0
    values: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Within the block every parametrized tensor is computed once."""
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if not _Cache.depth:
            _Cache.values = {}


def _register_parameter_or_buffer(module: Module, name: str, x: Tensor) -> None:
    if isinstance(x, Parameter):
        module.register_parameter(name, x)
    else:
        module.register_buffer(name, x)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, the first applied first, with the tensors they start from: `original`, or
    `original0`, `original1`, ... where the first parametrization takes several."""

    original: Tensor
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new = self._inverted(original)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                f"{type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, Tensor):
            for word in ("dtype", "device"):
                before, after = getattr(original, word), getattr(new, word)
                if before != after:
                    raise ValueError(
                        f"When `right_inverse` outputs one tensor, it may not change the {word}.\n"
                        f"original.{word}: {before}\nright_inverse(original).{word}: {after}"
                    )
            # The parameter object stays, so that an optimiser that has it keeps it.
            with torch.no_grad():
                original.set_(new)
            _register_parameter_or_buffer(self, "original", original)
        else:
            self._register_originals(new, original)
        if not unsafe:
            self._check_result(self(), shape, dtype)

    def _inverted(self, value: Any) -> Any:
        """What the originals have to be for the result to be `value`, as far as there are inverses."""
        with torch.no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        value = module.right_inverse(value)
                    except NotImplementedError:
                        pass
        return value

    def _register_originals(self, values: Sequence[Any], original: Tensor) -> None:
        for i, value in enumerate(values):
            if not isinstance(value, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                    f"{i} of the sequence with type {type(value).__name__}."
                )
            if isinstance(original, Parameter):
                value = Parameter(value, original.requires_grad)
            value.requires_grad_(original.requires_grad)
            _register_parameter_or_buffer(self, f"original{i}", value)

    def _check_result(self, result: Any, shape: Any, dtype: Any) -> None:
        if not isinstance(result, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
        for word, before, after in (("dtype", dtype, result.dtype), ("shape", shape, result.shape)):
            if before != after:
                raise ValueError(
                    f"Registering a parametrization may not change the {word} of the tensor, unless `unsafe` flag is "
                    f"enabled.\nunparametrized {word}: {before}\nparametrized {word}: {after}"
                )

    def right_inverse(self, value: Any) -> None:
        """Set the originals so that the result is `value`."""
        with torch.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                if value.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype "
                        f"{self.original.dtype}"
                    )
                self.original.set_(value)
                return
            if not isinstance(value, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
            if len(value) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of "
                    f"length {len(value)}."
                )
            for i, tensor in enumerate(value):
                original = getattr(self, f"original{i}")
                if not isinstance(tensor, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a sequence of tensors or reference-type opaques. Got element "
                        f"{i} of type {type(tensor).__name__}."
                    )
                if original.dtype != tensor.dtype:
                    raise ValueError(
                        f"Tensor {i} returned by `right_inverse` has dtype {tensor.dtype} while `original{i}` has "
                        f"dtype {original.dtype}"
                    )
                original.set_(tensor)

    def forward(self) -> Any:
        first, *rest = self._modules.values()
        if self.is_tensor:
            x = first(self.original)
        else:
            x = first(*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in rest:
            x = module(x)
        return x


def _default_deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    """As `object` copies, past `__getstate__`, which refuses."""
    known = memo.get(id(self))
    if known is not None:
        return known
    replica = self.__new__(self.__class__)
    memo[id(self)] = replica
    replica.__dict__ = deepcopy(self.__dict__, memo)
    for slot in vars(copyreg)["_slotnames"](self.__class__):
        if hasattr(self, slot):
            setattr(replica, slot, deepcopy(getattr(self, slot), memo))
    return replica


def _refuse_pickling(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _inject_new_class(module: Module) -> None:
    """Give the module a class of its own, on which its properties can live."""
    cls = type(module)
    members: dict[str, Any] = {"__getstate__": _refuse_pickling}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = _default_deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module: Module, tensor_name: str) -> None:
    # Who calls has deleted the tensor.
    if hasattr(module, tensor_name):
        raise AssertionError(f"Module already has an attribute named '{tensor_name}'")

    def get(self: Any) -> Any:
        parametrization = self.parametrizations[tensor_name]
        if not _Cache.depth:
            return parametrization()
        key = (id(module), tensor_name)
        value = _Cache.values.get(key)
        if value is None:
            value = _Cache.values[key] = parametrization()
        return value

    def set(self: Any, value: Tensor) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(get, set))


def _check_appended(module: Any, name: str, parametrization: Any) -> None:
    """A parametrization on top of others keeps dtype and shape, and so does its inverse."""
    before = getattr(module, name)
    after = parametrization(before)
    if not isinstance(after, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for word in ("dtype", "shape"):
        if getattr(after, word) != getattr(before, word):
            raise ValueError(
                f"Registering a parametrization may not change the {word} of the tensor, unless the `unsafe` flag is "
                f"enabled.\nmodule.{name}.{word}: {getattr(before, word)}\n"
                f"parametrization(module.{name}).{word}: {getattr(after, word)}"
            )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(after)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    for word in ("dtype", "shape"):
        if getattr(back, word) != getattr(before, word):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {word} as module.{name}, "
                f"unless the `unsafe` flag is enabled.\nmodule.{name}.{word}: {getattr(before, word)}\n"
                f"returned {word}: {getattr(back, word)}"
            )


def _lists_of(module: Any, text: str = "module") -> ModuleDict:
    lists = module.parametrizations
    if not isinstance(lists, ModuleDict):
        raise AssertionError(f"Expected {text}.parametrizations to be a ModuleDict, got {type(lists).__name__}")
    return lists


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Make a parameter or buffer the result of `parametrization`, after those it already has.

    unsafe: the parametrization may change dtype and shape, and nothing is checked.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_appended(module, tensor_name, parametrization)
        known: Any = _lists_of(module)[tensor_name]
        known.append(parametrization)
        known.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        # Raises before anything of the module was changed.
        made = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        _lists_of(module)[tensor_name] = made
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the module, or one tensor of it, has parametrizations."""
    lists = getattr(module, "parametrizations", None)
    if not isinstance(lists, ModuleDict):
        return False
    return len(lists) > 0 if tensor_name is None else tensor_name in lists


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a tensor a plain one again, with its parametrized value or, if not `leave_parametrized`, the original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    known: Any = _lists_of(module)[tensor_name]
    if known.is_tensor:
        original: Any = known.original
        if leave_parametrized:
            with torch.no_grad():
                value = getattr(module, tensor_name)
                try:
                    original.set_(value)
                except RuntimeError as error:
                    if type(original) is Tensor:
                        raise
                    raise RuntimeError(
                        "Calling remove_parametrizations() with leave_parametrized=True for a parameter that is an "
                        "instance of a tensor subclass requires set_() to be implemented correctly for the tensor "
                        "subclass.Alternatively, one can opt into the swap_tensors pathEither set "
                        "leave_parametrized=False or provide a working implementationfor set_() in the tensor "
                        "subclass or set torch.__future__.set_swap_module_params_on_conversion(True)."
                    ) from error
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del _lists_of(module)[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The module's class, or the one it had before it got parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give `to_module` the parametrizations of `from_module`, or of one tensor of it, and share their originals."""
    if not is_parametrized(from_module):
        return to_module
    lists = _lists_of(from_module, "from_module")
    for name in list(lists) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source: Any = lists[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target: Any = _lists_of(to_module, "to_module")[name]
        names = ["original"] if hasattr(source, "original") else [f"original{i}" for i in range(source.ntensors)]
        for original in names:
            setattr(target, original, getattr(source, original))
    return to_module
