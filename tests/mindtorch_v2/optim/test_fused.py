"""The fused steps: the rows against PyTorch's, the native pass against the loop, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from .._oracle import assert_same, from_oracle
from .._subject import IS_ORACLE, mindtorch_only, submodule
from .._subject import subject as torch

nn = submodule("nn")
optim = submodule("optim")

# Both compute in float and round once; a last bit may differ.
TOLERANCE = {"float32": (1e-5, 1e-6), "float64": (1e-12, 1e-13), "bfloat16": (1.6e-2, 1e-2), "float16": (2e-3, 1e-3)}
ADAM: dict[str, Any] = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-3, "amsgrad": False, "maximize": False}
ROWS: list[tuple[str, int, dict[str, Any]]] = [
    (name, 2 + options.get("amsgrad", False), {"lr": 0.1, "weight_decay": 0.0, **ADAM, **options})
    for name in ("_fused_adam_", "_fused_adamw_")
    for options in ({}, {"weight_decay": 0.3}, {"amsgrad": True, "maximize": True}, {"beta1": 0.1, "weight_decay": 0.1})
]
SGD: dict[str, Any] = {"dampening": 0.0, "nesterov": False, "maximize": False, "is_first_step": False}
ROWS += [
    ("_fused_sgd_", int(options["momentum"] > 0), {"lr": 0.1, "weight_decay": 0.0, **SGD, **options})
    for options in (
        {"momentum": 0.0},
        {"momentum": 0.0, "weight_decay": 0.2, "maximize": True},
        {"momentum": 0.9, "dampening": 0.3},
        {"momentum": 0.9, "is_first_step": True, "weight_decay": 0.1},
        {"momentum": 0.9, "nesterov": True},
        {"momentum": 0.9, "nesterov": True, "is_first_step": True},
    )
]
ROWS += [
    ("_fused_adagrad_", 1, {"lr": 0.1, "lr_decay": 0.5, "eps": 1e-3, "maximize": maximize, "weight_decay": decay})
    for maximize, decay in ((False, 0.0), (True, 0.2))
]


def lists(oracle: Any, dtype: str, states: int) -> list[list[Any]]:
    oracle.manual_seed(3)
    shapes = ((7,), (3, 5), (), (0,), (2, 3, 4, 5))
    made = [[oracle.randn(s).to(getattr(oracle, dtype)) for s in shapes] for _ in range(2 + states)]
    for tensors in made[2:]:
        for tensor in tensors:
            tensor.abs_()
    return made


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("scaling", [{}, {"grad_scale": 4.0}, {"grad_scale": 4.0, "found_inf": 1.0}])
def test_rows(oracle: Any, dtype: str, scaling: dict[str, float]) -> None:
    for name, states, options in ROWS:
        # PyTorch 2.13's step of SGD leaves most halves as they were: it computes in float, and we round.
        wide = dtype in ("bfloat16", "float16") and name == "_fused_sgd_"
        if wide and IS_ORACLE:
            continue
        for rate in (0.1, "tensor"):
            theirs = lists(oracle, dtype, states)
            mine = [[from_oracle(t) for t in tensors] for tensors in theirs]
            if wide:
                theirs = [[t.float() for t in tensors] for tensors in theirs]
            for library, given in ((oracle, theirs), (torch, mine)):
                numbers = {key: library.tensor(value) for key, value in scaling.items()}
                lr = library.tensor(0.1) if rate == "tensor" else rate
                steps = [[library.tensor(3.0) for _ in given[0]]] if "sgd" not in name else []
                if ("adam" in name and states == 2) or ("sgd" in name and states == 0):
                    steps = [[], *steps]
                # By its name: the parser takes a tensor of one element for a number.
                packet = getattr(library.ops.aten, name)
                step = packet.tensor_lr if rate == "tensor" else getattr(library, name)
                step(*given, *steps, **{**options, "lr": lr}, **numbers)
            rtol, atol = TOLERANCE[dtype]
            if wide:
                theirs = [[t.to(getattr(oracle, dtype)) for t in tensors] for tensors in theirs]
            assert_same(mine, theirs, rtol, atol, f"{name} {options} {rate} {scaling} {dtype}")


def run(name: str, params: list[Any], grads: list[Any], steps: int = 3, **options: Any) -> list[Any]:
    """The parameters after some steps, each a new leaf of the same layout."""
    leaves = [nn.Parameter(p.detach().clone(memory_format=torch.preserve_format)) for p in params]
    optimizer = getattr(optim, name)(leaves, lr=0.1, **options)
    for number in range(steps):
        for leaf, grad in zip(leaves, grads):
            leaf.grad = grad * (number + 1)
        optimizer.step()
    return leaves


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {}),
        ("SGD", {"momentum": 0.9, "weight_decay": 0.1}),
        ("Adam", {"weight_decay": 0.1}),
        ("Adam", {"amsgrad": True}),
        ("AdamW", {}),
    ],
)
def test_nobody_asked(name: str, options: dict[str, Any], dtype: Any) -> None:
    """Without `fused` and `foreach` the native pass does what the loop does, in every layout."""
    torch.manual_seed(1)
    params = [
        torch.randn(70_000, dtype=dtype),  # more than one thread's share
        torch.randn(3, 4, dtype=dtype).t(),
        torch.randn(2, 3, 4, 5, dtype=dtype).contiguous(memory_format=torch.channels_last),
        torch.randn(5, dtype=dtype),
        torch.randn((), dtype=dtype),
    ]
    grads = [torch.randn_like(p) for p in params]
    grads[3] = torch.randn(10, dtype=dtype)[::2]  # with gaps: the parts serve everything
    close = {torch.float32: 1e-5, torch.float64: 1e-12}[dtype]
    for some in (slice(0, 5), slice(0, 3), slice(4, 5)):
        mine = run(name, params[some], grads[some], **options)
        loop = run(name, params[some], grads[some], foreach=False, **options)
        for left, right in zip(mine, loop):
            assert left.stride() == right.stride()
            assert torch.allclose(left, right, rtol=close, atol=close)


def test_a_parameter_given_twice() -> None:
    """Twice in a list: one update after the other, never both at once."""
    for name in ("SGD", "Adam"):
        results = []
        for options in ({}, {"foreach": False}):
            param = nn.Parameter(torch.zeros(50_000))
            param.grad = torch.ones(50_000)
            with pytest.warns(UserWarning, match="duplicate parameters"):
                optimizer = getattr(optim, name)([param, param], lr=0.5, **options)
            optimizer.step()
            results.append(param.detach())
        assert torch.allclose(results[0], results[1])


def test_parameters_in_one_buffer() -> None:
    buffer = torch.zeros(10)
    params = [buffer[:4].detach().requires_grad_(), buffer[4:].detach().requires_grad_()]
    for param in params:
        param.grad = torch.ones_like(param)
    optim.SGD(params, lr=1.0).step()
    assert buffer.tolist() == [-1.0] * 10


def test_found_inf_leaves_everything() -> None:
    for name in ("Adam", "AdamW", "SGD", "Adagrad"):
        param = nn.Parameter(torch.ones(2))
        param.grad = torch.full((2,), float("inf"))
        optimizer = getattr(optim, name)([param], fused=True)
        optimizer.grad_scale, optimizer.found_inf = torch.tensor(2.0), torch.tensor(1.0)
        optimizer.step()
        assert param.tolist() == [1.0, 1.0]
        state = optimizer.state[param]
        assert "step" not in state or state["step"].item() == 0.0
        param.grad = torch.full((2,), 6.0)
        optimizer.found_inf = torch.tensor(0.0)
        optimizer.step()
        assert param.grad.tolist() == [3.0, 3.0] and param[0].item() < 1.0


def test_no_number_stays_none() -> None:
    for options in ({}, {"amsgrad": True}, {"foreach": False, "amsgrad": True}):
        param = nn.Parameter(torch.ones(3))
        param.grad = torch.tensor([1.0, float("nan"), 1.0])
        optimizer = optim.Adam([param], **options)
        optimizer.step()
        param.grad = torch.ones(3)
        optimizer.step()
        assert torch.isnan(param).tolist() == [False, True, False]


@mindtorch_only
@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({0: 4}, NotImplementedError, "not implemented for 'Long'"),
        ({1: 3}, ValueError, "3 lists"),
        ({2: [1, 2]}, TypeError, "11 items for each parameter"),
        ({2: ()}, TypeError, "11 items for each parameter"),
        ({"numel": 5}, RuntimeError, "outside a storage"),
        ({"numel": -1}, ValueError, "-1 elements"),
        ({"numel": 1 << 62}, RuntimeError, "overflow"),
        ({"offset": -1}, RuntimeError, "outside a storage"),
        ({"offset": (1 << 63) - 1}, RuntimeError, "overflow"),
        ({"offset": 1}, RuntimeError, "outside a storage"),
        ({"storage": object()}, TypeError, "expected a Storage"),
        ({"numel": 4.0}, TypeError, "expected an int"),
        ({"numel": True}, TypeError, "expected an int"),
        ({"offset": None}, TypeError, "expected an int"),
        ({"step": 1}, TypeError, "expected a Storage"),
        ({"step": None}, TypeError, "expected a Storage"),
        ({"step_code": 4}, NotImplementedError, "not implemented"),
        ({"step_code": 99}, ValueError, "no dtype code"),
        ({"step": torch.zeros(1)._storage, "place": None}, TypeError, "expected an int"),
        ({"step": torch.zeros(1)._storage, "place": 1}, RuntimeError, "outside a storage"),
        ({"step": torch.zeros(1)._storage, "place": -1}, RuntimeError, "outside a storage"),
        ({"step": torch.zeros(1)._storage, "place": 0, "step_code": 7}, RuntimeError, "outside a storage"),
        ({"step": torch.zeros(0)._storage, "place": 0}, RuntimeError, "outside a storage"),
    ],
)
def test_native_refusals(change: dict[Any, Any], error: type[Exception], text: str) -> None:
    from mindtorch_v2 import _native

    tensors = [torch.ones(4) for _ in range(4)]
    block: list[Any] = [change.get("numel", 4)]
    for tensor in tensors:
        block += [tensor._storage, 0]
    block[-1] = change.get("offset", 0)
    block[-2] = change.get("storage", block[-2])
    block += [change.get("step", 1.0), change.get("place")]
    args: list[Any] = [6, 4, block, change.get("step_code", 6), 0.1, 0.9, 0.99, 0.0, 1e-8, False, False, None]
    for place, value in change.items():
        if isinstance(place, int):
            args[place] = value
    with pytest.raises(error, match=text):
        _native.fused_adam(*args)
    assert all(tensor.tolist() == [1.0] * 4 for tensor in tensors)


@mindtorch_only
def test_native_overlap() -> None:
    from mindtorch_v2 import _native

    a, b = torch.ones(6), torch.ones(4)
    for blocks, done in (
        ([4, a._storage, 0, b._storage, 0], True),
        ([4, a._storage, 0, a._storage, 2], False),
        ([4, a._storage, 0, b._storage, 0, 3, a._storage, 3, b._storage, 0], False),
        ([3, a._storage, 0, b._storage, 0, 3, a._storage, 3, b._storage, 1], True),
    ):
        before = a.tolist()
        assert _native.fused_sgd(6, 2, blocks, 0.5, 0.0, 0.0, 0.0, False, False, False, None) is done
        assert (a.tolist() != before) is done
