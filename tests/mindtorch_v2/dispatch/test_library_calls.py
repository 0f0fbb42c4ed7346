"""`torch.library` on both libraries: what a few lines give, or how they are refused."""

from __future__ import annotations

import collections.abc
import itertools
import logging
from typing import Any, List, Optional  # noqa: UP035 (users write them)

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch

_COUNT = itertools.count()


class Three(collections.abc.Sequence[int]):
    def __getitem__(self, i: Any) -> Any:
        return [1, 2, 3][i]

    def __len__(self) -> int:
        return 3


class World:
    """A fragment of a namespace, with operators of all kinds; `seen` is what their kernels were given."""

    def __init__(self, library: Any) -> None:
        self.torch = library
        self.ns = f"test_library_calls_{next(_COUNT)}"
        self.lib = library.library.Library(self.ns, "FRAGMENT")
        self.seen: list[Any] = []
        for schema in (
            "foo(Tensor x) -> Tensor",
            "sizes(Tensor x, SymInt[] s) -> Tensor",
            "lists(Tensor x, Layout[] a, MemoryFormat[] b, ScalarType[] c, str[] d, Device[] e) -> Tensor",
            'place(Tensor x, Device d="cpu:0") -> Tensor',
            "named(Tensor x, *, Tensor y) -> Tensor",
        ):
            self.lib.define(schema)
            self.lib.impl(schema.partition("(")[0], self.kernel, "CPU")
        self.lib.define("parts(Tensor x) -> Tensor")
        self.lib.impl("parts", lambda x: x.sin(), "CompositeImplicitAutograd")
        self.ops = getattr(library.ops, self.ns)

    def kernel(self, x: Any, *rest: Any) -> Any:
        self.seen.append(rest)
        return x + len(self.seen)

    def custom(self, name: str, mutates: Any = ()) -> Any:
        t: Any = self.torch.Tensor

        def plain(x: t) -> t:
            return x + 1

        def two(x: t, y: t) -> t:
            return x + y

        def by_name(x: t, *, y: int, z: Optional[t]) -> t:  # noqa: UP045
            return x + y

        def writes(x: t, w: List[Optional[t]]) -> None:  # noqa: UP006, UP045
            return None

        functions: dict[str, Any] = {"plain": plain, "two": two, "by_name": by_name, "writes": writes}
        for f in functions.values():
            # Annotations of this file are text, which the library's own name is not in.
            f.__annotations__ = {
                k: eval(v, {"t": t, "List": list, "Optional": Optional}) for k, v in f.__annotations__.items()
            }
        fn = functions[name.partition(".")[0]] if name != "plain.two" else two
        return self.torch.library.custom_op(f"{self.ns}::{name}", fn, mutates_args=mutates)

    def version(self) -> Any:
        x = self.torch.ones(1)
        self.custom("writes", {"w"})(x, [x, None])
        return x._version

    def switched(self, device: str, enabled: bool) -> Any:
        op = self.custom("plain")
        op.register_kernel("cpu", lambda x: x + 5)
        with op.set_kernel_enabled(device, enabled=enabled):
            inside = op(self.torch.ones(1))
        return inside, op(self.torch.ones(1))

    def kept(self) -> Any:
        kernel = self.torch.library.get_kernel(f"{self.ns}::foo", "CPU")
        keys = self.torch._C.DispatchKeySet("CPU")
        result = kernel.call_boxed(keys, self.torch.ones(1))
        self.lib._destroy()
        try:
            kernel.call_boxed(keys, self.torch.ones(1))
        except RuntimeError as error:
            return result, "has been invalidated" in str(error)
        return result, False

    def with_keys(self) -> Any:
        def kernel(keys: Any, x: Any) -> Any:
            return x + 7 if keys.has(self.torch._C.DispatchKey.CPU) else x

        self.lib.impl("foo", kernel, "CPU", with_keyset=True, allow_override=True)
        return self.ops.foo(self.torch.ones(1))


LINES = """
ops.lists(x,[torch.strided],[torch.channels_last],[torch.float32],("a","b"),["cpu",torch.device("meta")]),seen
ops.sizes(x,Three()),seen | ops.place(x)
w.custom("by_name") | library.register_autograd(ns+"::named",lambda ctx,g: g)
library.register_vmap(ns+"::named",lambda info,dims,x,y: (x,0)) | library.register_fake(ns+"::parts",lambda x: x)
library.impl(ns+"::foo","cpu",lambda x: x+2) | w.custom("plain"),w.custom("plain.two"),ops.plain(x),ops.plain(x,x)
w.version() | w.switched("cpu",True) | w.switched("cpu",False) | w.switched("gpu",False) | w.with_keys()
library.get_kernel(ns+"::nothing","CPU") | library.get_kernel(ns+"::foo","CUDA") | library.get_kernel(ns+"::foo","X")
library.define(w.lib,"more(Tensor x) -> Tensor",alias_analysis="CONSERVATIVE")(lambda x: x+3)(x),ops.more(x)
library.define(w.lib,"more(Tensor x) -> Tensor",alias_analysis="X")(lambda x: x)
library.get_kernel("foo","CPU") | library.get_kernel(3,"CPU")
"""


def told(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [told(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else str(value)


def outcome(line: str, library: Any) -> Any:
    w = World(library)
    names = {
        "torch": library,
        "library": library.library,
        "w": w,
        "ns": w.ns,
        "ops": w.ops,
        "seen": w.seen,
        "x": library.ones(1),
        "Three": Three,
    }
    try:
        found = told(eval(line, names))
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    finally:
        w.lib._destroy()
    return str(found).replace(library.__name__, "torch").replace(w.ns, "ns")


@pytest.mark.oracle
@mindtorch_only
@pytest.mark.parametrize("line", [line.strip() for row in LINES.strip().splitlines() for line in row.split(" | ")])
def test_lines(line: str) -> None:
    assert outcome(line, torch) == outcome(line, _oracle.load())


@mindtorch_only
def test_a_switch_that_changes_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "torch._library.custom_ops"):
        for device, enabled in (("gpu", False), ("cpu", True)):
            World(torch).switched(device, enabled)
    assert [r.getMessage().rpartition(" but ")[2] for r in caplog.records] == [
        "no kernel was registered for this device type.",
        "it is already enabled.",
    ]


@mindtorch_only
def test_a_kernel_does_not_outlive_its_registration() -> None:
    """PyTorch's process ends there where the operator itself is gone."""
    result, refused = World(torch).kept()
    assert result.tolist() == [2.0] and refused
