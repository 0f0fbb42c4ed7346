"""Rows of pointwise operators and activations, one by one, against PyTorch: every dtype, every kind of layout, numbers
on either side, first and second derivatives, node names; and a few of them against plain arithmetic, without PyTorch.

Invariant: a call gives what PyTorch gives, or refuses with PyTorch's exception and the first line of its text. Every
row whose rule is one of `_ops.rules.dtype_checks` has a case here.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch

Call = Callable[..., Any]

DTYPES = (
    "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 bool float8_e5m2 "
    "float8_e4m3fn uint16 uint32 uint64"
).split()
MIXED = "uint8 int64 float16 bfloat16 float32 float64 complex64 bool".split()
TOLERANCES = {
    "float16": (2e-3, 1e-3),
    "bfloat16": (1.6e-2, 1e-2),
    "float32": (4e-6, 2e-6),
    "float64": (1e-11, 1e-12),
    "complex64": (1e-5, 1e-5),
    "complex128": (1e-10, 1e-11),
}


# -- the cases: name -> (number of tensors, call of a library and the tensors) ----------------------------------------
def named(name: str, *args: Any, **kwargs: Any) -> Call:
    return lambda t, *x: getattr(t, name)(*x, *args, **kwargs)


def row(name: str, *args: Any) -> Call:
    """A row that is no function of `torch`, called with its arguments in the order of the schema."""

    def call(t: Any, *x: Any) -> Any:
        if t.__name__ == "torch":
            return _aten(t, name)(*x, *args)
        op = submodule("_dispatch.registry").get(name)
        rest = [a.default for a in op.schema.args[len(x) + len(args) :]]
        return op.call((*x, *args, *rest))

    return call


def _aten(t: Any, name: str) -> Call:
    op = getattr(t.ops.aten, name)
    keyword = [a.name for a in op.default._schema.arguments if a.kwarg_only]

    def call(*args: Any) -> Any:
        n = len(op.default._schema.arguments) - len(keyword)
        return op(*args[:n], **dict(zip(keyword, args[n:])))

    return call


UNARY = (
    "neg negative abs absolute sign sgn reciprocal sqrt rsqrt square positive exp exp2 expm1 log log2 log10 log1p sin "
    "cos tan asin acos atan sinh cosh tanh asinh acosh atanh arcsin arccos arctan arcsinh arccosh arctanh ceil floor "
    "round trunc fix frac sigmoid erf erfc erfinv lgamma digamma sinc isnan isinf isfinite isneginf isposinf isreal "
    "signbit logical_not bitwise_not nan_to_num deg2rad rad2deg conj conj_physical angle relu"
).split()
BINARY = (
    "add sub rsub mul div true_divide multiply subtract divide floor_divide remainder fmod pow float_power atan2 "
    "arctan2 hypot xlogy logaddexp logaddexp2 maximum minimum fmax fmin eq ne lt le gt ge not_equal less less_equal "
    "greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift "
    "bitwise_right_shift copysign equal isclose clamp_min clamp_max"
).split()
NUMBER_RIGHT = (
    "add sub rsub mul div floor_divide remainder fmod pow eq lt xlogy copysign bitwise_and bitwise_left_shift "
    "clamp_min clamp_max clamp float_power"
).split()
NUMBER_LEFT = "add sub mul div floor_divide remainder pow xlogy bitwise_or bitwise_right_shift".split()
ACTIVATIONS: dict[str, tuple[Any, ...]] = {
    "gelu": (), "silu": (), "mish": (), "elu": (0.7, 1.3, 0.5), "leaky_relu": (0.1,), "softplus": (2.0, 1.0),
    "hardtanh": (-1, 1), "relu6": (), "hardsigmoid": (), "hardswish": (), "log_sigmoid": (), "selu": (), "celu": (0.6,),
    "threshold": (0.5, 2),
}  # fmt: skip
BACKWARDS: dict[str, tuple[Any, ...]] = {
    "threshold_backward": (0.5,), "sigmoid_backward": (), "tanh_backward": (), "gelu_backward": (), "silu_backward": (),
    "leaky_relu_backward": (0.1, False), "hardtanh_backward": (-1, 1), "mish_backward": (),
    "softplus_backward": (1.5, 1.0), "hardsigmoid_backward": (), "hardswish_backward": (),
}  # fmt: skip
OPERATORS = "+ - * / // % ** & | ^ << >> == != < <= > >=".split()


def operator_calls(symbol: str) -> Iterator[tuple[str, int, Call]]:
    both = eval(f"lambda t, a, b: a {symbol} b")
    right = eval(f"lambda t, a: a {symbol} 2")
    left = eval(f"lambda t, a: 2 {symbol} a")
    yield f"a{symbol}b", 2, both
    yield f"a{symbol}2", 1, right
    yield f"2{symbol}a", 1, left


def build_cases() -> dict[str, tuple[int, Call]]:
    cases: dict[str, tuple[int, Call]] = {}
    for name in UNARY:
        cases[name] = 1, named(name)
    for name in BINARY:
        cases[name] = 2, named(name)
    for name, args in ACTIVATIONS.items():
        cases[name] = 1, row(name, *args)
    for name, args in BACKWARDS.items():
        cases[name] = 2, row(name, *args)
    for label, number in (("2", 2), ("half", 1.5), ("minus", -1), ("0", 0), ("true", True)):
        for name in NUMBER_RIGHT:
            cases[f"{name}-{label}"] = 1, named(name, number)
        for name in NUMBER_LEFT:
            cases[f"{label}-{name}"] = 1, lambda t, x, name=name, number=number: getattr(t, name)(number, x)
        cases[f"where-{label}"] = 1, lambda t, x, number=number: t.where(x == x, x, number)
        cases[f"masked_fill-{label}"] = 1, lambda t, x, number=number: x.masked_fill(x == 1, number)
        cases[f"clamp-{label}-3"] = 1, lambda t, x, number=number: x.clamp(number, 3)
        cases[f"clip-max-{label}"] = 1, lambda t, x, number=number: t.clip(x, max=number)
    for symbol in OPERATORS:
        for label, count, call in operator_calls(symbol):
            cases[label] = count, call
    cases["~a"] = 1, lambda t, a: ~a
    cases["-a"] = 1, lambda t, a: -a
    cases["+a"] = 1, lambda t, a: +a
    cases["abs(a)"] = 1, lambda t, a: abs(a)
    for mode in ("floor", "trunc", None):
        cases[f"div-{mode}"] = 2, named("div", rounding_mode=mode)
    cases["add-alpha"] = 2, named("add", alpha=2)
    cases["sub-alpha"] = 2, named("sub", alpha=3)
    cases["rsub-alpha"] = 2, named("rsub", alpha=2)
    cases["add-alpha-half"] = 2, named("add", alpha=0.5)
    cases["round-decimals"] = 1, named("round", decimals=2)
    cases["round-tens"] = 1, named("round", decimals=-1)
    cases["gelu-tanh"] = 1, row("gelu", "tanh")
    cases["gelu_backward-tanh"] = 2, row("gelu_backward", "tanh")
    cases["elu_backward"] = 2, lambda t, g, x: row("elu_backward")(t, g, 1.2, 1.1, 0.9, False, x)
    cases["where"] = 3, lambda t, c, a, b: t.where(c != 0, a, b)
    cases["where-method"] = 2, lambda t, a, b: a.where(a == b, b)
    cases["where-numbers"] = 1, lambda t, a: t.where(a == a, 1, 2.5)
    cases["masked_fill"] = 2, lambda t, a, b: a.masked_fill(b != 0, 1)
    cases["lerp"] = 2, named("lerp", 0.3)
    cases["lerp-tensor"] = 3, named("lerp")
    cases["addcmul"] = 3, named("addcmul", value=2)
    cases["addcdiv"] = 3, named("addcdiv", value=0.5)
    cases["clamp-tensors"] = 3, named("clamp")
    cases["clamp-min-tensor"] = 2, lambda t, a, b: a.clamp(b)
    cases["clamp-max-tensor"] = 2, lambda t, a, b: a.clamp(max=b)
    cases["isclose-wide"] = 2, named("isclose", 0.1, 0.1, True)
    cases["polygamma"] = 1, lambda t, x: t.polygamma(2, x.abs() + 1)
    return cases


CASES = build_cases()

# Known differences, each with its reason.
KNOWN: dict[tuple[str, str], str] = {
    **{(case, name): "PyTorch refuses by the name of maximum or minimum"
       for case in ("fmax", "fmin") for name in ("uint16", "uint32", "uint64")},
    **{("polygamma", name): "PyTorch sums in the half type" for name in ("float16", "bfloat16")},
    ("hardsigmoid_backward", "float64"): "PyTorch's 1/6 is a float32",
}  # fmt: skip


# -- samples ----------------------------------------------------------------------------------------------------------
def sample(oracle: Any, name: str, shape: tuple[int, ...], seed: int, plain: bool = False) -> Any:
    """Values around zero; infinities and NaN among real floats unless `plain`."""
    dtype = getattr(oracle, name)
    generator = oracle.Generator().manual_seed(seed)
    if dtype.is_complex:
        parts = oracle.randn((*shape, 2), dtype=oracle.float64, generator=generator)
        return oracle.view_as_complex(parts).to(dtype)
    if dtype.is_floating_point:
        values = oracle.randn(shape, dtype=oracle.float64, generator=generator) * 2
        flat = values.reshape(-1)
        if not plain and flat.numel() >= 16:
            special = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 7.5, math.nan, math.inf, -math.inf, 100.0, -100.0, 1e-3]
            flat[1 : 1 + len(special)] = oracle.tensor(special, dtype=oracle.float64)
        return values.float().to(dtype)
    if dtype is oracle.bool:
        return oracle.rand(shape, generator=generator) > 0.5
    low = -5 if dtype.is_signed else 0
    return oracle.randint(low, 7, shape, generator=generator).to(dtype)


def outcome(call: Call, library: Any, args: list[Any]) -> tuple[Any, Exception | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(library, *args), None
        except Exception as error:
            return None, error


def first_line(error: Exception) -> str:
    return str(error).split("\n")[0]


def compare(where: str, call: Call, args: list[Any]) -> str | None:
    """What differs from PyTorch, or None."""
    oracle = _oracle.load()
    expected, refusal = outcome(call, oracle, args)
    actual, mine = outcome(call, torch, [_oracle.from_oracle(a) for a in args])
    if refusal is not None:
        if mine is None:
            return f"{where}: accepted, expected {type(refusal).__name__}: {first_line(refusal)}"
        if not isinstance(mine, type(refusal)) or first_line(mine) != first_line(refusal):
            return f"{where}: {mine!r}, expected {refusal!r}"
        return None
    if mine is not None:
        return f"{where}: {mine!r}, expected {expected}"
    name = _oracle.dtype_name(expected.dtype) if isinstance(expected, oracle.Tensor) else ""
    rtol, atol = TOLERANCES.get(name, (0.0, 0.0))
    try:
        _oracle.assert_same(actual, expected, rtol=rtol, atol=atol, where=where)
    except AssertionError as error:
        return str(error)
    return None


def no_differences(found: Iterator[str | None]) -> None:
    differences = [f for f in found if f is not None]
    assert not differences, "\n".join(differences)


# -- values, dtypes, refusals -----------------------------------------------------------------------------------------
@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
def test_every_dtype(case: str) -> None:
    oracle = _oracle.load()
    count, call = CASES[case]

    def run() -> Iterator[str | None]:
        for name in DTYPES:
            if (case, name) not in KNOWN and not out_of_reach(case, name):
                plain = name.startswith(("float8", "complex")) or any(p in case for p in ("gelu", "hardtanh_", "poly"))
                args = [sample(oracle, name, (24,), seed, plain) for seed in range(count)]
                yield compare(f"{case} {name}", call, args)

    no_differences(run())


def out_of_reach(case: str, name: str) -> bool:
    """float8 with a number is refused by PyTorch under the names of yet other kernels."""
    return name.startswith("float8") and any(p in case for p in ("mul", "div", "*2", "2*", "/2", "isclose"))


@pytest.mark.oracle
@pytest.mark.parametrize("case", [c for c, (count, _) in CASES.items() if count > 1 and c not in BACKWARDS])
def test_mixed_dtypes(case: str) -> None:
    oracle = _oracle.load()
    count, call = CASES[case]

    def run() -> Iterator[str | None]:
        for first in MIXED:
            for second in MIXED:
                if first != second and "elu" not in case:
                    args = [sample(oracle, first, (24,), 0, True)]
                    args += [sample(oracle, second, (24,), seed, True) for seed in range(1, count)]
                    yield compare(f"{case} {first} {second}", call, args)

    no_differences(run())


LAYOUTS: dict[str, Callable[[Any, int], Any]] = {
    "transposed": lambda x, i: x.t(),
    "one transposed": lambda x, i: x.t() if i % 2 else x.clone().reshape(6, 4),
    "steps": lambda x, i: x[:, ::2],
    "rows": lambda x, i: x if i == 0 else x[0],
    "rows and columns": lambda x, i: x[:1] if i == 0 else x[:, :1],
    "no dimensions right": lambda x, i: x if i == 0 else x[0, 0],
    "no dimensions": lambda x, i: x[0, 0],
    "empty": lambda x, i: x[:0],
    "expanded": lambda x, i: x[:, :1].expand(4, 6),
    "permuted": lambda x, i: x.reshape(2, 3, 4).permute(2, 0, 1) if i == 0 else x.reshape(4, 2, 3),
    "channels last": lambda x, i: x.reshape(1, 2, 3, 4).permute(0, 2, 3, 1),
    "does not fit": lambda x, i: x.reshape(-1)[:5] if i == 0 else x[:2, :3],
}


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
def test_layouts(case: str) -> None:
    oracle = _oracle.load()
    count, call = CASES[case]

    def run() -> Iterator[str | None]:
        for name in ("float32", "int64"):
            for label, arrange in LAYOUTS.items():
                if label == "does not fit" and (count == 1 or case in BACKWARDS or case == "elu_backward"):
                    continue
                if "gelu_backward" in case and label != "transposed":
                    continue  # PyTorch's own library refuses operands of two layouts
                args = [arrange(sample(oracle, name, (4, 6), seed, True), seed) for seed in range(count)]
                yield compare(f"{case} {name} {label}", call, args)

    no_differences(run())


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize("case", [c for c in CASES if c != "equal"])
def test_meta_says_what_cpu_does(case: str) -> None:
    """The rule is the meta kernel: the same layouts and the same refusals, without data."""
    oracle = _oracle.load()
    count, call = CASES[case]
    for name in ("float32", "int64", "complex64", "bool"):
        args = [sample(oracle, name, (4, 6), seed, True) for seed in range(count)]
        value, refusal = outcome(call, torch, [_oracle.from_oracle(a) for a in args])
        if str(refusal) == "ZeroDivisionError":
            continue  # a matter of data
        meta, refused = outcome(call, torch, [_oracle.as_meta(a) for a in args])
        if refusal is not None:
            assert type(refused) is type(refusal) and str(refused) == str(refusal), f"{case} {name}: {refused!r}"
        else:
            assert refused is None, f"{case} {name}: {refused!r}"
            assert _oracle.layout(meta) == _oracle.layout(value), f"{case} {name}"


# -- derivatives ------------------------------------------------------------------------------------------------------
# The two libraries agree on what has no gradient; these have one that PyTorch computes with a constant of float32.
LOOSE = {"hardsigmoid", "celu", "hardsigmoid_backward"}
# PyTorch differentiates these by other means than a node of their own.
OTHER_NODES = {"silu_backward", "mish_backward", "hardsigmoid_backward"}


def gradient_sample(oracle: Any, case: str, name: str, shape: tuple[int, ...], seed: int) -> Any:
    """Points inside the domain, away from the kinks."""
    x = sample(oracle, name, shape, seed, True)
    if not x.is_complex():
        if any(p in case for p in ("asin", "acos", "atanh", "arcsin", "arccos", "arctanh", "erfinv")):
            x = (x / 10).clamp(-0.9, 0.9) + (2.5 if "cosh" in case else 0.0)
        elif any(p in case for p in ("log", "sqrt", "pow", "gamma", "**")):
            x = x.abs() + 0.3
    return x.requires_grad_()


def differentiable(case: str, name: str) -> tuple[list[Any], Any] | None:
    """Inputs and result of PyTorch where it has a gradient."""
    oracle = _oracle.load()
    count, call = CASES[case]
    args = [gradient_sample(oracle, case, name, shape, seed)
            for seed, shape in enumerate([(3, 4), (4,), (3, 1)][:count])]  # fmt: skip
    if any(p in case for p in BACKWARDS) or case.startswith(("elu_back", "gelu_back")):
        args = [gradient_sample(oracle, case, name, (3, 4), seed) for seed in range(count)]
    result, refusal = outcome(call, oracle, args)
    if refusal is not None or not isinstance(result, oracle.Tensor) or not result.requires_grad:
        return None
    if result.grad_fn is not None and "NotImplemented" in result.grad_fn.name():
        return None
    return args, result


def like(oracle: Any, tensor: Any, seed: int) -> Any:
    return sample(oracle, _oracle.dtype_name(tensor.dtype), tuple(tensor.shape), seed, True)


def close(left: Any, right: Any, rtol: float, atol: float, where: str) -> None:
    # Cloned, since PyTorch's own zero gradients may be without memory.
    _oracle.assert_same(left.detach().clone(), right.detach(), rtol=rtol, atol=atol, where=where, stride=False)


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
def test_derivatives(case: str) -> None:
    """Gradients, then gradients of the gradients."""
    oracle = _oracle.load()
    for name in ("float64", "complex128"):
        found = differentiable(case, name)
        if found is None:
            continue
        args, expected = found
        mine = [_oracle.from_oracle(a) for a in args]
        actual = CASES[case][1](torch, *mine)
        if case not in OTHER_NODES:
            assert type(actual.grad_fn).__name__ == type(expected.grad_fn).__name__, case
        seed = like(oracle, expected, 7).requires_grad_()
        my_seed = _oracle.from_oracle(seed)
        try:
            want = oracle.autograd.grad(expected, args, seed, create_graph=True, allow_unused=True)
        except RuntimeError:
            assert case == "true-pow", case  # PyTorch has no logarithm of True
            continue
        got = torch.autograd.grad(actual, mine, my_seed, create_graph=True, allow_unused=True)
        rtol, atol = (1e-5, 1e-6) if case in LOOSE else (1e-9, 1e-9)
        for left, right in zip(got, want):
            assert (left is None) == (right is None), case
            if right is not None:
                close(left, right, rtol, atol, f"{case} {name}")
        second_derivatives(case, args + [seed], mine + [my_seed], want, got, rtol)


def second_derivatives(case: str, args: list[Any], mine: list[Any], want: Any, got: Any, rtol: float) -> None:
    oracle = _oracle.load()
    pairs = [(w, g) for w, g in zip(want, got) if w is not None and w.requires_grad]
    if not pairs:
        return
    assert all(g.requires_grad for _, g in pairs), case
    seeds = [like(oracle, w, 11 + i) for i, (w, _) in enumerate(pairs)]
    try:
        expected = oracle.autograd.grad([w for w, _ in pairs], args, seeds, allow_unused=True)
    except RuntimeError as error:
        assert "not implemented" in str(error), case
        return
    my_seeds = [_oracle.from_oracle(s) for s in seeds]
    actual = torch.autograd.grad([g for _, g in pairs], mine, my_seeds, allow_unused=True)
    for argument, left, right in zip(args, actual, expected):
        # "No gradient" and "a gradient of zeros" mean the same.
        right = oracle.zeros_like(argument) if right is None else right
        if left is None:
            left = torch.zeros(tuple(argument.shape), dtype=_oracle.dtype_in(torch, argument.dtype))
        close(left, right, max(rtol, 1e-8), max(rtol, 1e-8), f"{case} twice")


# -- in-place forms ---------------------------------------------------------------------------------------------------
INPLACE: dict[str, tuple[Any, ...]] = {
    **{name + "_": () for name in (
        "neg abs absolute sign sgn reciprocal sqrt rsqrt square exp exp2 expm1 log log2 log10 log1p sin cos tan asin "
        "acos atan sinh cosh tanh arcsin ceil floor round trunc fix frac sigmoid erf erfc erfinv lgamma digamma sinc "
        "nan_to_num deg2rad rad2deg relu logical_not negative conj_physical").split()},
    **{name + "_": (0.25,) for name in (
        "add sub mul div true_divide multiply subtract divide remainder fmod pow xlogy copysign eq ne lt le gt ge "
        "greater clamp_min clamp_max").split()},
    "clamp_": (0.3, 0.6), "clip_": (None, 0.5),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", INPLACE)
def test_inplace_forms(name: str) -> None:
    """Value, history and version of an in-place call on a non-leaf, and the same through a view."""
    oracle = _oracle.load()
    start = oracle.rand((3, 4), dtype=oracle.float64, generator=oracle.Generator().manual_seed(3)) * 0.8 + 0.1

    def run(t: Any, leaf: Any, through_view: bool) -> tuple[Any, Any, int]:
        base = leaf * 1
        target = base[1:] if through_view else base
        version = base._version
        result = getattr(target, name)(*INPLACE[name])
        assert result is target
        (base * base).sum().backward()
        return base.detach(), leaf.grad, base._version - version

    for through_view in (False, True):
        leaf = start.clone().requires_grad_()
        mine = _oracle.from_oracle(start, requires_grad=True)
        value, grad, bumps = run(oracle, leaf, through_view)
        my_value, my_grad, my_bumps = run(torch, mine, through_view)
        close(my_value, value, 1e-9, 1e-9, name)
        close(my_grad, grad, 1e-8, 1e-8, name)
        assert my_bumps == bumps == 1, name


def test_inplace_refuses_another_dtype() -> None:
    x = torch.tensor([1, 2])
    for call in (lambda: x.div_(2), lambda: x.add_(0.5), lambda: x.sqrt_(), lambda: x.mul_(1.5)):
        with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
            call()
    assert x.tolist() == [1, 2] and x._version == 0
    with pytest.raises(RuntimeError, match="In-place abs is not supported for complex tensors."):
        torch.tensor([1j]).abs_()


# -- without PyTorch --------------------------------------------------------------------------------------------------
def test_arithmetic_by_hand() -> None:
    x = torch.tensor([1.0, -2.0, 4.0])
    assert (x + 1).tolist() == [2.0, -1.0, 5.0]
    assert (1 - x).tolist() == [0.0, 3.0, -3.0]
    assert (2 / x).tolist() == [2.0, -1.0, 0.5]
    assert (x // 3).tolist() == [0.0, -1.0, 1.0]
    assert (x % 3).tolist() == [1.0, 1.0, 1.0]
    assert torch.fmod(x, 3).tolist() == [1.0, -2.0, 1.0]
    assert (2**x).tolist() == [2.0, 0.25, 16.0]
    assert torch.add(x, x, alpha=2).tolist() == [3.0, -6.0, 12.0]
    assert torch.rsub(x, 1, alpha=2).tolist() == [-1.0, 5.0, -7.0]
    assert torch.add(2, 3).tolist() == 5
    assert torch.div(x, 3, rounding_mode="trunc").tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("name", "reference"),
    [("exp", math.exp), ("log1p", math.log1p), ("sin", math.sin), ("tanh", math.tanh), ("erf", math.erf),
     ("sqrt", math.sqrt), ("lgamma", math.lgamma), ("sigmoid", lambda v: 1 / (1 + math.exp(-v)))],
)  # fmt: skip
def test_functions_by_hand(name: str, reference: Callable[[float], float]) -> None:
    values = [0.1, 0.5, 1.0, 2.5]
    got = getattr(torch, name)(torch.tensor(values, dtype=torch.float64)).tolist()
    assert got == pytest.approx([reference(v) for v in values], rel=1e-12)
    assert getattr(torch, name)(torch.tensor([1, 2])).dtype is torch.get_default_dtype()


def test_promotion() -> None:
    i, x, b = torch.tensor([1, 2]), torch.tensor([1.5, 2.5]), torch.tensor([True, False])
    assert (i + 1.5).dtype is torch.float32 and (i + x).dtype is torch.float32
    assert (x.half() + 1).dtype is torch.float16 and (x.half() + x).dtype is torch.float32
    assert (i / i).dtype is torch.float32 and (b + b).dtype is torch.bool and (b + 1).dtype is torch.int64
    assert (x + torch.tensor(1.0, dtype=torch.float64)).dtype is torch.float32
    assert (i == 1.5).dtype is torch.bool
    assert torch.where(b, 1, 2).dtype is torch.int64 and torch.where(b, x, 1).dtype is torch.float32


def test_selection_by_hand() -> None:
    x, mask = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, True])
    assert torch.where(mask, x, -x).tolist() == [1.0, -2.0, 3.0]
    assert x.where(mask, 0).tolist() == [1.0, 0.0, 3.0]
    assert torch.where(mask)[0].tolist() == [0, 2]
    assert x.masked_fill(mask, 9).tolist() == [9.0, 2.0, 9.0]
    assert x.clamp(1.5, 2.5).tolist() == [1.5, 2.0, 2.5]
    with pytest.raises(RuntimeError, match="where expected condition to be a boolean tensor"):
        torch.where(x, x, x)
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max' must not be None"):
        x.clamp()


def test_relu_saves_its_result() -> None:
    x = torch.tensor([-1.0, 2.0], requires_grad=True) * 1
    y = x.relu()
    x.add_(1)
    y.sum().backward()
    y = (torch.tensor([-1.0, 2.0], requires_grad=True) * 1).relu()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_aliases_are_the_operators_they_name() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert type((x * 2).grad_fn) is type(torch.multiply(x, 2).grad_fn)
    assert type(torch.absolute(x).grad_fn).__name__ == "AbsBackward0"
    out = torch.empty(2)
    assert torch.multiply(x.detach(), 3, out=out) is out and out.tolist() == [3.0, 6.0]
    assert x.detach().multiply_(2).tolist() == [2.0, 4.0]


def test_numpy_scalars_count_as_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    x = torch.ones(2)
    assert torch.add(x, numpy.float32(2)).tolist() == [3.0, 3.0]
    assert (x * numpy.int64(3)).dtype is torch.float32
    assert torch.mul(torch.tensor([1, 2]), numpy.int64(3)).dtype is torch.int64


@mindtorch_only
def test_aliases_and_composites_under_functionalize() -> None:
    base = torch.arange(4.0)
    view = base.view(2, 2)
    registry = submodule("_dispatch.registry")
    with torch.functionalize():
        for n, call in enumerate((
            lambda: view.multiply_(2), lambda: view.clip_(0, 5), lambda: view.conj_physical_(),
            lambda: registry.get("relu6_").call((view,)), lambda: registry.get("leaky_relu_").call((view, 0.1)),
            lambda: view.greater_(1),
        )):  # fmt: skip
            call()
            assert base._version == n + 1
    assert base.tolist() == [0.0, 1.0, 1.0, 1.0]


def test_conj_of_real_tensors_is_the_tensor() -> None:
    x = torch.tensor([1.0, 2.0])
    assert x.conj() is x and x.conj_physical() is x and x.positive() is x
    z = torch.tensor([1 + 2j])
    assert z.conj().tolist() == [1 - 2j] and z.conj().conj().tolist() == [1 + 2j]


def test_no_derivative_is_said() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
        (x // 2).sum().backward()


def test_strides_of_dimensions_of_size_one_are_not_copied() -> None:
    odd = torch.zeros(6).as_strided((1, 2, 3), (3, 3, 1))
    assert odd.exp().stride() == (6, 3, 1) and (odd + odd).stride() == (6, 3, 1)
    assert odd.clone().stride() == (3, 3, 1)


def test_half_precision_numbers_are_not_rounded_before_use() -> None:
    # Rounded first, 3.1375 would be 3.1367 and 0.4 would be 0.3999: results of 3136 and 2044.
    zero, one, thousand, end = (torch.tensor([v], dtype=torch.float16) for v in (0.0, 1.0, 1000.0, 5112.0))
    assert torch.addcmul(zero, one, thousand, value=3.1375).item() == 3138.0
    assert torch.lerp(zero, end, 0.4).item() == 2045.0


@mindtorch_only
def test_every_refusing_row_has_a_case() -> None:
    registry = submodule("_dispatch.registry")
    words = {w for case in CASES for w in case.replace("-", " ").split()} | {"lshift", "rshift", "_abs_real"}
    words |= {"_log_sigmoid_backward"}
    rows = [op.title() for op in registry.ops() if type(op.rule).__module__.endswith("rules.accept")]
    rows = [name for name in rows if name not in REFUSERS]
    missing = sorted({name for name in rows if name not in words})
    assert not missing, f"rows without a case: {missing}"


# -- rows of the tables that are loaded late --------------------------------------------------------------------------
# Their values are compared over PyTorch's own samples; here is which dtypes they take and how they refuse the others.
REFUSERS: dict[str, tuple[Any, ...]] = {
    "gcd": (),
    "lcm": (),
    "i0": (),
    "igamma": (),
    "igammac": (),
    "logit": (),
    "nextafter": (),
    "hardshrink": (0.5,),
    "softshrink": (0.5,),
    "hardshrink_backward": (0.5,),
    "softshrink_backward": (0.5,),
    "_prelu_kernel": (),
    **{
        f"special_{name}": ()
        for name in (
            "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u "
            "chebyshev_polynomial_v chebyshev_polynomial_w entr erfcx hermite_polynomial_h hermite_polynomial_he i0e "
            "i1 i1e laguerre_polynomial_l legendre_polynomial_p log_ndtr modified_bessel_i0 modified_bessel_i1 "
            "modified_bessel_k0 modified_bessel_k1 ndtri scaled_modified_bessel_k0 scaled_modified_bessel_k1 "
            "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
            "shifted_chebyshev_polynomial_w spherical_bessel_j0 xlog1py zeta"
        ).split()
    },
}
OF_TWO = ("gcd", "lcm", "igamma", "nextafter", "backward", "prelu", "polynomial", "xlog1py", "zeta")


@pytest.mark.oracle
@pytest.mark.parametrize("name", REFUSERS)
def test_dtypes_of_late_rows(name: str) -> None:
    oracle = _oracle.load()
    if torch is not oracle:
        submodule("_api.lazy_tables").load_all()
    count = 2 if any(word in name for word in OF_TWO) else 1
    call = row(name, *REFUSERS[name])

    def outcome(t: Any, dtype: str) -> str:
        try:
            return str(call(t, *[t.ones(3, dtype=getattr(t, dtype)) for _ in range(count)]).dtype)
        except (RuntimeError, NotImplementedError) as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"

    for dtype in ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64"):
        assert outcome(torch, dtype) == outcome(oracle, dtype), dtype


@pytest.mark.parametrize("decimals", [309, -309, 2**32, 2**63 - 1, -(2**63)])
def test_rounding_to_a_place_that_no_float_has_gives_nan_at_once(decimals: int) -> None:
    assert torch.round(torch.tensor([1.5, 0.0], dtype=torch.float64), decimals=decimals).isnan().all()
    assert torch.round(torch.empty(0), decimals=decimals).shape == (0,)


def test_frequencies_of_no_samples_and_of_none_apart() -> None:
    assert torch.fft.fftfreq(0).shape == (0,)
    assert torch.fft.rfftfreq(0).isnan().tolist() == [True]
    assert torch.fft.fftfreq(3, d=0.0).tolist()[1:] == [float("inf"), float("-inf")]
    assert torch.fft.rfftfreq(-3).shape == (0,)
