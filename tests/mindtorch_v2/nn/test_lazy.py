"""Lazy modules, and the modules and functions that PyTorch's table of modules leaves out, on both libraries.

Invariant: a case takes a library and returns plain values; it runs on PyTorch unchanged.
"""

from __future__ import annotations

import copy
import importlib
import io
import pickle
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from .. import _oracle
from .._npu import start
from .._outcome import outcome, tried
from .._subject import mindtorch_only, subject
from .test_module_parity import same_words

Case = Callable[[Any], Any]
CASES: dict[str, Case] = {}
LAZY = {
    "LazyLinear": ((4,), (2, 3)),
    "LazyConv1d": ((4, 2), (2, 3, 5)),
    "LazyConv2d": ((4, 2), (2, 3, 5, 5)),
    "LazyConv3d": ((4, 2), (2, 3, 5, 5, 5)),
    "LazyConvTranspose1d": ((4, 2), (3, 5)),
    "LazyConvTranspose2d": ((4, 2), (2, 3, 5, 5)),
    "LazyConvTranspose3d": ((4, 2), (2, 3, 4, 4, 4)),
    "LazyBatchNorm1d": ((), (4, 3)),
    "LazyBatchNorm2d": ((), (4, 3, 2, 2)),
    "LazyBatchNorm3d": ((), (4, 3, 2, 2, 2)),
    "LazyInstanceNorm1d": ((), (4, 3, 5)),
    "LazyInstanceNorm2d": ((), (4, 3, 2, 2)),
    "LazyInstanceNorm3d": ((), (4, 3, 2, 2, 2)),
}


def case(fn: Case) -> Case:
    CASES[fn.__name__] = fn
    return fn


def ramp(lib: Any, *shape: int) -> Any:
    count = 1
    for size in shape:
        count *= size
    return (lib.arange(count, dtype=lib.float32) % 11 - 5).reshape(shape) / 7


def made(lib: Any, name: str, **options: Any) -> tuple[Any, Any]:
    args, shape = LAZY[name]
    return getattr(lib.nn, name)(*args, **options), ramp(lib, *shape)


def _of_class(name: str) -> Case:
    def run(lib: Any) -> Any:
        out: list[Any] = []
        for options in ({}, {"bias": False}, {"dtype": lib.float64}):
            m, x = made(lib, name, **options)
            x = x.to(options.get("dtype", lib.float32))
            out += [repr(m), repr(m.state_dict()), m.has_uninitialized_params(), [n for n, _ in m.named_parameters()]]
            lib.manual_seed(1)
            out += [
                m(x),
                type(m).__name__,
                repr(m),
                {k: bits(v) for k, v in m.named_parameters()},
                hasattr(m, "_load_hook"),
                m(x).shape,
            ]
            out.append(len(m._forward_pre_hooks) + len(m._load_state_dict_pre_hooks))
        return out

    return run


for _name in LAZY:
    CASES[_name] = _of_class(_name)


@case
def lazy_states(lib: Any) -> Any:
    m, x = made(lib, "LazyLinear")
    full = lib.nn.Linear(3, 4)
    out: list[Any] = []
    m.load_state_dict(full.state_dict())
    out += [type(m).__name__, type(m.weight).__name__, m.weight.shape, m.in_features]
    m(x)
    out += [type(m).__name__, m.in_features]
    empty, _ = made(lib, "LazyLinear")
    other, _ = made(lib, "LazyLinear")
    out.append(repr(other.load_state_dict(empty.state_dict())))
    norm, y = made(lib, "LazyBatchNorm1d")
    norm.load_state_dict(lib.nn.BatchNorm1d(3).state_dict())
    out += [repr(norm), norm.running_mean]
    wrong, _ = made(lib, "LazyLinear")
    wrong.load_state_dict(lib.nn.Linear(5, 4).state_dict())
    return [
        out,
        tried(
            [
                lambda: full.load_state_dict(empty.state_dict()),
                lambda: wrong(x),
                lambda: made(lib, "LazyConv2d")[0](x),
                lambda: lib.nn.LazyConv2d(4, 2, groups=2)(ramp(lib, 1, 3, 4, 4)),
                lambda: lib.nn.LazyBatchNorm2d()(x),
                lambda: made(lib, "LazyLinear")[0].share_memory(),
                lambda: made(lib, "LazyLinear")[0]._replicate_for_data_parallel(),
            ]
        ),
    ]


@case
def lazy_moves(lib: Any) -> Any:
    m, x = made(lib, "LazyConv2d")
    m.double()
    other = copy.deepcopy(m)
    third = pickle.loads(pickle.dumps(m))
    out: list[Any] = [
        str(m.weight.dtype),
        type(m.weight).__name__,
        repr(other),
        repr(third),
        type(third.weight).__name__,
    ]
    lib.manual_seed(2)
    out += [other(x.double()), type(other).__name__, type(m).__name__]
    whole = lib.nn.Sequential(lib.nn.LazyLinear(2), lib.nn.LazyBatchNorm1d(affine=False))
    out += [[*whole.state_dict()], repr(whole), whole.to(lib.float64)(ramp(lib, 3, 2).double()), repr(whole)]
    return out


@case
def lazy_own(lib: Any) -> Any:
    class Scale(lib.nn.modules.lazy.LazyModuleMixin, lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = lib.nn.UninitializedParameter()
            self.seen = lib.nn.UninitializedBuffer()

        def initialize_parameters(self, x: Any, factor: float = 1.0) -> None:
            self.scale.materialize((x.shape[-1],))
            self.seen.materialize((1,), dtype=lib.int64)
            with lib.no_grad():
                self.scale.fill_(factor)
                self.seen.fill_(3)

        def forward(self, x: Any, factor: float = 1.0) -> Any:
            return x * self.scale

    class Never(lib.nn.modules.lazy.LazyModuleMixin, lib.nn.Module):
        pass

    class Half(Scale):
        def initialize_parameters(self, x: Any, factor: float = 1.0) -> None:
            self.scale.materialize((1,))

    m = Scale()
    names = [n for n, _ in m.named_buffers()]
    return [
        names,
        m(lib.ones(2), factor=3.0),
        m.seen,
        type(m).__name__,
        tried([lambda: Never()(1), lambda: Half()(lib.ones(1)), lambda: lib.nn.Linear(0, 2)]),
    ]


@case
def uninitialized(lib: Any) -> Any:
    p, b = lib.nn.UninitializedParameter(), lib.nn.UninitializedBuffer()
    lazy = lib.nn.parameter.is_lazy
    meta = lib.nn.UninitializedParameter(device="meta", dtype=lib.float64, requires_grad=False)
    out = [repr(p), repr(b), lazy(p), lazy(b), lazy(lib.ones(1)), p.size(), p.dtype, p.requires_grad, b.requires_grad]
    out += [meta.requires_grad, str(meta.dtype), meta.device.type, isinstance(p, lib.nn.Parameter), b.persistent]
    out.append(
        [outcome(call)[0][:60] for call in (lambda: p.shape, lambda: p + 1, lambda: b.sum(), lambda: p.share_memory_())]
    )
    p.materialize((2, 1), dtype=lib.float64)
    b.materialize((2,))
    out += [type(p).__name__, p.shape, str(p.dtype), p.is_leaf, type(b).__name__, b.shape, lazy(p)]
    with lib.no_grad():
        p.fill_(2.0)
    (p * 3).sum().backward()
    return [*out, p, p.grad]


@case
def adaptive_softmax(lib: Any) -> Any:
    out: list[Any] = []
    for bias in (True, False):
        lib.manual_seed(4)
        m = lib.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10, 15], div_value=2.0, head_bias=bias)
        x, y = ramp(lib, 6, 8).requires_grad_(), lib.tensor([0, 3, 5, 12, 19, 1])
        result = m(x, y)
        result.loss.backward()
        out += [repr(m), (result.output), (result.loss), (x.grad), [*m.state_dict()]]
        out += [(m.log_prob(x)), m.predict(x), (m(x[0], y[0]).output), type(result).__name__]
        out += [(m.head.weight.grad), m.predict(x * 100), result._fields]
    make = lib.nn.AdaptiveLogSoftmaxWithLoss
    return [
        out,
        tried(
            [
                lambda: make(4, 5, []),
                lambda: make(4, 5, [3, 2]),
                lambda: make(4, 5, [0]),
                lambda: make(4, 5, [5]),
                lambda: make(4, 5, [1, 1]),
                lambda: make(4, 5, [1.5]),
                lambda: m(x, y[:3]),
                lambda: m(x[None], y),
                lambda: m(x, y[0]),
                lambda: m(x, y[None]),
                lambda: m(x, y + 100),
                lambda: m.reset_parameters(),
            ]
        ),
    ]


@case
def cross_map_lrn(lib: Any) -> Any:
    out: list[Any] = []
    for size, channels in ((3, 5), (5, 4), (2, 6), (4, 9)):
        m = lib.nn.CrossMapLRN2d(size, alpha=0.5, beta=0.7, k=1.5)
        x = ramp(lib, 2, channels, 2, 3).requires_grad_()
        y = m(x)
        y.pow(2).sum().backward()
        out += [repr(m), (y), (x.grad)]
    single = lib.nn.CrossMapLRN2d(1)
    x = ramp(lib, 1, 2, 1, 1).requires_grad_()
    return [out, (single(x)), tried([lambda: single(x).sum().backward(), lambda: m(x[0])])]


@case
def old_names(lib: Any) -> Any:
    nn = lib.nn
    loss = outcome(lambda: nn.NLLLoss2d()(ramp(lib, 1, 3, 2, 2), lib.zeros(1, 2, 2, dtype=lib.int64)))
    return [
        loss,
        outcome(lambda: repr(nn.Container(a=nn.ReLU()))),
        outcome(lambda: repr(nn.NLLLoss2d(None, reduction="sum"))),
    ]


@case
def sync_batch_norm(lib: Any) -> Any:
    nn = lib.nn
    lib.manual_seed(0)
    m = nn.SyncBatchNorm(3)
    x = ramp(lib, 4, 3, 2).requires_grad_()
    y = m(x)
    y.pow(3).sum().backward()
    out = [repr(m), (y), (x.grad), m.state_dict(), (m.eval()(x)), m.process_group]
    tree = nn.Sequential(
        nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2, momentum=None), nn.Sequential(nn.BatchNorm1d(4, affine=False))
    )
    weight, mean = tree[1].weight, tree[1].running_mean
    tree.eval()
    changed = nn.SyncBatchNorm.convert_sync_batchnorm(tree)
    out += [repr(changed), changed is tree, changed[1].weight is weight, changed[1].running_mean is mean]
    out += [[k.training for k in changed.modules()], [*changed.state_dict()]]
    alone = nn.BatchNorm3d(2)
    out += [
        repr(nn.SyncBatchNorm.convert_sync_batchnorm(alone)),
        nn.SyncBatchNorm.convert_sync_batchnorm(alone) is alone,
    ]
    return [out, tried([lambda: m(lib.ones(3)), lambda: m(lib.ones(2, 0)), lambda: m(lib.ones(2, 4))])]


@case
def gradients_of_convolutions(lib: Any) -> Any:
    grad = importlib.import_module(lib.__name__ + ".nn.grad")
    out: list[Any] = []
    for rank in (1, 2, 3):
        x, w = ramp(lib, 2, 4, *(5,) * rank), ramp(lib, 6, 2, *(3,) * rank)
        for stride, padding, dilation in ((1, 0, 1), (2, 1, 1), (1, 2, 2)):
            y = getattr(lib, f"conv{rank}d")(x, w, None, stride, padding, dilation, 2)
            given = (ramp(lib, *y.shape), stride, padding, dilation, 2)
            out.append(getattr(grad, f"conv{rank}d_input")(x.shape, w, *given))
            out.append(getattr(grad, f"conv{rank}d_weight")(x, w.shape, *given))
    return out


@case
def initialisers(lib: Any) -> Any:
    init = lib.nn.init
    out: list[Any] = []
    for shape in ((3, 5), (5, 3), (4, 2, 3), (6, 3, 3, 3)):
        for call in (
            init.xavier_uniform_,
            init.xavier_normal_,
            init.kaiming_uniform_,
            init.kaiming_normal_,
            init.uniform_,
            init.normal_,
            init.trunc_normal_,
            lambda t: init.xavier_uniform_(t, gain=1.7),
            lambda t: init.constant_(t, 3),
            lambda t: init.kaiming_normal_(t, 0.3, "fan_out", "relu"),
            init.ones_,
            init.zeros_,
            lambda t: init.trunc_normal_(t, 1.0, 2.0, 3.0, 4.0),
            lambda t: init.normal_(t, generator=lib.Generator().manual_seed(5)),
        ):
            lib.manual_seed(6)
            t = lib.empty(shape)
            out.append([call(t) is t, bits(t)])
        lib.manual_seed(6)
        q = init.orthogonal_(lib.empty(shape), gain=1.5)
        out.append(q)
    lib.manual_seed(7)
    out += [
        init.sparse_(lib.empty(10, 4), 0.35),
        init.eye_(lib.empty(3, 4)),
        init.dirac_(lib.empty(4, 2, 3)),
        init.dirac_(lib.empty(4, 2, 3, 3), 2),
        init.dirac_(lib.empty(2, 3, 3, 3, 3)),
    ]
    out += [
        init.orthogonal_(lib.empty(0, 3)).shape,
        init.orthogonal_(lib.empty(2, 3, device="meta")).shape,
        init.sparse_(lib.empty(2, 3, device="meta"), 0.5).shape,
        init.eye_(lib.nn.Parameter(lib.empty(2, 2))),
    ]
    return out


@case
def initialisers_refuse(lib: Any) -> Any:
    init = lib.nn.init
    return tried(
        [
            lambda: init.orthogonal_(lib.empty(3)),
            lambda: init.sparse_(lib.empty(3), 0.5),
            lambda: init.eye_(lib.empty(3)),
            lambda: init.dirac_(lib.empty(3, 3)),
            lambda: init.dirac_(lib.empty(3, 3, 3), 2),
            lambda: init.xavier_normal_(lib.empty(3)),
            lambda: init.kaiming_normal_(lib.empty(3)),
            lambda: init.kaiming_uniform_(lib.empty(0, 3)),
            lambda: init.kaiming_normal_(lib.empty(0, 3)),
            lambda: init.kaiming_uniform_(lib.empty(2, 3), mode="x"),
            lambda: init.kaiming_uniform_(lib.empty(2, 3), nonlinearity="x"),
            lambda: init.kaiming_uniform_(lib.empty(2), mode="x"),
            lambda: init.calculate_gain("x"),
            lambda: init.calculate_gain("leaky_relu", "x"),
            lambda: init.calculate_gain("leaky_relu", True),
            lambda: [
                init.calculate_gain(n) for n in ("linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu", "conv3d")
            ],
            lambda: init.trunc_normal_(lib.empty(2), mean=9.0).shape,
            *[
                lambda name=name, extra=extra: getattr(init, name)(lib.zeros(2, 2), *extra).shape
                for name, extra in (
                    ("uniform", ()),
                    ("normal", ()),
                    ("constant", (1,)),
                    ("eye", ()),
                    ("xavier_uniform", ()),
                    ("xavier_normal", ()),
                    ("kaiming_uniform", ()),
                    ("kaiming_normal", ()),
                    ("orthogonal", ()),
                    ("sparse", (0.5,)),
                )
            ],
            lambda: init.dirac(lib.zeros(2, 2, 2)).shape,
            lambda: init.uniform.__name__,
        ]
    )


@case
def grouped_products(lib: Any) -> Any:
    mm = lib.nn.functional.grouped_mm
    out: list[Any] = []
    for dtype in (lib.float32, lib.bfloat16, lib.float16):
        a3, b3 = ramp(lib, 2, 3, 8).to(dtype).requires_grad_(), ramp(lib, 2, 8, 16).to(dtype).requires_grad_()
        a2, b2 = ramp(lib, 6, 8).to(dtype), ramp(lib, 8, 16).to(dtype)
        ends = lib.tensor([2, 6], dtype=lib.int32)
        results = [mm(a3, b3), mm(a2, b3, offs=ends), mm(a2, b2, offs=ends + 2), mm(a3, b2, offs=ends * 2 + 4)]
        (results[0].float().pow(2).sum() + results[1].float().pow(2).sum()).backward()
        results += [a3.grad, b3.grad, mm(a3, b3, out_dtype=dtype)]
        if dtype == lib.float32:
            single = results
            out += results
        else:
            # Half precision is compared with single precision, to which it is near in either library.
            out += [(t.shape, t.stride(), t.dtype) for t in results]
            out += [bool(((t.float() - s).abs() < 0.02 * s.abs().max()).all()) for t, s in zip(results, single)]
    x, y = ramp(lib, 2, 3, 8), ramp(lib, 2, 8, 16)
    return [
        out,
        tried(
            [
                lambda: mm(x.double(), y),
                lambda: mm(x, y.double()),
                lambda: mm(x[0, 0], y),
                lambda: mm(x, y[0, 0]),
                lambda: mm(x, y[:, :4]),
                lambda: mm(ramp(lib, 2, 3, 5), ramp(lib, 2, 5, 8)),
                lambda: mm(x[0], y),
                lambda: mm(x, y, offs=ends),
                lambda: mm(x[0], y, offs=ends.long()),
                lambda: mm(x[0], y, offs=ends[None]),
                lambda: mm(x, y, bias=lib.ones(16)),
                lambda: mm(x, y, out_dtype=lib.float16),
                lambda: mm(x[:1], y),
                lambda: mm(x[0], y, offs=ends[:1]),
            ]
        ),
    ]


@case
def scaled_products(lib: Any) -> Any:
    f = lib.nn.functional
    tensor_wise, row_wise = f.ScalingType.TensorWise, f.ScalingType.RowWise
    a, b = ramp(lib, 16, 32).to(lib.float8_e4m3fn), ramp(lib, 16, 32).to(lib.float8_e4m3fn).t()
    half, three = lib.tensor(0.5), lib.tensor([3.0])
    rows, columns = ramp(lib, 16, 1) + 2, ramp(lib, 1, 16) + 2
    mm = f.scaled_mm
    out = [
        mm(a, b, half, tensor_wise, three, tensor_wise).float(),
        mm(a, b, [half], [tensor_wise], three, tensor_wise, output_dtype=lib.float32, bias=ramp(lib, 16)),
        mm(a, b, rows, row_wise, columns, row_wise, output_dtype=lib.float32),
        mm(a.to(lib.float8_e5m2), b, half, tensor_wise, three, tensor_wise, output_dtype=lib.float16).float(),
        mm(a, b, half, tensor_wise, three, tensor_wise, output_dtype=None).dtype,
        mm(a, b, half, tensor_wise, three, tensor_wise, use_fast_accum=True).float(),
        [s.value for s in f.ScalingType.__members__.values()],
        [*f.ScalingType.__members__],
        [*f.SwizzleType.__members__],
    ]
    return [
        out,
        tried(
            [
                lambda: mm(a[None], b, half, tensor_wise, three, tensor_wise),
                lambda: mm(a, a, half, tensor_wise, three, tensor_wise),
                lambda: mm(a, b, half, tensor_wise, three, tensor_wise, bias=lib.ones(3)),
                lambda: mm(a, b, half, tensor_wise, columns, row_wise),
                lambda: mm(a, b, rows.double(), row_wise, columns, row_wise),
                lambda: mm(a.float(), b.float(), half, tensor_wise, three, tensor_wise),
                lambda: mm(a, b, rows, tensor_wise, three, tensor_wise),
                lambda: mm(a, b, rows[1:], row_wise, columns, row_wise),
                lambda: mm(a, b, half, row_wise, three, row_wise),
            ]
        ),
    ]


@case
def names_for_scripts(lib: Any) -> Any:
    f = lib.nn.functional
    either = f.boolean_dispatch("flag", 1, False, lambda x, flag=False: "yes", lambda x, flag=False: "no", "m", "f")
    return [
        either(1),
        either(1, True),
        either(1, flag=True),
        either.__name__,
        either.__module__,
        f.BroadcastingList2[int],
        f.GRID_SAMPLE_INTERPOLATION_MODES,
        f.GRID_SAMPLE_PADDING_MODES,
        f.has_torch_function((lib.ones(1),)),
        f.has_torch_function_unary(3),
        f.has_torch_function_variadic(1, 2),
        f.conv_tbc is lib.conv_tbc,
        tried([lambda: f.assert_int_or_pair(3, "k", "{} bad"), lambda: f.assert_int_or_pair((1, 2, 3), "k", "{} bad")]),
    ]


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name: str) -> None:
    fn = CASES[name]
    actual, expected = outcome(lambda: fn(subject)), outcome(lambda: fn(_oracle.load()))
    alike(same_words(actual), same_words(expected), name)


def alike(actual: Any, expected: Any, where: str) -> None:
    """Equal, numbers up to the rounding of sums in single precision."""
    if isinstance(expected, float):
        assert actual == pytest.approx(expected, rel=1e-4, abs=2e-5, nan_ok=True), where
    elif isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected), where
        for i, (mine, other) in enumerate(zip(actual, expected)):
            alike(mine, other, f"{where}[{i}]")
    elif isinstance(expected, dict):
        assert list(actual) == list(expected), where
        for key, other in expected.items():
            alike(actual[key], other, f"{where}.{key}")
    else:
        assert actual == expected, where


def bits(t: Any) -> list[str]:
    """The values as texts in which no bit is lost."""
    return [float(v).hex() for v in t.detach().flatten().tolist()]


@pytest.mark.parametrize("name", CASES)
def test_cases_run_without_an_oracle(name: str) -> None:
    result, _ = outcome(lambda: CASES[name](subject))
    assert not isinstance(result, str), result


@mindtorch_only
@pytest.mark.parametrize("name", ["LazyLinear", "LazyConv2d", "LazyBatchNorm1d", "LazyInstanceNorm2d"])
def test_lazy_on_npu(name: str) -> None:
    """A lazy module that is moved before its first call is initialised where it was moved to."""
    start()
    torch = subject
    m, x = made(torch, name)
    m.to("npu")
    torch.manual_seed(0)
    result = m(x.to("npu"))
    torch.manual_seed(0)
    assert all(p.device.type == "npu" and not torch.nn.parameter.is_lazy(p) for p in (*m.parameters(), *m.buffers()))
    reference = copy.deepcopy(m).to("cpu")
    reference.train()
    assert torch.allclose(result.cpu(), reference(x), atol=1e-3)


def _with_kwargs(module: Any, args: Any, kwargs: Any) -> Any:
    return args, {"input": kwargs["input"] * 2}


def _doubled(module: Any, args: Any, output: Any) -> Any:
    return output * 2


def _renamed(module: Any, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
    for key in [key for key in state_dict if "old" in key]:
        state_dict[key.replace("old", "bias")] = state_dict.pop(key)


def test_whole_modules_of_the_oracle(oracle: ModuleType) -> None:
    """Pickled whole by PyTorch: lazy modules become ordinary ones at their first call, hooks run."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that lazy modules are new
        oracle.save(oracle.nn.Sequential(oracle.nn.LazyLinear(4), oracle.nn.LazyBatchNorm1d()), file)
    file.seek(0)
    ours = subject.load(file, weights_only=False)
    assert ours[0].has_uninitialized_params() and ours(subject.ones(2, 3)).shape == (2, 4)
    assert type(ours[0]) is subject.nn.Linear and type(ours[1]) is subject.nn.BatchNorm1d
    assert not ours[0]._forward_pre_hooks and not ours[0]._load_state_dict_pre_hooks

    theirs = oracle.nn.Linear(3, 2)
    theirs.register_forward_pre_hook(_with_kwargs, with_kwargs=True)
    handle = theirs.register_forward_hook(_doubled)
    theirs.register_load_state_dict_pre_hook(_renamed)
    file = io.BytesIO()
    oracle.save((theirs, handle), file)
    file.seek(0)
    ours, handle = subject.load(file, weights_only=False)
    expected = theirs(input=oracle.ones(1, 3)).tolist()
    subject.testing.assert_close(ours(input=subject.ones(1, 3)), subject.tensor(expected))
    handle.remove()
    subject.testing.assert_close(ours(input=subject.ones(1, 3)), subject.tensor(expected) / 2)
    ours.load_state_dict({"weight": subject.ones(2, 3), "old": subject.zeros(2)})
    assert ours(input=subject.ones(1, 3)).tolist() == [[6.0, 6.0]]


def test_the_oracle_reads_whole_modules(oracle: ModuleType) -> None:
    """What our hooks want (keywords, to be called always) is known to whoever reads the module."""
    module = subject.nn.Linear(3, 2)
    before = module.register_forward_pre_hook(_with_kwargs, with_kwargs=True)
    module.register_forward_hook(_doubled)
    file = io.BytesIO()
    subject.save(module, file)
    for library in (oracle, subject):
        file.seek(0)
        read = library.load(file, weights_only=False)
        result = read(input=library.ones(1, 3)).tolist()
        subject.testing.assert_close(subject.tensor(result), module(input=subject.ones(1, 3)))
    state = module.__getstate__()
    assert {**state["_forward_pre_hooks_with_kwargs"]} == {before.id: True}
    assert not state["_forward_hooks_with_kwargs"] and not state["_forward_hooks_always_called"]
    always = module.register_forward_hook(_doubled, with_kwargs=True, always_call=True)
    state = module.__getstate__()
    assert {**state["_forward_hooks_with_kwargs"]} == {**state["_forward_hooks_always_called"]} == {always.id: True}


def test_load_hooks_are_wrapped() -> None:
    """The dictionary holds wrappers that look like their hooks; removing spectral_norm sees through them."""
    module = subject.nn.Linear(3, 2)
    module._register_load_state_dict_pre_hook(_renamed)
    (hook,) = module._load_state_dict_pre_hooks.values()
    assert hook.hook is _renamed and hook.__name__ == "_renamed" and not hook.with_module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        subject.nn.utils.spectral_norm(module)
    assert len(module._load_state_dict_pre_hooks) == 2
    subject.nn.utils.remove_spectral_norm(module)
    assert [*module._load_state_dict_pre_hooks.values()] == [hook]
