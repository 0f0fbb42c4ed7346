"""Modules that PyTorch's own test tools import: references, primitives, facts about dtypes and shapes. Lines of code on
both libraries."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import pytest

from .. import _oracle
from .._outcome import plain
from .._subject import mindtorch_only
from .._subject import subject as torch


def told(library: Any, line: str) -> Any:
    def of(name: str) -> Any:
        return import_module(f"{library.__name__}.{name}")

    x = library.arange(6, dtype=library.float64).reshape(2, 3)
    kinds = of("_prims_common").ELEMENTWISE_TYPE_PROMOTION_KIND
    space = {
        "torch": library,
        "of": of,
        "pc": of("_prims_common"),
        "refs": of("_refs"),
        "prims": of("_prims"),
        "x": x,
        "i": library.ones(2, dtype=library.int32),
        "h": library.ones(2, dtype=library.float16),
        "zero": library.tensor(1.5, dtype=library.float64),
        "kinds": kinds,
        "promoted": lambda *args: [pc_dtypes(of, args, kind) for kind in kinds],
        "a8": library.linspace(-2, 2, 12).reshape(3, 4).to(library.float8_e4m3fn),
        "b8": library.linspace(-1, 3, 20).reshape(4, 5).to(library.float8_e4m3fn),
        "two": library.tensor(2.0),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(eval(line, space))
        except Exception as error:  # every error is part of what a line does
            return f"{type(error).__name__}: {error}".replace(library.__name__, "torch")


def pc_dtypes(of: Any, args: Any, kind: Any) -> str:
    found = of("_prims_common").elementwise_dtypes(*args, type_promotion_kind=kind)
    return f"{kind.name} {found[0]} {found[1]}"


LINES = """
promoted(x, i)
promoted(i, 2.5)
promoted(i, zero)
promoted(h, 2j)
promoted(i, True)
promoted(x > 1, True)
promoted(h, zero)
promoted(1, 2)
promoted(1, 2.0)
promoted(2j)
promoted(i, None)
promoted(i, "a")
pc.dtype_to_type(torch.int8), pc.dtype_to_type(torch.bool), pc.dtype_to_type(torch.complex64)
str(pc.type_to_dtype(float)), str(pc.type_to_dtype(complex)), str(pc.type_to_dtype(bool)), str(pc.type_to_dtype(int))
pc.type_to_dtype(str)
str(pc.get_acc_type(torch.float16, torch.device("cpu"))), str(pc.get_acc_type(torch.float32, torch.device("cpu")))
str(pc.get_computation_dtype(torch.bfloat16)), str(pc.get_computation_dtype(torch.complex32))
pc.get_higher_type(int, bool), pc.is_weakly_lesser_type(int, float), pc.is_weakly_lesser_type(complex, float)
str(pc.get_higher_dtype(torch.int32, torch.float16)), str(pc.get_higher_dtype(None, x)), pc.get_higher_dtype(None, None)
pc.can_safe_cast_to(cast_to=torch.float32, cast_from=torch.int64)
pc.can_safe_cast_to(cast_to=torch.int64, cast_from=torch.float32)
pc.check_same_dtype(x, i)
pc.check_same_shape(x, i, allow_cpu_scalar_tensors=False)
pc.check_same_shape(x, zero, allow_cpu_scalar_tensors=True)
pc.check_same_device(x, x.to("meta"), allow_cpu_scalar_tensors=False)
pc.check_fp_or_complex(torch.int32, "f", True)
pc.check_fp_or_complex(torch.float16, "f", False)
pc.check_is_matrix(i, "f")
pc.set_correction(True, 1)
pc.set_correction(False), pc.set_correction(None, 2), pc.set_correction()
pc.reduction_dims((2, 3), (0, 0))
pc.reduction_dims((2, 3), None), pc.reduction_dims((2, 3), (-1,))
pc.compute_reduction_output_shape((2, 3, 4), (1,))
pc.is_valid_permutation(3, (0, 1, 1)), pc.is_valid_permutation(3, (2, 0, 1))
pc.extract_shape_from_varargs((2, 3)), pc.extract_shape_from_varargs(((2, 3),))
pc.infer_size((2, -1), 6), pc.infer_size((2, 3), 6)
pc.infer_size((2, -1), 7)
pc.is_expandable_to((1, 3), (4, 2, 3)), pc.is_expandable_to((2,), (3,))
pc.apply_perm((5, 6, 7), (2, 0, 1)), pc.invert_perm((2, 0, 1))
pc.clone_preserve_strides(x.t()).stride()
str(pc.suggest_memory_format(torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)))
pc.compare_tensor_meta(x, x + 1, check_strides=True)
pc.compare_tensor_meta(x, x.t())
pc.compare_tensor_meta(x, x.float())
pc.compare_tensor_meta(x, x.to("meta"))
pc.compare_tensor_meta(x, 3)
str(pc.reduction_dtypes(h, pc.REDUCTION_OUTPUT_TYPE_KIND.SAME))
str(pc.reduction_dtypes(x + 1j, pc.REDUCTION_OUTPUT_TYPE_KIND.COMPLEX_TO_FLOAT))
str(pc.reduction_dtypes(h, pc.REDUCTION_OUTPUT_TYPE_KIND.KEEP_PROMOTED_TYPE))
refs.add(x, 2), refs.abs(-x), refs.nn.functional.relu(x - 2), refs.special.expit(x), refs.linalg.vector_norm(x)
refs.T(x), refs.rpow(x, 2), refs.rtruediv(x + 1, 3), refs.trunc_divide(x, 2), refs.swap_axes(x, 0, 1)
refs.T(torch.ones(2, 2, 2))
refs._conversions.float(x).dtype == torch.float32, refs.fft.fft(x).dtype == torch.complex128, refs.zero(x)
refs.new_zeros(x, (2,))
prims.add(x, i)
prims.mul(x, x), prims.neg(x), prims.exp(x), prims.bessel_i0(x), prims.erf_inv(x / 9)
prims.div(i, i), prims.cbrt(x), prims.shift_left(i, i)
prims.broadcast_in_dim(i, (3, 2), (1,)), prims.collapse(x, 0, 1), prims.split_dim(x, 1, 3)
prims.split_dim(x, 1, 2)
prims.transpose(x, (1, 0)), prims.rev(x, (0,)), prims.squeeze(x[None], (0,)), prims.expand_dims(x, (1,)).shape
prims.sum(x, (0,)), prims.amax(x, (1,)), prims.prod(x + 1, (0, 1)), prims.var(x, (0,), correction=1)
prims.iota(4, start=2, step=3, dtype=torch.int64, device="cpu", requires_grad=False)
prims.convert_element_type(x, torch.int32), prims.maximum_value(torch.int8), prims.minimum_value(torch.float32)
of("_prims.executor").make_traced(lambda a, b: a * b + 1)(x, x)
of("_vendor.packaging.version").parse("1.10.2") > of("_vendor.packaging.version").parse("1.9")
of("_vendor.packaging.version").parse("2.13.0rc1").release
of("_vendor.packaging.version").parse("what")
of("backends.python_native").available_dsls, of("backends.python_native").all_dsls
of("cuda.jiterator")._create_jit_fn("template <typename T> T f(T x) { return x; }").kernel_name
of("cuda.jiterator")._create_jit_fn("template <typename T> T f(T x) { return x; }")(x)
of("cuda.jiterator")._create_jit_fn("what")
torch.per_tensor_affine, torch.per_channel_symmetric, isinstance(torch.per_tensor_affine, torch.qscheme)
torch.qscheme()
torch.quint8, torch.qint32.itemsize, torch.quint4x2.is_floating_point
torch.qint8.is_signed
torch._scaled_mm(a8, b8, two, two)
torch._scaled_mm(a8, b8, two, two, out_dtype=torch.float32)
torch._scaled_mm(a8, b8, two, two, bias=torch.ones(5), out_dtype=torch.bfloat16)
torch._scaled_mm(a8, b8, torch.ones(3, 1) / 2, torch.arange(5.0).reshape(1, 5), out_dtype=torch.float32)
torch._scaled_mm(a8[0], b8, two, two)
torch._scaled_mm(a8.float(), b8, two, two)
torch._scaled_mm(a8, b8, torch.ones(2, 1), two)
torch._scaled_mm(a8, b8, two, two, bias=torch.ones(3), out_dtype=torch.float32)
torch._scaled_mm_v2(a8, b8, [two], [0], [0], [two], [0], [0], None, torch.float32)
of("autograd.function")._nested_map(lambda t: isinstance(t, int), lambda t: t + 1)([1, (2, None), {"a": 3}])
of("autograd.function")._nested_map(lambda t: isinstance(t, int), lambda t: t + 1)(["a"])
torch.onnx.OperatorExportTypes.ONNX.name, torch.onnx.TrainingMode.TRAINING.name
of("_inductor.utils").GPU_TYPES
len(of("autograd.gradcheck")._get_numerical_jacobian(lambda t: (t * 2, t + 1), (x.clone().requires_grad_(),))[0])
of("testing._comparison")._unwrap_dtensor_for_comparison(x, 3)
""".strip().split("\n")


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize("line", LINES)
def test_as_pytorch_does(line: str) -> None:
    assert told(torch, line) == told(_oracle.load(), line)


@pytest.mark.oracle
def test_scaled_products_of_shapes_that_do_not_fit() -> None:
    """PyTorch names the matrices by the kernel that the processor gets."""
    line = "torch._scaled_mm(a8, b8[:3], two, two)"
    for library in (torch, _oracle.load()):
        said = told(library, line).replace("mat_a and mat_b", "mat1 and mat2")
        assert said == "RuntimeError: mat1 and mat2 shapes cannot be multiplied (3x4 and 3x5)"


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize("name", ["_refs", "_refs.nn.functional", "_refs.special", "_refs.linalg", "_refs.fft"])
def test_every_reference_is_there(name: str) -> None:
    theirs = import_module(f"{_oracle.load().__name__}.{name}").__all__
    ours = import_module(f"{torch.__name__}.{name}")
    assert [each for each in theirs if not callable(getattr(ours, each, None))] == []


def test_frames_can_be_gathered() -> None:
    profiler = import_module(f"{torch.__name__}._C._profiler")
    (frames,) = profiler.symbolize_tracebacks([profiler.gather_traceback(True, False, False)])
    assert frames[0]["name"] == "test_frames_can_be_gathered"
    assert frames[0]["filename"] == __file__


@mindtorch_only
def test_quantized_tensors_are_refused_by_name() -> None:
    for call in (
        lambda: torch.empty(2, dtype=torch.quint8),
        lambda: torch.empty(2, device="meta", dtype=torch.qint8),
        lambda: torch.zeros(2, dtype=torch.quint8),
        lambda: torch.full((2,), 1, dtype=torch.quint8),
        lambda: torch.arange(2, dtype=torch.quint8),
        lambda: torch.empty_like(torch.ones(2), dtype=torch.quint8),
        lambda: torch.ones(2).new_zeros((2,), dtype=torch.quint8),
        lambda: torch.ones(2).view(torch.qint32),
        lambda: torch.ao.nn.quantized.Linear(2, 3),
    ):
        with pytest.raises(NotImplementedError, match="no quantized tensors here"):
            call()
