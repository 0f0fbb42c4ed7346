"""What `DistributedDataParallel` tells of itself: how it was made, how long the parts of a step took, what went wrong.

Invariant: numbers of a step are those of the last step that was looked at: each of the first ten, then every so many.
"""

from __future__ import annotations

import os
from typing import Any

__all__ = ["Logger"]

_ALWAYS = 10  # steps
_RATE = 100


def _env(name: str) -> str:
    return os.environ.get(name, "N/A")


class Logger:
    """What is known of a model in DDP, by PyTorch's names."""

    __module__ = "torch.distributed"

    def __init__(self, reducer: Any) -> None:
        self._reducer = reducer
        self._made: dict[str, Any] = {}
        self._seen: dict[str, Any] = {"iteration": 0}
        self._sums: dict[str, int] = {}
        self._looked = 0
        self.rate = _RATE

    def set_construction_data_and_log(
        self,
        module_name: str,
        device_ids: list[int],
        output_device: int,
        broadcast_buffers: bool,
        has_sync_bn: bool,
        static_graph: bool,
    ) -> None:
        """Keep how the model was made."""
        from . import distributed_c10d as dist

        reducer = self._reducer
        sizes = [each.numel() * each.element_size() for each in reducer.params]
        names = {str(each.dtype).removeprefix("torch.") for each in reducer.params}
        kinds = sorted({"float32": "float", "float64": "double"}.get(each, each) for each in names)
        self._made = {
            "world_size": reducer.group.size(),
            "rank": reducer.group.rank(),
            "module_name": module_name,
            "backend_name": dist.get_backend(reducer.group),
            "device_ids": ", ".join(map(str, device_ids)),
            "output_device": output_device,
            "broadcast_buffers": int(broadcast_buffers),
            "has_sync_bn": int(has_sync_bn),
            "is_multi_device_module": int(len({each.device for each in reducer.params}) > 1),
            "bucket_cap_bytes": reducer.cap,
            "find_unused_parameters": int(reducer.find_unused),
            "gradient_as_bucket_view": int(reducer.as_view),
            "num_parameter_tensors": len(sizes),
            "total_parameter_size_bytes": sum(sizes),
            "dtypes": ", ".join(kinds),
            "bucket_sizes": ", ".join(str(each) for each in reducer.bucket_sizes()),
            "master_port": _env("MASTER_PORT"),
            "master_addr": _env("MASTER_ADDR"),
            "cuda_visible_devices": _env("CUDA_VISIBLE_DEVICES"),
            "torch_distributed_debug": _env("TORCH_DISTRIBUTED_DEBUG"),
        }
        if self._made["backend_name"] == "gloo":
            self._made |= {
                "gloo_socket_ifname": _env("GLOO_SOCKET_IFNAME"),
                "gloo_device_transport": _env("GLOO_DEVICE_TRANSPORT"),
                "gloo_num_threads": 2,
            }
        if static_graph:
            self._set_static_graph()

    def _set_static_graph(self) -> None:
        self._made["static_graph"] = 1

    def _set_comm_hook_name(self, comm_hook: str) -> None:
        self._made["comm_hook"] = comm_hook

    def _set_uneven_input_join(self) -> None:
        self._made["join_uneven_inputs"] = 1

    def set_error_and_log(self, error: str) -> None:
        """Keep what went wrong."""
        self._seen |= {"has_error": 1, "error": error, "iteration": self._reducer.iterations}

    def look(self) -> None:
        """When a step begins: take the numbers of the one before, if it is one to look at."""
        step, times = self._reducer.iterations, self._reducer.times
        if step >= _ALWAYS and step % self.rate:
            return
        self._seen["iteration"] = step
        if not step:
            return
        if len(times) < 5:
            self._seen |= self._buckets()
            return
        forward, compute, send, compute_end, end = times
        found = {
            "forward_compute_time": compute - forward,
            "backward_compute_time": compute_end - compute,
            "backward_comm_time": end - send,
            "backward_compute_comm_overlap_time": max(compute_end - send, 0),
        }
        self._looked += 1
        for name, value in found.items():
            self._sums[name] = self._sums.get(name, 0) + value
            self._seen[f"avg_{name}"] = self._sums[name] // self._looked
        self._seen |= (
            found
            | self._buckets()
            | {
                "forward_compute_time_start": forward,
                "backward_compute_time_start": compute,
                "backward_compute_time_end": compute_end,
                "backward_comm_time_start": send,
                "backward_comm_time_end": end,
            }
        )

    def _buckets(self) -> dict[str, Any]:
        """What was reduced in the step before, and in which order gradients came."""
        reducer = self._reducer
        delayed = reducer.static_graph and reducer.iterations == 1  # all was reduced after backward
        sizes = [reducer.params[index].numel() * reducer.params[index].element_size() for index in reducer.unused]
        found = {
            "has_rebuilt_buckets": int(reducer.rebuilt),
            "num_buckets_reduced": 0 if delayed else len(reducer.buckets),
            "unused_parameter_size": sum(sizes),
        }
        if reducer.order:
            found["prev_iteration_grad_ready_order_indices"] = ", ".join(map(str, reducer.order))
        if reducer.rebuilt:
            found["rebuilt_bucket_sizes"] = ", ".join(map(str, reducer.bucket_sizes()))
            indices = (" ".join(map(str, bucket.indices)) for bucket in reducer.buckets)
            found["rebuilt_per_bucket_param_indices"] = ", ".join(indices)
        return found

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        return {**self._made, **self._seen}
