"""Modules as functions of their parameters and buffers, in the way that came before `torch.func.functional_call`.

Invariant: the module that was given is not changed; the function works on a copy, whose own tensors have no data.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch

from ..func import functional_call
from ..nn import Module, Parameter


def _taken(model: Module, kind: str) -> tuple[tuple[Any, ...], tuple[str, ...], dict[str, list[str]]]:
    """The parameters or buffers of a module, which keeps tensors without data in their places, their names, and all
    the names that each has."""
    listed = list(getattr(model, f"named_{kind}")(remove_duplicate=False))
    first: dict[Any, str] = {}
    names: dict[str, list[str]] = {}
    for name, tensor in listed:
        names.setdefault(first.setdefault(tensor, name), []).append(name)
    # One place for a tensor of several names.
    empty = {tensor: tensor.detach().to("meta") for tensor in first}
    if kind == "parameters":
        empty = {tensor: Parameter(place, tensor.requires_grad) for tensor, place in empty.items()}
    for name, tensor in listed:
        path, _, last = name.rpartition(".")
        getattr(model.get_submodule(path), f"_{kind}")[last] = empty[tensor]
    return tuple(first), tuple(names), names


class FunctionalModule(Module):
    """A module that is called with its parameters as the first argument."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...], names_map: dict[str, list[str]]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.names_map = names_map

    @staticmethod
    def _create_from(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, Any]:
        model_copy = copy.deepcopy(model)
        params, names, every = _taken(model_copy, "parameters")
        if disable_autograd_tracking:
            for param in params:
                param.requires_grad_(False)
        return FunctionalModule(model_copy, names, every), params

    def forward(self, params: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        return functional_call(self.stateless_model, dict(zip(self.param_names, params)), args, kwargs)


class FunctionalModuleWithBuffers(Module):
    """A module that is called with its parameters and its buffers as the first arguments."""

    def __init__(
        self,
        stateless_model: Module,
        param_names: tuple[str, ...],
        buffer_names: tuple[str, ...],
        param_names_map: dict[str, list[str]],
        buffer_names_map: dict[str, list[str]],
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.buffer_names = buffer_names
        self.all_names_map = {**param_names_map, **buffer_names_map}

    @staticmethod
    def _create_from(
        model: Module, disable_autograd_tracking: bool = False
    ) -> tuple[FunctionalModuleWithBuffers, Any, Any]:
        model_copy = copy.deepcopy(model)
        params, names, every = _taken(model_copy, "parameters")
        buffers, buffer_names, every_buffer = _taken(model_copy, "buffers")
        if disable_autograd_tracking:
            for param in params:
                param.requires_grad_(False)
        return FunctionalModuleWithBuffers(model_copy, names, buffer_names, every, every_buffer), params, buffers

    def forward(self, params: Sequence[Any], buffers: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        given = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers)))
        return functional_call(self.stateless_model, given, args, kwargs)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, Any]:
    """A function of a module's parameters, and the parameters."""
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, Any, Any]:
    """A function of a module's parameters and buffers, and both."""
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[FunctionalModuleWithBuffers, Any, Any]:
    """The function of models of one class, their parameters and their buffers, stacked along a new first dimension."""
    if len(models) == 0:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    made = [make_functional_with_buffers(model) for model in models]
    stacked = [tuple(torch.stack(same).detach() for same in zip(*(m[i] for m in made))) for i in (1, 2)]
    return made[0][0], stacked[0], stacked[1]


def make_functional_deprecated_v1(model: Module) -> tuple[Any, Any, tuple[str, ...]]:
    """The parameters of a module, the function of them and of a tuple of arguments, and their names."""
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional_deprecated_v1(model): `model` has buffers. Please use "
            "make_functional_with_buffers_deprecated_v1(model) instead."
        )
    function, params = make_functional(model)
    return params, lambda weights, data: function(weights, *data), function.param_names


def make_functional_with_buffers_deprecated_v1(model: Module) -> tuple[Any, Any, Any, tuple[str, ...], tuple[str, ...]]:
    """The parameters and buffers of a module, the function of both and of a tuple of arguments, and their names."""
    function, params, buffers = make_functional_with_buffers(model)

    def fun(weights: Any, given: Any, data: Any) -> Any:
        return function(weights, given, *data)

    return params, buffers, fun, function.param_names, function.buffer_names


def _several(made: Any, states: int, model_class: Any, ensemble_shape: tuple[int, ...], device: Any) -> Any:
    def build(*args: Any, **kwargs: Any) -> Any:
        if len(ensemble_shape) >= 2:
            raise ValueError("NYI: ensemble_shape with more than 1 element")
        if not ensemble_shape:
            return made(model_class(*args, **kwargs).to(device))
        (count,) = ensemble_shape
        if count <= 0:
            raise ValueError(f"num_models {count} should be > 0")
        every = [made(model_class(*args, **kwargs).to(device)) for _ in range(count)]
        stacked = [tuple(torch.stack(same).detach() for same in zip(*(m[i] for m in every))) for i in range(states)]
        return (*stacked, *every[0][states:])

    return build


def functional_init(model_class: Any, ensemble_shape: tuple[int, ...] = (), device: Any = "cpu") -> Any:
    """A function of a class's arguments that gives parameters, a function of them and their names: of one module, or
    of several with the parameters stacked."""
    return _several(make_functional_deprecated_v1, 1, model_class, ensemble_shape, device)


def functional_init_with_buffers(model_class: Any, ensemble_shape: tuple[int, ...] = (), device: Any = "cpu") -> Any:
    """The same with buffers."""
    return _several(make_functional_with_buffers_deprecated_v1, 2, model_class, ensemble_shape, device)
