"""Attention over a split sequence, operators with layouts of a program's own, and functions that read values."""

from __future__ import annotations

import importlib
from typing import Any

LENGTH = 24


def inputs(torch: Any, groups: int) -> list[Any]:
    torch.manual_seed(3)
    return [torch.randn(2, heads, LENGTH, 8) for heads in (4, groups, groups)]


def alone(torch: Any, causal: bool, groups: int) -> tuple[Any, list[Any]]:
    """What one process gives, and its gradients."""
    given = [each.requires_grad_() for each in inputs(torch, groups)]
    out = torch.nn.functional.scaled_dot_product_attention(*given, is_causal=causal, enable_gqa=groups != 4)
    (out * out.detach().cos()).sum().backward()
    return out.detach(), [each.grad for each in given]


def attention(torch: Any, dist: Any, rank: int, size: int, causal: bool, balanced: bool, groups: int) -> Any:
    """The same on parts: how far the results are from those of one process, and buffers inside and after."""
    home = importlib.import_module(f"{torch.__name__}.distributed.tensor.experimental")
    room = importlib.import_module(f"{torch.__name__}.distributed.tensor.experimental._attention")
    mesh = dist.device_mesh.init_device_mesh("cpu", (size,))
    before = room._cp_options.enable_load_balance
    room._cp_options.enable_load_balance = balanced
    whole = inputs(torch, groups)
    kept = torch.arange(LENGTH)
    try:
        with home.context_parallel(mesh, buffers=[*whole, kept], buffer_seq_dims=[2, 2, 2, 0]):
            parts = [each.clone().requires_grad_() for each in whole]
            places = kept.tolist()
            out = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=causal, enable_gqa=groups != 4)
            (out * out.detach().cos()).sum().backward()
            found = room.context_parallel_unshard(mesh, [out.detach(), *[each.grad for each in parts]], [2] * 4)
    finally:
        room._cp_options.enable_load_balance = before
    want, grads = alone(torch, causal, groups)
    apart = [float((a - b).abs().max()) for a, b in zip(found, [want, *grads])]
    same = all(torch.equal(a, b) for a, b in zip(whole, inputs(torch, groups)))
    return apart, places, same and kept.tolist() == list(range(LENGTH))


def told(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """An operator of a program's own, with layouts of its own."""
    home = importlib.import_module(f"{torch.__name__}.distributed.tensor.experimental")
    places = importlib.import_module(f"{torch.__name__}.distributed.tensor")
    mesh = dist.device_mesh.init_device_mesh("cpu", (size,))

    def product(x: Any, factor: float) -> Any:
        return x * factor

    schema = "(Tensor x, float factor) -> Tensor"
    scaled = torch.library.custom_op("mesh_test::scaled", product, mutates_args=(), schema=schema)
    scaled.register_fake(lambda x, factor: torch.empty_like(x))
    op = torch.ops.mesh_test.scaled.default
    seen = []

    @home.register_sharding(op)
    def layouts(x: Any, factor: float) -> Any:
        seen.append((tuple(x.shape), factor))
        return [([places.Shard(dim)], [places.Shard(dim), None]) for dim in range(len(x.shape))]

    x = torch.arange(12.0).view(4, 3)
    out = op(places.distribute_tensor(x, mesh, [places.Shard(0)]), 2.0)
    return str(out.placements), tuple(out.to_local().shape), seen, bool(torch.equal(out.full_tensor(), x * 2))


def reading(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Functions that read values, views in place within functions, what stays plain, and what is refused."""
    places = importlib.import_module(f"{torch.__name__}.distributed.tensor")
    mesh = dist.device_mesh.init_device_mesh("cpu", (size,))
    functional, found = torch.nn.functional, []

    def split(tensor: Any, dim: int = 0) -> Any:
        return places.distribute_tensor(tensor, mesh, [places.Shard(dim)])

    numbers, rows = torch.tensor([1, 3, 0, 2]), torch.arange(48.0).view(4, 12).sin()
    calls = [
        lambda at: torch.bincount(at(numbers)),
        lambda at: functional.one_hot(at(numbers)),
        lambda at: functional.one_hot(at(numbers), 5),
        lambda at: torch.quantile(at(rows), 0.3),
        lambda at: torch.quantile(at(rows), torch.tensor(0.3), dim=1),
        lambda at: torch.quantile(at(rows), at(torch.tensor([0.3, 0.5])), dim=1),
        lambda at: torch.nanquantile(at(rows), 0.7, dim=0),
        lambda at: torch.stft(at(rows), 4, return_complex=False),
        lambda at: functional.instance_norm(at(rows.view(2, 2, 12))),
        lambda at: functional.embedding_bag(at(numbers.view(2, 2)), at(rows)),
        lambda at: torch.combinations(at(numbers)),
        lambda at: functional.pdist(at(rows)),
        lambda at: torch.linalg.ldl_factor(at(rows[:, :4] @ rows[:, :4].mT)).LD,
        lambda at: torch.tensor_split(at(rows), at(numbers[[0, 1]]))[1],
        lambda at: torch.repeat_interleave(at(rows), at(numbers), 0),
        lambda at: torch.repeat_interleave(at(numbers)),
        lambda at: functional.max_pool3d(at(rows.view(2, 2, 6, 2)), (2, 3, 1)),
        lambda at: functional.adaptive_avg_pool3d(at(rows.view(1, 4, 6, 2)), 2),
    ]
    for call in calls:
        got, want = call(split), call(lambda each: each)
        found.append(bool(torch.allclose(got.full_tensor(), want)))
    volume = split(rows.view(2, 4, 3, 2), 1)  # along what a window of an unbatched volume crosses
    found.append(
        bool(
            torch.equal(functional.max_pool3d(volume, 2).full_tensor(), functional.max_pool3d(rows.view(2, 4, 3, 2), 2))
        )
    )
    refused = []
    for name, arguments in (("resize_", (2, 24)), ("set_", ())):
        try:
            getattr(split(rows), name)(*arguments)
        except NotImplementedError as error:
            refused.append(str(error))
    return found, refused
