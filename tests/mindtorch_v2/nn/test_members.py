"""Members of modules by name, and calls of modules: whoever writes methods of their own is asked first."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule

nn = submodule("nn")


class Scale(nn.Module):
    label = "class"

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.inner = nn.Identity()
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("nothing", None)

    def forward(self, x: Any, by: float = 1.0) -> Any:
        return x * self.weight * by


def test_parameters_submodules_buffers_and_attributes() -> None:
    m = Scale()
    assert m.weight is m._parameters["weight"] and m.inner is m._modules["inner"] and m.count is m._buffers["count"]
    assert m.nothing is None and m.training is True and m.label == "class"
    m.label = "own"
    assert m.label == "own" and not hasattr(m, "missing")
    with pytest.raises(AttributeError, match="'Scale' object has no attribute 'missing'"):
        _ = m.missing


def test_an_attribute_of_the_class_hides_a_parameter() -> None:
    class Hidden(nn.Module):
        bias = None

        def __init__(self) -> None:
            super().__init__()
            self.register_parameter("weight", nn.Parameter(torch.ones(1)))
            self._parameters["bias"] = nn.Parameter(torch.ones(1))

    assert Hidden().bias is None and Hidden().weight is not None


def test_a_property_without_value_gives_way_to_a_parameter() -> None:
    class Late(nn.Module):
        def __init__(self, named: bool) -> None:
            super().__init__()
            if named:
                self._parameters["weight"] = nn.Parameter(torch.ones(1))

        @property
        def weight(self) -> Any:
            return self.not_there

    assert Late(True).weight.shape == (1,)
    with pytest.raises(AttributeError, match="'Late' object has no attribute 'weight'"):
        _ = Late(False).weight


def test_a_getattr_of_ones_own_is_asked_for_parameters() -> None:
    class Wrapper(Scale):
        made = False

        def __init__(self) -> None:
            super().__init__()
            self.made = True

        def __getattr__(self, name: str) -> Any:
            if self.made and name == "weight":
                return "asked"
            try:
                return super().__getattr__(name)
            except AttributeError:
                if not self.made:
                    raise
                return f"no {name}"

    m = Wrapper()
    assert m.weight == "asked" and m.inner is m._modules["inner"] and m.other == "no other"

    class Below(Wrapper):
        pass

    assert Below().weight == "asked"


def test_a_getattribute_of_ones_own_is_asked_first() -> None:
    class Counted(Scale):
        asked: list[str] = []

        def __getattribute__(self, name: str) -> Any:
            Counted.asked.append(name)
            return super().__getattribute__(name)

    assert Counted().weight.shape == (2,) and "weight" in Counted.asked


def test_methods_that_a_class_is_given_later() -> None:
    class Late(Scale):
        pass

    m = Late()
    x = torch.ones(2)
    assert m(x).tolist() == [1, 1] and m.weight.shape == (2,)
    Late.__getattr__ = lambda self, name: f"late {name}"
    Late.__call__ = lambda self, *args: "called"
    assert m.weight == "late weight" and m(x) == "called"
    del Late.__getattr__, Late.__call__
    assert m.weight.shape == (2,) and m(x).tolist() == [1, 1]


def test_members_in_a_dictionary_of_another_class() -> None:
    class Loud(dict):  # type: ignore[type-arg]
        def __getitem__(self, name: str) -> Any:
            return f"loud {name}"

    m = Scale()
    weight = m.weight
    m._parameters = OrderedDict(weight=weight)
    assert m.weight is weight
    m._parameters = Loud(weight=weight)
    assert m.weight == "loud weight"


def test_before_init_there_is_nothing() -> None:
    m = Scale.__new__(Scale)
    with pytest.raises(AttributeError):
        _ = m.weight


def test_calls() -> None:
    m: Any = Scale()
    x = torch.ones(2)
    assert m(x, 2.0).tolist() == m(x, by=2.0).tolist() == m(by=2.0, x=x).tolist() == [2, 2]
    with pytest.raises(TypeError, match="forward"):
        m()
    with pytest.raises(TypeError, match="forward"):
        m(x, other=1)
    m.forward = lambda x: "own"
    assert m(x) == "own"
    del m.forward
    handle = m.register_forward_hook(lambda module, args, result: result + 1)
    assert m(x).tolist() == [2, 2]
    handle.remove()
    assert m(x).tolist() == [1, 1]


def test_many_arguments() -> None:
    class Sum(nn.Module):
        def forward(self, *values: int, **named: int) -> int:
            return sum(values) + sum(named.values())

    for n in (0, 1, 15, 16, 17, 40):
        assert Sum()(*range(n), last=1) == sum(range(n)) + 1


def test_forward_that_is_no_function() -> None:
    class Static(nn.Module):
        @staticmethod
        def forward(x: Any) -> Any:
            return x

    class Classy(nn.Module):
        @classmethod
        def forward(cls, x: Any) -> Any:
            return cls, x

    class Empty(nn.Module):
        pass

    assert Static()(3) == 3 and Classy()(3) == (Classy, 3)
    with pytest.raises(NotImplementedError, match='Module \\[Empty\\] is missing the required "forward" function'):
        Empty()(3)


def test_tracing_leaves_modules_as_they_were() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = Scale()

        def forward(self, x: Any) -> Any:
            return self.scale(x)

    net = Net()
    traced = submodule("fx").symbolic_trace(net)
    x = torch.ones(2)
    assert net(x).tolist() == traced(x).tolist() == [1, 1] and net.scale.weight.shape == (2,)
