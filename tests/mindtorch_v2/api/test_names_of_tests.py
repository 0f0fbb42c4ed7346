"""Private names that PyTorch's own tests and their tools ask for."""

from __future__ import annotations

import threading
import warnings
from importlib import import_module
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch

pytestmark = mindtorch_only


def test_objects_of_a_thread() -> None:
    c = torch._C
    assert not c._is_key_in_tls("mine")
    c._stash_obj_in_tls("mine", 5)
    assert c._is_key_in_tls("mine") and c._get_obj_in_tls("mine") == 5
    elsewhere: list[bool] = []
    thread = threading.Thread(target=lambda: elsewhere.append(c._is_key_in_tls("mine")))
    thread.start()
    thread.join()
    assert elsewhere == [False]
    with pytest.raises(RuntimeError):
        c._get_obj_in_tls("nothing")


def test_versions_are_kept() -> None:
    x, y = torch.ones(2), torch.ones(2)
    with torch.autograd._unsafe_preserve_version_counter((x, y)):
        x.add_(1)
        y.add_(1)
    assert (x._version, y._version) == (0, 0)
    torch._C._autograd._unsafe_set_version_counter((x,), (7,))
    assert x._version == 7
    with pytest.raises(RuntimeError, match="below 0: -1"):
        torch._C._autograd._unsafe_set_version_counter((x,), (-1,))


def test_keys_are_hidden_for_a_while() -> None:
    c = torch._C
    python = c.DispatchKey.Python
    before = c._dispatch_tls_local_exclude_set()
    assert not before.has(python)
    with c._ExcludeDispatchKeyGuard(c.DispatchKeySet(python)):
        assert c._dispatch_tls_local_exclude_set().has(python)
    assert c._dispatch_tls_local_exclude_set() == before
    x = torch.ones(2, requires_grad=True)
    with c._ExcludeDispatchKeyGuard(c.DispatchKeySet(c.DispatchKey.AutogradCPU)):
        assert (x * 2).grad_fn is None
    assert (x * 2).grad_fn is not None
    with pytest.raises(NotImplementedError, match="no key Meta"):
        c._ExcludeDispatchKeyGuard(c.DispatchKeySet(c.DispatchKey.Meta))


def test_the_latest_node_runs_first() -> None:
    order: list[str] = []
    x = torch.ones(2, requires_grad=True)
    a, b = x * 2, x * 3
    for name, t in (("a", a), ("b", b)):
        t.register_hook(lambda g, name=name: order.append(name))
    a.grad_fn._set_sequence_nr(b.grad_fn._sequence_nr() + 100)
    torch.autograd.backward([a, b], [torch.ones(2)] * 2)
    assert order == ["a", "b"]


@pytest.mark.oracle
def test_strides_are_compared_as_pytorch_does() -> None:
    def told(library: Any) -> Any:
        common = import_module(f"{library.__name__}._prims_common")
        pairs = [
            (library.empty(2, 3), library.empty(3, 2).t()),
            (library.empty(1, 3), library.empty_strided((1, 3), (7, 1))),
            (library.empty(0, 3), library.empty_strided((0, 3), (7, 9))),
        ]
        return [
            [f(a, b), f(a, b, only_cuda=False)]
            for f in (common.check_significant_strides, common.check_all_strides)
            for a, b in pairs
        ]

    assert told(torch) == told(_oracle.load())


@pytest.mark.parametrize(("name", "kind"), [("_warn", UserWarning), ("_warn_deprecation", DeprecationWarning)])
def test_warnings_for_tests(name: str, kind: type[Warning]) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        getattr(torch._C, name)()
    assert [w.category for w in seen] == [kind]
    assert "Test message for TORCH_WARN" in str(seen[0].message)


def test_modes_without_an_end() -> None:
    c = torch._C
    x = torch.ones(2, requires_grad=True)
    try:
        c._set_grad_enabled(False)
        assert not (x * 2).requires_grad
    finally:
        c._set_grad_enabled(True)
    forward_ad = torch.autograd.forward_ad
    try:
        c._set_fwd_grad_enabled(False)
        assert not forward_ad._is_fwd_grad_enabled()
    finally:
        c._set_fwd_grad_enabled(True)
    assert forward_ad._is_fwd_grad_enabled()
