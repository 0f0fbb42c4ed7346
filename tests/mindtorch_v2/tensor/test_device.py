"""Devices: construction, errors, value semantics, and use as a context manager."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import mindtorch_v2
from mindtorch_v2 import _device
from mindtorch_v2._device import CPU, META, add_device_type, as_device, device
from mindtorch_v2._dtype import float32

from .._subject import mindtorch_only

pytestmark = mindtorch_only


@pytest.fixture
def oracle() -> Any:
    return pytest.importorskip("torch")


def test_ways_to_name_a_device() -> None:
    npu1 = device("npu:1")
    assert (npu1.type, npu1.index) == ("npu", 1)
    same = (
        device("npu", 1), device(type="npu", index=1), device("npu", index=1), device(1), device(npu1),
        device(device="npu:1"), device(device=npu1), device("privateuseone:1"),
    )  # fmt: skip
    for other in same:
        assert other == npu1 and hash(other) == hash(npu1) and not other != npu1
    assert device("cuda").index is None
    assert device("cpu") != device("cpu:0") and device("cpu") != "cpu"
    assert CPU == device("cpu") and META == device("meta")


def test_text() -> None:
    assert (repr(device("cpu")), str(device("cpu"))) == ("device(type='cpu')", "cpu")
    assert (repr(device("npu:0")), str(device("npu:0"))) == ("device(type='npu', index=0)", "npu:0")
    assert f"{device('npu', 3)}" == "npu:3"


@pytest.mark.skipif(_device.__file__.endswith(".py"), reason="attributes are read-only in the compiled build")
def test_attributes_are_read_only() -> None:
    for item, names in (
        (device("npu:1"), ("type", "index")),
        (float32, ("name", "code", "itemsize", "is_complex", "np")),
    ):
        for name in names:
            with pytest.raises(AttributeError, match=f"attribute '{name}' of .* objects is not writable"):
                setattr(item, name, getattr(item, name))
        with pytest.raises(AttributeError):
            setattr(item, "extra", 1)


@pytest.mark.parametrize("text", ["cpu", "meta", "npu:3", "cuda:0"])
def test_pickle_and_copy(text: str) -> None:
    item = device(text)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(item, protocol)) == item
    assert copy.copy(item) == item and copy.deepcopy(item) == item


def test_npu_is_among_the_types_of_the_error_text() -> None:
    with pytest.raises(RuntimeError, match=r"Expected one of cpu, .*npu.* device type at start of device string: foo"):
        device("foo:1")


def test_index_too_large_to_be_a_device() -> None:
    for args in (("npu", 70000), ("npu:70000",)):
        with pytest.raises(RuntimeError):
            device(*args)


def test_as_device() -> None:
    item = device("npu:2")
    assert as_device(item) is item
    assert as_device("cpu") is CPU
    assert as_device("npu:2") == item and as_device(2) == item
    for wrong, error in (("foo", RuntimeError), (None, TypeError), (1.5, TypeError), (-1, RuntimeError)):
        with pytest.raises(error):
            as_device(wrong)


def test_added_type() -> None:
    with pytest.raises(ValueError):
        add_device_type("toaster:1")
    add_device_type("toaster")
    try:
        assert str(device("toaster:1")) == "toaster:1" and device("toaster") != device("cpu")
    finally:
        del _device._TYPE_CODES["toaster"]


def test_context_manager_redirects_factories() -> None:
    with device("meta") as entered:
        assert entered == META
        assert mindtorch_v2.empty(2).device == META
        with device("cpu"):
            assert mindtorch_v2.empty(2).device == CPU
        assert mindtorch_v2.zeros(2).device == META
    assert mindtorch_v2.empty(2).device == CPU
    with pytest.raises(ZeroDivisionError):
        with device("meta"):
            raise ZeroDivisionError
    assert mindtorch_v2.empty(2).device == CPU


def test_decorator_redirects_factories() -> None:
    @device("meta")
    def make(length: int) -> Any:
        """Makes."""
        return mindtorch_v2.empty(length)

    assert make(3).device == META and make.__name__ == "make" and make.__doc__ == "Makes."
    assert mindtorch_v2.empty(2).device == CPU


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    *[
        ((value,), {})
        for value in (
            "cpu", "cpu:0", "cpu:1", "cuda", "cuda:7", "meta", "meta:0", "xpu", "mps", "hpu:1", "lazy:0", "",
            "cuda:", "cuda:-1", "cuda:x", ":1", "cuda:01", "cuda:1:2", "cuda:+1", "cuda: 1", "cpu ", "cpu:0 ",
            "cuda:99999999999999999", -1, 1.5, None, True, b"cpu", "cu da", "1",
        )
    ],
    *[
        (args, {})
        for args in (
            (), ("cuda", 0), ("cuda:0", 0), ("cuda", -1), ("cuda", -2), ("cuda", None), ("cuda", "1"), ("cuda", 1, 2),
            ("cuda", True), ("cuda", 1.5), (3, 1), (None, 1),
        )
    ],
    *[
        ((), kwargs)
        for kwargs in (
            {"type": "cuda"}, {"type": "cuda", "index": 1}, {"index": 1}, {"device": "cuda:1"}, {"type": "cuda:1"},
            {"type": "cuda:1", "index": 2}, {"foo": 1}, {"type": "cuda", "index": None}, {"device": "cuda", "index": 1},
            {"type": 3}, {"type": None}, {"type": 3, "index": 1}, {"type": "cuda", "index": "a"}, {"foo": 1, "bar": 2},
            {"type": "cpu", "foo": 1}, {"type": "cpu", "device": "cpu"}, {"device": None}, {"device": 1.5},
        )
    ],
    (("cuda",), {"index": 1}),
    (("cuda",), {"type": "cpu"}),
    (("cuda",), {"foo": 1}),
    (("cuda",), {"device": "cpu"}),
    ((3,), {"index": 1}),
    (("cuda", 1), {"index": 1}),
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("call", CALLS, ids=repr)
def test_construction_equals_the_oracles(call: tuple[tuple[Any, ...], dict[str, Any]], oracle: Any) -> None:
    def outcome(kind: Any) -> Any:
        try:
            made = kind(*call[0], **call[1])
        except Exception as error:
            return type(error), str(error)
        return repr(made), str(made), made.type, made.index

    assert outcome(device) == outcome(oracle.device)


@pytest.mark.oracle
def test_unknown_type_text_differs_only_in_npu(oracle: Any) -> None:
    with pytest.raises(RuntimeError) as theirs:
        oracle.device("foo")
    with pytest.raises(RuntimeError) as ours:
        device("foo")
    assert str(ours.value) == str(theirs.value).replace("privateuseone", "npu")


@pytest.mark.oracle
def test_order_is_refused_as_by_the_oracle(oracle: Any) -> None:
    for kind in (device, oracle.device):
        for compare in ("__lt__", "__le__", "__gt__", "__ge__"):
            with pytest.raises(TypeError, match="comparison not implemented"):
                getattr(kind("cpu"), compare)(kind("cpu"))
