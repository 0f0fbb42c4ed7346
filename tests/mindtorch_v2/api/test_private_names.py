"""Private names that PyTorch's own modules and tests use: lines of code on both libraries."""

from __future__ import annotations

import io
import sys
import types
import warnings
from collections import OrderedDict
from importlib import import_module
from typing import Any

import pytest

from .. import _oracle
from .._outcome import plain
from .._subject import mindtorch_only
from .._subject import subject as torch


def told(library: Any, line: str) -> Any:
    x = library.arange(6, dtype=library.float64).reshape(2, 3)
    space = {
        "torch": library,
        "C": library._C,
        "nn": library._C._nn,
        "x": x,
        "r": x.clone().requires_grad_(),
        "image": library.arange(48, dtype=library.float64).reshape(1, 3, 4, 4).sin(),
        "masked": import_module(f"{library.__name__}.masked"),
        "pytree": import_module(f"{library.__name__}.utils._pytree"),
        "linalg_utils": import_module(f"{library.__name__}._linalg_utils"),
        "vmap": import_module(f"{library.__name__}._vmap_internals")._vmap,
        "io": io,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(eval(line, space))
        except Exception as error:  # every error is part of what a line does
            return f"{type(error).__name__}: {error}".replace(library.__name__, "torch")


_C = """
C._TensorBase is C.TensorBase
C._infer_size(torch.Size([2, 1]), torch.Size([3]))
C._infer_size(torch.Size([2]), torch.Size([3]))
C._infer_size((2, 1), torch.Size([3]))
C._infer_size(torch.Size([2, 1]), [3])
C._infer_size(torch.Size([2, 1]))
C._storage_id(x) == C._storage_id(x[1])
C._storage_id(x) == C._storage_id(x.clone())
C._storage_id(3)
C._WeakTensorRef(x).expired()
C._WeakTensorRef(x + 1).expired()
C._autograd._saved_tensors_hooks_is_enabled()
C._autograd._saved_tensors_hooks_get_disabled_error_message()
C._autograd.SavedTensor()
C._autograd.SavedTensor is torch.autograd.SavedTensor
isinstance((r * r).grad_fn._raw_saved_self, torch.autograd.SavedTensor)
torch.autograd.SavedTensor
isinstance((r + r).grad_fn, C._functions.AddBackward0)
isinstance((r + r).grad_fn.next_functions[0][0], C._functions.AccumulateGrad)
C._functions.LinalgQrBackward0.__name__
C._functions.NoSuchBackward0
C._functions.Nope
C._functions.UndefinedGrad()(r)
C._functions.UndefinedGrad()(r).grad_fn.name()
(C._functions.UndefinedGrad()(r * 2).sum().backward(), r.grad)
C._functions.UndefinedGrad(3)
C._functions.UndefinedGrad()()
C._functions.UndefinedGrad()(3)
C._functions.UndefinedGrad()(None)
C._functions.DelayedError('words', 1)(r)
C._functions.DelayedError('words', 2)(r, r + 1)
C._functions.DelayedError('words', 1)(r).grad_fn.name()
type(C._functions.DelayedError('words', 1)(r).grad_fn).__name__
C._functions.DelayedError('words', 1)(r).data_ptr() == r.data_ptr()
C._functions.DelayedError('words', 1)(r).sum().backward()
C._functions.DelayedError('words', 1)(x)
C._functions.DelayedError('words')
"""
_NN = """
nn.gelu_(x.clone())
nn.silu_(x.clone())
nn.hardswish_(x.clone())
nn.mish_(x.clone())
nn.relu6_(x * 3)
nn.hardsigmoid_(x.clone())
nn.elu(x - 2, 0.5)
nn.l1_loss(x, x * 2, 2)
nn.mse_loss(x, x * 2, 0)
nn.nll_loss(x, torch.tensor([1, 2]), None, 1, -100)
nn.nll_loss_nd(x, torch.tensor([1, 2]), None, 1)
nn.cross_entropy_loss(x, torch.tensor([1, 2]), None, 2)
nn.adaptive_max_pool2d(image, (2, 2))
nn.max_pool2d_with_indices(image, 2)
nn.upsample_nearest1d(x[None], 6)
nn.upsample_nearest2d(image, (2, 6))
nn.upsample_nearest2d(image, None, [0.5, 2.0])
nn.upsample_bilinear2d(image, (3, 3), True)
nn._upsample_bicubic2d_aa(image, (3, 2), False)
nn._upsample_nearest_exact2d(image, (3, 7))
nn.upsample_bilinear2d(image, None, False, [0.5, 0.5])
nn.reflection_pad2d(image, (1, 1, 2, 0))
nn.replication_pad1d(x, (1, 2))
nn.im2col(image, (2, 2), (1, 1), (0, 0), (2, 2))
nn.pad(x, (1, 1), 'constant', 3.0)
nn.pad_sequence([x, x[:1]], True)
nn.glu(image, 2)
nn.upsample_nearest2d(image, (2, 6, 7))
nn.add
"""
_TOP = """
repr(torch.cuda.FloatTensor)
torch.cuda.FloatTensor(2)
torch.cuda.LongTensor.dtype
torch.cuda.BFloat16Tensor.is_cuda
torch.cuda.BoolTensor.layout
isinstance(x, torch.cuda.DoubleTensor)
torch.set_default_tensor_type(torch.cuda.FloatTensor)
torch.set_default_tensor_type('torch.cuda.HalfTensor')
torch.set_default_tensor_type(torch.IntTensor)
torch.set_default_tensor_type('torch.LongTensor')
torch.set_default_tensor_type(3)
torch.set_default_tensor_type(torch.float32)
torch.set_default_tensor_type('torch.nope')
sorted(str(c) for c in torch._tensor_classes if 'sparse' not in str(c))
torch.set_vital('a', 'b', 'c')
x._fix_weakref()
[linalg_utils.is_sparse(x), linalg_utils.get_floating_dtype(x), linalg_utils.get_floating_dtype(x.long())]
linalg_utils.is_sparse(3)
linalg_utils.matmul(None, x)
linalg_utils.matmul(x, x.mT)
linalg_utils.bform(x, x @ x.mT, x)
linalg_utils.qform(None, x)
linalg_utils.basis(x.mT).abs()
linalg_utils.symeig(x @ x.mT, True)[0]
linalg_utils.symeig(x @ x.mT)[0]
linalg_utils.matrix_rank(x)
torch._tensor_str._str(x)
torch._tensor_str._str(x, tensor_contents='words')
torch._tensor_str.get_summarized_data(torch.arange(200).reshape(2, 100))
torch._tensor_str.PRINT_OPTS.precision
torch.distributions.kl._kl_expfamily_expfamily.__name__
isinstance(torch.distributions.ExpTransform().inv, torch.distributions.transforms._InverseTransform)
torch.serialization._is_zipfile(io.BytesIO(b'PK34'))
torch.serialization._is_zipfile(io.BytesIO(b'PK' + bytes([3, 4, 5])))
"""
_AUTOGRAD = """
torch.autograd._calculate_shape(x[0], x, True)
torch.autograd._calculate_shape(x[0], x, False)
torch.autograd._calculate_shape(torch.autograd.graph.get_gradient_edge(r * 1), x, True)
torch.autograd._calculate_shape(torch.autograd.graph.get_gradient_edge(r * 1), x[0], False)
torch.ops.profiler._record_function_enter('name').dtype
torch.ops.profiler._record_function_exit(torch.ops.profiler._record_function_enter('name', 'words'))
torch.ops.profiler._record_function_enter_new('name', 'words')
torch.ops.profiler._record_function_exit(torch.ops.profiler._record_function_enter_new('name'))
torch.ops.profiler._record_function_exit._RecordFunction(torch.ops.profiler._record_function_enter_new('name'))
torch.ops.profiler._record_function_exit.overloads()
torch.ops.profiler.nope
torch.autograd._record_function_with_args_exit(torch.autograd._record_function_with_args_enter('name'))
vmap(lambda a: a * 2)(x)
vmap(lambda a, b: a * b, (0, None), 1)(x, x[0])
vmap(lambda a: (a, None), allow_none_pass_through=True)(x)
vmap(lambda a: (a, None, a.sum()), 0, (1, 0, 0), True)(x)
vmap(lambda a: (a, None))(x)
vmap(lambda a: [a])(x)
vmap(lambda a: 3)(x)
vmap(lambda a: a, 0, (1,))(x)
vmap(lambda a: a, 0, 'lol')(x)
vmap(lambda a: a, 0, ('lol',))(x)
vmap(lambda a: a, 0, None)(x)
vmap(lambda a: a, 0, (0, 0))(x)
vmap(lambda a: (a, a), 0, (0,))(x)
vmap(lambda a: (a, None), 0, (0,), True)(x)
vmap(lambda a: (a, None), 0, (1, 0), True)(x)
vmap(lambda a: a)(x[0, 0])
vmap(lambda a: a, -1)(x)
vmap(lambda a: a, (2,))(x)
vmap(lambda a: a[0] + a[1], ([1, 3],))([x, x])
vmap(lambda a: a[0] + a[1], ([1, -1],))([x, x])
vmap(lambda a, b: a, (0, -1))(3, x)
vmap(lambda a, b: a, ('a', -1))(x, x)
vmap(lambda a: a, 'a')(x)
vmap(lambda a: a, (0, 0))(x)
vmap(lambda a: a)()
vmap(lambda a, b: a + b)(x, x[:1])
"""
_MASKED = """
[masked._canonical_dim(d, 3) for d in (None, (), -1, (0, -2), (1, -3), 2)]
masked._canonical_dim((0, 0), 3)
masked._canonical_dim(5, 3)
[str(masked._reduction_identity(n, x)) for n in 'sum prod amax amin argmax argmin logsumexp mean var median'.split()]
[str(masked._reduction_identity(n, x.byte())) for n in 'sum cumprod amax amin logsumexp std median norm'.split()]
masked._reduction_identity('norm', x, float('-inf'))
masked._reduction_identity('nope', x)
masked._where(x > 2, x, torch.zeros((), dtype=torch.float64))
masked._combine_input_and_mask(masked.sum, x, x > 2)
masked._combine_input_and_mask(masked.amax, x, x > 2)
masked._combine_input_and_mask(masked.sum, x, None)
masked._combine_input_and_mask(masked.softmax, x, x > 2)
pytree._broadcast_to_and_flatten(1, pytree.tree_structure((1, [2, 3])))
pytree._broadcast_to_and_flatten((1, 2), pytree.tree_structure((1, [2, 3])))
pytree._broadcast_to_and_flatten((1, 2, 3), pytree.tree_structure((1, [2, 3])))
pytree._broadcast_to_and_flatten([1, 2], pytree.tree_structure((1, [2, 3])))
pytree._broadcast_to_and_flatten((1, [2]), pytree.tree_structure((1, [2, 3])))
pytree._broadcast_to_and_flatten({'a': 1, 'b': None}, pytree.tree_structure({'a': (1, 2), 'b': 3}))
pytree._broadcast_to_and_flatten((1, (2, 3)), pytree.tree_structure((1, 2)))
pytree._broadcast_to_and_flatten((1, (2, 3)), pytree.tree_structure((1, 2)), lambda v: v == (2, 3))
"""
LINES = [line for block in (_C, _NN, _TOP, _AUTOGRAD, _MASKED) for line in block.split("\n") if line]


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize("line", LINES)
def test_as_pytorch_does(line: str) -> None:
    assert told(torch, line) == told(_oracle.load(), line)


class Seen(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> str:
        return "seen"


def test_torch_function_can_be_asked_again() -> None:
    t = torch.ones(2).as_subclass(Seen)
    with torch._C.DisableTorchFunction():
        assert not isinstance(t + 1, str)
        with torch._C._EnableTorchFunction():
            assert t + 1 == "seen"
        assert not isinstance(t + 1, str)
        guard = torch._C._EnableTorchFunction()
        assert t + 1 == "seen"
        del guard
        assert not isinstance(t + 1, str)


def test_a_weak_reference_expires() -> None:
    t = torch.ones(2)
    ref = torch._C._WeakTensorRef(t)
    assert not ref.expired()
    del t
    assert ref.expired()


def test_no_gradient_flows_behind_an_undefined_one() -> None:
    seen = []

    class Watched(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append(grad)
            return grad

    leaf = torch.ones(2, requires_grad=True)
    torch._C._functions.UndefinedGrad()(Watched.apply(leaf)).sum().backward()
    assert seen == [None] and leaf.grad is None


def test_hooks_of_a_leaf_can_be_assigned() -> None:
    leaf = torch.ones(2, requires_grad=True)
    assert leaf._backward_hooks is None
    hooks: Any = OrderedDict()
    leaf._backward_hooks = hooks
    assert leaf._backward_hooks is hooks
    seen = []
    hooks[1] = lambda g: seen.append(g.tolist())
    leaf.sum().backward()
    assert seen == [[1.0, 1.0]]
    leaf._backward_hooks = None
    assert leaf._backward_hooks is None
    leaf.sum().backward()
    assert len(seen) == 1


@mindtorch_only
def test_what_cannot_be_hooks_is_refused() -> None:
    with pytest.raises(TypeError, match="dictionary or None"):
        torch.ones(2)._backward_hooks = 3
    with pytest.raises(RuntimeError, match="leaf tensors only"):
        (torch.ones(2, requires_grad=True) * 2)._backward_hooks = {}


def test_asking_for_set_vital_warns() -> None:
    with pytest.warns(UserWarning, match="'set_vital' is deprecated"):
        assert torch.set_vital("a", "b", "c") is None


def test_a_device_gets_one_module() -> None:
    name = "vulkan"
    module = types.ModuleType(name)
    torch._register_device_module(name, module)
    try:
        assert getattr(torch, name) is module and sys.modules[f"{torch.__name__}.{name}"] is module
        with pytest.raises(RuntimeError, match="The runtime module of 'vulkan' has already been registered with"):
            torch._register_device_module(name, module)
    finally:
        delattr(torch, name)
        del sys.modules[f"{torch.__name__}.{name}"]


@mindtorch_only
def test_libraries_that_are_not_here() -> None:
    assert not torch._nnpack_available()


def test_a_named_stretch_is_in_the_profile() -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        by_tensor = torch.ops.profiler._record_function_enter("by_tensor")
        by_object = torch.ops.profiler._record_function_enter_new("by_object")
        torch.ones(2).add(1)
        torch.ops.profiler._record_function_exit(by_object)
        torch.ops.profiler._record_function_exit(by_tensor)
    names = {event.name for event in profile.events()}
    assert {"by_tensor", "by_object"} <= names


def test_the_first_vmap_names_the_one_to_use() -> None:
    def warned(library: Any) -> Any:
        first = import_module(f"{library.__name__}._vmap_internals").vmap
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = first(lambda a: a * 2)(library.ones(2)).tolist()
        return result, [(w.category, str(w.message)) for w in caught]

    assert warned(torch) == warned(_oracle.load())
