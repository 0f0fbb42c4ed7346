"""`FakeTensor`: what is known of a result without values is what real tensors give."""

from __future__ import annotations

import copy
import io
from types import ModuleType
from typing import Any

import pytest

from .._subject import mindtorch_only, submodule
from .._subject import subject as torch

fake_tensor = submodule("_subclasses.fake_tensor")
guards = submodule("_guards")
F = torch.nn.functional
FakeTensor, FakeTensorMode = fake_tensor.FakeTensor, fake_tensor.FakeTensorMode

# What `x` (3, 4), `y` (3, 4), `i` (int64), `b` (bool), `img` (2, 3, 8, 8) and `w` (5, 3, 3, 3) are put into.
CALLS = """
x + y
x + 1
1 - x
x * i[:, None]
x / 2
x // 2
x > y
x.t()
x.t() + y.t()
x.t().contiguous()
x.transpose(0, 1).reshape(-1)
x.view(2, 6)
x.unsqueeze(1).expand(3, 5, 4)
x[0]
x[:, 1:3]
x[..., ::2]
x[i]
x[:, None]
x @ y.t()
torch.mm(x, y.t())
torch.bmm(x.unsqueeze(0), y.t().unsqueeze(0))
torch.matmul(img, img.transpose(-1, -2))
x.sum()
x.sum(1, keepdim=True)
x.mean((0, 1))
x.max(1).values
x.argmax(0)
x.std(0)
x.var()
x.softmax(1)
x.log_softmax(0)
x.cumsum(1)
torch.cat([x, y], 1)
torch.stack([x, y])
x.split(2, 1)[1]
x.chunk(2)[0]
x.unbind(1)[2]
torch.where(b, x, y)
x.masked_fill(b, 0.0)
x.clamp(min=0)
x.to(torch.float16)
x.double()
x.int()
x.relu()
F.gelu(x)
F.silu(x)
F.dropout(x, 0.5)
F.layer_norm(x, (4,))
F.linear(x, y)
F.conv2d(img, w, padding=1, stride=2)
F.conv2d(img.to(memory_format=torch.channels_last), w)
F.max_pool2d(img, 2)
F.avg_pool2d(img, 3, 1)
F.adaptive_avg_pool2d(img, 2)
F.interpolate(img, scale_factor=2)
F.batch_norm(img, torch.zeros(3), torch.ones(3))
F.group_norm(img, 3)
F.pad(x, (1, 2))
F.embedding(i, x)
F.cross_entropy(x, i)
F.mse_loss(x, y)
F.scaled_dot_product_attention(img, img, img)
x.sort(1)[1]
x.topk(2)[0]
x.flip(0)
x.roll(1, 0)
x.tril()
x.gather(1, i[:, None])
x.index_select(0, i)
x.scatter(1, i[:, None], 1.0)
x.repeat(2, 1)
x.permute(1, 0)
x.flatten()
torch.einsum("ij,kj->ik", x, y)
torch.zeros_like(x)
torch.zeros(2, 3)
torch.arange(5)
torch.rand(2)
torch.full((2,), 1)
x.new_ones(3)
torch.linalg.norm(x)
torch.outer(x[0], y[0])
x.norm()
x.clone()
x.detach()
x.as_strided((2, 2), (1, 2))
x.clamp(0, 1).bernoulli()
x.add_(1)
x.unsqueeze_(0)
x.isnan()
x.all()
x.diagonal()
torch.meshgrid(x[0], y[0], indexing="ij")[1]
torch.tril_indices(3, 3)
img.mean((2, 3))
img.permute(0, 2, 3, 1)
img.flatten(1)
x.addmm(x, torch.ones(4, 4))
torch.addcmul(x, x, y)
torch.fft.fft(x)
x.squeeze()
torch.complex(x, y)
""".strip().splitlines()


def inputs() -> dict[str, Any]:
    g = torch.Generator().manual_seed(0)
    x = torch.rand(3, 4, generator=g) + 0.5
    return {
        "x": x,
        "y": torch.rand(3, 4, generator=g),
        "i": torch.tensor([0, 2, 1]),
        "b": x > 1,
        "img": torch.rand(2, 3, 8, 8, generator=g),
        "w": torch.rand(5, 3, 3, 3, generator=g),
    }


def described(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return (tuple(value.shape), value.stride(), value.dtype, value.device, value.requires_grad, value.is_leaf)
    if isinstance(value, (tuple, list)):
        return [described(v) for v in value]
    return value


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("grad", [False, True])
def test_as_real_ones(call: str, grad: bool) -> None:
    if grad and ("add_(" in call or "unsqueeze_" in call):
        grad = False
    space = {"torch": torch, "F": F}
    mode = FakeTensorMode()
    real = inputs()
    fakes = {k: mode.from_tensor(v) for k, v in real.items()}
    if grad:
        real["x"].requires_grad_()
        fakes["x"].requires_grad_()
    expected = eval(call, space, real)
    with mode:
        found = eval(call, space, fakes)
    assert described(found) == described(expected)
    assert isinstance(found, FakeTensor)


def test_gradients() -> None:
    mode = FakeTensorMode()
    with mode:
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        net(torch.ones(5, 3)).sum().backward()
    for p in net.parameters():
        assert isinstance(p, torch.nn.Parameter) and isinstance(p, FakeTensor)
        assert p.grad.shape == p.shape and isinstance(p.grad, FakeTensor)


def test_converted_once() -> None:
    mode = FakeTensorMode()
    base = torch.ones(2, 3)
    fake = mode.from_tensor(base)
    assert mode.from_tensor(base) is fake
    view = mode.from_tensor(base.t())
    assert view.stride() == (1, 3) and view._is_view() and view._base is fake
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    q = mode.from_tensor(p)
    assert isinstance(q, torch.nn.Parameter) and q.requires_grad and q.is_leaf and isinstance(q.grad, FakeTensor)
    part = mode.from_tensor(p * 2)
    assert part.requires_grad and not part.is_leaf


TEXTS = [
    "a",
    "a @ a.t()",
    "a.sum().item()",
    "a.nonzero()",
    "a.tolist()",
    "torch.tensor(3.0).item()",
    "(torch.tensor(3.0) + 1).item()",
    "torch.tensor(3.0)",
    "torch.masked_select(a, a > 0)",
    "bool(a.sum() > 0)",
    "a.numpy()",
    "a.to('meta')",
    "a.to(torch.float64)",
    "torch.nn.Parameter(a)",
    "torch.nn.Linear(3, 4)(a)",
    "torch.empty(2, device='meta')",
    "(a.clone().requires_grad_() * 2)",
    "real + 1",
    "real + a",
    "[a, {'k': a.int()}]",
    "FakeTensor(mode, torch.ones(2), torch.device('cpu'))",
]


def answer(lib: Any, text: str) -> tuple[str, str]:
    fakes = __import__(f"{lib.__name__}._subclasses.fake_tensor", fromlist=["FakeTensor"])
    mode = fakes.FakeTensorMode()
    real = lib.ones(2, 3)
    space = {"torch": lib, "mode": mode, "real": real, "FakeTensor": fakes.FakeTensor, "a": mode.from_tensor(real)}
    with mode if "FakeTensor" not in text else fakes.unset_fake_temporarily():
        try:
            return "", repr(eval(text, space))
        except Exception as error:
            return type(error).__name__, str(error)


@pytest.mark.parametrize("text", TEXTS)
def test_texts(oracle: ModuleType, text: str) -> None:
    assert answer(torch, text) == answer(oracle, text)


@mindtorch_only
def test_claimed_devices() -> None:
    mode = FakeTensorMode()
    npu = FakeTensor(mode, torch.empty(2, device="meta"), torch.device("npu"))
    assert npu.device == torch.device("npu:0") and (npu * 2).device.type == "npu"
    host = mode.from_tensor(torch.ones(2))
    with pytest.raises(fake_tensor.FakeTensorDeviceMismatchError, match="at least two devices, npu:0 and cpu!"):
        npu + host
    assert (npu + mode.from_tensor(torch.tensor(1.0))).device.type == "npu"
    with mode:
        assert torch.ones(2, device="npu:0").device == torch.device("npu:0")
        assert npu.cpu().device.type == "cpu"
        assert npu.new_zeros(2).device.type == "npu"


def test_modes_do_not_mix() -> None:
    left, right = FakeTensorMode(), FakeTensorMode()
    a, b = left.from_tensor(torch.ones(2)), right.from_tensor(torch.ones(2))
    with pytest.raises(AssertionError, match="Mixing fake modes NYI"):
        a + b
    assert guards.detect_fake_mode([a]) is left and guards.detect_fake_mode([torch.ones(1)]) is None
    with pytest.raises(AssertionError, match="doesn't match mode"):
        guards.detect_fake_mode([a, b])
    with left:
        assert guards.detect_fake_mode() is left
        with fake_tensor.unset_fake_temporarily():
            assert type(torch.ones(1)) is torch.Tensor
        assert type(torch.ones(1)) is FakeTensor
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(torch.ones(2) + 1, FakeTensor)


def test_copies() -> None:
    mode = FakeTensorMode()
    fake = mode.from_tensor(torch.ones(2, 3))
    assert isinstance(copy.deepcopy(fake), FakeTensor)
    with pytest.raises(Exception):  # noqa: B017 (PyTorch fails with words about pickling)
        torch.save(fake, io.BytesIO())
    with fake_tensor.FakeCopyMode(mode):
        net = copy.deepcopy(torch.nn.Linear(2, 2))
    assert isinstance(net.weight, FakeTensor) and isinstance(net.weight, torch.nn.Parameter)


def test_writing_ends_a_constant() -> None:
    with FakeTensorMode():
        t = torch.tensor(2.0)
        assert t.item() == 2.0
        t.add_(torch.rand(()))
        with pytest.raises(fake_tensor.DataDependentOutputException):
            t.item()


@mindtorch_only
def test_symbolic_sizes_are_refused() -> None:
    mode = FakeTensorMode(shape_env=object())
    with pytest.raises(NotImplementedError, match="sizes are numbers here"):
        mode.from_tensor(torch.ones(2))
    with pytest.raises(NotImplementedError, match="sizes are numbers here"):
        FakeTensorMode().from_tensor(torch.ones(2), static_shapes=False)
