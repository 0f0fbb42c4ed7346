"""`torch.autograd.forward_ad`, `torch.func.jvp` and what is built on them: as PyTorch's in all that a user can see.

Invariant: a case is a function of the library; its outcome is the same for both.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from .._outcome import outcome, tried
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch

Case = Callable[[Any], Any]
CASES: dict[str, Case] = {}


def case(fn: Case) -> Case:
    CASES[fn.__name__] = fn
    return fn


def of(lib: Any, *values: float, grad: bool = False) -> Any:
    return lib.tensor(values, dtype=lib.float64, requires_grad=grad)


def dual(lib: Any, *values: float) -> Any:
    return lib.autograd.forward_ad.make_dual(of(lib, *values), of(lib, *[v + 1 for v in values]))


def shown(lib: Any, *tensors: Any) -> Any:
    return [tuple(lib.autograd.forward_ad.unpack_dual(t)) for t in tensors]


# -- dual tensors -------------------------------------------------------------------------------------------------
def made(lib: Any, methods: dict[str, Any]) -> Any:
    """A class of a user's, made of these methods."""
    return type("Made", (lib.autograd.Function,), methods)


@case
def levels(lib: Any) -> Any:
    fw = lib.autograd.forward_ad
    x = of(lib, 1, 2)
    outside = tried([lambda: fw.make_dual(x, x), lambda: fw.unpack_dual(x), lambda: fw.exit_dual_level()])
    with fw.dual_level() as level:
        inside = tried(
            [
                lambda: fw.enter_dual_level(),
                lambda: fw.exit_dual_level(level=3),
                lambda: fw.make_dual(x, x, level=1),
                lambda: fw.unpack_dual(x, level=1),
                lambda: fw.make_dual(fw.make_dual(x, x), x),
                lambda: fw.make_dual(x, fw.make_dual(x, x)),
                lambda: fw.make_dual(x, of(lib, 1)),
                lambda: fw.make_dual(x.int(), x.int()),
                lambda: fw.make_dual(x, x.int()),
                lambda: fw.make_dual(3, x),
            ]
        )
        d = fw.make_dual(x, x + 1)
    return outside, inside, level, fw.unpack_dual(d), str(d)


@case
def what_a_dual_is(lib: Any) -> Any:
    fw = lib.autograd.forward_ad
    x, t = of(lib, 1, 2), of(lib, 3, 4)
    with fw.dual_level():
        d = fw.make_dual(x, t)
        p, tangent = fw.unpack_dual(d)
        leaf = fw.make_dual(of(lib, 1, 2, grad=True), t)
        part = fw.make_dual(of(lib, 1, 2, 3, 4)[1:3], t)
        return (
            [str(d), str(leaf), d._is_view(), d._base is x, d.data_ptr() == x.data_ptr()],
            [p._is_view(), tangent is t, shown(lib, d.detach(), d.data, p, p[0])],
            [shown(lib, part), fw.unpack_dual(part).tangent is t],
            tried([lambda: fw.make_dual(of(lib, 1).expand(2), t)]),
        )


@case
def modes(lib: Any) -> Any:
    fw = lib.autograd.forward_ad
    with fw.dual_level():
        d = dual(lib, 1, 2)
        found = [shown(lib, d * 2, d > 0, d.floor(), d.int())]
        with lib.no_grad():
            found.append(shown(lib, d * 2))
        with lib.inference_mode():
            found.append(shown(lib, d * 2))
        with fw._set_fwd_grad_enabled(False):
            found.append([shown(lib, d * 2), fw._is_fwd_grad_enabled()])
        return found, fw._is_fwd_grad_enabled()


# -- views and writes ---------------------------------------------------------------------------------------------
@case
def views(lib: Any) -> Any:
    with lib.autograd.forward_ad.dual_level():
        d = dual(lib, 1, 2, 3, 4)
        m = d.view(2, 2)
        a, b = m.unbind(0)
        found = shown(lib, m.t(), m[0], a, b, m.diagonal(), d[::2], m.unsqueeze(0).expand(2, 2, 2))
        m[0].mul_(10)
        return found, shown(lib, d, m, a, b)


@case
def writes(lib: Any) -> Any:
    fw = lib.autograd.forward_ad
    with fw.dual_level():
        x, t = of(lib, 1, 2), of(lib, 3, 4)
        d = fw.make_dual(x, t)
        d.mul_(3)
        found = [x, t, shown(lib, d, x)]
        y = lib.zeros(4, dtype=lib.float64)
        early, other = y[1:3], y[2:]
        early.copy_(d)
        found.append(shown(lib, y, early, other))
        y.add_(1)
        other.mul_(2)
        found.append(shown(lib, y, early, other))
        early[0] = 5
        found.append(shown(lib, y, early))
        z = of(lib, 1, 2)
        z += d
        z.mul_(z)
        found.append(shown(lib, z))
        z.zero_()
        found.append(shown(lib, z))
        w = dual(lib, 1, 2, 3, 4).view(2, 2)
        w.t_()
        w.unsqueeze_(0)
        found.append([shown(lib, w), tried([lambda: w.resize_(9)])])
        c = dual(lib, 1, 2) + 1
        c.mul_(5)
        found.append(shown(lib, c))
        return found


@case
def out_variants(lib: Any) -> Any:
    with lib.autograd.forward_ad.dual_level():
        d = dual(lib, 1, 2)
        return tried([lambda: lib.add(d, d, out=of(lib, 0, 0)), lambda: lib.sin(of(lib, 1), out=dual(lib, 1))])


# -- with reverse mode --------------------------------------------------------------------------------------------
def composed(lib: Any, x: Any) -> Any:
    y = (x.exp() * x.sin()).tanh()
    z = y.clone()
    z.mul_(x)
    z[0].add_(y[1])
    return (z.softmax(0) * x).sum() + z.sigmoid().prod()


@case
def forward_over_reverse(lib: Any) -> Any:
    fw = lib.autograd.forward_ad
    with fw.dual_level():
        x = fw.make_dual(of(lib, 1, 2, 3).requires_grad_(), of(lib, 1, 0, -1))
        (g,) = lib.autograd.grad(composed(lib, x), x)
        (h,) = lib.autograd.grad(composed(lib, x), x, create_graph=True)
        return [[v.detach() for v in shown(lib, t)[0]] for t in (g, h)]


@case
def reverse_over_forward(lib: Any) -> Any:
    fw = lib.autograd.forward_ad
    x, t = of(lib, 1, 2, 3, grad=True), of(lib, 1, 0, -1, grad=True)
    with fw.dual_level():
        d = fw.make_dual(x, t)
        tangent = fw.unpack_dual(d.sin().tanh().prod() * d.norm()).tangent
    return tangent, lib.autograd.grad(tangent, (x, t))


# -- Function -----------------------------------------------------------------------------------------------------
def function(lib: Any, forward: Any, jvp: Any) -> Any:
    return type("F", (lib.autograd.Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp)})


def keeping(ctx: Any, x: Any, y: Any, n: Any) -> Any:
    ctx.save_for_forward(x, y)
    return x * y, x.sum(), n


@case
def functions(lib: Any) -> Any:
    with lib.autograd.forward_ad.dual_level():
        d, plain = dual(lib, 1, 2), of(lib, 5, 7)

        def pushed(jvp: Any) -> Any:
            a, b, n = function(lib, keeping, jvp).apply(d, plain, 2)
            return shown(lib, a, b), n

        def product(ctx: Any, a: Any, b: Any, n: Any) -> Any:
            x, y = ctx.saved_tensors
            return a * y + b * x, a.sum(), None

        return tried(
            [
                lambda: pushed(product),
                lambda: pushed(lambda ctx, a, b, n: (a, b)),
                lambda: pushed(lambda ctx, a, b, n: (3, None, None)),
                lambda: pushed(lambda ctx, a, b, n: (a, a, None)),
                lambda: pushed(lambda ctx, a, b, n: a),
                lambda: made(lib, {"forward": staticmethod(lambda ctx, x: x)}).apply(d),
            ]
        )


@case
def functions_that_write_or_view(lib: Any) -> Any:
    def write(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    def constant(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y

    forwards = (write, lambda ctx, x: x.view(2, 1), lambda ctx, x: x, constant)
    jvps = (
        lambda ctx, g: g.mul_(2),
        lambda ctx, g: g * 2,
        lambda ctx, g: g.view(2, 1),
        lambda ctx, g: (g * 2).view(2, 1),
        lambda ctx, g: g.view_as(g),
        lambda ctx, g: g,
    )
    with lib.autograd.forward_ad.dual_level():
        return [
            outcome(lambda f=f, j=j: shown(lib, function(lib, f, j).apply(dual(lib, 1, 2))))
            for f in forwards
            for j in jvps
            if not (f is write and j is jvps[2])
        ]


# -- torch.func ---------------------------------------------------------------------------------------------------
@case
def jvps(lib: Any) -> Any:
    jvp = submodule_of(lib, "func").jvp
    x, t = of(lib, 1, 2), of(lib, 3, 4)
    return tried(
        [
            lambda: jvp(lib.sin, (x,), (t,)),
            lambda: jvp(lambda d: {"q": d["a"] * d["b"]}, ({"a": x, "b": x},), ({"a": t, "b": x},)),
            lambda: jvp(lambda x: (x.sin(), x.sum()), (x,), (t,), has_aux=True),
            lambda: jvp(lambda x: x * 2, (x.requires_grad_(False),), (t,), strict=True),
            lambda: jvp(lambda x: lib.ones(2), (x,), (t,)),
            lambda: jvp(lambda x: lib.ones(2), (x,), (t,), strict=True),
            lambda: jvp(lambda x: x.detach(), (x,), (t,)),
            lambda: jvp(lambda x: x.clone().add_(x), (x,), (t,)),
            lambda: jvp(lambda x: (x > 1).int(), (x,), (t,)),
            lambda: jvp(lib.sin, x, t),
            lambda: jvp(lib.sin, (x,), t),
            lambda: jvp(lib.sin, (x,), (t, t)),
            lambda: jvp(lib.sin, (), ()),
            lambda: jvp(lib.sin, (x,), (3,)),
            lambda: jvp(lib.sin, (3.0,), (t,)),
            lambda: jvp(lib.sin, (x,), (of(lib, 1),)),
            lambda: jvp(lambda x: 3, (x,), (t,)),
            lambda: jvp(lambda x: (), (x,), (t,)),
            lambda: jvp(lib.sin, (x,), (t,), has_aux=True),
            lambda: jvp(lib.sin, (x.int(),), (t.int(),)),
            lambda: jvp(lambda x: jvp(lambda y: x * y * y, (x,), (t,))[1], (x,), (t,)),
        ]
    )


@case
def jacobians(lib: Any) -> Any:
    func = submodule_of(lib, "func")
    jacfwd = func.jacfwd
    x = of(lib, 1, 2, 3)
    return tried(
        [
            lambda: jacfwd(lib.sin)(x),
            lambda: jacfwd(lambda x, y: (x * y, x.sum()), argnums=(0, 1))(x, x),
            lambda: jacfwd(lambda x: (x.sin(), x.cos()), has_aux=True)(x),
            lambda: jacfwd(lambda d: {"q": d["a"] * 2})({"a": x}),
            lambda: jacfwd(jacfwd(lambda x: (x**3).sum()))(x),
            lambda: jacfwd(lambda x: lib.ones(2))(x),
            lambda: jacfwd(lib.sin)(lib.zeros(0)),
            lambda: jacfwd(lib.sin, argnums=2)(x),
            lambda: jacfwd(lib.sin, argnums="a")(x),
            lambda: jacfwd(lib.sin, argnums=(0, 0))(x),
            lambda: jacfwd(lib.sin, argnums=())(x),
            lambda: jacfwd(lib.sin, randomness="foo")(x),
            lambda: jacfwd(lambda x: 3)(x),
        ]
    )


@case
def linearized(lib: Any) -> Any:
    make = submodule_of(lib, "func").linearize

    def linearize(*args: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's come from tracing
            return make(*args)

    x, t = of(lib, 1, 2), of(lib, 3, 4)
    output, push = linearize(lambda x: (x.sin() * x).sum() * x, x)
    pairs, push_pairs = linearize(lambda d: {"q": d["a"] * d["b"]}, {"a": x, "b": t})
    return (
        [output, push(t), push(x), pairs, push_pairs({"a": t, "b": x})],
        tried(
            [
                lambda: push(of(lib, 1)),
                lambda: push(t, t),
                lambda: push(t.float()),
                lambda: linearize(lib.sin)[0],
                lambda: linearize(lambda x: 3, x)[0],
            ]
        ),
    )


def submodule_of(lib: Any, name: str) -> Any:
    return submodule(name) if lib is torch else __import__("torch").func


# -- functional and gradcheck ---------------------------------------------------------------------------------------
@case
def functional(lib: Any) -> Any:
    f = lib.autograd.functional
    x = of(lib, 1, 2)
    options = {"strategy": "forward-mode", "vectorize": True}
    outer = {"outer_jacobian_strategy": "forward-mode", "vectorize": True}
    return tried(
        [
            lambda: f.jacobian(lib.sin, x, **options),
            lambda: f.jacobian(lambda x, y: (x * y, x.sum()), (x, x), **options),
            lambda: f.jacobian(lambda x: lib.ones(2), x, **options),
            lambda: f.jacobian(lambda x: 3, x, **options),
            lambda: f.hessian(lambda x: (x**3).sum().detach() * 0 + (x**3).sum(), x, **outer)[0].detach(),
        ]
    )


class Wrong:
    """A Function whose jvp is wrong by a factor."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * ctx.saved_tensors[0] * g

    @staticmethod
    def jvp(ctx: Any, g: Any) -> Any:
        return 3 * ctx.saved_tensors[0] * g


@case
def gradchecks(lib: Any) -> Any:
    check, check2 = lib.autograd.gradcheck, lib.autograd.gradgradcheck
    wrong = made(lib, {k: vars(Wrong)[k] for k in ("forward", "backward", "jvp")}).apply
    x = of(lib, 1, 2, grad=True)
    z = x.detach().to(lib.complex128).requires_grad_()
    return tried(
        [
            lambda: check(wrong, (x,)),
            lambda: check(wrong, (x,), check_forward_ad=True),
            lambda: check(wrong, (x,), check_forward_ad=True, raise_exception=False),
            lambda: check(wrong, (x,), check_forward_ad=True, fast_mode=True, raise_exception=False),
            lambda: check(lib.sin, (x,), check_forward_ad=True, check_batched_forward_grad=True),
            lambda: check(lib.sin, (z,), check_forward_ad=True, fast_mode=True),
            lambda: check(lambda z: z.abs() * z, (z,), check_forward_ad=True),
            lambda: check(lib.sin, (x,), check_batched_forward_grad=True),
            lambda: check(lib.sin, (x,), check_backward_ad=False),
            lambda: check(lib.sin, (x,), check_backward_ad=False, check_forward_ad=True, check_batched_grad=True),
            lambda: check(lib.sin, (x,), check_backward_ad=False, check_forward_ad=True),
            lambda: check2(lib.sin, (x,), check_fwd_over_rev=True),
            lambda: check2(lib.sin, (x,), check_fwd_over_rev=True, check_rev_over_rev=False),
            lambda: check2(lib.sin, (x,), check_rev_over_rev=False),
        ]
    )


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name: str, oracle: Any) -> None:
    with warnings.catch_warnings():
        # The first dual tensor loads decompositions, with warnings of their own.
        warnings.simplefilter("ignore")
        levels(oracle)
    assert outcome(lambda: CASES[name](torch)) == outcome(lambda: CASES[name](oracle))


# Without the oracle ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", CASES)
def test_cases_run_without_an_oracle(name: str) -> None:
    CASES[name](torch)


def test_levels_nest_to_any_depth() -> None:
    jvp = submodule("func").jvp
    x, one = of(torch, 0.5), of(torch, 1)

    def derivative(f: Any) -> Any:
        return lambda x: jvp(f, (x,), (one,))[1]

    f = torch.exp
    for _ in range(4):
        f = derivative(f)
    assert torch.allclose(f(x), x.exp())


def test_perturbations_are_not_confused() -> None:
    jvp = submodule("func").jvp
    x, one = of(torch, 3), of(torch, 1)
    # d/dx (x * d/dy (x + y)) = d/dx x = 1
    found = jvp(lambda x: x * jvp(lambda y: x + y, (one,), (one,))[1], (x,), (one,))[1]
    assert found.tolist() == [1.0]


def test_transforms_compose_in_any_order() -> None:
    func = submodule("func")
    x = of(torch, 1, 2, 3)

    def f(x: Any) -> Any:
        return (x.exp() * x.sum()).softmax(0)

    def number(x: Any) -> Any:
        return f(x).pow(2).sum() * x.prod()

    want = func.jacrev(func.jacrev(number))(x)
    for outer, inner in (("jacfwd", "jacrev"), ("jacfwd", "jacfwd"), ("jacrev", "jacfwd"), ("jacfwd", "grad")):
        assert torch.allclose(getattr(func, outer)(getattr(func, inner)(number))(x), want), (outer, inner)
    rows, along = torch.stack([x, x / 2]), torch.stack([x.sin(), x.cos()])
    single = torch.stack([func.jvp(f, (a,), (b,))[1] for a, b in zip(rows, along)])
    assert torch.allclose(func.vmap(lambda a, b: func.jvp(f, (a,), (b,))[1])(rows, along), single)
    assert torch.allclose(func.jvp(func.vmap(f), (rows,), (along,))[1], single)


@mindtorch_only
def test_levels_of_both_interfaces_nest() -> None:
    fw, jvp = submodule("autograd.forward_ad"), submodule("func").jvp
    x, one = of(torch, 0.5), of(torch, 1)
    with fw.dual_level():
        inner = jvp(torch.sin, (fw.make_dual(x, one),), (one,))[1]
        assert torch.allclose(fw.unpack_dual(inner).tangent, -x.sin())


@mindtorch_only
def test_a_result_that_was_saved_is_freed_with_its_tangent() -> None:
    import gc
    import weakref

    fw = submodule("autograd.forward_ad")
    x = of(torch, 1, 2, grad=True)
    with fw.dual_level():
        d = fw.make_dual(x, of(torch, 1, 1))
        y = d.exp()
        kept = weakref.ref(fw.unpack_dual(y).tangent)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        del y, d, g
    gc.collect()
    assert kept() is None
