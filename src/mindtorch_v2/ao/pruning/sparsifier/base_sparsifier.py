"""What all sparsifiers share: groups of tensors, masks over them, and their state."""

from __future__ import annotations

import abc
import copy
from collections import defaultdict
from typing import Any

import mindtorch_v2 as torch

from ....nn import Linear, Module
from ....nn.utils import parametrize
from .utils import FakeSparsity, get_arg_info_from_tensor_fqn, module_contains_param, module_to_fqn, swap_module

__all__ = ["BaseSparsifier"]

SUPPORTED_MODULES: set[type[Module]] = {Linear}
# What a model says again when a state is loaded.
KEYS_NOT_IN_STATE_DICT = ["module", "module_fqn", "tensor_name"]


class BaseSparsifier(abc.ABC):
    """Base of all sparsifiers; a subclass says in `update_mask` what the mask of a tensor is.

    `prepare` puts masks on the tensors of a model, `step` works them out, `squash_mask` writes them into the tensors.
    """

    model: Module
    config: list[dict[str, Any]]

    def __init__(self, defaults: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.defaults: dict[str, Any] = defaults or {}
        self.state: dict[str, dict[str, Any]] = defaultdict(dict)
        self.groups: list[dict[str, Any]] = []
        self.enable_mask_update = True

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("defaults", "state", "groups")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.groups):
            settings = "".join(f"\t    {key}: {group[key]}\n" for key in sorted(group) if key != "module")
            text += f"\n\tGroup {i}\n\t    module: {group['module']}\n{settings}"
        return text + ")"

    def state_dict(self) -> dict[str, Any]:
        """The masks, and the groups without their modules."""
        groups = [{k: v for k, v in group.items() if k not in KEYS_NOT_IN_STATE_DICT} for group in self.groups]
        return {"state": self.state, "groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Take over a state; tensors without a mask are given one."""
        groups = copy.deepcopy(state_dict["groups"])
        for tensor_fqn, kept in state_dict["state"].items():
            info = get_arg_info_from_tensor_fqn(self.model, tensor_fqn)
            module, name = info["module"], info["tensor_name"]
            if strict and module is None:
                raise RuntimeError(f"Error loading {tensor_fqn} into the model")
            found = [p for p in module.parametrizations[name] if isinstance(p, FakeSparsity)]
            if found:
                sparsity = found[0]
            else:
                sparsity = FakeSparsity(torch.ones(getattr(module, name).shape))
                parametrize.register_parametrization(module, name, sparsity)
            if kept.get("mask", None) is not None:
                sparsity.mask = kept.pop("mask")
            for group in groups:
                if group["tensor_fqn"] == tensor_fqn:
                    group.update(info)
        self.__setstate__({"state": state_dict["state"], "groups": groups})

    def make_config_from_model(self, model: Module, SUPPORTED_MODULES: set[type[Module]] = SUPPORTED_MODULES) -> None:
        """The weights of all modules of the given classes, as a configuration."""
        self.config = []
        left = [model]
        while left:
            for child in left.pop().children():
                if type(child) not in SUPPORTED_MODULES:
                    left.append(child)
                    continue
                path = module_to_fqn(model, child)
                if not isinstance(path, str):
                    raise AssertionError("module_fqn must be a string")
                self.config.append({"tensor_fqn": f"{path}.weight"})

    def prepare(self, model: Module, config: Any) -> None:
        """Put masks on the tensors that a configuration names; None names the weights of all linear layers."""
        self.model = model
        self.config = config
        if config is None:
            self.make_config_from_model(model)
        for one in self.config:
            self.groups.append(self._group(model, one))
        self._prepare()

    def _group(self, model: Module, config: Any) -> dict[str, Any]:
        if not isinstance(config, dict):
            raise AssertionError(
                "config elements should be dicts not modules i.e.:"
                "[{`tensor_fqn`: `foo.bar.weight`}, {`tensor_fqn`: ... }, ...]"
            )
        if not isinstance(self.defaults, dict):
            raise AssertionError("defaults must be a dict")
        group = {**copy.deepcopy(self.defaults), **config}
        tensor_fqn = group.get("tensor_fqn", None)
        if tensor_fqn is None:
            raise AssertionError(
                "tensor_fqn is a required argument in the sparsity config which "
                "replaces previous `module` and [module]`fqn` arguments"
            )
        info = get_arg_info_from_tensor_fqn(model, tensor_fqn)
        for key, value in info.items():
            if key in group and group[key] != value:
                raise AssertionError(
                    f"Given both `{key}` and `tensor_fqn` in the config, it is expected them to agree!"
                )
        group.update(info)
        return group

    def _prepare(self, *args: Any, **kwargs: Any) -> None:
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            mask = group["mask"] if "mask" in group else torch.ones_like(getattr(module, name))
            self.state[group["tensor_fqn"]]["mask"] = mask
            made: Any = group.get("parametrization", FakeSparsity)(mask)
            parametrize.register_parametrization(module, name, made)

    def squash_mask(
        self,
        params_to_keep: tuple[str, ...] | None = None,
        params_to_keep_per_layer: dict[str, tuple[str, ...]] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Write the masks into the tensors. Settings that are to be kept stay in `sparse_params` of the modules."""
        for group in self.groups:
            module = group["module"]
            parametrize.remove_parametrizations(module, group["tensor_name"], leave_parametrized=True)
            names: list[str] = [*(params_to_keep or ())]
            if params_to_keep_per_layer is not None:
                names += params_to_keep_per_layer.get(group["module_fqn"], None) or ()
            if names:
                module.sparse_params = {name: group[name] for name in names}

    def convert(
        self,
        module: Module,
        mapping: dict[type[Module], type[Module]] | None = None,
        inplace: bool = False,
        parameterization: type[Module] = FakeSparsity,
    ) -> Module:
        """A model in which modules with masks are replaced by what a mapping of classes makes of them."""
        if mapping is None:
            raise NotImplementedError("Need to auto generate mapping ")
        if not inplace:
            module = copy.deepcopy(module)
        for name, child in [*module.named_children()]:
            masked = module_contains_param(child, parameterization)
            if masked and parametrize.type_before_parametrizations(child) in mapping:
                module._modules[name] = swap_module(child, mapping)
            else:
                module._modules[name] = self.convert(child, mapping, True, parameterization)
        return module

    def step(self, use_path: bool = True) -> None:
        """Work the masks out anew."""
        if not self.enable_mask_update:
            return
        with torch.no_grad():
            for group in self.groups:
                self.update_mask(**group)

    @abc.abstractmethod
    def update_mask(self, module: Module, tensor_name: str, **kwargs: Any) -> None:
        """Write the mask of one tensor; the group's settings come by name."""
