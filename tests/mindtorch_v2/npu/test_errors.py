"""The ring of launches and the exceptions made from it; no device is needed."""

from __future__ import annotations

import inspect
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from mindtorch_v2._backends.npu import acl_loader, errors

DEVICE = 40  # no real one: what other tests launched does not matter here


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    errors.settle(DEVICE, -1)
    yield


class Vendor:
    """Libraries that only say something."""

    def __init__(self, text: str) -> None:
        self.text = text

    def aclGetRecentErrMsg(self) -> bytes:
        return self.text.encode()


def vendor_says(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(acl_loader.Loaded, "acl", Vendor(text))


def line() -> int:
    return inspect.currentframe().f_back.f_lineno  # type: ignore[union-attr]


def failing(code: int = 507015, stream: int = -1) -> errors.AclError:
    with pytest.raises(errors.AclError) as caught:
        errors.check_waited(code, "aclrtSynchronizeStream", DEVICE, stream)
    return caught.value


def test_success_costs_nothing_and_raises_nothing() -> None:
    errors.check(0, "aclrtMalloc")
    errors.check_waited(0, "aclrtSynchronizeDevice", DEVICE, -1)


def test_a_call_that_fails_by_itself_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    vendor_says(monkeypatch, "EE9999: why")
    with pytest.raises(errors.AclError) as caught:
        errors.check(107000, "aclrtMemcpy")
    error = caught.value
    assert (error.code, error.function, error.vendor) == (107000, "aclrtMemcpy", "EE9999: why")
    assert "aclrtMemcpy failed: invalid parameter (status 107000)" in str(error) and "EE9999: why" in str(error)
    assert f"{__file__}:" in str(error)


def test_the_launch_the_vendor_names_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    vendor_says(monkeypatch, "aclnnGather (task 3 of stream 2): index 9 out of range")
    errors.record("aclnnGatherV3", "take", DEVICE, 0)
    errors.record("aclnnGather", "gather", DEVICE, 0)
    at = line() - 1
    errors.record("aclnnAdd", "add", DEVICE, 0)
    text = str(failing(stream=0))
    assert f"aclnnGather failed for gather on npu:{DEVICE}: AI core exception (status 507015)" in text
    assert f"launched at {__file__}:{at}" in text and "take" not in text and "aclnnAdd" not in text


def test_candidates_are_listed_when_it_cannot_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    vendor_says(monkeypatch, "")
    errors.record("aclnnMul", "mul", DEVICE, 0)
    errors.record("aclnnAdd", "add", DEVICE, 7)
    errors.record("aclnnSub", "sub", DEVICE, 7)
    text = str(failing(stream=7))
    assert text.index("sub (aclnnSub)") < text.index("add (aclnnAdd)") and "mul" not in text


def test_what_succeeded_is_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    vendor_says(monkeypatch, "")
    errors.record("aclnnMul", "mul", DEVICE, 7)
    errors.record("aclnnDiv", "div", DEVICE, 8)
    errors.check_waited(0, "aclrtSynchronizeStream", DEVICE, 7)
    errors.record("aclnnAdd", "add", DEVICE, 7)
    assert "aclnnAdd failed for add" in str(failing(stream=7))
    assert "aclnnDiv failed for div" in str(failing(stream=8))
    errors.record("aclnnAdd", "add", DEVICE, 7)
    errors.check_waited(0, "aclrtSynchronizeDevice", DEVICE, -1)
    assert "no launch is remembered" in str(failing(stream=7))


def test_the_whole_device_has_all_streams_as_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    vendor_says(monkeypatch, "")
    errors.record("aclnnMul", "mul", DEVICE, 1)
    errors.record("aclnnAdd", "add", DEVICE, 2)
    errors.record("aclnnSub", "sub", DEVICE + 1, 2)
    text = str(failing())
    assert "mul" in text and "add" in text and "sub" not in text


def test_the_ring_is_bounded_and_keeps_the_newest() -> None:
    for i in range(errors.SIZE + 10):
        errors.record("aclnnAdd", f"op{i}", DEVICE, 3)
    made = errors.launches(DEVICE, 3)
    assert len(made) == errors.SIZE and made[0][1] == f"op{errors.SIZE + 9}" and made[-1][1] == "op10"


def test_remembering_keeps_nothing_alive() -> None:
    class Big:
        pass

    big = Big()
    before = sys.getrefcount(big)

    def launch(holds: Any) -> None:
        errors.record("aclnnAdd", "add", DEVICE, 3)

    launch(big)
    assert sys.getrefcount(big) == before


def test_errors_travel_between_processes() -> None:
    error = pickle.loads(pickle.dumps(errors.AclError("text", 5, "aclInit", "why")))
    assert isinstance(error, errors.AclError)
    assert (str(error), error.code, error.function, error.vendor) == ("text", 5, "aclInit", "why")
    assert str(pickle.loads(pickle.dumps(errors.OutOfMemoryError("text")))) == "text"
    assert (errors.AclError.__module__, errors.OutOfMemoryError.__module__) == ("mindtorch_v2.npu", "mindtorch_v2")


def test_every_code_of_the_facts_has_a_name() -> None:
    for code in (100002, 107002, 161001, 161002, 207001, 361001, 507010, 507015, 561103, 561112):
        assert errors.name_of(code) != "unknown code"
    assert errors.name_of(424242) == "unknown code"


@pytest.mark.parametrize(
    "function, text, named",
    [
        ("aclnnAdd", "aclnnAdd failed", True),
        ("aclnnAdd", "aclnnAddmm failed", False),
        ("aclnnAdd", "aclnnAddmm then aclnnAdd", True),
        ("aclnnAdd", "", False),
    ],
)
def test_a_function_is_named_as_a_whole_word(function: str, text: str, named: bool) -> None:
    assert errors._mentions(text, function) is named
