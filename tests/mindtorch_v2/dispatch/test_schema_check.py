"""What a schema says of a call, and the mode that checks operators against their schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule

_C = submodule("_C")
aten = torch.ops.aten


def argument(index: int) -> Any:
    return _C._SchemaArgument(_C._SchemaArgType.input, index)


def result(index: int) -> Any:
    return _C._SchemaArgument(_C._SchemaArgType.output, index)


def test_what_is_written() -> None:
    info = _C._SchemaInfo(aten.add_.Tensor._schema)
    assert info.is_mutable() and info.is_mutable("self") and not info.is_mutable("other")
    assert info.is_mutable(argument(0)) and not info.is_mutable(argument(1))
    x = torch.ones(3)
    info.add_argument_values({"self": x, "other": x[1:]})
    assert info.is_mutable(argument(1))
    with pytest.raises(RuntimeError):
        info.is_mutable(argument(9))


def test_what_is_shared() -> None:
    view = _C._SchemaInfo(aten.view.default._schema)
    assert view.may_alias(result(0), argument(0)) and not view.may_alias(result(0), argument(1))
    parts = _C._SchemaInfo(aten.unbind.int._schema)
    assert parts.may_contain_alias(result(0), argument(0))
    add = _C._SchemaInfo(aten.add.Tensor._schema)
    assert not add.may_alias(argument(0), argument(1)) and not add.may_alias(result(0), argument(0))
    x = torch.ones(3)
    add.add_argument_value("self", x)
    add.add_argument_value("other", x)
    assert add.may_alias(argument(0), argument(1))


def test_running_statistics_are_written_while_training() -> None:
    for training, writes in ((True, True), (False, False)):
        info = _C._SchemaInfo(aten.native_batch_norm.default._schema)
        info.add_argument_value("training", training)
        assert info.is_mutable("running_mean") is writes and not info.is_mutable("weight")


def test_sets_of_memory() -> None:
    def sets(a: Any) -> Any:
        return a.alias_info and (a.alias_info.before_set, a.alias_info.after_set, a.alias_info.is_write)

    unbind = aten.unbind.int._schema
    assert [sets(a) for a in (*unbind.arguments, *unbind.returns)] == [
        ({"a"}, {"*"}, False),
        None,
        (set(), set(), False),
    ]
    assert sets(aten._foreach_add_.Scalar._schema.arguments[0]) == (set(), set(), True)


def test_overlaps() -> None:
    x, y = torch.ones(4), torch.ones(4)
    assert _C._overlaps(x, x[2:]) and _C._overlaps([y, x], x) and not _C._overlaps(x, y)


@pytest.fixture
def bad() -> Iterator[Any]:
    """Operators that do what their schemas do not say."""
    library = torch.library
    with library._scoped_library("test_schema_check", "FRAGMENT") as lib:
        for name, fn in (("aliasing", lambda x: x.view(-1)), ("mutating", lambda x: x.mul_(2) * 3)):
            lib.define(f"{name}(Tensor x) -> Tensor")
            lib.impl(name, fn, "CPU")
        yield torch.ops.test_schema_check


def test_the_mode(bad: Any) -> None:
    mode = submodule("_subclasses.schema_check_mode").SchemaCheckMode()
    x = torch.arange(6.0).reshape(2, 3)
    with mode:
        x.t().add_(1)
        torch.nn.functional.batch_norm(x, torch.zeros(3), torch.ones(3), training=True)
    assert "aten::add_" in mode.ops
    assert ("aten::add_", "input") in mode.mutated
    assert ("aten::t", "input", "output_0") in mode.aliasing
    with pytest.raises(RuntimeError, match="Argument x is not defined to alias output but was aliasing"), mode:
        bad.aliasing(x)
    with pytest.raises(RuntimeError, match="Argument x is not defined as mutable but was mutated"), mode:
        bad.mutating(x)
    mode.reset_cache()
    assert mode.ops == mode.mutated == mode.aliasing == []


def test_kernels_by_key() -> None:
    assert aten.sin.default.has_kernel_for_dispatch_key(_C.DispatchKey.CPU)
    assert not aten.sin.default.has_kernel_for_dispatch_key(_C.DispatchKey.CompositeImplicitAutograd)
    assert aten.matmul.default.has_kernel_for_dispatch_key(_C.DispatchKey.CompositeImplicitAutograd)
    assert aten.matmul.default._can_decompose() and not aten.sin.default._can_decompose()
    assert _C._dispatch_has_kernel_for_dispatch_key("aten::sin", "CPU")
    assert not _C._dispatch_has_kernel_for_dispatch_key("aten::sin", "CUDA") or torch.version.cuda
