"""`DTensor`: one tensor on many processes, of which each has a part.

Invariant: a `DTensor` has the shape, strides and dtype of the whole; `_local_tensor` is this rank's part, and only
operators that the mesh's ranks all run touch it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..._overrides import _disabled_torch_function_impl
from ..._size import Size
from ..._tensor import Tensor
from ...autograd import Function
from .. import _collectives as collectives
from ..device_mesh import DeviceMesh, _mesh_resources
from ._dispatch import dispatch
from ._dtensor_spec import DTensorSpec, TensorMeta, local_box, normalized, whole_shape
from ._redistribute import Redistribute, _padded, chunks_of, for_gradient, redistributed
from .placement_types import Partial, Placement, Replicate, Shard, _StridedShard

__all__ = ["DTensor", "distribute_module", "distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros"]


class _ToTorchTensor(Function):
    @staticmethod
    def forward(ctx: Any, source: Any, grad_placements: Any) -> Any:
        ctx.spec, ctx.grad_placements = source._spec, grad_placements
        ctx.set_materialize_grads(False)
        return source._local_tensor.view_as(source._local_tensor)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if grad is None:
            return None, None
        spec = ctx.spec
        placements = ctx.grad_placements
        placements = for_gradient(spec.placements) if placements is None else tuple(placements)
        stride = tuple(whole_shape(grad, spec.mesh, spec.placements)[1])
        return DTensor.from_local(grad, spec.mesh, placements, shape=spec.shape, stride=stride), None


class _FromTorchTensor(Function):
    @staticmethod
    def forward(
        ctx: Any, local: Any, mesh: DeviceMesh, placements: Any, shape: Any, stride: Any, grad_placements: Any
    ) -> Any:
        ctx.placements = placements if grad_placements is None else grad_placements
        ctx.given = grad_placements is not None
        ctx.set_materialize_grads(False)
        spec = DTensorSpec(mesh, placements, TensorMeta(Size(shape), tuple(stride), local.dtype))
        return DTensor(local.view_as(local), spec, requires_grad=local.requires_grad)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if grad is None:
            return (None,) * 6
        then = tuple(ctx.placements) if ctx.given else for_gradient(ctx.placements)
        return redistributed(grad._local_tensor, grad._spec, then), None, None, None, None, None


class DTensor(Tensor):
    """A tensor that lies on a mesh of processes."""

    _local_tensor: Any
    _spec: DTensorSpec

    @staticmethod
    def __new__(cls, local_tensor: Any, spec: DTensorSpec, *, requires_grad: bool = False) -> DTensor:
        meta = spec.tensor_meta
        made: Any = Tensor._make_wrapper_subclass(
            cls,
            meta.shape,
            strides=meta.stride,
            dtype=meta.dtype,
            device=local_tensor.device,
            requires_grad=requires_grad,
        )
        made._spec = spec
        made._local_tensor = local_tensor.detach() if local_tensor.requires_grad else local_tensor
        return made  # type: ignore[no-any-return]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return (
            f"DTensor(local_tensor={self._local_tensor}, device_mesh={self._spec.mesh}, "
            f"placements={self._spec.placements})"
        )

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["_local_tensor"], (self._spec, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(inner: Any, flatten_spec: Any, outer_size: Any, outer_stride: Any) -> DTensor:
        spec, requires_grad = flatten_spec
        meta = TensorMeta(outer_size, outer_stride, spec.tensor_meta.dtype)
        made = DTensorSpec(spec.mesh, spec.placements, meta)
        return DTensor(inner["_local_tensor"], made, requires_grad=requires_grad)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from ._functions import served

        found = served(func, args, kwargs or {})
        # What is plain stays so: a result becomes a tensor of a mesh by an operator alone.
        return _disabled_torch_function_impl(func, types, args, kwargs or {}) if found is NotImplemented else found

    def _follow_view(self, seen: DTensor) -> None:
        """This tensor has become a view of itself in place: so have its part, and how it lies."""
        self._local_tensor, self._spec = seen._local_tensor, seen._spec

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatch(func, tuple(args), kwargs or {}, DTensor)

    @staticmethod
    def from_local(
        local_tensor: Any,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Any = None,
        stride: Any = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> Any:
        """The tensor of which every rank gives its part; the whole's shape follows from this rank's, or is given."""
        if isinstance(local_tensor, DTensor):
            raise RuntimeError("the local_tensor argument only accepts torch.Tensor but got DTensor value.")
        mesh = device_mesh or _mesh_resources.get_current_mesh()
        if local_tensor.device.type != mesh.device_type and not local_tensor.is_meta:
            local_tensor = local_tensor.to(mesh.device_type)
        given = placements
        places = normalized(given, local_tensor.dim(), mesh)
        for each in places:
            if isinstance(each, Shard) and not 0 <= each.dim < local_tensor.dim():
                raise RuntimeError(
                    f"Sharding dim {each.dim} greater than tensor ndim {local_tensor.dim()} for placement number "
                    f"{places.index(each)}"
                )
        if (shape is None) != (stride is None):
            raise RuntimeError(
                f"Found shape:{shape}, stride:{stride}.", "Please pass both shape and stride at the same time."
            )
        if shape is None:
            shape, stride = whole_shape(local_tensor, mesh, places)
        if run_check:
            for at, each in enumerate(places):
                if each.is_replicate():
                    local_tensor = local_tensor.contiguous()
                    group = mesh.get_group(at)
                    collectives.broadcast(local_tensor.detach(), group=group, group_src=0)
        backwards = None if grad_placements is None else normalized(grad_placements, local_tensor.dim(), mesh)
        return _FromTorchTensor.apply(local_tensor, mesh, places, tuple(shape), tuple(stride), backwards)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Any:
        """This rank's part."""
        from ... import is_grad_enabled

        if not is_grad_enabled():
            return self._local_tensor
        given = None if grad_placements is None else normalized(grad_placements, self.dim(), self._spec.mesh)
        return _ToTorchTensor.apply(self, given)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> Any:
        """The same tensor, laid out in another way."""
        mesh = device_mesh or self._spec.mesh
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if mesh != self._spec.mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        then = normalized(placements, self.dim(), mesh)
        for now, each in zip(self._spec.placements, then):
            if each.is_partial() and now != each:
                raise RuntimeError(
                    f"Can not redistribute from {now} to {each}, redistributing to Partial is for internal use only!"
                )
        if (
            then == self._spec.placements
            and forward_dtype is None
            and backward_dtype is None
            and not self.requires_grad
        ):
            return self
        # Collectives wait inside the call, so that `async_op` has nothing left to do.
        return Redistribute.apply(self, then, forward_dtype, backward_dtype)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Any:
        """The whole, on every rank."""
        whole = self.redistribute(placements=[Replicate()] * self._spec.mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh that the tensor lies on."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How it lies along each dimension of the mesh."""
        return self._spec.placements

    def __create_write_items__(self, fqn: str, object: Any) -> Any:
        from ..checkpoint.planner_helpers import _create_write_items_for_dtensor

        return [_create_write_items_for_dtensor(fqn, object)]

    def __create_chunk_list__(self) -> Any:
        from ..checkpoint.planner_helpers import _create_chunk_from_dtensor

        return [_create_chunk_from_dtensor(self)]

    def __get_tensor_shard__(self, index: Any) -> Any:
        return self.to_local()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, (type(self), self._local_tensor, self._spec, self.requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment."
            )
        from ...nn import Parameter

        made: Any = DTensor(self._local_tensor.clone(), self._spec, requires_grad=self.requires_grad)
        me: Any = self
        if isinstance(me, Parameter):
            made = Parameter(made, self.requires_grad)
        if self.grad is not None:
            made.grad = self.grad.__deepcopy__(memo)
        memo[id(self)] = made
        return made


def _rebuilt(cls: Any, local: Any, spec: DTensorSpec, requires_grad: bool) -> Any:
    return cls(local, spec, requires_grad=requires_grad)


# -- ways to make them --------------------------------------------------------------------------------------------
def _wrap_local(local: Any, mesh: DeviceMesh, placements: tuple[Placement, ...], like: Any, requires_grad: bool) -> Any:
    meta = TensorMeta(Size(like.shape), tuple(like.stride()), local.dtype)
    made = DTensor(local, DTensorSpec(mesh, placements, meta), requires_grad=False)
    return made.requires_grad_(requires_grad)


def _scattered(whole: Any, dim: int, mesh: DeviceMesh, at: int, source: int | None) -> Any:
    """This rank's part along a dimension of the mesh, as the source has it."""
    ranks, rank = mesh.size(at), mesh.get_local_rank(at)
    parts = chunks_of(whole, dim, ranks)
    if source is None:
        return parts[rank].contiguous()
    lengths = [part.shape[dim] for part in parts]
    if lengths[0] == 0:
        return parts[rank]
    padded = [_padded(part, dim, lengths[0]) for part in parts] if rank == source else None
    shape = list(whole.shape)
    shape[dim] = lengths[0]
    out = whole.new_empty(shape)
    collectives.scatter(out, padded, group=mesh.get_group(at), group_src=source)
    return out.narrow(dim, 0, lengths[rank]).contiguous()


def distribute_tensor(
    tensor: Any,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Any:
    """A tensor that every rank has, as one that lies on the mesh; the data are those of one rank."""
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    places = normalized(placements, tensor.dim(), mesh)
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(
                f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device mesh {mesh}."
            )
        if tensor.placements != places:
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements {places}. "
                "do you want to call `redistribute` instead?"
            )
        return tensor
    if tensor.device.type != mesh.device_type and not tensor.is_meta:
        tensor = tensor.to(mesh.device_type)
    local = tensor.detach()
    for at, placement in enumerate(places):
        if isinstance(placement, _StridedShard):
            raise NotImplementedError("distribute_tensor: a strided split follows from others and is not asked for")
        if isinstance(placement, Shard):
            last = max(local.dim(), 1) - 1
            if placement.dim < 0:
                raise AssertionError(f"Shard dim {placement.dim} in placements {tuple(places)} must be normalized")
            if placement.dim > last:
                text = f"(expected to be in range of [{-last - 1}, {last}], but got {placement.dim})"
                raise IndexError(f"Dimension out of range {text}")
            local = _scattered(local, placement.dim, mesh, at, None if local.is_meta else src_data_rank)
        elif isinstance(placement, Replicate):
            local = local.contiguous().clone()
            if src_data_rank is not None and not local.is_meta:
                collectives.broadcast(local, group=mesh.get_group(at), group_src=src_data_rank)
        elif isinstance(placement, Partial):
            local = placement._share(local, mesh.size(at))
        else:
            raise RuntimeError(
                f"Trying to distribute tensor with unsupported placements {placement} on device mesh {mesh}!"
            )
    return _wrap_local(local, mesh, places, tensor, tensor.requires_grad)


def _replicated(module: Any, mesh: DeviceMesh) -> None:
    from ... import nn

    for owner in module.modules():
        for key, param in owner._parameters.items():
            if param is not None and not isinstance(param, DTensor):
                whole = distribute_tensor(param.data, mesh, [Replicate()] * mesh.ndim)
                owner.register_parameter(key, nn.Parameter(whole, param.requires_grad))
        for key, buffer in owner._buffers.items():
            if buffer is not None and not isinstance(buffer, DTensor):
                owner._buffers[key] = distribute_tensor(buffer, mesh, [Replicate()] * mesh.ndim)


def distribute_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Any, DeviceMesh], None] | None = None,
    input_fn: Callable[..., Any] | None = None,
    output_fn: Callable[..., Any] | None = None,
) -> Any:
    """A module whose parameters lie on a mesh: as `partition_fn` says, else whole everywhere."""
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError(
            "distribute_module should only be called once on a module, but it has already been called on this module!"
        )
    if partition_fn is not None:
        for name, each in module.named_modules():
            partition_fn(name, each, mesh)
    _replicated(module, mesh)
    for title, each in (("input_fn", input_fn), ("output_fn", output_fn)):
        count = 3 if each is None else len(inspect.signature(each).parameters)
        if count != 3:
            raise ValueError(f"{title} should take in 3 arguments, but got {count} arguments!")
    if input_fn is not None:
        enter = input_fn
        module.register_forward_pre_hook(lambda owner, inputs: enter(owner, inputs, mesh))
    if output_fn is not None:
        leave = output_fn
        module.register_forward_hook(lambda owner, inputs, outputs: leave(owner, outputs, mesh))
    module._distribute_module_applied = True
    return module


def _made(fill: Callable[..., Any], size: Any, mesh: Any, placements: Any, dtype: Any, layout: Any, grad: bool) -> Any:
    from ... import empty as plain
    from ... import get_default_dtype, strided

    if layout is not None and layout is not strided:
        raise AssertionError("layout value not supported!")
    mesh = mesh or _mesh_resources.get_current_mesh()
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    if placements is not None and len(placements) != mesh.ndim:
        raise AssertionError("mesh dimension does not match the length of placements")
    # Of a tensor that is still to be reduced each rank's share is filled.
    places = normalized(placements, len(shape), mesh)
    whole = plain(shape, dtype=dtype or get_default_dtype(), device="meta")
    own, starts = local_box(shape, mesh, places)
    drawn = getattr(fill, "__name__", "").startswith("rand")
    # Random numbers are those of one process, where all ranks' generators agree.
    local = fill(shape if drawn else own, dtype=dtype, device=mesh.device_type)
    if drawn:
        for dim, (length, start) in enumerate(zip(own, starts)):
            local = local.narrow(dim, start, length)
        local = local.contiguous()
    return _wrap_local(local, mesh, places, whole, grad)


def _factory(name: str) -> Callable[..., Any]:
    def make(
        *size: Any,
        requires_grad: bool = False,
        dtype: Any = None,
        layout: Any = None,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
    ) -> Any:
        import mindtorch_v2

        return _made(getattr(mindtorch_v2, name), size, device_mesh, placements, dtype, layout, requires_grad)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"`torch.{name}` on a mesh: each rank makes its part."
    return make


zeros = _factory("zeros")
ones = _factory("ones")
empty = _factory("empty")
rand = _factory("rand")
randn = _factory("randn")


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> Any:
    """`torch.full` on a mesh."""

    def fill(shape: Any, dtype: Any, device: Any) -> Any:
        from ... import full as plain

        return plain(tuple(shape), fill_value, dtype=dtype, device=device)

    return _made(fill, (size,), device_mesh, placements, dtype, layout, requires_grad)
