"""What ranks do with tensors that lie on a mesh. Each gets the library, its `distributed`, its rank, and how many
there are."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def tools(torch: Any) -> tuple[Any, Any]:
    """`distributed.tensor` and its `parallel`."""
    name = torch.__name__
    return (
        importlib.import_module(f"{name}.distributed.tensor"),
        importlib.import_module(f"{name}.distributed.tensor.parallel"),
    )


def data(torch: Any) -> dict[str, Any]:
    """Tensors of numbers that are the same in both libraries."""

    def wave(*shape: int) -> Any:
        count = 1
        for size in shape:
            count *= size
        return (torch.arange(count, dtype=torch.float64) * 0.7).sin().to(torch.float32).reshape(shape)

    return {
        "a": wave(4, 6),
        "b": wave(6, 8),
        "c": wave(5, 3),
        "x": wave(2, 4, 8),
        "w": wave(8, 8),
        "v": wave(8),
        "q": wave(2, 4, 3, 8),
        "im": wave(4, 3, 5, 5),
        "f": wave(2, 3, 3, 3),
        "ids": torch.tensor([[0, 1, 4], [3, 2, 1]]),
        "target": torch.tensor([1, 2, 0, 3]),
    }


# Expressions over tensors `name.placement`; d is the library, F its functions.
EXPRESSIONS: dict[str, str] = {
    "add": "a.R + a.S0",
    "add of two splits": "a.S0 + a.S1",
    "add of sums": "a.S1 @ b.S0 + a.S1 @ b.S0",
    "sum times two": "(a.S1 @ b.S0) * 2",
    "sum and one": "(a.S1 @ b.S0) + 1",
    "relu of a sum": "(a.S1 @ b.S0).relu()",
    "broadcast": "x.S2 + v.R",
    "broadcast of a part": "x.S1 + v.S0",
    "sum along what is split": "a.S0.sum(0)",
    "sum of all": "a.S0.sum()",
    "sum along the rest": "a.S0.sum(1)",
    "mean": "a.S0.mean(0)",
    "amax": "a.S1.amax(1)",
    "max": "a.S1.max()",
    "max along": "a.S0.max(1)[0]",
    "argmax": "a.S0.argmax(1)",
    "variance": "a.S0.var(0)",
    "norm": "d.linalg.vector_norm(a.S0)",
    "norm of all": "d.linalg.vector_norm(a.S0, float('inf'))",
    "rows by whole": "a.S0 @ b.R",
    "columns by rows": "a.S1 @ b.S0",
    "whole by columns": "a.R @ b.S1",
    "rows by columns": "a.S0 @ b.S1",
    "batches": "d.bmm(x.S0, x.S0.transpose(1, 2))",
    "addmm": "d.addmm(v.S0, x.R[0], w.S1)",
    "turned": "a.S0.t()",
    "permuted": "x.S2.permute(2, 0, 1)",
    "flat": "a.S0.view(24)",
    "heads": "x.S2.view(2, 4, 4, 2)",
    "a one more": "a.S1.unsqueeze(0)",
    "a one less": "a.S1.unsqueeze(0).squeeze(0)",
    "ones that only parts have": "x.S0.squeeze()",
    "a one that only parts have": "x.S0.squeeze(0)",
    "a row": "x.S2[0]",
    "some rows": "x.S2[:, 1:3]",
    "pieces": "d.cat(x.S1.split(4, 2)[::-1], 2)",
    "pieces of what is split": "d.cat(x.S2.chunk(2, 2)[::-1], 2)",
    "unbound": "d.stack(x.S1.unbind(0)[::-1])",
    "expanded": "v.S0.expand(3, 8)",
    "joined": "d.cat([a.S0, a.S0], 1)",
    "joined along what is split": "d.cat([a.S0, a.S0], 0)",
    "stacked": "d.stack([a.S0, a.S0])",
    "softmax": "a.S0.softmax(1)",
    "softmax along what is split": "a.S0.softmax(0)",
    "layer norm": "F.layer_norm(x.S1, (8,), v.R, v.R)",
    "columns of a layer": "F.linear(x.R, w.S0, v.S0)",
    "rows of a layer": "F.linear(x.S2, w.S1, v.R)",
    "a layer of a batch": "F.linear(x.S0, w.R, v.R)",
    "words": "F.embedding(ids.S0, c.R)",
    "features": "F.embedding(ids.R, c.S1)",
    "convolution": "F.conv2d(im.S0, f.R)",
    "pooled": "F.max_pool2d(im.S1, 2)",
    "loss of numbers": "F.mse_loss(a.S0, a.R)",
    "sorted": "a.S0.sort(1)[0]",
    "chosen": "d.where(a.S0 > 0, a.S0, 0.0)",
    "triangle": "a.S0.tril()",
    "running sum": "a.S0.cumsum(1)",
    "gelu": "F.gelu(a.S0)",
    "zeros": "d.zeros_like(a.S0)",
    "uneven": "c.S0 * 2",
    "uneven sum": "c.S0.sum(0)",
    "cast": "a.S1.double()",
    "compared": "(a.S0 > 0).any()",
    "power": "a.S0 ** 2 / 3",
    "gathered": "d.gather(a.S0, 1, (a.S0 > 0).long())",
}
# Not asked of PyTorch, whose answers are others: attention hangs there on CPUs, and a mean of losses is that of means.
OWN: dict[str, str] = {
    "pairs as complex numbers": "d.view_as_real(d.view_as_complex(a.S0.view(4, 3, 2)) * 2)",
    "turned in place": "(a.S0 * 2).transpose_(0, 1) + 1",
    "a one less in place": "(a.S0 * 2).unsqueeze(1).squeeze_(1) + 1",
    "attention": "F.scaled_dot_product_attention(q.S0, q.S0, q.S0, is_causal=True)",
    "attention by heads": "F.scaled_dot_product_attention(q.S1, q.S1, q.S1)",
    "products by heads": "q.S1 @ q.S1.transpose(2, 3)",
    "losses": "F.cross_entropy(a.S0, target.S0)",
    "weighted losses": "F.cross_entropy(a.S0, target.R, weight=a.R[0].detach().abs(), ignore_index=2)",
    "sums of losses": "F.cross_entropy(a.S0, target.S0, reduction='sum')",
    "each loss": "F.cross_entropy(a.S0, target.S0, reduction='none')",
    "rows of a table": "F.embedding(ids.R, c.S0)",
    "by index": "c.S0[ids.R]",
    "determinant": "d.linalg.det(w.S0)",
}


class _Names:
    """`a.S0` is the tensor `a`, split along its first dimension."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        self.make = make

    def __getattr__(self, name: str) -> Any:
        return self.make(name)


def _leaves(torch: Any, mesh: Any, grad: bool) -> tuple[dict[str, _Names], dict[str, list[Any]]]:
    """The names of an expression, and the tensors that were made for it."""
    T, _ = tools(torch)
    made: dict[str, list[Any]] = {}

    def names(key: str, value: Any) -> _Names:
        def make(layout: str) -> Any:
            whole = value.clone().requires_grad_(grad and value.is_floating_point())
            if mesh is not None:
                placement = T.Replicate() if layout == "R" else T.Shard(int(layout[1:]))
                whole = T.distribute_tensor(whole, mesh, [placement])
            made.setdefault(key, []).append(whole)
            return whole

        return _Names(make)

    return {key: names(key, value) for key, value in data(torch).items()}, made


def _whole(t: Any) -> Any:
    return t.full_tensor() if hasattr(t, "full_tensor") else t


def evaluated(torch: Any, mesh: Any, text: str) -> Any:
    """Placements, value, and the gradients of the tensors of an expression."""
    space, made = _leaves(torch, mesh, True)
    found = eval(text, {"d": torch, "F": torch.nn.functional, **space})
    shown = [repr(each) for each in getattr(found, "placements", ())]
    told = _whole(found).detach()
    gradients: list[Any] = []
    if found.requires_grad:
        # Weights, so that the gradient is not the same everywhere.
        weights = torch.arange(told.numel(), dtype=told.dtype).reshape(told.shape).cos()
        (_whole(found) * weights).sum().backward()
        for key in sorted(made):
            for each in made[key]:
                if each.grad is not None:
                    gradients.append(_whole(each.grad).tolist())
    return shown, tuple(found.shape), tuple(found.stride()), told.tolist(), gradients


def expressions(torch: Any, dist: Any, rank: int, size: int, own: bool) -> Any:
    """All expressions on a mesh of all ranks, or those that only this package is asked."""
    T, _ = tools(torch)
    mesh = T.init_device_mesh("cpu", (size,))
    told = {}
    for name, text in (OWN if own else EXPRESSIONS).items():
        try:
            told[name] = evaluated(torch, mesh, text)
        except Exception as error:
            told[name] = (type(error).__name__, str(error), None, None, None)
    return told


def expressions_alone(torch: Any) -> Any:
    return {name: evaluated(torch, None, text) for name, text in {**EXPRESSIONS, **OWN}.items()}


def moves(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Every way of an uneven tensor on a mesh of two dimensions, to every other."""
    T, _ = tools(torch)
    mesh = T.init_device_mesh("cpu", (2, size // 2))
    whole = torch.arange(35.0).reshape(5, 7)
    ways = [T.Replicate(), T.Shard(0), T.Shard(1)]
    pairs = [(first, second) for first in ways for second in ways]
    wrong: list[Any] = []
    utils = importlib.import_module(f"{torch.__name__}.distributed.tensor._utils")
    for now in pairs:
        laid = T.distribute_tensor(whole, mesh, now)
        for then in pairs:
            found = laid.redistribute(placements=then)
            box = utils.compute_local_shape_and_global_offset(whole.shape, mesh, then)
            part = tuple(slice(start, start + length) for length, start in zip(*box))
            if not torch.equal(found.to_local(), whole[part]) or not torch.equal(found.full_tensor(), whole):
                wrong.append((now, then))
        summed = T.DTensor.from_local(whole, mesh, (T.Partial(), now[1]), shape=None) if now[1] == ways[0] else None
        if summed is not None:
            for then in pairs:
                if not torch.equal(summed.redistribute(placements=then).full_tensor(), whole * 2):
                    wrong.append(("sum", then))
    return wrong


def conversions(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Gradients of the ways in and out."""
    T, _ = tools(torch)
    mesh = T.init_device_mesh("cpu", (size,))
    told: list[Any] = []
    ways = {"R": T.Replicate(), "S0": T.Shard(0), "P": T.Partial()}
    for name, placement in ways.items():
        for then in ("R", "S0"):
            local = (torch.arange(4.0).reshape(2, 2) + rank).requires_grad_()
            laid = T.DTensor.from_local(local, mesh, [placement])
            moved = laid.redistribute(placements=[ways[then]])
            (moved.to_local() * (rank + 1)).sum().backward()
            told.append((name, then, tuple(laid.shape), moved.to_local().tolist(), local.grad.tolist()))
    whole = T.distribute_tensor(torch.arange(6.0).reshape(3, 2).requires_grad_(), mesh, [T.Shard(0)])
    whole.full_tensor(grad_placements=[T.Partial()]).sum().backward()
    told.append((str(whole.grad.placements), whole.grad.to_local().tolist()))
    return told


def factories(torch: Any, dist: Any, rank: int, size: int) -> Any:
    T, _ = tools(torch)
    mesh = T.init_device_mesh("cpu", (size,))
    told: list[Any] = []
    for name in ("zeros", "ones", "empty"):
        made = getattr(T, name)(5, 3, device_mesh=mesh, placements=[T.Shard(0)], requires_grad=True)
        told.append((name, tuple(made.shape), tuple(made.to_local().shape), made.requires_grad, str(made.dtype)[-7:]))
    full = T.full((3, 2), 7, dtype=torch.int64, device_mesh=mesh, placements=[T.Replicate()])
    told.append((full.to_local().tolist(), repr(full.placements)))
    made = T.zeros(4, 4, device_mesh=mesh, placements=[T.Shard(1)])
    made.add_(1).mul_(T.ones(4, 4, device_mesh=mesh))
    told.append((made.full_tensor().tolist(), made.sum().item(), bool(torch.equal(made, made.clone()))))
    return told


def drawn(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Random numbers on a mesh."""
    T, _ = tools(torch)
    torch.manual_seed(5)
    mesh = T.init_device_mesh("cpu", (size,))
    return [fn(5, 3, device_mesh=mesh, placements=[T.Shard(0)]).full_tensor().tolist() for fn in (T.rand, T.randn)]


def refused(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """What raises, and what it says."""
    T, P = tools(torch)
    mesh = T.init_device_mesh("cpu", (size,))
    whole = torch.ones(4, 4)
    laid = T.distribute_tensor(whole, mesh, [T.Shard(0)])
    told = []
    calls: list[Callable[[], Any]] = [
        lambda: laid + whole,
        lambda: T.DTensor.from_local(laid, mesh),
        lambda: laid.redistribute(),
        lambda: T.distribute_tensor(whole.clone().requires_grad_() * 2, mesh),
        lambda: T.distribute_tensor(whole, mesh, [T.Shard(0), T.Shard(1)]),
        lambda: laid.redistribute(placements=[T.Partial()]),
        lambda: P.parallelize_module(torch.nn.ReLU(), mesh, P.ColwiseParallel()),
        lambda: T.distribute_tensor(laid, mesh, [T.Replicate()]),
    ]
    for call in calls:
        try:
            call()
            told.append(("nothing", ""))
        except Exception as error:
            told.append((type(error).__name__, str(error)[:60]))
    return told


# -- layers -------------------------------------------------------------------------------------------------------
def block(torch: Any) -> Any:
    """Two layers with something between them, the same on every rank."""
    torch.manual_seed(3)
    nn = torch.nn
    made = nn.Sequential(nn.Embedding(10, 8), nn.LayerNorm(8), nn.Linear(8, 12), nn.GELU(), nn.Linear(12, 8))
    made.append(nn.Linear(8, 10, bias=False))
    with torch.no_grad():
        for at, parameter in enumerate(made.parameters()):
            count = parameter.numel()
            parameter.copy_((torch.arange(count, dtype=torch.float64) + at).sin().reshape(parameter.shape) * 0.5)
    return made


def plans(torch: Any) -> dict[str, Any]:
    T, P = tools(torch)
    S, R = T.Shard, T.Replicate
    return {
        "plain": {"2": P.ColwiseParallel(), "4": P.RowwiseParallel()},
        "words": {
            "0": P.RowwiseParallel(input_layouts=R()),
            "2": P.ColwiseParallel(),
            "4": P.RowwiseParallel(),
            "5": P.ColwiseParallel(output_layouts=R()),
        },
        "sequence": {
            "0": P.RowwiseParallel(input_layouts=R(), output_layouts=S(1)),
            "1": P.SequenceParallel(),
            "2": P.ColwiseParallel(input_layouts=S(1)),
            "4": P.RowwiseParallel(output_layouts=S(1), use_local_output=False),
            "5": P.ColwiseParallel(input_layouts=S(1), output_layouts=R()),
        },
        "inputs": {
            "0": P.ColwiseParallel(output_layouts=R()),
            "2": P.PrepareModuleInput(input_layouts=R(), desired_input_layouts=R(), use_local_output=True),
            "4": P.PrepareModuleOutput(output_layouts=R(), desired_output_layouts=R()),
        },
        "loss": {"2": P.ColwiseParallel(), "4": P.RowwiseParallel(), "5": P.ColwiseParallel(use_local_output=False)},
    }


def layers(torch: Any, dist: Any, rank: int, size: int, plan: str | None) -> Any:
    """Losses and parameters of a few steps."""
    T, P = tools(torch)
    model = block(torch)
    words = torch.arange(8).reshape(2, 4) % 10
    target = (torch.arange(8) * 3) % 10
    context: Any = None
    if plan is not None:
        mesh = T.init_device_mesh("cpu", (size,))
        model = P.parallelize_module(model, mesh, plans(torch)[plan])
        if plan == "loss":
            context = P.loss_parallel
            target = T.distribute_tensor(target, mesh, [T.Replicate()])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    losses = []
    for _ in range(3):
        import contextlib

        with context() if context is not None else contextlib.nullcontext():
            out = model(words)
            loss = torch.nn.functional.cross_entropy(out.view(-1, 10), target)
            loss.backward()
        norm = torch.nn.utils.clip_grad_norm_([each for each in model.parameters() if hasattr(each, "to_local")], 1e9)
        assert (_whole(norm) > 0) == (plan is not None)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(_whole(loss)))
    return losses, [_whole(each.detach()).flatten().tolist() for each in model.parameters()]


def whole_modules(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """`distribute_module` with functions for parameters, inputs and outputs; copies and pickles of what it gives."""
    import copy

    T, _ = tools(torch)
    mesh = T.init_device_mesh("cpu", (size,))
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 6)

    def partition(name: str, module: Any, device_mesh: Any) -> None:
        laid = T.distribute_tensor(module.weight.detach(), device_mesh, [T.Shard(0)])
        module.register_parameter("weight", torch.nn.Parameter(laid))

    made = T.distribute_module(
        model,
        mesh,
        partition,
        lambda module, inputs, device_mesh: (T.distribute_tensor(inputs[0], device_mesh, [T.Replicate()]),),
        lambda module, outputs, device_mesh: outputs.full_tensor(),
    )
    out = made(torch.ones(2, 4))
    twin = copy.deepcopy(made)
    same = bool(torch.equal(twin.weight.full_tensor(), made.weight.full_tensor()))
    kinds = [type(each).__name__ for each in (made.weight, twin.weight)]
    shown = [str(each.placements) for each in twin.parameters()]
    return out.tolist(), same, kinds, shown


def meshes(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Parts of meshes, dimensions made one and one made several, and what is refused."""
    home = importlib.import_module(f"{torch.__name__}.distributed.device_mesh")
    mesh = home.init_device_mesh("cpu", (2, 1, 2), mesh_dim_names=("a", "b", "c"))
    line = home.init_device_mesh("cpu", (4,), mesh_dim_names=("all",))
    other = home.DeviceMesh("cpu", [[3, 1], [2, 0]], mesh_dim_names=("x", "y"))
    flat = mesh["a", "b"]._flatten()
    turned = other["x", "y"]._flatten("xy")
    made = [
        mesh, mesh["a"], mesh["c"], mesh["a", "c"], flat, mesh["a_b", "c"], mesh["a", "c"]._flatten("ac"),
        line._unflatten(0, (2, 2), ("p", "q")), line._unflatten("all", (2, 2), ("p", "q"))["q"], turned,
        other["x"], other["y"], other._unflatten("y", (1, 2), ("u", "v")), turned._unflatten(0, (2, 2), ("s", "t")),
        home.DeviceMesh._concatenate([mesh["c"], mesh["a"]]), home.DeviceMesh._concatenate([flat, mesh["c"]]),
        *mesh._get_all_submeshes("c"), home.DeviceMesh.from_group(mesh.get_group("a"), "cpu"),
        home.DeviceMesh.from_group(mesh["a", "c"].get_all_groups(), "cpu", [[0, 1], [2, 3]], mesh_dim_names=("a", "c")),
    ]  # fmt: skip
    told = []
    for each in made:
        inside = each.get_coordinate() is not None
        groups = [dist.get_process_group_ranks(group) for group in each.get_all_groups()] if inside else []
        told.append((repr(each), each.mesh.tolist(), each.get_coordinate(), each.shape, each.size(), each.ndim, groups))
    told.append((mesh == mesh["a", "b", "c"], mesh["a"] == mesh["a"], mesh["a"] == mesh["c"], hash(mesh["a"]) != 0))
    told.append(dist.get_process_group_ranks(mesh.get_group("a_b")))
    calls = [
        lambda: mesh["d"], lambda: mesh["c", "a"], lambda: mesh["a_b", "a"], lambda: mesh["a"]["c"],
        lambda: home.init_device_mesh("cpu", (4,))["a"], lambda: home.init_device_mesh("cpu", (2, 4)),
        lambda: home.init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "a")),
        lambda: home.init_device_mesh("cpu", (2, 2), mesh_dim_names=("a",)),
        lambda: home.init_device_mesh("cpu:0", (2, 2)), lambda: mesh.get_group(), lambda: mesh.get_local_rank(),
        lambda: mesh.get_group("z"), lambda: mesh["a", "c"]._flatten("b"), lambda: mesh["a", "c"]._flatten("a_b"),
        lambda: home.init_device_mesh("cpu", (4,))._flatten(), lambda: line._unflatten(1, (2, 2), ("p", "q")),
        lambda: line._unflatten("no", (2, 2), ("p", "q")), lambda: line._unflatten(0, (2, 2), ("p",)),
        lambda: line._unflatten(0, (2, 3), ("p", "q")), lambda: home.DeviceMesh._concatenate([mesh["a"], mesh["a"]]),
        lambda: home.DeviceMesh._concatenate([mesh["a"], other["x"]]), lambda: home.DeviceMesh("cpu"),
        lambda: home.DeviceMesh.from_group([], "cpu"),
        lambda: home.DeviceMesh.from_group([dist.group.WORLD], "cpu"),
        lambda: home.DeviceMesh.from_group(dist.group.WORLD, "cpu", [0, 1]),
        lambda: home.init_device_mesh("cpu", (2, 2), backend_override={2: "gloo"}),
        lambda: home.init_device_mesh("cpu", (4,), mesh_dim_names=("a",), backend_override={0: "gloo", "a": "gloo"}),
        lambda: home._mesh_resources.get_current_mesh(),
    ]  # fmt: skip
    for call in calls:
        try:
            told.append(("nothing", repr(call())))
        except Exception as error:
            told.append((type(error).__name__, str(error)))
    return told
