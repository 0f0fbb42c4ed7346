"""`nn.Module`: registration, attributes, walking, conversion, hooks, text."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule

nn = submodule("nn")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.second = nn.Sequential(nn.ReLU(), nn.Linear(3, 1, bias=False))
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("cache", torch.ones(2), persistent=False)

    def forward(self, x: Any, shift: float = 0.0) -> Any:
        return self.second(self.first(x)) * self.scale + shift


class Add(nn.Module):
    def forward(self, x: Any, y: float = 1.0) -> Any:
        return x + y


def test_names_of_parameters_buffers_modules() -> None:
    net = Net()
    names = ["scale", "first.weight", "first.bias", "second.1.weight"]
    assert [name for name, _ in net.named_parameters()] == names
    assert [name for name, _ in net.named_parameters(prefix="m", recurse=False)] == ["m.scale"]
    assert [name for name, _ in net.named_buffers()] == ["count", "cache"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "second", "second.0", "second.1"]
    assert [name for name, _ in net.named_children()] == ["first", "second"]
    assert len(list(net.parameters())) == 4
    assert len(list(net.modules())) == 5
    assert list(net.buffers())[0] is net.count


def test_shared_members_are_walked_once() -> None:
    layer = nn.Linear(2, 2)
    net = nn.Sequential(layer, layer)
    assert len(list(net.modules())) == 2
    assert len(list(net.modules(remove_duplicate=False))) == 3
    assert len(list(net.parameters())) == 2
    doubled = [name for name, _ in net.named_parameters(remove_duplicate=False)]
    assert doubled == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert [name for name, _ in net.named_children()] == ["0"]


def test_assignment_moves_a_name_between_kinds() -> None:
    net = nn.Module()
    net.x = 1
    net.x = nn.Parameter(torch.ones(1))
    assert "x" in net._parameters and "x" not in net.__dict__
    net.x = None
    assert net.x is None and "x" in net._parameters
    del net.x
    assert not hasattr(net, "x")
    net.x = nn.Linear(1, 1)
    assert "x" in net._modules
    net.x = nn.Parameter(torch.ones(1))
    assert "x" not in net._modules and "x" in net._parameters
    net.b = nn.Buffer(torch.ones(1), persistent=False)
    assert "b" in net._buffers and "b" not in net.state_dict()
    net.b = torch.zeros(1)
    assert net._buffers["b"].item() == 0.0 and "b" not in net.state_dict()


@pytest.mark.parametrize(
    ("action", "error", "text"),
    [
        (lambda m: setattr(m, "weight", torch.ones(1)), TypeError, "cannot assign 'torch.FloatTensor' as parameter"),
        (lambda m: setattr(m, "child", 3), TypeError, "cannot assign 'int' as child module 'child'"),
        (lambda m: setattr(m, "buffer", 3), TypeError, "cannot assign 'int' as buffer 'buffer'"),
        (lambda m: m.register_parameter("a.b", None), KeyError, 'parameter name can\'t contain "."'),
        (lambda m: m.register_parameter("", None), KeyError, "parameter name can't be empty string"),
        (lambda m: m.register_parameter("child", None), KeyError, "attribute 'child' already exists"),
        (lambda m: m.register_parameter(3, None), TypeError, "parameter name should be a string. Got int"),
        (lambda m: m.register_parameter("p", torch.ones(1)), TypeError, "cannot assign 'torch.FloatTensor' object to"),
        (lambda m: m.register_buffer("a.b", None), KeyError, 'buffer name can\'t contain "."'),
        (lambda m: m.register_buffer("p", 3), TypeError, "cannot assign 'int' object to buffer 'p'"),
        (lambda m: m.add_module("x", 3), TypeError, "int is not a Module subclass"),
        (lambda m: m.add_module("a.b", nn.ReLU()), KeyError, "module name can't contain"),
        (lambda m: m.add_module("weight", nn.ReLU()), KeyError, "attribute 'weight' already exists"),
        (lambda m: m.missing, AttributeError, "'Module' object has no attribute 'missing'"),
        (lambda m: m.get_submodule("nothing"), AttributeError, "Module has no attribute `nothing`"),
        (lambda m: m.get_submodule("weight"), AttributeError, "`weight` is not an nn.Module"),
        (lambda m: m.get_parameter("buffer"), AttributeError, "`buffer` is not an nn.Parameter"),
        (lambda m: m.get_buffer("weight"), AttributeError, "`weight` is not a buffer"),
        (lambda m: m.train("yes"), ValueError, "training mode is expected to be boolean"),
        (lambda m: m.to(torch.int64), TypeError, "nn.Module.to only accepts floating point or complex dtypes"),
        (lambda m: m(1), NotImplementedError, 'Module [Module] is missing the required "forward" function'),
        (lambda m: nn.Module(3), TypeError, "Module.__init__() takes 1 positional argument but 2 were given"),
        (lambda m: nn.Module(x=3), TypeError, "Module.__init__() got an unexpected keyword argument 'x'"),
        (lambda m: m.load_state_dict(3), TypeError, "Expected state_dict to be dict-like, got <class 'int'>."),
    ],
)
def test_wrong_use(action: Any, error: type[Exception], text: str) -> None:
    module = nn.Module()
    module.weight = nn.Parameter(torch.ones(2))
    module.child = nn.ReLU()
    module.register_buffer("buffer", torch.ones(1))
    with pytest.raises(error) as caught:
        action(module)
    assert text in str(caught.value.args[0])


def test_assignment_before_init() -> None:
    class Early(nn.Module):
        def __init__(self, value: Any) -> None:
            self.x = value

    for value, kind in ((nn.Parameter(torch.ones(1)), "parameters"), (nn.ReLU(), "module")):
        with pytest.raises(AttributeError, match=rf"cannot assign {kind} before Module.__init__\(\) call"):
            Early(value)


def test_paths() -> None:
    net = Net()
    assert net.get_submodule("second.1") is net.second[1]
    assert net.get_submodule("") is net
    assert net.get_parameter("second.1.weight") is net.second[1].weight
    assert net.get_buffer("count") is net.count
    net.set_submodule("second.0", nn.Tanh())
    assert isinstance(net.second[0], nn.Tanh)
    with pytest.raises(AttributeError, match="has no attribute `9`"):
        net.set_submodule("second.9", nn.Tanh(), strict=True)


def test_train_eval_requires_grad_zero_grad_apply() -> None:
    net = Net()
    assert net.training and net.eval() is net
    assert not any(module.training for module in net.modules())
    assert net.train().second[0].training
    net(torch.ones(4, 2)).sum().backward()
    assert net.first.weight.grad is not None
    net.zero_grad(set_to_none=False)
    assert net.first.weight.grad.abs().sum().item() == 0.0
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    assert not any(p.requires_grad for p in net.requires_grad_(False).parameters())
    seen: list[str] = []
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Linear", "ReLU", "Linear", "Sequential", "Net"]


def test_conversion_keeps_parameters_and_integers() -> None:
    net = Net()
    weight = net.first.weight
    net(torch.ones(1, 2)).sum().backward()
    assert net.double() is net
    assert net.first.weight is weight and weight.dtype is torch.float64 and weight.grad.dtype is torch.float64
    assert net.count.dtype is torch.int64 and net.cache.dtype is torch.float64
    net.to(dtype=torch.float32)
    assert weight.dtype is torch.float32
    net.to(torch.ones(1, dtype=torch.bfloat16))
    assert weight.dtype is torch.bfloat16
    net.float().half().float()
    assert weight.dtype is torch.float32


def test_meta_and_back() -> None:
    net = Net().to("meta")
    assert net.first.weight.is_meta and isinstance(net.first.weight, nn.Parameter) and net.count.is_meta
    assert tuple(net(torch.ones(5, 2, device="meta")).shape) == (5, 1)
    with pytest.raises(NotImplementedError, match=r"Please use torch\.nn\.Module\.to_empty\(\)"):
        net.to("cpu")
    net.to_empty(device="cpu")
    assert not net.first.weight.is_meta and net.first.weight.requires_grad
    built = nn.Linear(2, 2, device="meta", dtype=torch.float64)
    assert built.weight.is_meta and built.weight.dtype is torch.float64
    with torch.device("meta"):
        assert nn.Linear(2, 2).weight.is_meta


def test_forward_hooks() -> None:
    layer = Add()
    log: list[str] = []
    pre = layer.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    post = layer.register_forward_hook(lambda m, args, out: out + 100)
    layer.register_forward_hook(lambda m, args, out: log.append("second"))
    layer.register_forward_hook(lambda m, args, out: log.append("first"), prepend=True)
    assert layer(torch.tensor(1.0)).item() == 103.0
    assert log == ["first", "second"]
    pre.remove()
    post.remove()
    post.remove()
    assert layer(torch.tensor(1.0)).item() == 2.0


def test_forward_hooks_with_kwargs() -> None:
    layer = Add()
    layer.register_forward_pre_hook(lambda m, args, kwargs: (args, {"y": kwargs["y"] + 1}), with_kwargs=True)
    layer.register_forward_hook(lambda m, args, kwargs, out: out * kwargs["y"], with_kwargs=True)
    assert layer(torch.tensor(1.0), y=2.0).item() == 12.0
    single = Add()
    single.register_forward_pre_hook(lambda m, args: torch.tensor(7.0))
    assert single(torch.tensor(0.0)).item() == 8.0
    wrong = Add()
    wrong.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple of"):
        wrong(torch.tensor(0.0))


def test_forward_hook_always_called() -> None:
    class Failing(nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("no")

    layer = Failing()
    seen: list[Any] = []
    layer.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    layer.register_forward_hook(lambda m, args, out: seen.append("never"))
    with pytest.raises(ValueError, match="no"):
        layer(torch.ones(1))
    assert seen == [None]


def test_repr() -> None:
    assert repr(Net()) == (
        "Net(\n  (first): Linear(in_features=2, out_features=3, bias=True)\n  (second): Sequential(\n"
        "    (0): ReLU()\n    (1): Linear(in_features=3, out_features=1, bias=False)\n  )\n)"
    )
    assert repr(nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Linear(1, 1)])) == (
        "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Linear(in_features=1, out_features=1, bias=True)\n)"
    )
    assert repr(nn.ModuleDict({"a": nn.ReLU(inplace=True)})) == "ModuleDict(\n  (a): ReLU(inplace=True)\n)"
    assert repr(nn.Module()) == "Module()"
    assert repr(nn.LayerNorm(3)) == "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)"
    assert repr(nn.Embedding(3, 4, padding_idx=-1)) == "Embedding(3, 4, padding_idx=2)"
    assert repr(nn.GELU()) == "GELU(approximate='none')"
    assert repr(nn.CrossEntropyLoss()) == "CrossEntropyLoss()"
    assert repr(nn.Flatten()) == "Flatten(start_dim=1, end_dim=-1)"
    assert repr(nn.ParameterList([torch.ones(2, 3)])) == (
        "ParameterList(  (0): Parameter containing: [torch.float32 of size 2x3])"
    )
    assert "first" in dir(Net()) and "scale" in dir(Net())


def test_deepcopy_and_pickle() -> None:
    net = Net()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other.first.weight is not net.first.weight
        assert isinstance(other.first.weight, nn.Parameter) and other.first.weight.requires_grad
        assert torch.equal(other.first.weight, net.first.weight)
        x = torch.ones(2, 2)
        assert torch.equal(other(x), net(x))
    shared = nn.Sequential(net.first, net.first)
    copied = copy.deepcopy(shared)
    assert copied[0] is copied[1] and copied[0].weight is copied[1].weight


def test_sequential() -> None:
    a, b, c = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
    net = nn.Sequential(a, b)
    assert len(net) == 2 and net[0] is a and net[-1] is b and list(net) == [a, b]
    assert net.append(c) is net and net[2] is c
    assert [type(m).__name__ for m in net[1:]] == ["Tanh", "Sigmoid"]
    del net[0]
    assert list(net._modules) == ["0", "1"] and net[0] is b
    net.insert(0, a)
    assert list(net) == [a, b, c]
    net[1] = c
    assert list(net) == [a, c, c]
    assert net.pop(1) is c
    assert list(net + nn.Sequential(b)) == [a, c, b]
    assert list(net * 2) == [a, c, a, c]
    net *= 2
    assert len(net) == 4
    net += nn.Sequential(b)
    assert len(net) == 5 and len(net.extend([a])) == 6
    named = nn.Sequential(OrderedDict(one=a, two=b))
    assert named.one is a and list(named._modules) == ["one", "two"]
    for wrong, error in ((lambda: net[9], IndexError), (lambda: net * 0, ValueError), (lambda: net + [a], ValueError)):
        with pytest.raises(error):
            wrong()


def test_module_list_and_dict() -> None:
    a, b = nn.ReLU(), nn.Tanh()
    items = nn.ModuleList([a])
    items += [b]
    items.insert(1, a)
    assert list(items) == [a, a, b] and items[-1] is b and len(items[1:]) == 2
    assert len(items + [a]) == 4 and items.pop(0) is a
    with pytest.raises(NotImplementedError):
        items(1)
    with pytest.raises(TypeError, match="ModuleList.extend should be called with an iterable, but got int"):
        items.extend(3)
    table = nn.ModuleDict({"x": a})
    table["y"] = b
    table.update([("z", a)])
    assert list(table) == ["x", "y", "z"] and table["y"] is b and "x" in table and len(table) == 3
    assert table.pop("x") is a and list(table.keys()) == ["y", "z"]
    del table["z"]
    table.clear()
    assert len(table) == 0
    with pytest.raises(ValueError, match="has length 3; 2 is required"):
        table.update([("a", 1, 2)])


def test_parameter_list_and_dict() -> None:
    values = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1))])
    values.append(torch.ones(1))
    assert len(values) == 3 and all(isinstance(p, nn.Parameter) for p in values)
    assert [name for name, _ in values.named_parameters()] == ["0", "1", "2"]
    assert len(values[1:]) == 2 and values[-1] is values[2]
    with pytest.raises(RuntimeError, match="ParameterList should not be called"):
        values()
    table = nn.ParameterDict({"b": torch.ones(1), "a": torch.zeros(1)})
    assert list(table) == ["a", "b"] and isinstance(table["a"], nn.Parameter)
    table["c"] = torch.ones(2)
    assert [name for name, _ in table.named_parameters()] == ["a", "b", "c"]
    assert table.popitem()[0] == "c" and table.get("zz", 5) == 5
    assert list(table | nn.ParameterDict({"d": torch.ones(1)})) == ["a", "b", "d"]


def test_to_refuses_copies() -> None:
    m = nn.Linear(2, 2)
    for args, kwargs in (((), {"copy": True}), ((torch.float32,), {"copy": False}), (("cpu", None, False, True), {})):
        with pytest.raises(RuntimeError, match=r"^.to\(\) does not accept copy argument$"):
            m.to(*args, **kwargs)
    with pytest.raises(TypeError, match=r"to\(\) received an invalid combination of arguments - got \(str, foo=int\)"):
        m.to("cpu", foo=1)


def test_to_complex_warns_once_a_call() -> None:
    m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    with pytest.warns(UserWarning, match="Complex modules are a new feature under active development") as caught:
        m.to(torch.complex64)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert m[1].weight.dtype == torch.complex64
