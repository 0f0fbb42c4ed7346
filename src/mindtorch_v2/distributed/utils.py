"""`torch.distributed.utils`: small helpers that programs import.

Invariant: containers keep their types; what is no tensor is handed on as it is.
"""

from __future__ import annotations

import traceback
from collections import OrderedDict
from collections.abc import Callable, Container
from dataclasses import fields, is_dataclass, replace
from typing import Any

from .._tensor import Tensor
from ..nn.parallel.scatter_gather import _is_namedtuple as _is_namedtuple

__all__: list[str] = []


def _pack_kwargs(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Arguments by position, then those by name; and the names."""
    return (*args, *kwargs.values()), tuple(kwargs)


def _unpack_kwargs(flat_args: tuple[Any, ...], kwarg_keys: tuple[str, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What `_pack_kwargs` was given."""
    if len(kwarg_keys) > len(flat_args):
        raise AssertionError(f"too many keys {len(kwarg_keys)} vs. {len(flat_args)}")
    begin = len(flat_args) - len(kwarg_keys)
    return flat_args[:begin], dict(zip(kwarg_keys, flat_args[begin:], strict=True))


def _apply_to_tensors(fn: Callable[[Any], Any], container: Any) -> Any:
    """A container with `fn(tensor)` for each of its tensors."""
    from ..nn.utils.rnn import PackedSequence

    def apply(value: Any) -> Any:
        if isinstance(value, Tensor):
            return fn(value)
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{each.name: apply(getattr(value, each.name)) for each in fields(value)})
        if isinstance(value, PackedSequence):
            apply(value.data)
            return value
        if isinstance(value, dict):
            made = ((key, apply(each)) for key, each in value.items())
            return type(value)(made) if isinstance(value, OrderedDict) else dict(made)
        if _is_namedtuple(value):
            return type(value)(*map(apply, value))
        if isinstance(value, (list, tuple, set)):
            return type(value)(map(apply, value))
        return value

    return apply(container)


def _cast_forward_inputs(dtype: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Arguments whose floating-point tensors have a dtype; None leaves them alone."""
    if dtype is None:
        return args, kwargs

    def cast(value: Any) -> Any:
        return value.to(dtype) if value.is_floating_point() else value

    return _apply_to_tensors(cast, args), _apply_to_tensors(cast, kwargs)


def _recursive_to(inputs: Any, target_device: Any, use_side_stream_for_tensor_copies: bool) -> Any:
    """A tuple or list with one entry: the container with its tensors on a device."""
    from ..nn.utils.rnn import PackedSequence

    if isinstance(inputs, (Tensor, PackedSequence)):
        where = inputs.data.device if isinstance(inputs, PackedSequence) else inputs.device
        return (inputs if where == target_device else inputs.to(target_device),)

    def moved(value: Any) -> Any:
        return _recursive_to(value, target_device, use_side_stream_for_tensor_copies)[0]

    if _is_namedtuple(inputs):
        return [type(inputs)(*map(moved, inputs))]
    if isinstance(inputs, tuple) and inputs:
        return [tuple(map(moved, inputs))]
    if isinstance(inputs, list) and inputs:
        return [list(map(moved, inputs))]
    if isinstance(inputs, dict) and inputs:
        return [type(inputs)((moved(key), moved(each)) for key, each in inputs.items())]
    return [inputs]


def _to_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_device: Any, use_side_stream_for_tensor_copies: bool
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Arguments on a device, one entry each; neither is shorter than the other."""
    side = use_side_stream_for_tensor_copies
    args = list(_recursive_to(inputs, target_device, side)) if inputs else []
    named = list(_recursive_to(kwargs, target_device, side)) if kwargs else []
    args += [()] * (len(named) - len(args))
    named += [{}] * (len(args) - len(named))
    return tuple(args), tuple(named)


def _p_assert(cond: Any, s: str, raise_assertion_error: bool = True) -> None:
    """An assertion that is also printed, since what is raised inside backward may be lost."""
    if not cond:
        print(s)
        traceback.print_stack()
        if raise_assertion_error:
            raise AssertionError(s)


def _alloc_storage(tensor: Any, size: Any) -> None:
    """Give a tensor whose memory has been given back memory again."""
    storage, wanted = tensor.untyped_storage(), size.numel() * tensor.element_size()
    if storage.nbytes() != wanted:
        _p_assert(storage.nbytes() == 0, "Tensor storage should have been resized to be 0 but got PLACEHOLDER")
        storage.resize_(wanted)


def _free_storage(tensor: Any) -> None:
    """Give the memory of a tensor back; the tensor keeps its shape."""
    storage = tensor.untyped_storage()
    if storage.nbytes():
        _p_assert(
            tensor.storage_offset() == 0,
            "Freeing a tensor's storage is unsafe when it is not the sole occupant\n"
            f"storage offset: {tensor.storage_offset()}\n"
            f"storage size: {storage.nbytes() // tensor.element_size()}\n"
            f"tensor shape: {tensor.shape}",
        )
        storage.resize_(0)


def _data_ptr_allocated(tensor: Any) -> bool:
    return bool(tensor.untyped_storage().data_ptr() > 0)


def _verify_param_shape_across_processes(process_group: Any, tensors: list[Any], logger: Any = None) -> None:
    """Refuse parameters that do not have the same shapes on all ranks."""
    from ._reducer import _verify_params_across_processes

    _verify_params_across_processes(process_group, tensors, logger)


def _sync_module_states(
    module: Any,
    process_group: Any,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore: Container[str],
    broadcast_buffers: bool = True,
) -> None:
    """Give a rank's parameters, and buffers, to all."""
    named = [*module.named_parameters(), *(module.named_buffers() if broadcast_buffers else ())]
    states = [each.detach() for name, each in named if name not in params_and_buffers_to_ignore]
    _sync_params_and_buffers(process_group, states, broadcast_bucket_size, src)


def _sync_params_and_buffers(
    process_group: Any, module_states: list[Any], broadcast_bucket_size: int, src: int
) -> None:
    """Give a rank's tensors to all."""
    from ._reducer import _broadcast_coalesced

    if module_states:
        _broadcast_coalesced(process_group, module_states, broadcast_bucket_size, src)


def _replace_by_prefix(state_dict: dict[str, Any], old_prefix: str, new_prefix: str) -> None:
    """Rename the keys that begin with a prefix, in place."""
    if old_prefix == new_prefix:
        raise ValueError("old_prefix and new_prefix must be distinct")
    for key in [each for each in state_dict if each.startswith(old_prefix)]:
        state_dict[new_prefix + key[len(old_prefix) :]] = state_dict.pop(key)


def _get_root_modules(modules: list[Any]) -> list[Any]:
    """Those modules of a list that are not part of another one in it."""
    inside = {id(part) for each in modules for part in each.modules() if part is not each}
    return [each for each in modules if id(each) not in inside]
