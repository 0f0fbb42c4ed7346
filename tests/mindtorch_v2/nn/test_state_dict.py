"""Saving and loading a module's state."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule
from .test_module import Net

nn = submodule("nn")


def test_keys_and_sharing() -> None:
    net = Net()
    state = net.state_dict()
    assert isinstance(state, OrderedDict)
    assert list(state) == ["scale", "count", "first.weight", "first.bias", "second.1.weight"]
    assert not state["scale"].requires_grad and state["scale"].data_ptr() == net.scale.data_ptr()
    assert net.state_dict(keep_vars=True)["scale"] is net.scale
    assert list(net.first.state_dict(prefix="p.")) == ["p.weight", "p.bias"]
    assert state._metadata["first"] == {"version": 1}  # type: ignore[attr-defined]
    into: dict[str, Any] = {}
    assert net.state_dict(destination=into) is into and len(into) == 5


def test_round_trip() -> None:
    one, two = Net(), Net()
    two.count += 3
    result = one.load_state_dict(two.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    assert result.missing_keys == [] and result.unexpected_keys == []
    for left, right in zip(one.state_dict().values(), two.state_dict().values()):
        assert torch.equal(left, right)
    assert one.scale.requires_grad and one.count.item() == 3


def test_strict_names_everything_wrong() -> None:
    net = Net()
    state = net.state_dict()
    del state["scale"]
    state["first.weight"] = torch.ones(5, 5)
    state["other"] = torch.ones(1)
    state["first.more"] = torch.ones(1)
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Net:\n"
        '\tMissing key(s) in state_dict: "scale". \n'
        '\tUnexpected key(s) in state_dict: "other", "first.more". \n'
        "\tsize mismatch for first.weight: copying a param with shape torch.Size([5, 5]) from checkpoint, "
        "the shape in current model is torch.Size([3, 2])."
    )
    del state["first.weight"]
    keys = net.load_state_dict(state, strict=False)
    assert keys.missing_keys == ["scale", "first.weight"]
    assert keys.unexpected_keys == ["other", "first.more"]


def test_not_a_tensor() -> None:
    with pytest.raises(RuntimeError, match='While copying the parameter named "weight", expected torch.Tensor'):
        nn.Linear(1, 1).load_state_dict({"weight": 3, "bias": torch.ones(1)})


def test_dtype_is_kept_when_copying() -> None:
    layer = nn.Linear(2, 2)
    layer.load_state_dict({"weight": torch.ones(2, 2, dtype=torch.float64), "bias": torch.zeros(2)})
    assert layer.weight.dtype is torch.float32 and layer.weight.sum().item() == 4.0


def test_assign() -> None:
    layer = nn.Linear(2, 2, device="meta")
    weight = torch.ones(2, 2)
    layer.weight.requires_grad_(False)
    layer.load_state_dict({"weight": weight, "bias": nn.Parameter(torch.ones(2))}, assign=True)
    assert layer.weight.data_ptr() == weight.data_ptr() and isinstance(layer.weight, nn.Parameter)
    assert not layer.weight.requires_grad and layer.bias.requires_grad


def test_loading_into_meta_warns() -> None:
    layer = nn.Linear(1, 1, bias=False, device="meta")
    with pytest.warns(UserWarning, match="for weight: copying from a non-meta parameter in the checkpoint to a meta"):
        layer.load_state_dict({"weight": torch.ones(1, 1)})
    assert layer.weight.is_meta


def test_scalar_from_one_element() -> None:
    net = nn.Module()
    net.x = nn.Parameter(torch.tensor(1.0))
    net.load_state_dict({"x": torch.tensor([5.0])})
    assert net.x.item() == 5.0


def test_extra_state() -> None:
    class Extra(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.value = 1

        def get_extra_state(self) -> Any:
            return {"value": self.value}

        def set_extra_state(self, state: Any) -> None:
            self.value = state["value"]

    one, two = nn.Sequential(Extra()), nn.Sequential(Extra())
    two[0].value = 7
    state = two.state_dict()
    assert list(state) == ["0._extra_state"]
    one.load_state_dict(state)
    assert one[0].value == 7
    assert one.load_state_dict({}, strict=False).missing_keys == ["0._extra_state"]
    assert nn.Sequential(nn.ReLU()).load_state_dict(state, strict=False).unexpected_keys == ["0._extra_state"]


def test_hooks() -> None:
    layer = nn.Linear(1, 1)
    log: list[str] = []

    def post(module: Any, state: dict[str, Any], prefix: str, metadata: Any) -> None:
        log.append(f"post {prefix!r}")
        state["more"] = torch.ones(1)

    def load_pre(module: Any, state: Any, prefix: str, *rest: Any) -> None:
        assert module is layer
        state.pop(prefix + "more", None)

    layer.register_state_dict_pre_hook(lambda module, prefix, keep_vars: log.append(f"pre {keep_vars}"))
    layer.register_state_dict_post_hook(post)
    layer.register_load_state_dict_pre_hook(load_pre)
    handle = layer.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.append("invented"))
    state = layer.state_dict()
    assert log == ["pre False", "post ''"] and "more" in state
    with pytest.raises(RuntimeError, match='Missing key\\(s\\) in state_dict: "invented"'):
        layer.load_state_dict(state)
    handle.remove()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer.load_state_dict(state)
