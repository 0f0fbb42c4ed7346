"""`parallelize_module`: styles for the layers of a model, by their names."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch
from typing import Any

from ...device_mesh import DeviceMesh, _mesh_resources
from .style import ParallelStyle

__all__ = ["parallelize_module"]


def _apply(module: Any, mesh: DeviceMesh, style: ParallelStyle, source: int | None) -> Any:
    style.src_data_rank = source
    return style._apply(module, mesh)


def _named(module: Any, path: str, mesh: DeviceMesh, style: ParallelStyle, source: int | None) -> None:
    first, _, rest = path.partition(".")
    found = [(name, child) for name, child in module.named_children() if fnmatch(name, first)]
    if not found:
        warnings.warn(
            f"Parallelize plan key '{path}' could not be resolved: no submodule matching token '{first}' in module "
            f"{module}, skipping this plan entry.",
            stacklevel=3,
        )
    for name, child in found:
        if rest:
            _named(child, rest, mesh, style, source)
        else:
            module.register_module(name, _apply(child, mesh, style, source))


def parallelize_module(
    module: Any, device_mesh: DeviceMesh | None = None, parallelize_plan: Any = None, *, src_data_rank: int | None = 0
) -> Any:
    """Lay out the layers that a plan names (patterns count) on a mesh."""
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if mesh.ndim > 1:
        raise ValueError(
            f"Tensor Parallel only accepts a 1D DeviceMesh, but found {mesh.ndim}D! If you have a 2-D or N-D "
            "device_mesh, consider passing in device_mesh['tp']"
        )
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so this "
            "parallelize_module call will do nothing.",
            stacklevel=2,
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        return _apply(module, mesh, parallelize_plan, src_data_rank)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        if path == "":
            module = _apply(module, mesh, style, src_data_rank)
        else:
            _named(module, path, mesh, style, src_data_rank)
    return module
