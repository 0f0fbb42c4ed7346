"""`torch.nn.utils`: clipping, vectors of parameters, fusing, memory formats, calls with other tensors.

Invariant: a case is a function of the library; what it gives, its errors and its warnings are PyTorch's.
"""

from __future__ import annotations

from typing import Any

import pytest

from .._subject import mindtorch_only, submodule
from .._subject import subject as torch
from ._both import Cases, attempt, check

case = Cases()
NORMS = (2.0, 1, 3.5, 0.0, float("inf"), float("-inf"), "inf", 0.5)


def gradients(lib: Any, dtypes: tuple[str, ...] = ("float32",)) -> list[Any]:
    parameters = []
    for dtype in dtypes:
        for shape in ((3, 4), (5,), (), (2, 1, 3)):
            p = lib.nn.Parameter(lib.randn(shape).to(getattr(lib, dtype)))
            p.grad = lib.randn(shape).to(getattr(lib, dtype))
            parameters.append(p)
    parameters.insert(1, lib.nn.Parameter(lib.ones(2)))
    return parameters


def grads(parameters: Any) -> list[Any]:
    return [p.grad for p in parameters]


@case
def clip_by_norm(lib: Any) -> Any:
    def one(norm: Any, limit: float, foreach: Any) -> Any:
        parameters = gradients(lib)
        return lib.nn.utils.clip_grad_norm_(parameters, limit, norm, foreach=foreach), grads(parameters)

    return [
        attempt(lambda n=n, m=m, f=f: one(n, m, f))
        for n in NORMS
        for m in (0.5, 100.0, -1)
        for f in (None, True, False)
    ]


@case
def clip_by_norm_over_dtypes(lib: Any) -> Any:
    parameters = gradients(lib, ("float32", "float64"))
    total = lib.nn.utils.get_total_norm(grads(parameters)[:1] + grads(parameters)[2:], 3)
    lib.nn.utils.clip_grads_with_norm_(parameters, 0.3, total)
    half = gradients(lib, ("bfloat16", "float16"))
    return total, grads(parameters), lib.nn.utils.clip_grad_norm_(iter(half), 0.1), grads(half)


@case
def clip_corners(lib: Any) -> Any:
    utils = lib.nn.utils

    def broken(value: float, strict: bool) -> Any:
        parameters = gradients(lib)
        parameters[0].grad[0, 0] = value
        return utils.clip_grad_norm_(parameters, 1, error_if_nonfinite=strict), grads(parameters)

    one = gradients(lib)[0]
    return [
        attempt(lambda: utils.clip_grad_norm_([], 1.0)),
        attempt(lambda: utils.clip_grad_norm_(iter(()), 1.0)),
        attempt(lambda: utils.get_total_norm([])),
        attempt(lambda: utils.clip_grad_norm_(lib.nn.Parameter(lib.ones(2)), 1.0)),
        attempt(lambda: utils.clip_grad_norm_(one, 1.0)),
        one.grad,
        attempt(lambda: utils.clip_grad_norm([one], 0.1)),
        *(attempt(lambda v=v, s=s: broken(v, s)) for v in (float("nan"), float("inf")) for s in (True, False)),
        attempt(lambda: utils.clip_grads_with_norm_(one, 1.0, lib.tensor(2.0))),
        attempt(lambda: utils.get_total_norm(lib.ones(2, 2, device="meta"), foreach=True)),
        attempt(lambda: utils.get_total_norm(lib.ones(2, 2, device="meta"))),
        attempt(lambda: utils.clip_grad_norm_([one], "x")),
        attempt(lambda: utils.clip_grad_norm_(None, 1.0)),
    ]


@case
def clip_by_value(lib: Any) -> Any:
    results = []
    for limit in (0.5, 0, 3):
        for foreach in (None, True, False):
            parameters = gradients(lib, ("float32", "float64"))
            results.append(lib.nn.utils.clip_grad_value_(parameters, limit, foreach=foreach))
            results.append(grads(parameters))
    single = gradients(lib)[0]
    lib.nn.utils.clip_grad_value_(single, 0.1)
    return results, single.grad, attempt(lambda: lib.nn.utils.clip_grad_value_([single], "a"))


@case
def vectors(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.Conv1d(2, 2, 1))
    vector = lib.nn.utils.parameters_to_vector(model.parameters())
    flat = lib.arange(float(vector.numel()))
    lib.nn.utils.vector_to_parameters(flat, model.parameters())
    flat[0] = 50
    return (
        vector,
        vector.grad_fn.name(),
        model.state_dict(),
        attempt(lambda: lib.nn.utils.vector_to_parameters([1.0], model.parameters())),
        attempt(lambda: lib.nn.utils.parameters_to_vector([])),
        attempt(lambda: lib.nn.utils.parameters_to_vector([lib.ones(2, 3).t()])),
        attempt(lambda: lib.nn.utils.vector_to_parameters(lib.ones(2), [lib.ones(3)])),
    )


def trained(lib: Any, bn: Any) -> Any:
    bn.running_mean.copy_(lib.randn(bn.num_features))
    bn.running_var.copy_(lib.rand(bn.num_features))
    if bn.affine:
        bn.weight.data.normal_()
        bn.bias.data.normal_()
    return bn.eval()


@case
def fused_convolutions(lib: Any) -> Any:
    results = []
    for rank in (1, 2, 3):
        for transpose in (False, True):
            for bias in (True, False):
                for affine in (True, False):
                    name = f"Conv{'Transpose' if transpose else ''}{rank}d"
                    conv = getattr(lib.nn, name)(3, 4, 2, bias=bias).eval()
                    bn = trained(lib, getattr(lib.nn, f"BatchNorm{rank}d")(4, affine=affine))
                    fused = lib.nn.utils.fuse_conv_bn_eval(conv, bn, transpose)
                    x = lib.randn((2, 3) + (4,) * rank)
                    assert lib.allclose(fused(x), bn(conv(x)), atol=1e-5)
                    results.append((fused.state_dict(), fused.bias.requires_grad, fused.weight.requires_grad))
    return results


@case
def fused_linear_layers(lib: Any) -> Any:
    results: list[Any] = []
    for bias in (True, False):
        linear = lib.nn.Linear(3, 4, bias=bias).eval()
        bn = trained(lib, lib.nn.BatchNorm1d(4))
        results.append(lib.nn.utils.fuse_linear_bn_eval(linear, bn).state_dict())
    linear = lib.nn.Linear(3, 4).eval()
    fuse = lib.nn.utils.fuse_linear_bn_eval
    return [
        *results,
        attempt(lambda: fuse(linear, lib.nn.BatchNorm1d(4))),
        attempt(lambda: fuse(linear, lib.nn.BatchNorm1d(3).eval())),
        attempt(lambda: fuse(linear, lib.nn.BatchNorm1d(4, track_running_stats=False).eval())),
        attempt(lambda: lib.nn.utils.fuse_conv_bn_eval(lib.nn.Conv1d(1, 1, 1), lib.nn.BatchNorm1d(1).eval())),
        attempt(lambda: fuse(linear, trained(lib, lib.nn.BatchNorm1d(1))).state_dict()),
        attempt(lambda: fuse(linear.half(), trained(lib, lib.nn.BatchNorm1d(4))).state_dict()),
    ]


@case
def memory_formats(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Conv2d(3, 4, 2), lib.nn.Sequential(lib.nn.ConvTranspose3d(2, 3, 2)))
    weight = model[0].weight
    utils = lib.nn.utils
    back = utils.convert_conv2d_weight_memory_format(model, lib.channels_last)
    utils.convert_conv3d_weight_memory_format(model, lib.channels_last_3d)
    return back is model, weight is model[0].weight, model.state_dict()


@case
def skipped_initialisation(lib: Any) -> Any:
    made = lib.nn.utils.skip_init(lib.nn.Linear, 3, 2, dtype=lib.float64)
    return [
        (made.weight.dtype, made.weight.shape, made.weight.device, made.weight.requires_grad),
        lib.nn.utils.skip_init(lib.nn.Linear, 3, 2, device="meta").weight,
        attempt(lambda: lib.nn.utils.skip_init(lib.nn.ReLU)),
        attempt(lambda: lib.nn.utils.skip_init(int)),
    ]


def tied(lib: Any) -> Any:
    class Tied(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = lib.nn.Linear(2, 2)
            self.second = lib.nn.Linear(2, 2)
            self.second.weight = self.first.weight
            self.register_buffer("count", lib.zeros(1))
            self.plain = lib.ones(2)
            self.note = "text"

        count: Any

        def forward(self, x: Any, *, scale: float = 1.0) -> Any:
            self.count = self.count + 1
            return self.second(self.first(x)) * scale * self.plain

    return Tied()


@case
def calls_with_other_tensors(lib: Any) -> Any:
    module = tied(lib)
    before = {key: value.clone() for key, value in module.state_dict().items()}
    x = lib.ones(1, 2)
    w, v = lib.randn(2, 2, requires_grad=True), lib.randn(2, 2)
    call = lib.func.functional_call
    given = {"first.weight": w, "count": lib.full((1,), 7.0)}
    first = call(module, given, x)
    results: list[Any] = [
        first,
        lib.autograd.grad(first.sum(), w),
        given["count"],
        attempt(lambda: call(module, {"first.weight": w}, (x,), {"scale": 3.0}, tie_weights=False)),
        attempt(lambda: call(module, {"first.weight": w, "second.weight": v}, x)),
        attempt(lambda: call(module, {"first.weight": w, "second.weight": v}, x, tie_weights=False)),
        attempt(lambda: call(module, {"first.weight": w, "second.weight": w}, x)),
        attempt(lambda: call(module, [{"first.weight": w}, {"second.bias": v[0]}], (x,))),
        attempt(lambda: call(module, ({"a": w}, {"a": w}), (x,))),
        attempt(lambda: call(module, [w], (x,))),
        attempt(lambda: call(module, 3, (x,))),
        attempt(lambda: call(module, {"first.weight": w}, x, strict=True)),
        attempt(lambda: call(module, {"none": w, "first.odd": w}, x, strict=True)),
        attempt(lambda: call(module, dict(module.state_dict(keep_vars=True)), x, strict=True)),
        attempt(lambda: call(module, {"none.weight": w}, x)),
        attempt(lambda: call(module, {"note": w}, x)),
        attempt(lambda: call(module, {"plain": v[0]}, x)),
        attempt(lambda: call(module, {"new": v[0]}, x)),
        attempt(lambda: call(module, {"first.weight": 3}, x)),
        attempt(lambda: call(module, {"": w}, x)),
        attempt(lambda: call(module, {"first.weight": lib.ones(5, 5)}, x)),
        attempt(lambda: lib.nn.utils.stateless.functional_call(module, {"first.weight": w}, x)),
        hasattr(module, "new"),
        module.plain,
    ]
    after = module.state_dict()
    return results, after, [bool((after[key] == before[key]).all()) for key in before], list(after)


@case
def stacked_states(lib: Any) -> Any:
    def models(count: int) -> list[Any]:
        return [lib.nn.Sequential(lib.nn.Linear(2, 1), lib.nn.BatchNorm1d(1)) for _ in range(count)]

    stack = lib.func.stack_module_state
    mixed, frozen = models(2), models(2)
    mixed[0].eval()
    frozen[0].requires_grad_(False)
    return [
        attempt(lambda: stack(models(3))),
        attempt(lambda: stack([])),
        attempt(lambda: stack(mixed)),
        attempt(lambda: stack(frozen)),
        attempt(lambda: stack([lib.nn.Linear(1, 1), lib.nn.ReLU()])),
    ]


@pytest.mark.oracle
@pytest.mark.parametrize("name", case)
def test_case(name: str) -> None:
    check(case[name])


def test_a_clipped_gradient_has_the_wanted_norm() -> None:
    parameters = gradients(torch)
    before = torch.nn.utils.clip_grad_norm_(parameters, 0.25)
    after = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    assert float(before) > 0.25 and abs(float(after) - 0.25) < 1e-5


def test_a_module_holds_its_own_tensors_after_a_call_that_failed() -> None:
    module = torch.nn.Linear(2, 2)
    weight = module.weight
    with pytest.raises(RuntimeError):
        torch.func.functional_call(module, {"weight": torch.ones(5, 5)}, torch.ones(1, 2))
    assert module.weight is weight


@pytest.mark.oracle
@mindtorch_only
def test_public_names() -> None:
    import importlib

    for name in ("", ".clip_grad", ".convert_parameters", ".fusion", ".init", ".memory_format", ".stateless"):
        theirs = importlib.import_module("torch.nn.utils" + name)
        mine = submodule("nn.utils" + name)
        listed = set(getattr(theirs, "__all__", [n for n in vars(theirs) if not n.startswith("_") and n != "torch"]))
        assert {n for n in listed if not hasattr(mine, n)} - {"Iterable"} == set(), name
