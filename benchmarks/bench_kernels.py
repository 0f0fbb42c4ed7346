"""How fast kernels are: PyTorch and mindtorch_v2 compute the same lines in one process, in turns.

    make bench                                   the table, after that of the calls
    bench_kernels.py --only "norm|softmax"       only lines whose name a pattern finds
    bench_kernels.py --threads 2 --json FILE     with two threads, and the figures written to a file
    bench_kernels.py --check                     fails when a promise below is not kept

Invariant: a line is written once, as code over a module called `t`, and both libraries get the same numbers. Batches of
the two alternate and each one's best counts; with one thread a call's time is what its thread ran, so that what else
the machine does is left out. Results of the two are compared before they are timed. Ratios are
PyTorch's time over ours: above 1, ours is faster.
"""

from __future__ import annotations

import argparse
import importlib
import math
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from bench_calls import Call, Line, Result, write_json

# The promises that --check holds the library to: the mean, the share of lines of at least 1.0, and the worst line.
LEAST_MEAN, LEAST_SHARE, LEAST_LINE = 1.4, 0.7, 0.35

Code = Callable[..., Any]
HALVES = ("bfloat16", "float16")


def values(t: Any, shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> Any:
    """The same numbers in both libraries: a wave in float64, cast."""
    count = math.prod(shape)
    wave = (t.arange(count, dtype=t.float64) * 0.618 + seed).sin() * 2
    return wave.reshape(shape).to(getattr(t, dtype))


def line(name: str, code: Code, *shapes: tuple[int, ...], dtype: str = "float32", grad: bool = False) -> Line:
    """`code(t, *operands)` over operands of these shapes; with `grad`, backward of the result's sum as well."""

    def make(t: Any) -> Call:
        operands = [values(t, shape, dtype, k) for k, shape in enumerate(shapes)]
        if not grad:
            return lambda: code(t, *operands)
        for operand in operands:
            operand.requires_grad_()
        seed = values(t, tuple(code(t, *operands).shape), dtype, len(shapes))
        return lambda: t.autograd.grad(code(t, *operands), operands, seed)

    return name, make


def transposed(code: Code) -> Code:
    return lambda t, a, *rest: code(t, a.transpose(-1, -2), *rest)


def function(name: str, **options: Any) -> Code:
    return lambda t, *operands: getattr(t.nn.functional, name)(*operands, **options)


def operator(name: str, *args: Any, **options: Any) -> Code:
    return lambda t, *operands: getattr(t, name)(*operands, *args, **options)


def pointwise() -> Iterator[Line]:
    square = (1000, 1000)
    for name in ("exp", "log1p", "sqrt", "rsqrt", "tanh", "sin", "erf", "abs", "neg", "reciprocal", "sigmoid", "floor"):
        yield line(f"{name} 1e6", operator(name), square)
    for name in ("relu", "gelu", "silu", "elu", "leaky_relu", "hardswish", "softplus", "mish", "hardsigmoid", "selu",
                 "logsigmoid", "relu6", "hardtanh", "celu", "softsign", "tanhshrink"):  # fmt: skip
        yield line(f"{name} 1e6", function(name), square)
    for name in ("gelu", "silu", "hardswish", "elu", "leaky_relu", "softplus"):
        yield line(f"{name} 1e6, backward", function(name), square, grad=True)
    yield line("gelu tanh 1e6", function("gelu", approximate="tanh"), square)
    for name in ("erfc", "log2", "exp2"):
        yield line(f"{name} 1e6", operator(name), square)
    for name in ("erf", "erfc", "exp", "log10"):
        yield line(f"{name} float64", operator(name), square, dtype="float64")
    for name in ("lgamma", "digamma", "i0", "special.i0e", "special.i1e", "special.modified_bessel_k0"):
        positive = lambda t, a, name=name: attrgetter(name)(t)(a.abs() + 0.1)  # noqa: E731
        yield line(f"{name} 1e5", positive, (100_000,))
    yield line("erfinv", lambda t, a: (a * 0.49).erfinv(), square)
    yield line("logaddexp 1e6", operator("logaddexp"), square, square)
    yield line("threshold 1e6", function("threshold", threshold=0.1, value=2.0), square)
    yield line("nan_to_num 1e6", operator("nan_to_num"), square)
    yield line("prelu 1e6", function("prelu"), square, (1,))
    for name in ("smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits"):
        yield line(name, function(name), square, square)
    yield line("add, the same for rows of 100", operator("add"), (64, 100, 100), (64, 1, 100))
    gate = lambda t, a, b: a.contiguous(memory_format=t.channels_last) * b[:, :, :1, :1]  # noqa: E731
    yield line("mul channels last, a gate of each channel", gate, (4, 64, 56, 56), (4, 64, 56, 56))
    yield line("mul bfloat16, a column", operator("mul"), square, (1000, 1), dtype="bfloat16")
    for dtype in ("int64", "float64", "bfloat16"):
        yield line(f"add {dtype}, one transposed", transposed(operator("add")), square, square, dtype=dtype)
        yield line(f"mul {dtype} of every second", lambda t, a, b: a[:, ::2] * b[:, ::2], square, square, dtype=dtype)
        yield line(f"add {dtype}, a row", operator("add"), square, (1000,), dtype=dtype)
    for count in (100_000, 1_000_000, 10_000_000):
        yield line(f"add {count:.0e}", operator("add"), (count,), (count,))
    for name in ("mul", "div", "maximum", "atan2", "pow"):
        yield line(f"{name} 1e6", operator(name), square, square)
    for name in ("fmod", "remainder", "hypot", "atan2"):
        yield line(f"{name} float64", operator(name), square, square, dtype="float64")
    for name in ("atan", "sinh", "tan", "log1p"):
        yield line(f"{name} float64", operator(name), square, dtype="float64")
    for name in ("asin", "acos", "atanh"):
        yield line(f"{name} float64", lambda t, a, name=name: getattr(t, name)(a * 0.4), square, dtype="float64")
    yield line("pow 2.5 float64", lambda t, a: a.abs().pow(2.5), square, dtype="float64")
    for name in ("angle", "abs", "exp", "reciprocal"):
        yield line(f"{name} complex64", lambda t, a, b, name=name: getattr(t, name)(t.complex(a, b)), square, square)
    yield line("add a row", operator("add"), square, (1000,))
    yield line("add a column", operator("add"), square, (1000, 1))
    yield line("add, one transposed", transposed(operator("add")), square, square)
    yield line("exp of every second", lambda t, a: a[:, ::2].exp(), square)
    yield line("add of every second", lambda t, a, b: a[:, ::2] + b[:, ::2], square, square)
    yield line("clamp", lambda t, a: a.clamp(-1, 1), square)
    yield line("pow 2.5", lambda t, a: a.abs().pow(2.5), square)
    yield line("where", lambda t, a, b: t.where(a > b, a, b), square, square)
    yield line("masked_fill", lambda t, a: a.masked_fill(a > 0, 0.0), square)
    yield line("addcmul", lambda t, a, b: t.addcmul(a, a, b), square, square)
    yield line("lerp", lambda t, a, b: t.lerp(a, b, 0.3), square, square)
    yield line("bool and", lambda t, a, b: (a > 0) & (b > 0), square, square)
    for dtype in (*HALVES, "float64", "int64", "uint8", "complex64"):
        yield line(f"add {dtype}", operator("add"), square, square, dtype=dtype)
        yield line(f"mul {dtype}", operator("mul"), square, square, dtype=dtype)
    for dtype in HALVES:
        yield line(f"lerp {dtype}", lambda t, a, b: t.lerp(a, b, 0.3), square, square, dtype=dtype)
        yield line(f"addcmul {dtype}", lambda t, a, b: t.addcmul(a, a, b, value=0.5), square, square, dtype=dtype)
        yield line(f"pow 2 {dtype}", operator("pow", 2), square, dtype=dtype)
        yield line(f"clamp {dtype}", operator("clamp", -1, 1), square, dtype=dtype)
        yield line(f"gelu {dtype}", function("gelu"), square, dtype=dtype)
        yield line(f"to {dtype}", lambda t, a, dtype=dtype: a.to(getattr(t, dtype)), square)
        yield line(f"from {dtype}", lambda t, a: a.float(), square, dtype=dtype)


def reductions() -> Iterator[Line]:
    square = (1000, 1000)
    for name in ("sum", "mean", "amax", "argmax", "var", "prod", "cumsum", "logsumexp", "norm"):
        for dim in (0, 1):
            code = (lambda t, a, d=dim: t.norm(a, dim=d)) if name == "norm" else operator(name, dim)
            yield line(f"{name} over dim {dim}", code, square)
    for name in ("sum", "mean", "norm", "std", "max", "argmin"):
        yield line(f"{name} of all", operator(name), square)
    for rows, width in ((10_000, 16), (10_000, 64), (100, 10_000)):
        yield line(f"sum of {rows} rows of {width}", operator("sum", 1), (rows, width))
        yield line(f"mean of {rows} rows of {width}", operator("mean", 1), (rows, width))
    for width in (10, 32):
        for dtype in ("float32", "bfloat16", "int8"):
            yield line(f"amax of rows of {width} {dtype}", operator("amax", 1), (30_000, width), dtype=dtype)
    yield line("histogramdd", lambda t, a: t.histogramdd(a, [20, 20])[0], (50_000, 2))
    yield line("cumprod, backward", operator("cumprod", 1), (300, 300), grad=True)
    yield line("norm p=1", lambda t, a: t.norm(a, 1), square)
    yield line("norm p=3 rows", lambda t, a: t.linalg.vector_norm(a, 3, 1), square)
    yield line("norm inf rows", lambda t, a: t.linalg.vector_norm(a, math.inf, 1), square)
    yield line("sum over middle", operator("sum", 1), (100, 100, 100))
    for dtype in HALVES:
        for dim in (0, 1):
            yield line(f"sum over dim {dim} {dtype}", operator("sum", dim), square, dtype=dtype)
        yield line(f"sum of all {dtype}", operator("sum"), square, dtype=dtype)
    yield line("nansum over dim 0", operator("nansum", 0), square)
    yield line("nansum of all", operator("nansum"), square)
    yield line("sum int64", operator("sum", 1), square, dtype="int64")
    yield line("sum transposed", transposed(operator("sum", 1)), square)
    yield line("bincount", lambda t, a: t.bincount((a.abs() * 500).long()), (1_000_000,))
    yield line("sort rows", operator("sort", 1), (100, 1000))
    yield line("topk rows", operator("topk", 10, 1), (100, 1000))
    yield line("unique", lambda t, a: t.unique((a * 100).long()), (100_000,))
    yield line("unique_consecutive", lambda t, a: t.unique_consecutive(a.long()), (1_000_000,))
    yield line("isin", lambda t, a: t.isin((a * 500).long(), t.arange(100)), (100_000,))
    yield line("searchsorted", lambda t, a: t.searchsorted(t.arange(1000.0) * 0.004 - 2, a), (1_000_000,))
    yield line("bucketize", lambda t, a: t.bucketize(a, t.arange(10.0) * 0.4 - 2), (1_000_000,))
    yield line("histc", operator("histc", 100), (1_000_000,))
    yield line("mode rows", lambda t, a: t.mode((a * 10).long(), 1), (1000, 100))
    yield line("any over dim 1", lambda t, a: (a > 1.9).any(1), square)
    for dtype in ("int8", "int16"):
        yield line(f"sum over dim 1 {dtype}", operator("sum", 1), square, dtype=dtype)
        yield line(f"amax over dim 0 {dtype}", operator("amax", 0), square, dtype=dtype)
    yield line("max and its place of rows of 50", operator("max", 1), (20_000, 50))
    for dtype in ("float32", "float64", "int64", "bfloat16"):
        yield line(f"kthvalue of rows {dtype}", operator("kthvalue", 50, 1), (1000, 100), dtype=dtype)
        yield line(f"median over dim 0 {dtype}", operator("median", 0), (100, 1000), dtype=dtype)
        yield line(f"topk 100 {dtype}", operator("topk", 100), (100, 1000), dtype=dtype)
    yield line("median 1e6", operator("median"), (1_000_000,))
    yield line("mode rows bfloat16", operator("mode", 1), (1000, 100), dtype="bfloat16")


def norms() -> Iterator[Line]:
    image = (8, 64, 56, 56)
    rest = ((64,), (64,))
    for grad in (False, True):
        tail = ", backward" if grad else ""
        yield line(f"batch_norm eval{tail}", lambda t, x, w, b: t.nn.functional.batch_norm(
            x, t.zeros(64), t.ones(64), w, b), image, *rest, grad=grad)  # fmt: skip
        yield line(f"batch_norm train{tail}", lambda t, x, w, b: t.nn.functional.batch_norm(
            x, None, None, w, b, True), image, *rest, grad=grad)  # fmt: skip
        yield line(f"group_norm 8{tail}", lambda t, x, w, b: t.nn.functional.group_norm(x, 8, w, b), image, *rest,
                   grad=grad)  # fmt: skip
        yield line(f"instance_norm{tail}", function("instance_norm"), image, grad=grad)
        for rows, width in ((1024, 1024), (16384, 64)):
            yield line(f"layer_norm {rows}x{width}{tail}", lambda t, x, w, b: t.nn.functional.layer_norm(
                x, w.shape, w, b), (rows, width), (width,), (width,), grad=grad)  # fmt: skip
        yield line(f"rms_norm 1024x1024{tail}", lambda t, x, w: t.nn.functional.rms_norm(x, w.shape, w), (1024, 1024),
                   (1024,), grad=grad)  # fmt: skip
        yield line(f"softmax 1024x1024{tail}", function("softmax", dim=1), (1024, 1024), grad=grad)
        yield line(f"log_softmax 1024x1024{tail}", function("log_softmax", dim=1), (1024, 1024), grad=grad)
        yield line(f"normalize{tail}", function("normalize", dim=1), (1024, 1024), grad=grad)
        for dtype, width in (("float32", 16), ("bfloat16", 64), ("float16", 64)):
            shape, tail = (65536 * 16 // width, width), f"{width} {dtype}{', backward' if grad else ''}"
            yield line(f"softmax rows of {tail}", function("softmax", dim=1), shape, dtype=dtype, grad=grad)
            yield line(f"log_softmax rows of {tail}", function("log_softmax", dim=1), shape, dtype=dtype, grad=grad)
            yield line(f"layer_norm rows of {tail}", lambda t, x: t.nn.functional.layer_norm(x, x.shape[1:]), shape,
                       dtype=dtype, grad=grad)  # fmt: skip
    for dtype in HALVES:
        for channels, size in ((64, 56), (512, 7)):
            planes, tail = (8, channels, size, size), f"{channels} @{size} {dtype} channels last, backward"
            for train in (False, True):
                yield line(f"batch_norm {'train' if train else 'eval'} {tail}", lambda t, x, w, b=train: (
                    t.nn.functional.batch_norm(x.contiguous(memory_format=t.channels_last), w.detach(),
                                               w.detach().abs() + 1, w, w, b)), planes, (channels,), dtype=dtype,
                           grad=True)  # fmt: skip
        yield line(f"batch_norm eval {dtype}", lambda t, x, m: t.nn.functional.batch_norm(x, m, m.abs() + 1), image,
                   (64,), dtype=dtype)  # fmt: skip
        yield line(f"group_norm 8 {dtype}", function("group_norm", num_groups=8), image, dtype=dtype)
        yield line(f"batch_norm train 7x7 {dtype}", lambda t, x: t.nn.functional.batch_norm(
            x, None, None, training=True), (16, 512, 7, 7), dtype=dtype)  # fmt: skip
    yield line("softmax over dim 0", function("softmax", dim=0), (1024, 1024))
    yield line("layer_norm bfloat16", lambda t, x: t.nn.functional.layer_norm(x, (1024,)), (1024, 1024),
               dtype="bfloat16")  # fmt: skip
    yield line("cross_entropy, backward", lambda t, x: t.nn.functional.cross_entropy(
        x, t.arange(1024)), (1024, 1024), grad=True)  # fmt: skip


def products() -> Iterator[Line]:
    for n in (32, 128, 512, 1024):
        yield line(f"mm {n}", operator("mm"), (n, n), (n, n))
    yield line("mm 512 transposed", transposed(operator("mm")), (512, 512), (512, 512))
    for dtype in (*HALVES, "float64", "complex64"):
        yield line(f"mm 512 {dtype}", operator("mm"), (512, 512), (512, 512), dtype=dtype)
    yield line("mm 256 int64", operator("mm"), (256, 256), (256, 256), dtype="int64")
    yield line("mv 500 complex64", operator("mv"), (500, 500), (500,), dtype="complex64")
    yield line("linear 1000x1x1000 bfloat16", function("linear"), (1000, 1), (1000, 1), (1000,), dtype="bfloat16")
    yield line("mm 64 complex64", operator("mm"), (64, 64), (64, 64), dtype="complex64")
    yield line("mm 1000x1x1000", operator("mm"), (1000, 1), (1, 1000))
    for dtype in ("float64", *HALVES):
        yield line(f"mm 1000x4x1000 {dtype}", operator("mm"), (1000, 4), (4, 1000), dtype=dtype)
    for dtype in HALVES:
        yield line(f"mm 4x1024x1024 {dtype}", operator("mm"), (4, 1024), (1024, 1024), dtype=dtype)
        yield line(f"mv 1000 {dtype}, transposed", transposed(operator("mv")), (1000, 1000), (1000,), dtype=dtype)
    yield line("bmm 96 of 128x64x128 bfloat16", operator("bmm"), (96, 128, 64), (96, 64, 128), dtype="bfloat16")
    for b, m, k, n in ((12, 512, 64, 512), (12, 512, 512, 64), (32, 197, 32, 197), (64, 64, 64, 64)):
        name = f"bmm {b} of {m}x{k}x{n} bfloat16"
        yield line(name, operator("bmm"), (b, m, k), (b, k, n), dtype="bfloat16")
        yield line(f"{name}, transposed", lambda t, a, b: t.matmul(a, b.mT), (b, m, k), (b, n, k), dtype="bfloat16")
    for m, k, n in ((8, 768, 3072), (32, 768, 3072), (64, 4096, 1024), (512, 768, 3072)):
        yield line(f"linear {m}x{k}x{n} bfloat16", function("linear"), (m, k), (n, k), (n,), dtype="bfloat16")
    yield line("bmm 64 of 64", operator("bmm"), (64, 64, 64), (64, 64, 64))
    yield line("mv 2048", operator("mv"), (2048, 2048), (2048,))
    yield line("row times matrix 2048", operator("matmul"), (1, 2048), (2048, 2048))
    yield line("linear 256x1024x1024", function("linear"), (256, 1024), (1024, 1024), (1024,))
    yield line("linear 256x1024x1024, backward", function("linear"), (256, 1024), (1024, 1024), (1024,), grad=True)
    for count in (1, 16, 64):
        yield line(f"linear {count}x512x1024 bfloat16", function("linear"), (count, 512), (1024, 512), dtype="bfloat16")
    yield line("fft 100 of 1024", lambda t, a, b: t.fft.fft(t.complex(a, b)), (100, 1024), (100, 1024))
    yield line("fft 2000 of 64", lambda t, a: t.fft.fft(a), (2000, 64), dtype="complex64")
    yield line("fft 65536", lambda t, a: t.fft.fft(a), (65536,), dtype="complex64")
    for rows, count in ((200, 1000), (3000, 60), (90, 2187), (2, 44100), (64, 1009), (15, 4099), (100, 127)):
        yield line(f"fft {rows} of {count}", lambda t, a: t.fft.fft(a), (rows, count), dtype="complex64")
    yield line("irfft2 4 of 256x510", lambda t, a: t.fft.irfft2(a), (4, 256, 256), dtype="complex64")
    yield line("irfft 200 of 1000", lambda t, a: t.fft.irfft(a), (200, 501), dtype="complex64")
    yield line("fft2 4 of 224x224", lambda t, a: t.fft.fft2(a), (4, 224, 224), dtype="complex64")
    yield line("fft2 4 of 256x256", lambda t, a: t.fft.fft2(a), (4, 256, 256), dtype="complex64")
    yield line("rfft 65536", lambda t, a: t.fft.rfft(a), (65536,))
    yield line("rfft 100 of 1024", lambda t, a: t.fft.rfft(a), (100, 1024))
    yield line("einsum bhqd,bhkd->bhqk", lambda t, a, b: t.einsum("bhqd,bhkd->bhqk", a, b), (2, 8, 128, 64),
               (2, 8, 128, 64))  # fmt: skip
    for count, n in ((1000, 4), (200, 16), (32, 64), (1, 512)):
        tail, shape = f"{count} of {n}x{n}", (count, n, n)
        regular = lambda t, a: a @ a.mT + t.eye(a.shape[-1])  # noqa: E731
        yield line(f"cholesky {tail}", lambda t, a, r=regular: t.linalg.cholesky(r(t, a)), shape)
        yield line(f"inv {tail}", lambda t, a, r=regular: t.linalg.inv(r(t, a)), shape)
        yield line(f"solve {tail}", lambda t, a, b, r=regular: t.linalg.solve(r(t, a), b), shape, shape)
        yield line(f"lu {tail}", lambda t, a, r=regular: t.linalg.lu(r(t, a))[2], shape)
        yield line(f"qr {tail}", lambda t, a, r=regular: t.linalg.qr(r(t, a))[1], shape)
        yield line(f"det {tail}", lambda t, a: t.linalg.det(a + t.eye(a.shape[-1])), shape)
    yield line("outer 1000", operator("outer"), (1000,), (1000,))
    yield line("cdist 500x500x64", operator("cdist"), (500, 64), (500, 64))
    yield line("cdist p=1", operator("cdist", 1.0), (300, 64), (300, 64))
    yield line("pdist", operator("pdist"), (500, 64))
    yield line("pdist, backward", operator("pdist"), (500, 64), grad=True)


def attention() -> Iterator[Line]:
    heads = (1, 8, 512, 64)
    plain, causal = function("scaled_dot_product_attention"), function("scaled_dot_product_attention", is_causal=True)
    for grad in (False, True):
        tail = ", backward" if grad else ""
        yield line(f"attention 8x512x64{tail}", plain, heads, heads, heads, grad=grad)
        yield line(f"attention 8x512x64 causal{tail}", causal, heads, heads, heads, grad=grad)
        grouped = function("scaled_dot_product_attention", enable_gqa=True)
        yield line(f"attention grouped 8 to 2{tail}", grouped, heads, (1, 2, 512, 64), (1, 2, 512, 64), grad=grad)
    yield line("attention causal 2048", causal, (1, 4, 2048, 64), (1, 4, 2048, 64), (1, 4, 2048, 64))
    masked = lambda t, q, k, v, m: t.nn.functional.scaled_dot_product_attention(q, k, v, m)  # noqa: E731
    yield line("attention with mask", masked, heads, heads, heads, (512, 512))
    for length in (1024, 4096):
        cache = (1, 16, length, 64)
        yield line(f"attention decode {length}", plain, (1, 16, 1, 64), cache, cache)
    yield line("attention bfloat16", plain, heads, heads, heads, dtype="bfloat16")
    yield line("attention many short", plain, (64, 8, 32, 32), (64, 8, 32, 32), (64, 8, 32, 32))


def convolutions() -> Iterator[Line]:
    def conv(dims: int = 2, **options: Any) -> Code:
        return function(f"conv{dims}d", **options)

    shapes: list[tuple[str, Code, tuple[int, ...], tuple[int, ...]]] = [
        ("3x3 64 @56", conv(padding=1), (2, 64, 56, 56), (64, 64, 3, 3)),
        ("3x3 256 @14", conv(padding=1), (2, 256, 14, 14), (256, 256, 3, 3)),
        ("3x3 stride 2 64", conv(padding=1, stride=2), (2, 64, 56, 56), (128, 64, 3, 3)),
        ("7x7 stride 2 3", conv(padding=3, stride=2), (2, 3, 224, 224), (64, 3, 7, 7)),
        ("1x1 256 @28", conv(), (2, 256, 28, 28), (256, 256, 1, 1)),
        ("16x16 patches", conv(stride=16), (2, 3, 224, 224), (192, 3, 16, 16)),
        ("depthwise 3x3 128 @56", conv(padding=1, groups=128), (2, 128, 56, 56), (128, 1, 3, 3)),
        ("depthwise 3x3 stride 2", conv(padding=1, groups=128, stride=2), (2, 128, 56, 56), (128, 1, 3, 3)),
        ("grouped 4", conv(padding=1, groups=4), (2, 128, 28, 28), (128, 32, 3, 3)),
        ("dilated 2", conv(padding=2, dilation=2), (2, 64, 28, 28), (64, 64, 3, 3)),
        ("1d 128", conv(1, padding=2), (4, 128, 500), (128, 128, 5)),
        ("3d 16", conv(3, padding=1), (1, 16, 16, 28, 28), (32, 16, 3, 3, 3)),
        ("transposed 64", function("conv_transpose2d", stride=2), (2, 64, 28, 28), (64, 32, 2, 2)),
        ("transposed 4x4 of one place", function("conv_transpose2d"), (16, 100, 1, 1), (100, 512, 4, 4)),
    ]
    for name, code, image, weight in shapes:
        yield line(f"conv {name}", code, image, weight)
    for name, code, image, weight in shapes[:7]:
        yield line(f"conv {name}, backward", code, image, weight, grad=True)
    for channels, size in ((64, 32), (128, 16), (256, 8), (512, 4), (512, 7)):
        image, weight = (8, channels, size, size), (channels, channels, 3, 3)
        yield line(f"conv 3x3 {channels} @{size} of 8", conv(padding=1), image, weight)
    image, weight = (4, 64, 28, 28), (64, 64, 3, 3)
    last = lambda t, x, w: t.nn.functional.conv2d(  # noqa: E731
        x.contiguous(memory_format=t.channels_last), w, padding=1
    )
    yield line("conv 3x3 64 @28 channels last", last, image, weight)
    yield line("conv 3x3 64 @28 bfloat16 channels last", last, image, weight, dtype="bfloat16")
    yield line("conv 3x3 64 @28 bfloat16 channels last, backward", last, image, weight, dtype="bfloat16", grad=True)
    yield line("conv 3x3 64 @28 bfloat16", conv(padding=1), image, weight, dtype="bfloat16")
    yield line("conv depthwise 7x7 96 @28", conv(padding=3, groups=96), (4, 96, 28, 28), (96, 1, 7, 7))
    yield line("conv depthwise 5x5 stride 2", conv(padding=2, groups=672, stride=2), (4, 672, 14, 14), (672, 1, 5, 5))
    yield line("conv depthwise 3x3 1152 @7", conv(padding=1, groups=1152), (4, 1152, 7, 7), (1152, 1, 3, 3))
    for dtype in HALVES:
        small, one = conv(padding=1, groups=384), (384, 1, 3, 3)
        yield line(f"conv depthwise 3x3 384 @14 {dtype}", small, (4, 384, 14, 14), one, dtype=dtype)
        yield line(
            f"conv depthwise 3x3 384 @14 {dtype}, backward", small, (4, 384, 14, 14), one, dtype=dtype, grad=True
        )
    yield line("conv 1x1 64 @28 bfloat16", conv(), (4, 64, 28, 28), (256, 64, 1, 1), dtype="bfloat16")
    yield line("conv 32 groups of 16 @14", conv(padding=1, groups=32), (4, 512, 14, 14), (512, 16, 3, 3))
    yield line("conv 7x7 stride 2 bfloat16", conv(padding=3, stride=2), (2, 3, 224, 224), (64, 3, 7, 7),
               dtype="bfloat16")  # fmt: skip
    yield line("conv 3x3 64 @28 bfloat16, backward", conv(padding=1), image, weight, dtype="bfloat16", grad=True)
    yield line("conv 1d dilated 64", conv(1, dilation=64), (1, 64, 4000), (128, 64, 2))
    each = lambda t, x, w: t.nn.functional.conv2d(  # noqa: E731
        x.contiguous(memory_format=t.channels_last), w, padding=1, groups=32
    )
    yield line("conv depthwise 3x3 channels last", each, (2, 32, 112, 112), (32, 1, 3, 3))


def images() -> Iterator[Line]:
    image = (4, 32, 56, 56)
    yield line("max_pool2d 2", function("max_pool2d", kernel_size=2), image)
    yield line("max_pool2d 3 stride 2", function("max_pool2d", kernel_size=3, stride=2, padding=1), image)
    yield line("avg_pool2d 2", function("avg_pool2d", kernel_size=2), image)
    yield line("max_pool2d 2, backward", function("max_pool2d", kernel_size=2), image, grad=True)
    for size in (1, 7):
        yield line(f"adaptive_avg_pool2d to {size}", function("adaptive_avg_pool2d", output_size=size), image)
    yield line("adaptive_max_pool2d to 7", function("adaptive_max_pool2d", output_size=7), image)
    for mode in ("nearest", "bilinear", "bicubic"):
        yield line(f"interpolate {mode} x2", function("interpolate", scale_factor=2, mode=mode), image)
    for mode in ("bilinear", "bicubic"):
        photo = lambda t, a, m=mode: t.nn.functional.interpolate(  # noqa: E731
            (a * 60 + 120).to(t.uint8), scale_factor=0.5, mode=m, antialias=True
        )
        yield line(f"interpolate {mode} bytes antialias", photo, (1, 3, 224, 224))
        for channels, size in ((3, 224), (32, 32)):
            last = lambda t, a, m=mode: t.nn.functional.interpolate(  # noqa: E731
                a.contiguous(memory_format=t.channels_last), scale_factor=2, mode=m
            )
            yield line(f"interpolate {mode} channels last {channels}", last, (1, channels, size, size))
    fractional = lambda t, a: t.nn.functional.fractional_max_pool2d(  # noqa: E731
        a, 2, output_size=30, _random_samples=t.full((4, 32, 2), 0.4)
    )
    yield line("fractional_max_pool2d", fractional, image)
    yield line("max_pool2d 3 stride 1", function("max_pool2d", kernel_size=3, stride=1, padding=1), image)
    for mode in ("constant", "reflect", "replicate", "circular"):
        yield line(f"pad {mode}", function("pad", pad=(1, 1, 1, 1), mode=mode), image)
    for mode in ("reflect", "replicate"):
        around = lambda t, a, m=mode: t.nn.functional.pad(  # noqa: E731
            a.contiguous(memory_format=t.channels_last), (1, 1, 1, 1), mode=m
        )
        yield line(f"pad {mode} channels last", around, image)
    yield line("log_softmax of 21 channels", function("log_softmax", dim=1), (8, 21, 64, 64))
    yield line("pad reflect 1d", function("pad", pad=(8, 8), mode="reflect"), (16, 64, 1000))
    yield line("pad reflect, backward", function("pad", pad=(1, 1, 1, 1), mode="reflect"), image, grad=True)
    yield line("max_pool1d 3 stride 2", function("max_pool1d", kernel_size=3, stride=2, padding=1), (16, 64, 512))
    for mode in ("bilinear", "nearest", "bicubic"):
        sample = lambda t, x, g, mode=mode: t.nn.functional.grid_sample(  # noqa: E731
            x, g * 0.6, mode=mode, align_corners=False
        )
        yield line(f"grid_sample {mode}", sample, (4, 16, 64, 64), (4, 64, 64, 2))
        yield line(f"grid_sample {mode}, backward", sample, (4, 16, 64, 64), (4, 64, 64, 2), grad=True)
    yield line("unfold 3x3", function("unfold", kernel_size=3), (2, 16, 56, 56))
    yield line("pixel_shuffle 2", function("pixel_shuffle", upscale_factor=2), image)


def moving() -> Iterator[Line]:
    square = (1000, 1000)

    def rows(t: Any) -> Any:
        return t.arange(0, 1000, 3)

    yield line("clone", lambda t, a: a.clone(), square)
    yield line("contiguous of transposed", lambda t, a: a.t().contiguous(), square)
    yield line("permute copy 4d", lambda t, a: a.permute(0, 2, 3, 1).contiguous(), (8, 64, 56, 56))
    yield line("cat dim 1", lambda t, a, b: t.cat([a, b], 1), square, square)
    yield line("stack", lambda t, a, b: t.stack([a, b]), square, square)
    yield line("index_select rows", lambda t, a: a.index_select(0, rows(t)), square)
    yield line("index_select columns", lambda t, a: a.index_select(1, rows(t)), square)
    yield line("gather", lambda t, a: a.gather(1, t.zeros(1000, 500, dtype=t.int64)), square)
    yield line("a[mask]", lambda t, a: a[a > 0], square)
    yield line("embedding", lambda t, w: t.nn.functional.embedding(t.arange(10_000) % 1000, w), (1000, 256))
    for dtype in ("float32", *HALVES):
        for width in (64, 768):
            rows_of = lambda t, w: t.nn.functional.embedding(t.arange(8192) * 7919 % 5000, w)  # noqa: E731
            yield line(f"embedding of {width} {dtype}, backward", rows_of, (5000, width), dtype=dtype, grad=True)
    yield line("tril", operator("tril"), square)
    yield line("flip", lambda t, a: a.flip(1), square)
    yield line("roll", lambda t, a: a.roll(3, 1), square)
    yield line("roll both", lambda t, a: a.roll((3, 5), (0, 1)), square)
    for mode in ("sum", "mean", "max"):
        bag = lambda t, w, m=mode: t.nn.functional.embedding_bag(  # noqa: E731
            t.arange(20_000).reshape(1000, 20) % 9973, w, mode=m
        )
        yield line(f"embedding_bag {mode}", bag, (10_000, 64))
        yield line(f"embedding_bag {mode} bfloat16", bag, (10_000, 64), dtype="bfloat16")
    yield line("max_pool1d bfloat16", function("max_pool1d", kernel_size=3, stride=2), (16, 64, 512), dtype="bfloat16")
    yield line("multinomial", lambda t, a: t.multinomial(a.abs() + 0.1, 1), square)
    yield line("repeat", lambda t, a: a.repeat(2, 2), square)
    for name in ("rand", "randn"):
        yield line(f"{name} 1e6", lambda t, name=name: getattr(t, name)(1_000_000))
    yield line("dropout", function("dropout", p=0.5), square)
    yield line("bernoulli", lambda t, a: t.bernoulli(a.sigmoid()), square)
    yield line("randperm 1e5", lambda t: t.randperm(100_000))
    yield line("arange 1e6", lambda t: t.arange(1_000_000))


FAMILIES = (pointwise, reductions, norms, products, attention, convolutions, images, moving)
RANDOM = ("rand", "dropout", "bernoulli", "multinomial")  # what both draw is compared by the tests


def differ(theirs: Any, ours: Any) -> bool:
    """Whether two results are further apart than the precision of their dtype allows."""
    if isinstance(theirs, (tuple, list)):
        return len(theirs) != len(ours) or any(differ(a, b) for a, b in zip(theirs, ours))
    if str(theirs.dtype).split(".")[1] != str(ours.dtype).split(".")[1] or tuple(theirs.shape) != tuple(ours.shape):
        return True
    if not theirs.is_floating_point():
        return False  # positions of equal values may differ
    means = [t.detach().double().nan_to_num().abs().mean().item() for t in (theirs, ours)]
    return bool(abs(means[0] - means[1]) > 1e-2 * means[0] + 1e-6)


def measure(name: str, theirs: Call, ours: Call, budget: float, clock: Callable[[], float]) -> Result:
    """Single calls of the two in turns for `budget` seconds, at least three of each; the best of each."""
    best = [math.inf, math.inf]
    spent, rounds = 0.0, 0
    while spent < budget or rounds < 3:
        start = clock()
        theirs()
        middle = clock()
        ours()
        pair = middle - start, clock() - middle
        best = [min(best[0], pair[0]), min(best[1], pair[1])]
        spent, rounds = spent + sum(pair), rounds + 1
    return Result(name, best[0] * 1e6, best[1] * 1e6, best[0] / best[1])


def run(torch: Any, ours: Any, only: str, budget: float, threads: int) -> list[Result]:
    results = []
    clock = time.thread_time if threads == 1 else time.perf_counter
    print(f"{'kernel':44}{'torch us':>12}{'ours us':>12}{'ratio':>8}")
    for family in FAMILIES:
        for name, make in family():
            if not re.search(only, name):
                continue
            theirs, mine = make(torch), make(ours)
            if differ(theirs(), mine()) and not name.startswith(RANDOM):
                raise SystemExit(f"{name}: the results differ")
            result = measure(name, theirs, mine, budget, clock)
            results.append(result)
            print(f"{name:44}{result.theirs:12.1f}{result.ours:12.1f}{result.ratio:8.2f}", flush=True)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description="How fast kernels are, PyTorch against mindtorch_v2.")
    parser.add_argument("--check", action="store_true", help="exit with an error when a promise is not kept")
    parser.add_argument("--only", default="", metavar="PATTERN", help="only lines whose name the pattern finds")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5, help="how long a line is measured")
    parser.add_argument("--json", default="", metavar="FILE", help="write the figures to a file")
    options = parser.parse_args()
    torch, ours = importlib.import_module("torch"), importlib.import_module("mindtorch_v2")
    for t in (torch, ours):
        t.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, mindtorch_v2 {ours.__version__}, {options.threads} thread(s)\n")
    results = run(torch, ours, options.only, options.seconds, options.threads)
    if not results:
        return 1
    ratios = sorted(result.ratio for result in results)
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    share = sum(ratio >= 1.0 for ratio in ratios) / len(ratios)
    print(f"\n{len(ratios)} lines, geometric mean {mean:.2f} (at least {LEAST_MEAN}), {share:.0%} at least 1.0")
    print(f"(promised {LEAST_SHARE:.0%}), worst {ratios[0]:.2f} (at least {LEAST_LINE})")
    if options.json:
        write_json(options.json, results, options.threads)
    kept = mean >= LEAST_MEAN and share >= LEAST_SHARE and ratios[0] >= LEAST_LINE
    return 1 if options.check and not kept else 0


if __name__ == "__main__":
    sys.exit(main())
