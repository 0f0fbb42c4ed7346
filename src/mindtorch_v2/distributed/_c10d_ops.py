"""Collectives as operators: `torch.ops._c10d_functional` makes new tensors, `torch.ops.c10d` is what groups are asked.

Invariant: a mode that looks at operators (`TorchDispatchMode`) sees each collective once, as the operator that was
called; what that comes to below is not shown to it again. Without such a mode groups do not come here.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from .._operators import ops
from ..library import Library
from . import _options as _o
from ._options import UNSET, Options

__all__ = ["LEGACY", "NATIVE", "PLAIN", "asked", "functional"]

_GROUP = "Any process_group"
_END = "bool async_op=True, int timeout=-1) -> "
_BOTH = "(Tensor[], Any)"
# By the method of a group: the operator's schema, and the options that its last arguments make.
_ASKED: dict[str, tuple[str, type[Options]]] = {
    "broadcast": (
        f"broadcast_(Tensor[] tensors, {_GROUP}, int root_rank, int root_tensor, {_END}{_BOTH}",
        _o.BroadcastOptions,
    ),
    "allreduce": (
        f"allreduce_(Tensor[] tensors, {_GROUP}, Any reduce_op, Tensor? sparse_indices, {_END}{_BOTH}",
        _o.AllreduceOptions,
    ),
    "allreduce_coalesced": (
        f"allreduce_coalesced_(Tensor[] tensors, {_GROUP}, Any reduce_op, {_END}Any",
        _o.AllreduceCoalescedOptions,
    ),
    "reduce": (
        f"reduce_(Tensor[] tensors, {_GROUP}, Any reduce_op, int root_rank, int root_tensor, {_END}Any",
        _o.ReduceOptions,
    ),
    "allgather": (
        f"allgather_(Any output_tensors, Tensor[] input_tensors, {_GROUP}, {_END}(Any, Any)",
        _o.AllgatherOptions,
    ),
    "_allgather_base": (
        f"_allgather_base_(Tensor output_tensor, Tensor input_tensor, {_GROUP}, {_END}(Tensor, Any)",
        _o.AllgatherOptions,
    ),
    "allgather_coalesced": (
        f"allgather_coalesced_(Any output_lists, Tensor[] input_list, {_GROUP}, bool async_op=True) -> Any",
        _o.AllgatherOptions,
    ),
    "allgather_into_tensor_coalesced": (
        f"allgather_into_tensor_coalesced_(Tensor[] outputs, Tensor[] inputs, {_GROUP}, bool async_op=True) -> Any",
        _o.AllgatherOptions,
    ),
    "gather": (
        f"gather_(Any output_tensors, Tensor[] input_tensors, {_GROUP}, int root_rank, {_END}Any",
        _o.GatherOptions,
    ),
    "scatter": (
        f"scatter_(Tensor[] output_tensors, Any input_tensors, {_GROUP}, int root_rank, {_END}{_BOTH}",
        _o.ScatterOptions,
    ),
    "reduce_scatter": (
        f"reduce_scatter_(Tensor[] output_tensors, Any input_tensors, {_GROUP}, Any reduce_op, {_END}{_BOTH}",
        _o.ReduceScatterOptions,
    ),
    "_reduce_scatter_base": (
        f"_reduce_scatter_base_(Tensor output_tensor, Tensor input_tensor, {_GROUP}, Any reduce_op, "
        f"{_END}(Tensor, Any)",
        _o.ReduceScatterOptions,
    ),
    "reduce_scatter_tensor_coalesced": (
        f"reduce_scatter_tensor_coalesced_(Tensor[] outputs, Tensor[] inputs, {_GROUP}, Any reduce_op, {_END}Any",
        _o.ReduceScatterOptions,
    ),
    "alltoall_base": (
        f"alltoall_base_(Tensor output, Tensor input, {_GROUP}, int[] output_split_sizes, int[] input_split_sizes, "
        f"{_END}Any",
        _o.AllToAllOptions,
    ),
    "alltoall": (
        f"alltoall_(Tensor[] output_tensors, Tensor[] input_tensors, {_GROUP}, {_END}{_BOTH}",
        _o.AllToAllOptions,
    ),
}
_FIELDS = {
    "root_rank": "rootRank",
    "root_tensor": "rootTensor",
    "reduce_op": "reduceOp",
    "sparse_indices": "sparseIndices",
    "async_op": "asyncOp",
    "timeout": "timeout",
}
# Functional operators, and the names under which `CommDebugMode` counts them.
_FUNCTIONAL = {
    "all_reduce": "(Tensor input, str reduce_op, Any group_name) -> Tensor",
    "all_reduce_": "(Tensor(a!) input, str reduce_op, Any group_name) -> Tensor(a!)",
    "all_reduce_coalesced": "(Tensor[] inputs, str reduce_op, Any group_name) -> Tensor[]",
    "all_gather_into_tensor": "(Tensor input, int group_size, Any group_name) -> Tensor",
    "all_gather_into_tensor_coalesced": "(Tensor[] inputs, int group_size, Any group_name) -> Tensor[]",
    "reduce_scatter_tensor": "(Tensor input, str reduce_op, int group_size, Any group_name) -> Tensor",
    "reduce_scatter_tensor_coalesced": "(Tensor[] inputs, str reduce_op, int group_size, Any group_name) -> Tensor[]",
    "all_to_all_single": (
        "(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, Any group_name) -> Tensor"
    ),
    "broadcast": "(Tensor input, int src, Any group_name) -> Tensor",
    "broadcast_": "(Tensor(a!) input, int src, Any group_name) -> Tensor(a!)",
    "wait_tensor": "(Tensor tensor) -> Tensor",
}
_GROUPS = Library("c10d", "DEF")
NATIVE = Library("_c10d_functional", "DEF")
LEGACY = Library("c10d_functional", "DEF")


def _names(schema: str) -> list[str]:
    inside = schema[schema.index("(") + 1 : schema.index(") ->")]
    return [part.split()[-1].partition("=")[0] for part in inside.split(",")]


def _packed(names: list[str], pg: Any, arguments: tuple[Any, ...]) -> list[Any]:
    """What the operator is called with, of what the group's method was."""
    given, options = list(arguments[:-1]), arguments[-1]
    found: list[Any] = []
    for name in names:
        if name == "process_group":
            found.append(pg)
        elif name == "timeout":
            waits = options.timeout
            found.append(-1 if waits == UNSET else int(waits.total_seconds() * 1000))
        else:
            found.append(getattr(options, _FIELDS[name]) if name in _FIELDS else given.pop(0))
    return found


def _kernel(method: str, names: list[str], kind: type[Options], several: bool) -> Callable[..., Any]:
    def run(*values: Any, **named: Any) -> Any:
        options, given = kind(), []
        pg: Any = None
        for name, value in [*zip(names, values), *named.items()]:
            if name == "process_group":
                pg = value
            elif name == "timeout":
                options.timeout = UNSET if value < 0 else timedelta(milliseconds=value)
            elif name in _FIELDS:
                setattr(options, _FIELDS[name], value)
            else:
                given.append(list(value) if isinstance(value, tuple) else value)
        work = pg._serve(method, *given, options)
        return (given[0], work) if several else work

    return run


def asked(pg: Any, method: str, arguments: tuple[Any, ...]) -> Any:
    """The work of a group's method, by its operator."""
    schema, _ = _ASKED[method]
    found = getattr(ops.c10d, schema.partition("(")[0])(*_packed(_names(schema), pg, arguments))
    return found[-1] if isinstance(found, (tuple, list)) else found


def functional(kernels: dict[str, Callable[..., Any]]) -> None:
    """Give the functional operators what they do; the older names do the same."""
    for library in (NATIVE, LEGACY):
        for name, kernel in kernels.items():
            library.define(name + _FUNCTIONAL[name])
            library.impl(name, kernel, "CompositeExplicitAutograd")


for _method, (_schema, _kind) in _ASKED.items():
    _GROUPS.define(_schema)
    _run = _kernel(_method, _names(_schema), _kind, _schema.partition("-> ")[2].startswith("("))
    _GROUPS.impl(_schema.partition("(")[0], _run, "CompositeExplicitAutograd")

# What `CommDebugMode` counts of groups.
PLAIN = [schema.partition("(")[0] for schema, _ in _ASKED.values()]
