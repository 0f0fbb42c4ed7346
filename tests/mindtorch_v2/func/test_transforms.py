"""`torch.func` against PyTorch: transforms in nests, what they refuse, modules, users' rules."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch
from . import _mapped

pytestmark = [pytest.mark.oracle, mindtorch_only]


def tried(fn: Callable[[], Any], lib: Any) -> Any:
    """Tensors as nested lists with what autograd says of them, or the text of the exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = fn()
        except Exception as error:
            return type(error).__name__, str(error).replace("mindtorch_v2", "torch")
    return _oracle.tree_map(
        lambda t: [t.requires_grad, str(t.dtype), [[round(float(v), 4) for v in t.detach().flatten().tolist()]]],
        [found],
        lambda v: isinstance(v, lib.Tensor),
    )


def numbers(lib: Any, *shape: int) -> Any:
    count = 1
    for n in shape:
        count *= n
    return (lib.arange(count, dtype=lib.float32).reshape(shape) + 1) / 7


def nests(lib: Any) -> list[Callable[[], Any]]:
    f = lib.func
    x, w = numbers(lib, 4, 3), numbers(lib, 2, 3)
    leaf = numbers(lib, 3).requires_grad_()

    def loss(w: Any, v: Any) -> Any:
        return ((w @ v).tanh() ** 2).sum()

    def written(a: Any) -> Any:
        b = a * 1
        b[0:2].mul_(a[1])
        b[2] = a[0] * a[1]
        return (b * b).sum()

    return [
        lambda: f.vmap(f.grad(loss), in_dims=(None, 0))(w, x),
        lambda: f.vmap(f.grad(f.grad(lambda a: a**4)))(x[0]),
        lambda: f.grad(lambda a: f.vmap(lambda b: b * a)(x).sum())(x[0]),
        lambda: f.vmap(f.grad(lambda a: f.vmap(lambda b: b * a * a)(x[0]).sum()))(x[1]),
        lambda: f.vmap(f.grad(written))(x),
        lambda: f.hessian(lambda a: (a**3).sum())(x[0]),
        lambda: f.vmap(f.hessian(lambda a: a.sin().prod()))(x),
        lambda: f.jacrev(f.vmap(lambda a: a.sum()))(x),
        lambda: f.vmap(f.jacrev(lambda a: a.sin()))(x),
        lambda: f.jacrev(lambda a: (a.sum(), {"k": a * a}))(x[0]),
        lambda: f.jacrev(lambda a, b: a * b, argnums=(0, 1), chunk_size=2)(x[0], x[1]),
        lambda: f.grad(lambda a: (a * leaf).sum())(x[0]),
        lambda: f.grad_and_value(lambda a: (a * a).sum())(leaf),
        lambda: f.grad(lambda a: (a.sum(), {"aux": a * 2}), has_aux=True)(x[0]),
        lambda: f.vjp(lambda a: (a * 2, {"k": a}), x[0])[1]((x[0], {"k": x[1]})),
        lambda: f.jvp(f.grad(lambda a: (a**3).sum()), (x[0],), (x[1],)),
        lambda: f.vmap(f.vmap(lambda a, b: a - b, in_dims=(0, None)), in_dims=(None, 0))(x, x[0]),
        lambda: f.vmap(lambda a, b: a.outer(b), in_dims=(1, None), out_dims=2)(x, x[0]),
        lambda: f.vmap(lambda a: a * leaf)(x),
        lambda: f.vmap(lambda d: {"s": d["a"].sum(), "t": (d["b"], d["a"])}, chunk_size=3)({"a": x, "b": x}),
        lambda: lib.autograd.grad((leaf * leaf)[:2], leaf, lib.eye(2), is_grads_batched=True),
        lambda: lib.autograd.functional.jacobian(lambda a: a.sin() * a[0], x[0], vectorize=True),
        lambda: f.vmap(lambda a: lib.where(a > 0.5, a, a.cumsum(0)), in_dims=1)(x),
        lambda: f.vmap(lambda a: x[0][(a * 3).long() % 3])(x[:, 0]),
    ]


def refusals(lib: Any) -> list[Callable[[], Any]]:
    f = lib.func
    x = numbers(lib, 2, 3)
    return [
        lambda: f.grad(lambda a: a * 2)(x),
        lambda: f.grad(lambda a: 3.0)(x),
        lambda: f.grad(lambda a: a.sum(), has_aux=True)(x),
        lambda: f.grad(lambda a: a.sum())(x.long()),
        lambda: f.grad(lambda a: a)(3.0),
        lambda: f.grad(lambda a, b: (a * b).sum(), argnums=5)(x, x),
        lambda: f.grad(lambda a: a.sin_().sum())(x.clone()),
        lambda: f.grad(lambda a: (a.requires_grad_() * a).sum())(x),
        lambda: f.grad(lambda a: a.sum().backward())(x),
        lambda: f.vjp(lambda a: 3.0, x),
        lambda: f.vjp(lambda a: (), x),
        lambda: f.vjp(lambda a: (a * 2, {"k": a}), x)[1](x),
        lambda: f.vmap(lambda a: a.sum().item())(x),
        lambda: f.vmap(lambda a: a if a.sum() > 0 else -a)(x),
        lambda: f.vmap(lambda a: a.nonzero())(x),
        lambda: f.vmap(lambda a: a[a > 1])(x),
        lambda: f.vmap(lambda a: a.masked_select(a > 1))(x),
        lambda: f.vmap(lambda a: lib.rand(3))(x),
        lambda: f.vmap(lambda a: lib.zeros(3).copy_(a))(x),
        lambda: f.vmap(lambda a: lib.zeros(3).uniform_(), randomness="different")(x),
        lambda: f.vmap(lambda a: a.multinomial(2), randomness="same")(x),
        lambda: f.vmap(lambda a: lib.allclose(a, a))(x),
        lambda: f.vmap(lambda a: lib.equal(a, a))(x),
        lambda: f.vmap(lambda a: a.numpy())(x),
        lambda: f.vmap(lambda a: lib.add(a, a, out=lib.empty_like(a)))(x),
        lambda: f.vmap(lambda a: 3)(x),
        lambda: f.vmap(lambda a: a, in_dims=4)(x),
        lambda: f.vmap(lambda a, b: a)(x, x[:1]),
    ]


@pytest.mark.parametrize("cases", [nests, refusals], ids=lambda cases: str(cases.__name__))
def test_as_pytorch(cases: Callable[[Any], list[Callable[[], Any]]]) -> None:
    oracle = _oracle.load()
    for i, (ours, theirs) in enumerate(zip(cases(torch), cases(oracle))):
        assert tried(ours, torch) == tried(theirs, oracle), f"case {i} of {cases.__name__}"


def test_random_modes() -> None:
    x = torch.zeros(4, 3)
    same = torch.func.vmap(lambda a: a + torch.rand(3), randomness="same")(x)
    assert all(torch.equal(same[0], row) for row in same)
    different = torch.func.vmap(lambda a: torch.rand_like(a), randomness="different")(x)
    assert not torch.equal(different[0], different[1])
    nested = torch.func.vmap(torch.func.vmap(lambda a: torch.randn(2) + a, randomness="same"), randomness="different")(
        x
    )
    assert torch.equal(nested[0, 0], nested[0, 1]) and not torch.equal(nested[0, 0], nested[1, 0])


def per_sample(lib: Any, model: Any, loss: Any, x: Any, y: Any) -> dict[str, Any]:
    params = {name: p.detach() for name, p in model.named_parameters()}

    def one(params: Any, x: Any, y: Any) -> Any:
        return loss(lib.func.functional_call(model, params, (x.unsqueeze(0),)), y.unsqueeze(0))

    found: dict[str, Any] = lib.func.vmap(lib.func.grad(one), in_dims=(None, 0, 0))(params, x, y)
    return found


def cnn(lib: Any) -> Any:
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3), nn.GroupNorm(2, 4), nn.Tanh(),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(4, 3),
    )  # fmt: skip


def transformer(lib: Any) -> Any:
    nn = lib.nn
    return nn.Sequential(
        nn.Embedding(11, 8), nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), nn.Linear(8, 3),
        nn.Flatten(0, 1),
    )  # fmt: skip


@pytest.mark.parametrize("make", [cnn, transformer], ids=lambda make: str(make.__name__))
def test_gradients_of_each_sample(make: Callable[[Any], Any]) -> None:
    oracle = _oracle.load()
    theirs, ours = make(oracle), make(torch)
    with oracle.no_grad(), torch.no_grad():
        for p, q in zip(theirs.parameters(), ours.parameters()):
            q.copy_(_oracle.from_oracle(p.detach()))
    if make is cnn:
        x, y = oracle.randn(5, 1, 8, 8), oracle.arange(5) % 3
    else:
        x, y = oracle.arange(20).reshape(5, 4) % 11, oracle.arange(20).reshape(5, 4) % 3

    def loss(lib: Any) -> Callable[[Any, Any], Any]:
        return lambda out, y: lib.nn.functional.cross_entropy(out, y.reshape(-1))

    expected = per_sample(oracle, theirs, loss(oracle), x, y)
    actual = per_sample(torch, ours, loss(torch), _oracle.from_oracle(x), _oracle.from_oracle(y))
    for name, g in expected.items():
        assert actual[name].shape == g.shape
        assert torch.allclose(actual[name], _oracle.from_oracle(g), rtol=1e-3, atol=1e-5), name


def test_models_beside_each_other() -> None:
    models = [torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)) for _ in range(3)]
    for model in models:
        torch.func.replace_all_batch_norm_modules_(model)
    params, buffers = torch.func.stack_module_state(models)
    x = torch.randn(5, 3)

    def one(params: Any, buffers: Any, x: Any) -> Any:
        return torch.func.functional_call(models[0], (params, buffers), (x,))

    found = torch.func.vmap(one, in_dims=(0, 0, None))(params, buffers, x)
    assert torch.allclose(found, torch.stack([model(x) for model in models]), atol=1e-5)
    found.sum().backward()
    assert params["0.weight"].grad.shape == (3, 4, 3)


def test_rules_of_users() -> None:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, w: Any) -> Any:
            return x * w

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            return g * w, g * x

    class Generated(Scaled):
        generate_vmap_rule = True

    class Given(Scaled):
        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, w: Any) -> Any:
            seen.append((info.batch_size, in_dims))
            return Given.apply(x, w), 0

    seen: list[Any] = []
    x, w = torch.arange(6.0).reshape(2, 3), torch.ones(3, requires_grad=True)
    for kind in (Generated, Given):
        w.grad = None
        torch.func.vmap(lambda a, kind=kind: kind.apply(a, w))(x).sum().backward()
        assert w.grad.tolist() == [3.0, 5.0, 7.0]
    assert seen == [(2, (0, None))]
    with pytest.raises(RuntimeError, match="does not have vmap support"):
        torch.func.vmap(lambda a: Scaled.apply(a, w))(x)


def test_names_that_look_inside() -> None:
    functorch = submodule("_C._functorch")
    level = functorch._vmap_increment_nesting(2, "error")
    try:
        t = functorch._add_batch_dim(torch.arange(6.0).reshape(3, 2), 1, level)
        assert t.shape == (3,) and functorch.is_batchedtensor(t) and functorch.maybe_get_level(t) == level
        assert functorch.get_unwrapped(t).shape == (2, 3) and functorch.maybe_get_bdim(t) == 0
        assert repr(t).startswith("BatchedTensor(lvl=1, bdim=0, value=\n    tensor(")
        found = functorch._remove_batch_dim(t * 2, level, 2, 0)
    finally:
        functorch._vmap_decrement_nesting()
    assert found.tolist() == [[0.0, 4.0, 8.0], [2.0, 6.0, 10.0]]
    assert functorch.maybe_current_level() is None and _mapped.MANY == 2


def test_writes_to_what_all_share() -> None:
    """Inside `vmap` a parameter from outside is written where no mapped value is involved."""

    def loss(a: Any, v: Any) -> Any:
        w = v * 2
        w.clamp_(min=0.5)
        w[0] = v[1]
        return (a * w).sum()

    x, v = torch.rand(2, 3), torch.rand(3)
    found = torch.func.vmap(torch.func.grad(loss, argnums=1), in_dims=(0, None))(x, v)
    single = [torch.func.grad(loss, argnums=1)(row, v) for row in x]
    assert torch.allclose(found, torch.stack(single))


def test_rules_of_operators_from_outside() -> None:
    library = submodule("library")
    seen: list[Any] = []

    def times(x: Any, k: float) -> Any:
        return x * k

    op = library.custom_op("vmap_test::times", times, mutates_args=(), schema="(Tensor x, float k) -> Tensor")
    x = torch.arange(6.0).reshape(2, 3)
    with pytest.warns(UserWarning, match="performance drop because we have not yet implemented the batching rule"):
        assert torch.func.vmap(lambda a: op(a, 2.0))(x).tolist() == (x * 2).tolist()

    def rule(info: Any, in_dims: Any, x: Any, k: float) -> Any:
        seen.append((info.batch_size, in_dims, tuple(x.shape)))
        return x * k, in_dims[0]

    assert library.register_vmap("vmap_test::times", rule) is None
    assert torch.func.vmap(lambda a: op(a, 2.0), in_dims=1, out_dims=1)(x).tolist() == (x * 2).tolist()
    assert seen == [(3, (0, None), (3, 2))]


def test_linearize_inside_transforms() -> None:
    f, x, v = torch.func, numbers(torch, 2, 3), numbers(torch, 2, 3) * 0.5

    def fn(a: Any) -> Any:
        return (a.sin() * a).sum()

    def along(a: Any) -> Any:
        return f.linearize(fn, a)[1](v)

    def slope(a: Any) -> Any:
        return f.jvp(fn, (a,), (v,))[1]

    torch.testing.assert_close(f.grad(along)(x), f.grad(slope)(x))
    torch.testing.assert_close(f.jvp(along, (x,), (v,)), f.jvp(slope, (x,), (v,)))
    each = f.vmap(lambda a, b: f.linearize(fn, a)[1](b))(x, v)
    torch.testing.assert_close(each, torch.stack([f.jvp(fn, (a,), (b,))[1] for a, b in zip(x, v)]))
    with pytest.raises(RuntimeError, match="doesn't match the shape"):
        f.vmap(lambda a: f.linearize(fn, a)[1](v))(x)


@pytest.mark.parametrize("name", "grad grad_and_value jacrev hessian vjp".split())
def test_gradients_refuse_hooks_of_saved_values(name: str) -> None:
    transform, x = getattr(torch.func, name), numbers(torch, 3)
    keep = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)

    def inside(a: Any) -> Any:
        with keep:
            return a.sin().sum()

    def outside(fn: Any) -> None:
        transform(fn, x) if name == "vjp" else transform(fn)(x)

    refused = pytest.raises(RuntimeError, match="jacrev, hessian} don't yet support saved tensor hooks")
    with refused:
        outside(inside)
    with refused, keep:
        outside(lambda a: a.sin().sum())
    with keep:
        pass
