"""`CommDebugMode`: which collectives a piece of a program asks for, in all and by module.

Invariant: a collective counts once, for the module that runs and for each of its parents.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import Any

from ...._operators import ops
from ....utils._python_dispatch import TorchDispatchMode
from ... import _c10d_ops
from ... import _functional_collectives as _functional
from .._api import DTensor
from ._modules import Modules

__all__ = ["CommDebugMode"]

_COUNTED = (
    *("all_gather_into_tensor", "all_gather_into_tensor_coalesced", "all_reduce", "all_reduce_coalesced"),
    *("all_to_all_single", "broadcast", "reduce_scatter_tensor", "reduce_scatter_tensor_coalesced"),
)
# Functional collectives count under their older names, as programs ask for them.
NATIVE_TO_PY_MAPPING = {getattr(_functional.NATIVE, name): getattr(ops.c10d_functional, name) for name in _COUNTED}
c10d_collective_ops = {getattr(ops.c10d, name) for name in _c10d_ops.PLAIN}
trivial_ops = {
    *("aten.detach.default", "aten.t.default", "aten.view.default", "aten._to_copy.default"),
    *("aten.as_strided.default", "aten.transpose.int"),
}
_COLOURS = re.compile(r"\x1B\[[0-?]*[ -/]*[@-~]")
_BOLD, _RED, _PLAIN = "\033[1;33m", "\033[1;31m", "\033[0m"


def _empty() -> dict[str, dict[Any, int]]:
    return {"forward": defaultdict(int), "backward": defaultdict(int)}


class CommDebugMode(TorchDispatchMode):
    """Inside the block, collectives are counted; `noise_level` of what is shown goes from 0 (collectives of each
    module) over 1 (operators of tensors on a mesh) and 2 (operators that compute) to 3 (all operators)."""

    def __init__(self) -> None:
        super().__init__()
        self.supports_higher_order_operators = True
        self.comm_counts: dict[Any, int] = defaultdict(int)
        self.comm_module_counts: dict[str, dict[str, dict[Any, int]]] = {}
        self.comm_module_operation_counts: dict[str, dict[str, list[dict[str, Any]]]] = {}
        self.comm_registry = {*NATIVE_TO_PY_MAPPING, *NATIVE_TO_PY_MAPPING.values()}
        self.advanced_module_tracker = Modules()

    def __enter__(self) -> CommDebugMode:
        self.comm_counts.clear()
        self.comm_module_counts.clear()
        self.comm_module_counts["Global"] = _empty()
        self.comm_module_operation_counts.clear()
        super().__enter__()
        self.advanced_module_tracker.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.advanced_module_tracker.__exit__()
        super().__exit__(*exc)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tracker = self.advanced_module_tracker
        of_mesh = any(kind is DTensor for kind in types)
        tensors = [each for each in args if isinstance(each, DTensor)] if of_mesh else []
        told = {
            "name": func,
            "input_shape": [each.shape for each in tensors],
            "input_sharding": [each.placements for each in tensors],
            "device_mesh": str(tensors[-1].device_mesh) if tensors else "",
            "is_bw": tracker.is_bw,
            "is_activation_checkpointing": tracker.activation_checkpointing,
        }
        seen = self.comm_module_operation_counts.setdefault(tracker.name, {"operations_list": []})["operations_list"]
        if of_mesh:
            # Tensors on a mesh go first: what they come to is seen next.
            seen.append(told)
            return NotImplemented
        out = func(*args, **(kwargs or {}))
        packet = func._overloadpacket
        if packet in self.comm_registry or packet in c10d_collective_ops:
            self._count(NATIVE_TO_PY_MAPPING.get(packet, packet))
        seen.append(told)
        return out

    def _count(self, packet: Any) -> None:
        tracker = self.advanced_module_tracker
        key = "backward" if tracker.is_bw else "forward"
        self.comm_counts[packet] += 1
        for name in {tracker.name, *tracker.module_parents_dict.get(tracker.name, ())}:
            self.comm_module_counts.setdefault(name, _empty())[key][packet] += 1

    def get_total_counts(self) -> int:
        """How many collectives there were."""
        return sum(self.comm_counts.values())

    def get_comm_counts(self) -> dict[Any, int]:
        """How many there were of each collective."""
        return self.comm_counts

    def get_parameter_info(self) -> dict[str, dict[str, Any]]:
        """The parameters of each module."""
        return self.advanced_module_tracker.module_parameters_dict

    def get_sharding_info(self) -> dict[str, Any]:
        """How parameters lie on their mesh."""
        return self.advanced_module_tracker.sharding_dict

    # -- what is shown -----------------------------------------------------------------------------------------------
    def _shown(self, fqn: str, noise_level: int) -> list[list[dict[str, Any]]]:
        """Operators of a module's forward, backward and checkpoints."""
        every = self.comm_module_operation_counts.get(fqn, {"operations_list": []})["operations_list"]
        if noise_level < 1:
            every = []
        if noise_level < 2:
            every = [each for each in every if each["input_shape"]]
        if noise_level < 3:
            every = [each for each in every if str(each["name"]) not in trivial_ops]
        again = [each for each in every if each["is_activation_checkpointing"]]
        forward = [each for each in every if not each["is_bw"]]
        return [forward, [each for each in every if each["is_bw"] and not each["is_activation_checkpointing"]], again]

    def generate_comm_debug_tracing_table(self, noise_level: int = 3) -> str:
        """A table of collectives and operators by module."""
        lines: list[str] = []
        for fqn, told in self.advanced_module_tracker.module_helper_dict.items():
            start = "  " * (2 * told["depth"])
            lines.append(f"{start}{fqn}")
            if noise_level > 0 and "module_type" in told:
                lines.append(f"{start}*module type: {told['module_type']}")
            if noise_level > 0 and "parameters" in told:
                lines.append(f"{start}*Parameter List")
                lines += [f"{start} *{name}: {placement}" for name, placement in told["parameters"].items()]
            counts = self.comm_module_counts.get(fqn, _empty())
            forward, backward, again = self._shown(fqn, noise_level)
            for title, collectives, operations in (
                ("FORWARD PASS", counts["forward"], forward),
                ("BACKWARD PASS", counts["backward"], backward),
                ("ACTIVATION CHECKPOINTING", {}, again),
            ):
                if collectives or operations:
                    lines.append(f"{start}  {title}")
                    lines += _rows(start, collectives, operations)
        return "".join(f"{line}\n" for line in lines)

    def log_comm_debug_tracing_table_to_file(self, file_name: str = "comm_mode_log.txt", noise_level: int = 3) -> None:
        """Write the table into a file, without its colours."""
        with open(file_name, "w", encoding="utf-8") as file:
            file.write(_COLOURS.sub("", self.generate_comm_debug_tracing_table(noise_level)))

    def _as_json(self, fqn: str, noise_level: int) -> dict[str, Any]:
        tracker = self.advanced_module_tracker
        told = tracker.module_helper_dict[fqn]
        counts = self.comm_module_counts.get(fqn, _empty())
        titles = ("operations_forward", "operations_backward", "operations_checkpointing")
        found: dict[str, Any] = {
            "fqn": fqn,
            "module_type": told.get("module_type", "") if noise_level > 0 else "",
            "parameters": list(told.get("parameters", {}).items()) if noise_level > 0 else [],
            "children": [self._as_json(each, noise_level) for each in tracker.parent_dict.get(fqn, ())],
        }
        for key in ("forward", "backward"):
            found[f"collectives_{key}"] = [(str(name), count) for name, count in counts[key].items()]
        for title, operations in zip(titles, self._shown(fqn, noise_level)):
            found[title] = [
                {
                    **each,
                    "name": str(each["name"]),
                    "input_shape": [str(shape) for shape in each["input_shape"]],
                    "input_sharding": [str(placements) for placements in each["input_sharding"]],
                }
                for each in operations
            ]
        return found

    def generate_json_dump(self, file_name: str = "comm_mode_log.json", noise_level: int = 3) -> None:
        """Write collectives and operators by module into a file, for a viewer."""
        with open(file_name, "w", encoding="utf-8") as file:
            json.dump(self._as_json("Global", noise_level), file, indent=4)

    def __repr__(self) -> str:
        return f"CommDebugMode(get_total_counts()={self.get_total_counts()})"


def _rows(start: str, collectives: dict[Any, int], operations: list[dict[str, Any]]) -> list[str]:
    found = [f"{_BOLD}{start}    *{name}: {count}{_PLAIN}" for name, count in collectives.items()]
    for each in operations:
        found.append(f"{_BOLD}{start}    **{each['name']}{_PLAIN}")
        if each["input_shape"]:
            for title, value in (
                ("shape", "input_shape"),
                ("sharding", "input_sharding"),
                ("device mesh", "device_mesh"),
            ):
                found.append(f"{_RED}{start}      {title}: {each[value]}{_PLAIN}")
    return found
