"""`DistributedDataParallel`: a module in several processes, with one gradient.

Invariant: all ranks begin with rank 0's parameters; after each backward that synchronises, all hold the same gradients.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from ..._device import device as _device
from ..._tensor import Tensor
from ...autograd.grad_mode import is_grad_enabled, no_grad
from ...distributed import distributed_c10d as dist
from ...distributed._ddp_log import Logger
from ...distributed._reducer import (
    Reducer,
    _broadcast_coalesced,
    _compute_bucket_assignment_by_size,
    _verify_params_across_processes,
)
from ...distributed.algorithms.join import Join, Joinable, JoinHook
from ..modules.batchnorm import SyncBatchNorm
from ..modules.module import Module
from ..modules.sparse import Embedding, EmbeddingBag
from ._buckets import _DEFAULT_BUCKET_CAP_MB as _DEFAULT_BUCKET_CAP_MB
from ._buckets import _MB_TO_BYTES, _BucketCapacityConfig

__all__ = ["DistributedDataParallel"]


def _find_tensors(found: Any) -> list[Any]:
    """Tensors in lists, dicts and dataclasses."""
    if isinstance(found, Tensor):
        return [found]
    if isinstance(found, (list, tuple)):
        return [each for part in found for each in _find_tensors(part)]
    if isinstance(found, dict):
        return [each for part in found.values() for each in _find_tensors(part)]
    if is_dataclass(found):
        return [each for field in fields(found) for each in _find_tensors(getattr(found, field.name))]
    return []


def _moved(value: Any, device: Any) -> Any:
    """Tensors in lists and dicts, on a device."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_moved(each, device) for each in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(each, device) for each in value)
    if isinstance(value, dict):
        return type(value)((key, _moved(each, device)) for key, each in value.items())
    return value


@dataclass
class _MixedPrecision:
    """Dtypes of parameters, gradients and buffers; `mixed_precision=` is refused."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None


_NCCL = """SOCKET_IFNAME DEBUG DEBUG_SUBSYS IB_DISABLE P2P_DISABLE P2P_LEVEL SHM_DISABLE SOCKET_NTHREADS
NSOCKS_PERTHREAD BUFFSIZE NTHREADS RINGS MAX_NCHANNELS MIN_NCHANNELS CHECKS_DISABLE CHECK_POINTERS LAUNCH_MODE IB_HCA
IB_TIMEOUT IB_RETRY_CNT IB_GID_INDEX IB_SL IB_TC IB_AR_THRESHOLD IB_CUDA_SUPPORT NET_GDR_LEVEL NET_GDR_READ
SINGLE_RING_THRESHOLD LL_THRESHOLD TREE_THRESHOLD ALGO PROTO IGNORE_CPU_AFFINITY DEBUG_FILE COLLNET_ENABLE
TOPO_FILE TOPO_DUMP_FILE"""
_VARIABLES = [
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT", "MASTER_ADDR", "CUDA_VISIBLE_DEVICES", "GLOO_SOCKET_IFNAME"),
    *("GLOO_DEVICE_TRANSPORT", "TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_ASYNC_ERROR_HANDLING"),
    *(f"NCCL_{each}" for each in _NCCL.split()),
    *("HCCL_CONNECT_TIMEOUT", "HCCL_EXEC_TIMEOUT"),
]


def _dump_DDP_relevant_env_vars() -> None:
    """Print the environment that decides how processes find each other."""
    print("".join(f"env:{each}={os.environ.get(each, 'N/A')}\n" for each in _VARIABLES))


class _Delayed:
    """Parameters whose gradients are reduced in one step, when that of a certain parameter is there."""

    def __init__(self, params: list[Any], last: Any, group: Any) -> None:
        self.params, self.group = params, group
        with no_grad():
            self.buffer = params[0].detach().new_zeros(sum(each.numel() for each in params))
            pieces = self.buffer.split([each.numel() for each in params])
        self.views = [piece.view(each.shape) for piece, each in zip(pieces, params)]
        _broadcast_coalesced(group, [each.detach() for each in params], 250 * _MB_TO_BYTES, 0)
        last.register_hook(self._reduce)

    def _reduce(self, grad: Any) -> Any:
        self.buffer.div_(dist.get_world_size(self.group))
        dist.all_reduce(self.buffer, group=self.group)
        return grad

    def begin(self) -> None:
        """Gradients that are not there yet add up in the buffer."""
        with no_grad():
            for param, view in zip(self.params, self.views):
                if param.grad is None:
                    param.grad = view.zero_()


class _DDPJoinHook(JoinHook):
    def __init__(self, ddp: DistributedDataParallel, divide_by_initial_world_size: bool) -> None:
        self.ddp = ddp
        ddp.reducer.join_divides_by_all = divide_by_initial_world_size

    def main_hook(self) -> None:
        ddp = self.ddp
        ddp.reducer._rebuild_buckets()
        if ddp.will_sync_module_buffers():
            ddp._sync_module_buffers(ddp._find_common_rank(dist.get_rank(ddp.process_group), False))
        ddp.require_forward_param_sync = ddp._check_global_requires_backward_grad_sync(is_joined_rank=True)
        if ddp.require_forward_param_sync:
            ddp.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        self.ddp._sync_final_model(is_last_joiner)


class DistributedDataParallel(Module, Joinable):
    """A module whose gradients are the mean over the processes of a group."""

    module: Any

    def __init__(
        self,
        module: Any,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        if mixed_precision is not None:
            raise NotImplementedError(
                "DistributedDataParallel: mixed_precision is not served: use torch.autocast, or fully_shard"
            )
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError(
                "delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the same time."
            )
        super().__init__()
        Joinable.__init__(self)
        self.logger: Any = None
        self.process_group = self._chosen_group(process_group, device_mesh, module)
        if device_mesh is not None:
            self.device_mesh = device_mesh
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        delayed = list(delay_all_reduce_named_params or ())
        self.parameters_to_ignore |= {name for name, _ in delayed}
        self._delay_all_reduce_params = [each for _, each in delayed]
        self._module_parameters = [
            each for name, each in module.named_parameters() if name not in self.parameters_to_ignore
        ]
        self._check_parameters(device_ids, output_device)
        self.static_graph = False
        self.dim = dim
        self.module = module
        self.device = self._module_parameters[0].device
        init_buffers = self._set_buffer_sync(broadcast_buffers, forward_sync_buffers)
        self.find_unused_parameters = find_unused_parameters
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.mixed_precision = None
        if check_reduction:
            warnings.warn(
                "The `check_reduction` argument in `DistributedDataParallel` module is deprecated. Please avoid using "
                "it.",
                FutureWarning,
                stacklevel=2,
            )
        self.broadcast_bucket_size = 250 * _MB_TO_BYTES
        self._set_bucket_sizes(bucket_cap_mb, bucket_cap_mb_list)
        self.skip_all_reduce_unused_params, self.batched_grad_copy = skip_all_reduce_unused_params, batched_grad_copy
        self._comm_hooks: list[tuple[Callable[..., Any], object]] = []
        self._has_rebuilt_buckets = False
        self._delayed: _Delayed | None = None
        if delayed:
            self._delayed = _Delayed(self._delay_all_reduce_params, param_to_hook_all_reduce, self.process_group)
        parameters, names = self._build_params_for_reducer()
        if init_sync:
            _verify_params_across_processes(self.process_group, parameters)
            self._sync_states(0, init_buffers)
        self._make_reducer(parameters, names, static_graph)
        if static_graph:
            self._set_static_graph()

    @staticmethod
    def _chosen_group(process_group: Any, device_mesh: Any, module: Any) -> Any:
        if process_group and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        if device_mesh is not None:
            if device_mesh.ndim != 1:
                raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
            if device_mesh._get_root_mesh() != device_mesh:
                from ...distributed.tensor.parallel.ddp import _pre_dp_module_transform

                _pre_dp_module_transform(module)  # its layers may be split along another dimension
            return device_mesh.get_group(mesh_dim=0)
        return dist._get_default_group() if process_group is None else process_group

    def _check_parameters(self, device_ids: Sequence[Any] | None, output_device: Any) -> None:
        from ..parameter import UninitializedParameter

        params = self._module_parameters
        if not any(each.requires_grad for each in params) and not self._delay_all_reduce_params:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        if any(isinstance(each, UninitializedParameter) for each in params):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a dummy "
                "forward pass to correctly initialize the modules"
            )
        devices = {each.device for each in params}
        kinds = {each.type for each in devices}
        self.is_multi_device_module = len(devices) > 1
        if len(kinds) != 1:
            raise ValueError(
                "DistributedDataParallel's input module must be on the same type of devices, but input module "
                f"parameters locate in {kinds}."
            )
        self.device_type = next(iter(kinds))
        self.device_ids: list[int] | None = None
        self.output_device: int | None = None
        if not device_ids or self.device_type == "cpu" or self.is_multi_device_module:
            if device_ids or output_device:
                raise ValueError(
                    "DistributedDataParallel device_ids and output_device arguments only work with "
                    "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
                    f"{device_ids}, output_device {output_device}, and module parameters {devices}."
                )
            return
        self.device_ids = [self._index(each) for each in device_ids]
        self.output_device = self.device_ids[0] if output_device is None else self._index(output_device)

    def _index(self, given: Any) -> int:
        found = given if isinstance(given, int) else _device(given).index
        return 0 if found is None else found

    def _set_buffer_sync(self, broadcast_buffers: bool | None, forward_sync_buffers: bool | None) -> bool:
        """How buffers are kept the same; whether they are made so now."""
        if broadcast_buffers is not None:
            text = (
                "Both `broadcast_buffers` and `forward_sync_buffers` were specified. `broadcast_buffers` is "
                "deprecated and its value is ignored when `forward_sync_buffers` is provided."
                if forward_sync_buffers is not None
                else "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead. IMPORTANT: unlike "
                "`broadcast_buffers=False`, `forward_sync_buffers=False` still syncs buffers at init. If you rely on "
                "buffers NOT being synced at init (e.g. rank-local buffers), keep using `broadcast_buffers=False` "
                "until `init_sync_buffers` is available."
            )
            warnings.warn(text, FutureWarning, stacklevel=3)
        if forward_sync_buffers is not None:
            self.forward_sync_buffers = forward_sync_buffers
            return True
        self.forward_sync_buffers = True if broadcast_buffers is None else broadcast_buffers
        return self.forward_sync_buffers

    @property
    def broadcast_buffers(self) -> bool:
        """Whether buffers are rank 0's before each forward."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    def _set_bucket_sizes(self, cap: float | None, caps: list[int] | None) -> None:
        if cap is not None and caps is not None:
            raise ValueError("Cannot specify both bucket_cap_mb and bucket_cap_mb_list")
        config = self._bucket_config = _BucketCapacityConfig.create(cap, caps, False)
        self.bucket_bytes_cap = config.bucket_bytes_cap
        self.bucket_bytes_cap_list = list(config.per_bucket_bytes_caps)
        self.bucket_bytes_cap_default = config.first_bucket_bytes_cap < config.bucket_bytes_cap

    def _build_params_for_reducer(self) -> tuple[list[Any], dict[int, str]]:
        seen: set[int] = set()
        params: list[Any] = []
        names: dict[int, str] = {}
        for name, each in self.module.named_parameters(remove_duplicate=False):
            if name in self.parameters_to_ignore or not each.requires_grad or id(each) in seen:
                continue
            seen.add(id(each))
            names[len(params)] = name
            params.append(each)
        return params, names

    def _make_reducer(self, parameters: list[Any], names: dict[int, str], static_graph: bool) -> None:
        # Where buckets are made anew when it is known which gradients come first, there is one before.
        limits, _ = self._bucket_config.compute_bucket_size_limits(static_graph, self.find_unused_parameters)
        sparse = self._sparse_gradients(parameters)
        buckets, _ = _compute_bucket_assignment_by_size(parameters, limits, sparse)
        # Gradients of the last parameters come first.
        self.reducer = Reducer(
            parameters,
            list(reversed(buckets)),
            self.process_group,
            self.find_unused_parameters,
            self.gradient_as_bucket_view,
            names,
            sparse,
        )
        self.reducer.cap = self.bucket_bytes_cap
        self.reducer.limits = self._bucket_config.limits()
        self.reducer.skip_unused = self.skip_all_reduce_unused_params
        self.reducer.copy_together = self.batched_grad_copy
        self._has_rebuilt_buckets = False
        self.logger = self.reducer.logger = Logger(self.reducer)
        self.logger.set_construction_data_and_log(
            type(self.module).__name__,
            self.device_ids or [],
            -1 if self.output_device is None else self.output_device,
            self.forward_sync_buffers,
            any(isinstance(each, SyncBatchNorm) for each in self.module.modules()),
            static_graph,
        )

    def _sparse_gradients(self, parameters: list[Any]) -> list[bool]:
        """Whose gradients are sparse: those of embeddings that say so."""
        kinds = (Embedding, EmbeddingBag)
        found = {
            id(each.weight)
            for each in self.module.modules()
            if isinstance(each, kinds) and getattr(each, "sparse", False)
        }
        return [id(each) in found for each in parameters]

    def _module_buffers(self) -> list[Any]:
        return [each for name, each in self.module.named_buffers() if name not in self.parameters_to_ignore]

    def _sync_states(self, src: int, buffers: bool) -> None:
        """Give a rank's parameters, and buffers, to all."""
        params = [
            each.detach() for name, each in self.module.named_parameters() if name not in self.parameters_to_ignore
        ]
        tensors = [*params, *(each.detach() for each in self._module_buffers())] if buffers else params
        _broadcast_coalesced(self.process_group, tensors, self.broadcast_bucket_size, src)

    # Forward.

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        inputs, kwargs = self._pre_forward(*inputs, **kwargs)
        output = self._post_forward(self.module(*inputs, **kwargs))
        if self._delayed is not None:
            self._delayed.begin()
        return output

    def _pre_forward(self, *inputs: Any, **kwargs: Any) -> tuple[Any, Any]:
        if is_grad_enabled() and self.require_backward_grad_sync:
            self.reducer.prepare_for_forward()
        work = Join.notify_join_context(self)
        if work is not None:
            self.reducer.join_work = work
        if is_grad_enabled() and self.reducer._rebuild_buckets():
            self._has_rebuilt_buckets = True
        if self.will_sync_module_buffers():
            root = self._find_common_rank(dist.get_rank(self.process_group), True) if self._join_config.enable else 0
            self._sync_module_buffers(root)
        if self._join_config.enable:
            self._check_global_requires_backward_grad_sync(is_joined_rank=False)
        if self.device_ids:
            where = _device(self.device_type, self.device_ids[0])
            return _moved(inputs, where), _moved(kwargs, where)
        return inputs, kwargs

    def _post_forward(self, output: Any) -> Any:
        if is_grad_enabled() and self.require_backward_grad_sync:
            self.require_forward_param_sync = True
            self.reducer.prepare_for_backward(_find_tensors(output))
        else:
            self.require_forward_param_sync = False
        return output

    def will_sync_module_buffers(self) -> bool:
        """Whether the next forward begins with rank 0's buffers."""
        return self.require_forward_param_sync and self.forward_sync_buffers and bool(self._module_buffers())

    def _sync_module_buffers(self, root: int) -> None:
        buffers = [each.detach() for each in self._module_buffers()]
        _broadcast_coalesced(self.process_group, buffers, self.broadcast_bucket_size, root)

    def _find_common_rank(self, rank: int, active: bool) -> int:
        """The highest rank that still has inputs."""
        from ... import tensor

        found = tensor([rank if active else -1], device=self.device)
        dist.all_reduce(found, op=dist.ReduceOp.MAX, group=self.process_group)
        if found.item() == -1:
            raise ValueError("BUG! Expected rank_cond to be true for at least one process.")
        return int(found.item())

    def _check_global_requires_backward_grad_sync(self, is_joined_rank: bool) -> bool:
        from ... import tensor

        wanted = not is_joined_rank and self.require_backward_grad_sync
        flag = tensor([1 if wanted else 0], device=self.device)
        dist.all_reduce(flag, group=self.process_group)
        return bool(flag.item())

    def _sync_final_model(self, is_last_joiner: bool) -> None:
        root = self._find_common_rank(dist.get_rank(self.process_group), is_last_joiner)
        self._sync_states(root, True)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of what runs inside stay each process's own, and are reduced by the next backward outside."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    # Joining.

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """`with model.join():` around a loop whose number of inputs differs between processes."""
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        return _DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group of the gradients."""
        return self.process_group

    # Communication hooks.

    def register_comm_hook(self, state: object, hook: Callable[[object, Any], Any]) -> None:
        """Let `hook(state, bucket)` reduce buckets; it returns a future of the reduced buffer."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        self._check_comm_hook(hook)
        if self._comm_hooks:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._comm_hooks.append((hook, state))
        self.logger._set_comm_hook_name(getattr(hook, "__qualname__", type(hook).__qualname__))
        self.reducer.hook, self.reducer.hook_state = hook, state

    @staticmethod
    def _check_comm_hook(hook: Any) -> None:
        import inspect

        from ...distributed._reducer import GradBucket

        parameters = inspect.signature(hook).parameters
        found = parameters["bucket"].annotation
        text = getattr(found, "__name__", str(found)).rpartition(".")[2]
        if found is not inspect.Parameter.empty and found is not GradBucket and text not in ("GradBucket", "Any"):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")

    def _set_static_graph(self) -> None:
        """Say that every iteration uses the same parameters in the same way."""
        if self.static_graph and self.reducer.static_graph:
            warnings.warn(
                "You've set static_graph to be True, no need to call `_set_static_graph` again.", stacklevel=2
            )
            return
        if self.reducer.iterations:
            text = (
                "set_static_graph() should be called before training loop starts and after DistributedDataParallel is "
                "constructed."
            )
            self.logger.set_error_and_log(text)
            raise RuntimeError(text)
        self.static_graph = self.reducer.static_graph = True
        self.logger._set_static_graph()
        if self.find_unused_parameters:
            warnings.warn(
                "You passed find_unused_parameters=true to DistributedDataParallel, `_set_static_graph` will detect "
                "unused parameters automatically, so you do not need to set find_unused_parameters=true, just be sure "
                "these unused parameters will not change during training loop while calling `_set_static_graph`.",
                stacklevel=2,
            )

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Any, names: Any) -> None:
        """Leave parameters and buffers of these names alone."""
        module._ddp_params_and_buffers_to_ignore = names

    @property
    def _distributed_rank(self) -> int:
        return dist.get_rank(self.process_group)

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        return dict(self.logger._get_ddp_logging_data())

    def _set_ddp_runtime_logging_sample_rate(self, sample_rate: int) -> None:
        """Look at every so many steps, after the first ten."""
        if sample_rate < 1:
            raise ValueError("DDP runtime logging sample rate should be equal or greater than 1")
        self.logger.rate = sample_rate

    def __getstate__(self) -> dict[str, Any]:
        if self.process_group != dist._get_default_group():
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default process group. That is, "
                "when you have called init_process_group and have not passed process_group argument to DDP constructor"
            )
        kept = dict(self.__dict__)
        for name in ("process_group", "reducer", "logger"):
            kept.pop(name, None)
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__["process_group"] = dist._get_default_group()
        super().__setstate__(state)
        self.__dict__.setdefault("require_forward_param_sync", True)
        self.__dict__.setdefault("require_backward_grad_sync", True)
        parameters, names = self._build_params_for_reducer()
        self._make_reducer(parameters, names, self.static_graph)
        self.reducer.static_graph = self.static_graph
