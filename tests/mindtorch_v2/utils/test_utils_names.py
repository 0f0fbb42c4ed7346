"""Helpers of `torch._utils`: as PyTorch's, on the same arguments."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from .. import _oracle
from .._outcome import tried
from .._subject import SUBJECT_NAME, subject


def helpers(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}._utils")


def raised(u: Any, error: Exception) -> str:
    try:
        try:
            raise error
        except Exception:
            wrapped = u.ExceptionWrapper(where="in worker 3")
        wrapped.reraise()
    except Exception as again:
        return f"{type(again).__name__} {str(again).splitlines()[:2]}"
    return "nothing"


def cases(t: Any) -> list[Any]:
    u = helpers(t)
    parts = [t.ones(2, 3), t.arange(4.0), t.zeros(1, dtype=t.float32)]
    mixed = [t.ones(3), t.ones(2, dtype=t.int64), t.ones(5), t.ones(1, dtype=t.int64)]

    class Holder:
        @u.classproperty
        def name(cls: Any) -> str:
            return cls.__name__

    return [
        lambda: u._flatten_dense_tensors(parts),
        lambda: u._unflatten_dense_tensors(t.arange(11.0), parts),
        lambda: [[x.tolist() for x in group] for group in u._take_tensors(mixed, 16)],
        lambda: u._reorder_tensors_as([mixed[0], mixed[2], mixed[1], mixed[3]], mixed),
        lambda: [u._element_size(d) for d in (t.bool, t.float16, t.complex64, t.int64)],
        lambda: u._element_size(3),
        lambda: u._get_device_index("cpu"),
        lambda: u._get_device_index("cpu", allow_cpu=True),
        lambda: u._get_device_index(t.device("cuda"), optional=False),
        lambda: [u._get_device_index(2), u._get_device_index(t.device("cuda", 1))],
        lambda: raised(u, ValueError("wrong")),
        lambda: raised(u, KeyError("key")),
        lambda: raised(u, UnicodeDecodeError("utf8", b"", 0, 1, "text")),
        lambda: Holder.name,
        lambda: u._handle_complex(t.tensor([1 + 2j])),
        lambda: u._dummy_type("Absent")(),
        lambda: u._import_dotted_name("os.path.join") is not None,
        lambda: u.try_import("no_such_module_at_all"),
        lambda: u._get_device_module("no_such_device"),
    ]


def test_they_run() -> None:
    assert len(tried(cases(subject))) == len(cases(subject))
    assert helpers(subject).__name__ == f"{SUBJECT_NAME}._utils"


@pytest.mark.oracle
def test_as_pytorchs() -> None:
    mine, theirs = tried(cases(subject)), tried(cases(_oracle.load()))
    for number, (got, wanted) in enumerate(zip(mine, theirs)):
        assert got == wanted, number
