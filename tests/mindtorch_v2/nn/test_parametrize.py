"""Normalised, parametrised and orthogonal weights: values, gradients, state dictionaries, errors.

Invariant: a case is a function of the library; what it gives, its errors and its warnings are PyTorch's.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from .._subject import mindtorch_only, submodule
from .._subject import subject as torch
from ._both import Cases, attempt, check

case = Cases()


def layers(lib: Any, dtype: Any = None) -> list[Any]:
    nn = lib.nn
    made = [nn.Linear(4, 3), nn.Linear(3, 3, bias=False), nn.Conv1d(2, 3, 2), nn.ConvTranspose2d(2, 3, 2)]
    return [layer.to(dtype) for layer in made] if dtype is not None else made


def fed(lib: Any, layer: Any) -> Any:
    """Result and gradients of one call."""
    shape = {2: (2, layer.weight.shape[1]), 3: (2, 2, 5), 4: (1, 2, 4, 4)}[layer.weight.dim()]
    out = layer(lib.randn(shape, dtype=layer.weight.dtype))
    layer.zero_grad()
    out.square().sum().backward()
    return out, {name: p.grad for name, p in layer.named_parameters()}


def state(layer: Any) -> Any:
    saved = layer.state_dict()
    return dict(saved), {key: str(value) for key, value in saved._metadata.items()}


def pickled(layer: Any) -> Any:
    """What comes back, or the refusal."""

    def back() -> Any:
        loaded = pickle.loads(pickle.dumps(layer))
        return loaded.weight, loaded.weight.is_leaf, state(loaded)

    return attempt(back)


def followed(lib: Any, layer: Any, remove: Any) -> Any:
    """A layer through two steps of training, evaluation, a copy, saving and removal."""
    results = [repr(layer), state(layer), fed(lib, layer), fed(lib, layer)]
    layer.eval()
    results += [fed(lib, layer), layer.weight, pickled(layer)]
    results.append(attempt(lambda: fed(lib, copy.deepcopy(layer))))
    results += [attempt(lambda: remove(layer) is layer), repr(layer), state(layer), type(layer.weight).__name__]
    return results, fed(lib, layer)


@case
def old_weight_norm(lib: Any) -> Any:
    results = []
    for dim in (0, 1, None):
        for layer in layers(lib):
            attempt(lambda layer=layer, dim=dim: lib.nn.utils.weight_norm(layer, dim=dim))
            results.append([repr(layer), state(layer), fed(lib, layer), fed(lib, layer)])
            results.append(attempt(lambda layer=layer: lib.nn.utils.weight_norm(layer)))
            results.append(attempt(lambda layer=layer: lib.nn.utils.remove_weight_norm(layer, "other")))
            results.append([lib.nn.utils.remove_weight_norm(layer) is layer, state(layer), fed(lib, layer)])
    wanted = lib.nn.Linear(2, 2)
    results.append(attempt(lambda: list(lib.nn.utils.weight_norm(wanted, "bias").state_dict())))
    return results


@case
def old_spectral_norm(lib: Any) -> Any:
    utils = lib.nn.utils
    results = []
    for options in ({}, {"n_power_iterations": 3}, {"dim": 1}, {"eps": 0.5}):
        for layer in layers(lib, lib.float64):
            utils.spectral_norm(layer, **options)
            results.append(attempt(lambda layer=layer: utils.spectral_norm(layer)))
            results.append(followed(lib, layer, utils.remove_spectral_norm))
    bare = lib.nn.Linear(2, 2, bias=False)
    return results, [
        attempt(lambda: utils.spectral_norm(bare, n_power_iterations=0)),
        attempt(lambda: utils.spectral_norm(bare, "bias")),
        attempt(lambda: utils.spectral_norm(bare, "none")),
        attempt(lambda: utils.remove_spectral_norm(bare)),
    ]


@case
def old_states_of_spectral_norm(lib: Any) -> Any:
    layer = lib.nn.utils.spectral_norm(lib.nn.Linear(4, 3))
    layer(lib.ones(1, 4))
    saved = layer.state_dict()
    old = type(saved)((key, value.clone()) for key, value in saved.items() if not key.endswith("_v"))
    old["weight"] = layer.weight.detach().clone()
    fresh = lib.nn.utils.spectral_norm(lib.nn.Linear(4, 3))
    results: list[Any] = [attempt(lambda: fresh.load_state_dict(old)), fresh.state_dict(), fresh.eval()(lib.ones(1, 4))]
    del old["weight_u"]
    results.append(attempt(lambda: fresh.load_state_dict(old)))
    results.append(attempt(lambda: fresh.load_state_dict(dict(saved))))
    results.append(attempt(lambda: fresh.load_state_dict(saved)))
    return results


@case
def weight_norm(lib: Any) -> Any:
    P, remove = lib.nn.utils.parametrizations, lib.nn.utils.parametrize.remove_parametrizations
    results: list[Any] = []
    for dim in (0, 1, None, -1):
        for layer in layers(lib):
            P.weight_norm(layer, dim=dim)
            results.append(followed(lib, layer, lambda m: remove(m, "weight")))
    layer = P.weight_norm(lib.nn.Linear(2, 3))
    layer.weight = lib.ones(3, 2)
    results.append(layer.state_dict())
    old = {"weight_g": lib.full((3, 1), 2.0), "weight_v": lib.ones(3, 2), "bias": lib.zeros(3)}
    results.append([attempt(lambda: layer.load_state_dict(old)), layer.weight])
    results.append(attempt(lambda: remove(layer, "weight", leave_parametrized=False)))
    return results


@case
def spectral_norm(lib: Any) -> Any:
    P, remove = lib.nn.utils.parametrizations, lib.nn.utils.parametrize.remove_parametrizations
    results: list[Any] = []
    for options in ({}, {"n_power_iterations": 3}, {"dim": -1}, {"eps": 0.5}):
        for layer in layers(lib, lib.float64):
            P.spectral_norm(layer, **options)
            results.append(followed(lib, layer, lambda m: remove(m, "weight")))
    layer = lib.nn.Linear(3, 2)
    P.spectral_norm(layer, "bias")
    results.append([layer.bias, list(layer.state_dict()), attempt(lambda: P.spectral_norm(layer, dim=2))])
    results.append(attempt(lambda: P.spectral_norm(layer, dim=-3)))
    results.append(attempt(lambda: P.spectral_norm(layer, n_power_iterations=0)))
    results.append(attempt(lambda: P.spectral_norm(layer, "none")))
    return results


@case
def orthogonal(lib: Any) -> Any:
    P, remove = lib.nn.utils.parametrizations, lib.nn.utils.parametrize.remove_parametrizations
    results: list[Any] = []
    for mapping in (None, "matrix_exp", "cayley", "householder"):
        for trivial in (True, False):
            for shape in ((3, 4), (4, 3), (3, 3)):
                layer = lib.nn.Linear(*shape).double()
                P.orthogonal(layer, orthogonal_map=mapping, use_trivialization=trivial)
                results.append([repr(layer), state(layer), fed(lib, layer), layer.weight])
                value = lib.linalg.qr(lib.randn(max(shape), max(shape), dtype=lib.float64))[0][: shape[1], : shape[0]]
                results.append([attempt(lambda m=layer, v=value: setattr(m, "weight", v)), fed(lib, layer)])
                results.append(attempt(lambda m=layer: setattr(m, "weight", lib.ones(1, 1, dtype=lib.float64))))
                results.append([remove(layer, "weight") is layer, fed(lib, layer), state(layer)])
    module = lib.nn.Module()
    module.weight = lib.nn.Parameter(lib.randn(2, 3, 3, dtype=lib.complex128))
    P.orthogonal(module)
    results += [module.weight, module.state_dict()]
    module.register_parameter("other", lib.nn.Parameter(lib.randn(2, 2, dtype=lib.complex64)))
    results += [
        attempt(lambda: P.orthogonal(module, "other", "householder")),
        attempt(lambda: P.orthogonal(module, "other", "wrong")),
        attempt(lambda: P.orthogonal(module, "none")),
        attempt(lambda: P.orthogonal(lib.nn.Linear(2, 2), "bias")),
    ]
    return results


# -- parametrizations of one's own -----------------------------------------------------------------------------------
def own(lib: Any, forward: Any, inverse: Any = None) -> Any:
    """An instance of a parametrization class."""
    members: dict[str, Any] = {"forward": lambda self, *x: forward(*x)}
    if inverse is not None:
        members["right_inverse"] = lambda self, x: inverse(x)
    return type("Own", (lib.nn.Module,), members)()


def missing_inverse(x: Any) -> Any:
    raise NotImplementedError


@case
def registered(lib: Any) -> Any:
    p = lib.nn.utils.parametrize
    layer = lib.nn.Linear(3, 3)
    layer.register_buffer("extra", lib.ones(2))
    weight = layer.weight
    results: list[Any] = [p.is_parametrized(layer), p.is_parametrized(layer, "weight")]
    p.register_parametrization(layer, "weight", own(lib, lambda x: x.triu() + x.triu(1).mT))
    results += [repr(layer), state(layer), layer.weight, layer.parametrizations.weight.original is weight]
    p.register_parametrization(layer, "weight", own(lib, lambda x: x * 2, lambda x: x / 2))
    p.register_parametrization(layer, "extra", own(lib, lambda x: x + 1, lambda x: x - 1))
    results += [repr(layer), state(layer), layer.weight, layer.extra, fed(lib, layer)]
    results += [attempt(lambda: setattr(layer, "weight", lib.ones(3, 3))), attempt(lambda: layer.load_state_dict({}))]
    layer.extra = lib.full((2,), 9.0)
    results += [layer.extra, layer.parametrizations.extra.original, list(layer.parameters())]
    results += [p.is_parametrized(layer), p.is_parametrized(layer, "bias"), p.type_before_parametrizations(layer)]
    results += [type(layer).__name__, type(layer).__mro__[1].__name__, isinstance(layer, lib.nn.Linear)]
    results += [attempt(lambda: p.remove_parametrizations(layer, "bias"))]
    p.remove_parametrizations(layer, "extra", leave_parametrized=False)
    results += [state(layer), type(layer).__name__]
    p.remove_parametrizations(layer, "weight")
    results += [state(layer), type(layer).__name__, layer.weight is weight, hasattr(layer, "parametrizations")]
    return results


@case
def several_originals(lib: Any) -> Any:
    p = lib.nn.utils.parametrize

    def product(a: Any, b: Any) -> Any:
        return a @ b

    def factors(x: Any) -> Any:
        return x[:, :1].clone(), x[:1].clone()

    layer = lib.nn.Linear(3, 2)
    p.register_parametrization(layer, "weight", own(lib, product, factors))
    p.register_parametrization(layer, "weight", own(lib, lambda x: x + 1, lambda x: x - 1))
    results = [state(layer), fed(lib, layer), repr(layer), pickled(layer)]
    layer.weight = lib.arange(6.0).view(2, 3)
    results += [state(layer), layer.weight]
    with p.cached():
        first = layer.weight
        with p.cached():
            results.append(layer.weight is first)
        results.append(layer.weight is first)
    results.append(layer.weight is first)
    other = lib.nn.Linear(3, 2)
    results.append(attempt(lambda: p.transfer_parametrizations_and_params(layer, other) is other))
    results += [state(other), other.parametrizations.weight.original0 is layer.parametrizations.weight.original0]
    empty = lib.nn.Module()
    single = lib.nn.Linear(2, 2)
    p.register_parametrization(single, "bias", own(lib, lambda x: x * 3))
    p.transfer_parametrizations_and_params(single, empty, "bias")
    results += [state(empty), empty.bias, p.transfer_parametrizations_and_params(other, lib.nn.ReLU())]
    results.append(attempt(lambda: p.remove_parametrizations(layer, "weight", leave_parametrized=False)))
    results.append([repr(p.remove_parametrizations(layer, "weight")), state(layer), type(layer.weight).__name__])
    return results


@case
def refused(lib: Any) -> Any:
    register = lib.nn.utils.parametrize.register_parametrization

    def one(forward: Any, inverse: Any = None, unsafe: bool = False) -> Any:
        layer = lib.nn.Linear(3, 2)
        return state(register(layer, "weight", own(lib, forward, inverse), unsafe=unsafe))

    def two(forward: Any, inverse: Any = None, unsafe: bool = False) -> Any:
        layer = register(lib.nn.Linear(3, 2), "weight", own(lib, lambda x: x))
        return list(state(register(layer, "weight", own(lib, forward, inverse), unsafe=unsafe))[0])

    def assigned(inverse: Any) -> Any:
        chosen: list[Any] = [lambda x: (x, x)]
        layer = lib.nn.Linear(3, 2)
        register(layer, "weight", own(lib, lambda x, y: x, lambda x: chosen[0](x)))
        chosen[0] = inverse
        layer.weight = lib.ones(2, 3)

    def assigned_one(inverse: Any) -> Any:
        chosen: list[Any] = [lambda x: x]
        layer = register(lib.nn.Linear(3, 2), "weight", own(lib, lambda x: x, lambda x: chosen[0](x)))
        chosen[0] = inverse
        layer.weight = lib.ones(2, 3)

    def same(x: Any) -> Any:
        return x

    wrong = [
        (lambda x: 3, None),
        (lambda x: x.double(), None),
        (lambda x: x[0], None),
        (same, lambda x: 3),
        (same, lambda x: x.double()),
        (same, lambda x: x.to("meta")),
        (same, lambda x: x[0]),
        (same, lambda x: (x, 3)),
        (same, lambda x: {"a": x}),
        (same, missing_inverse),
    ]
    results = [attempt(lambda c=c, f=f, i=i: c(f, i)) for c in (one, two) for f, i in wrong]
    results += [attempt(lambda c=c: c(lambda x: x[0].double(), None, True)) for c in (one, two)]
    results += [
        attempt(lambda i=i: assigned(i))
        for i in (same, lambda x: 3, lambda x: (x,), lambda x: (x.double(), x), lambda x: (x, 3), missing_inverse)
    ]
    results += [attempt(lambda i=i: assigned_one(i)) for i in (lambda x: 3, lambda x: x.double(), missing_inverse)]
    results.append(attempt(lambda: register(lib.nn.Linear(2, 2), "none", own(lib, same))))
    results.append(attempt(lambda: lib.nn.utils.parametrize.ParametrizationList([], lib.ones(2))))
    results.append(attempt(lambda: lib.nn.utils.parametrize.remove_parametrizations(lib.nn.Linear(2, 2), "weight")))
    return results


@case
def copies_and_training_modes(lib: Any) -> Any:
    p = lib.nn.utils.parametrize
    layer = lib.nn.Linear(2, 2).eval()
    inner = own(lib, lambda x: x * 2)
    p.register_parametrization(layer, "weight", inner)
    copied = copy.deepcopy(layer)
    copied.parametrizations.weight.original.data.fill_(5)
    twin = lib.nn.Linear(2, 2)
    return [
        inner.training,
        copied.weight,
        layer.weight,
        type(copied) is type(layer),
        copied.parametrizations.weight.unsafe,
        attempt(lambda: copy.copy(layer)),
        attempt(lambda: twin.load_state_dict(layer.state_dict())),
        lib.func.functional_call(layer, {"parametrizations.weight.original": lib.eye(2)}, lib.ones(1, 2)),
    ]


@pytest.mark.oracle
@pytest.mark.parametrize("name", case)
def test_case(name: str) -> None:
    check(case[name], stride=True, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mapping", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4)])
def test_an_orthogonal_weight_is_one_and_keeps_what_is_assigned(mapping: str, shape: tuple[int, int]) -> None:
    layer = torch.nn.Linear(*shape).double()
    torch.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=mapping)
    short = min(shape)
    for value in (None, torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64))[0][: shape[1], : shape[0]]):
        if value is not None:
            if shape != (4, 4):
                layer.weight = value
            else:
                layer.weight = torch.eye(4, dtype=torch.float64)
        w = layer.weight
        gram = w @ w.mT if shape[1] <= shape[0] else w.mT @ w
        assert torch.allclose(gram, torch.eye(short, dtype=torch.float64), atol=1e-10)
        if value is not None:
            assert torch.allclose(w, torch.eye(4, dtype=torch.float64) if shape == (4, 4) else value, atol=1e-10)


def test_a_spectral_norm_is_one() -> None:
    layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(6, 5).double(), n_power_iterations=50)
    assert abs(float(torch.linalg.matrix_norm(layer.weight.detach(), 2)) - 1) < 1e-6


@pytest.mark.oracle
@mindtorch_only
def test_public_names() -> None:
    import importlib

    for name in ("parametrize", "parametrizations", "weight_norm", "spectral_norm"):
        theirs = importlib.import_module("torch.nn.utils." + name)
        mine = submodule("nn.utils." + name)
        assert [n for n in theirs.__all__ if not hasattr(mine, n)] == [], name
