"""Native pointwise operators and reductions, each with every dtype, against PyTorch.

Invariant: expected values come from NumPy, or from PyTorch in the tests that take the `oracle` fixture; no tensor of
the library is involved.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest

from ._raw import BINARY, CODES, F32, NUMBER, SPECIAL, UNARY, _native

# ---------------------------------------------------------------- parity with PyTorch


def torch_storage(tensor: Any) -> Any:
    nbytes = tensor.numel() * tensor.element_size()
    return _native.Storage.wrap(tensor.data_ptr(), nbytes, tensor) if nbytes else _native.Storage(0)


def torch_code(tensor: Any) -> int:
    return CODES[str(tensor.dtype).removeprefix("torch.")]


def as_torch(torch: Any, storage: Any, dtype: Any, size: int) -> Any:
    result = torch.empty(size, dtype=dtype)
    if storage.nbytes:
        byte = CODES["uint8"]
        _native.copy(torch_storage(result), 0, (1,), byte, storage, 0, (1,), byte, (storage.nbytes,))
    return result


def all_dtypes(torch: Any) -> list[Any]:
    return [getattr(torch, name) for name in CODES]


def torch_data(torch: Any, dtype: Any, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    count = 600
    if dtype == torch.bool:
        return torch.randint(0, 2, (count,), generator=generator).bool()
    if dtype.is_complex:
        return torch.randn(count, generator=generator, dtype=torch.complex128).to(dtype) * 2
    if dtype.is_floating_point:
        wide = {"generator": generator, "dtype": torch.float64}
        parts = [torch.tensor(SPECIAL, dtype=torch.float64), torch.randn(count, **wide) * 3, torch.rand(count, **wide)]
        return torch.cat(parts).to(dtype)
    info = torch.iinfo(dtype)
    if str(dtype) in ("torch.uint16", "torch.uint32", "torch.uint64"):
        return torch.randint(0, 200, (count,), generator=generator).to(dtype)
    small = torch.randint(max(info.min, -20), 20, (count,), generator=generator)
    return torch.cat([torch.tensor([info.min, info.max, 0, 1]), small]).to(dtype)


TOLERANCE = {"float16": (2e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (2e-6, 1e-6), "float64": (1e-12, 1e-12),
             "complex64": (1e-5, 1e-5), "complex128": (1e-11, 1e-11)}  # fmt: skip


def assert_matches(torch: Any, where: str, mine: Any, reference: Any, slack: float = 1.0) -> None:
    name = str(reference.dtype).removeprefix("torch.")
    if name in TOLERANCE:
        rtol, atol = (slack * tolerance for tolerance in TOLERANCE[name])
        torch.testing.assert_close(mine, reference, rtol=rtol, atol=atol, equal_nan=True, msg=lambda m: f"{where}: {m}")
    elif name.startswith("float8"):
        torch.testing.assert_close(mine.float(), reference.float(), rtol=0, atol=0, equal_nan=True)
    else:
        assert mine.tolist() == reference.tolist(), where


def compute_dtype(torch: Any, operand: Any, reference: Any) -> Any:
    if reference.dtype == torch.bool or operand.dtype.is_complex:
        return operand.dtype
    return reference.dtype


# Kernels that take parameters beside the operands: test_activations.py compares them, and parity/ their rows.
WITH_PARAMETERS = frozenset(
    "ELU HARDSHRINK HARDSIGMOID HARDSWISH HARDTANH HUBER LEAKY_RELU LOG_SIGMOID MISH NAN_TO_NUM SHRINK SMOOTH_L1 "
    "SOFTPLUS SOFTSHRINK THRESHOLD".split()
)
# Kernels of special.cpp, which see float32 and float64 alone, and LDEXP, whose second operand is an integer: their
# operators are compared with many digits in test_special.py, where PyTorch's own error is larger than these tolerances
# (Bessel functions 1e-7), and with PyTorch in parity/.
SPECIAL_FUNCTIONS = frozenset(
    "BESSEL_J0 BESSEL_J1 BESSEL_Y0 BESSEL_Y1 ENTR ERFCX LDEXP LOGIT LOG_NDTR NDTRI POLYGAMMA SPHERICAL_BESSEL_J0 "
    "XLOG1PY ZETA".split()
)


def compared_elsewhere(op: str) -> bool:
    return op in SPECIAL_FUNCTIONS or "_POLYNOMIAL_" in op or op.partition("_BACKWARD")[0] in WITH_PARAMETERS


# Kernels that PyTorch has under another name than their own.
ORACLE_UNARY = {"CONJ": "conj_physical", "REAL_ABS": "abs"}
# PyTorch overflows before the result does (sinh 89), or gives NaN for gelu(inf): there the C library is right.
UNARY_LIMIT = {"SINH": 85.0, "COSH": 85.0, "GELU": 1e30, "GELU_TANH": 1e6}


@pytest.mark.parametrize("op", [op for op in UNARY if not compared_elsewhere(op)])
def test_unary_parity(op: str, oracle: Any) -> None:
    functional = oracle.nn.functional
    own = {"gelu": functional.gelu, "silu": functional.silu,
           "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh")}  # fmt: skip
    name = ORACLE_UNARY.get(op, op.lower())
    function = own.get(name) or getattr(oracle, name)
    compared = 0
    for dtype in all_dtypes(oracle):
        a = torch_data(oracle, dtype)
        if op in UNARY_LIMIT and not dtype.is_complex and dtype != oracle.bool:
            a = a[a.double().abs().nan_to_num() < UNARY_LIMIT[op]]
        try:
            reference = function(a)
        except (RuntimeError, NotImplementedError, TypeError):
            continue  # PyTorch has no such combination
        compute = compute_dtype(oracle, a, reference)
        size = a.numel()
        out = (None, 0, (1,), torch_code(reference))
        ccode = CODES[str(compute).removeprefix("torch.")]
        result = _native.unary(getattr(_native, op), torch_storage(a), 0, (1,), torch_code(a), *out, (size,), ccode)
        mine = as_torch(oracle, result, reference.dtype, size)
        # PyTorch's erfinv loses digits next to 1.
        assert_matches(oracle, f"{op} {dtype}", mine, reference, slack=10 if op == "ERFINV" else 1)
        compared += 1
    assert compared >= 2


# Kernels that PyTorch has under another name than their own, or as a case of another.
ORACLE_BINARY: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "FLOOR_DIV": lambda t: lambda a, b: t.div(a, b, rounding_mode="floor"),
    "TRUNC_DIV": lambda t: lambda a, b: t.div(a, b, rounding_mode="trunc"),
    "LSHIFT": lambda t: t.bitwise_left_shift,
    "RSHIFT": lambda t: t.bitwise_right_shift,
    "PRELU": lambda t: t.ops.aten._prelu_kernel,
    "GELU_TANH_BACKWARD": lambda t: lambda g, x: t.ops.aten.gelu_backward(g, x, approximate="tanh"),
    "ENTROPY": lambda t: lambda x, y: t.nn.functional.binary_cross_entropy(x, y, reduction="none"),
    "ENTROPY_OF_LOGITS": lambda t: (
        lambda x, y: t.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none")
    ),
}


# Types for which a row does not come to its kernel, or PyTorch has none and rounds between its parts.
DECOMPOSED = {
    "LOGADDEXP": ("complex64", "complex128"),
    "NEXTAFTER": ("float16", "bfloat16"),
    "ENTROPY_OF_LOGITS": ("float16", "bfloat16"),
}


def oracle_binary(torch: Any, op: str) -> Callable[..., Any]:
    if op in ORACLE_BINARY:
        return ORACLE_BINARY[op](torch)
    found: Callable[..., Any] = getattr(torch.ops.aten if op.endswith("_BACKWARD") else torch, op.lower())
    return found


def binary_pairs(torch: Any, op: str, dtype: Any) -> tuple[Any, Any]:
    a, b = torch_data(torch, dtype), torch_data(torch, dtype, seed=1)
    if dtype.is_floating_point and op.endswith("_BACKWARD"):
        calm = torch.Generator().manual_seed(3)
        a, b = (torch.randn(2000, generator=calm, dtype=torch.float64).to(dtype) for _ in range(2))
    elif dtype.is_floating_point and op.startswith("ENTROPY"):  # of probabilities, or of logits and a probability
        share = torch.linspace(0, 1, 2001, dtype=torch.float64)
        a, b = (share if op == "ENTROPY" else (share - 0.5) * 200).to(dtype), (1 - share).square().to(dtype)
    elif dtype.is_floating_point:
        special = torch.tensor(SPECIAL, dtype=torch.float64).to(dtype)
        a = torch.cat([a, special.repeat_interleave(len(SPECIAL))])
        b = torch.cat([b, special.repeat(len(SPECIAL))])
        if op in ("FMOD", "REMAINDER"):  # PyTorch gives NaN where the quotient is too large for its formula
            quotient = (a.double() / b.double()).abs()
            keep = ~(quotient > 1e6) | (b == 0)
            a, b = a[keep], b[keep]
    elif op in ("FLOOR_DIV", "TRUNC_DIV", "REMAINDER", "FMOD") and not dtype.is_complex:
        b = b.to(torch.int64)
        b = torch.where(b == 0, 1, b).to(dtype)
    return a, b


@pytest.mark.parametrize("op", [op for op in BINARY if not compared_elsewhere(op)])
def test_binary_parity(op: str, oracle: Any) -> None:
    function = oracle_binary(oracle, op)
    compared = 0
    for dtype in all_dtypes(oracle):
        if str(dtype).removeprefix("torch.") in DECOMPOSED.get(op, ()):
            continue
        a, b = binary_pairs(oracle, op, dtype)
        try:
            reference = function(a, b)
        except (RuntimeError, NotImplementedError, TypeError):
            continue
        compute = compute_dtype(oracle, a, reference)
        size = a.numel()
        ccode = CODES[str(compute).removeprefix("torch.")]
        operands = (torch_storage(a), 0, (1,), torch_code(a), torch_storage(b), 0, (1,), torch_code(b))
        out = (None, 0, (1,), torch_code(reference))
        result = _native.binary(getattr(_native, op), *operands, *out, (size,), ccode, 1)
        assert_matches(oracle, f"{op} {dtype}", as_torch(oracle, result, reference.dtype, size), reference)
        compared += 1
    assert compared >= 2


@pytest.mark.parametrize(
    "op", ["ADD", "SUB", "MUL", "DIV", "POW", "EQ", "LT", "GE", "MAXIMUM", "REMAINDER", "FLOOR_DIV"]
)
def test_scalar_operand_parity(op: str, oracle: Any) -> None:
    methods = {"ADD": "add", "SUB": "sub", "MUL": "mul", "DIV": "div", "POW": "pow", "EQ": "eq", "LT": "lt", "GE": "ge",
               "MAXIMUM": "clamp_min", "REMAINDER": "remainder"}  # fmt: skip
    for dtype, number in itertools.product(
        (oracle.float16, oracle.bfloat16, oracle.float32, oracle.float64), (0.1, 3, 0.5, 2, -1.0, -3.0)
    ):
        a = torch_data(oracle, dtype)
        a = a[a.double().abs().nan_to_num() < 1e4]
        if op == "FLOOR_DIV":
            reference = a.div(number, rounding_mode="floor")
        else:
            reference = getattr(a, methods[op])(number)
        size, code = a.numel(), torch_code(a)
        out = (None, 0, (1,), torch_code(reference))
        operands = (torch_storage(a), 0, (1,), code, number, *NUMBER)
        result = _native.binary(getattr(_native, op), *operands, *out, (size,), code, 1)
        assert_matches(oracle, f"{op} {dtype} {number}", as_torch(oracle, result, reference.dtype, size), reference)


def test_cast_parity(oracle: Any) -> None:
    for source, target in itertools.product(all_dtypes(oracle), all_dtypes(oracle)):
        a = torch_data(oracle, source)
        whole = not (target.is_floating_point or target.is_complex or target == oracle.bool)
        if whole and source.is_complex:
            a = a.abs().to(source)
        elif whole and source.is_floating_point:  # out of range is undefined in PyTorch, too
            info = oracle.iinfo(target)
            low, high = max(info.min, -(2**31)), min(info.max, 2**31 - 1)
            exact = a.to(oracle.float64)
            a = a[(exact > low) & (exact < high)]
        reference = a.to(target)
        result = _native.Storage(reference.numel() * reference.element_size())
        name = str(target).removeprefix("torch.")
        _native.copy(result, 0, (1,), CODES[name], torch_storage(a), 0, (1,), torch_code(a), (a.numel(),))
        mine = as_torch(oracle, result, target, a.numel())
        if target.is_floating_point or target.is_complex:
            wide = oracle.complex128 if target.is_complex else oracle.float64
            assert oracle.equal(mine.to(wide).nan_to_num(12345), reference.to(wide).nan_to_num(12345)), (source, target)
        else:
            assert mine.tolist() == reference.tolist(), (source, target)


def test_reduction_parity(oracle: Any) -> None:
    generator = oracle.Generator().manual_seed(0)
    a = oracle.randn((50, 60, 7), generator=generator)
    a[3, 4, 5] = math.nan
    a[7, 1] = math.inf
    storage, strides, shape = torch_storage(a), (420, 7, 1), (50, 60, 7)
    for dim, kept in ((0, (0, 7, 1)), (1, (7, 0, 1)), (2, (60, 1, 0))):
        size = a.numel() // shape[dim]
        for op, function in (("SUM", a.sum), ("MEAN", a.mean), ("PROD", a.prod), ("AMAX", a.amax), ("AMIN", a.amin),
                             ("ARGMAX", a.argmax), ("ARGMIN", a.argmin), ("ANY", a.any), ("ALL", a.all)):  # fmt: skip
            reference = function(dim).flatten()
            out = (None, 0, kept, torch_code(reference))
            result = _native.reduce(getattr(_native, op), storage, 0, strides, F32, *out, shape, F32, size)
            mine = as_torch(oracle, result, reference.dtype, size)
            assert_matches(oracle, f"{op} {dim}", mine, reference, slack=10)  # sums cancel
