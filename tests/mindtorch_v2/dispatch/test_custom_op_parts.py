"""`torch._custom_op` and `torch._custom_ops`: operators whose parts are registered one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Union

import pytest

from .._subject import subject as torch
from .._subject import submodule

pytestmark = pytest.mark.filterwarnings("ignore:torch._custom_op is deprecated:DeprecationWarning")
Tensor = torch.Tensor
custom_ops: Any = submodule("_custom_ops")
_COUNT = itertools.count()


@pytest.fixture
def name() -> Iterator[str]:
    """An operator `scale(x, k)` without parts."""
    made = f"test_custom_op_parts_{next(_COUNT)}::scale"

    def scale(x: Tensor, k: float) -> Tensor:
        raise NotImplementedError

    scale.__annotations__.update(x=Tensor, k=float, **{"return": Tensor})
    custom_ops.custom_op(made)(scale)
    yield made
    custom_ops._destroy(made)


def call(name: str, *args: Any) -> Any:
    ns, _, base = name.partition("::")
    return getattr(getattr(torch.ops, ns), base)(*args)


def test_kernels(name: str) -> None:
    x = torch.arange(3.0)
    with pytest.raises(NotImplementedError, match="there is no cpu impl registered for this CustomOp"):
        call(name, x, 2.0)
    custom_ops.impl(name, device_types="cpu")(lambda x, k: x.detach() * k)
    assert call(name, x, 2.0).tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(RuntimeError, match="already has a cpu impl registered from Python at"):
        custom_ops.impl(name, device_types="cpu")(lambda x, k: x)
    with pytest.raises(RuntimeError, match="Autograd has not been implemented for operator"):
        call(name, x.requires_grad_(), 2.0)


def test_derivatives(name: str) -> None:
    x = torch.arange(3.0, requires_grad=True)
    custom_ops.impl(name, device_types="cpu")(lambda x, k: x.detach() * k)
    custom_ops.impl_save_for_backward(name)(lambda inputs, output: (inputs.k, inputs.x))
    with pytest.raises(RuntimeError, match="unable to find a 'backward' registration"):
        call(name, x, 2.0)
    custom_ops.impl_backward(name)(lambda ctx, saved, grad: {"x": grad * saved[0] + 0 * saved[1]})
    y = call(name, x, 3.0)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize(
    "given, complaint",
    [
        (lambda grad: grad, "expected the output of the backward function to be a dict"),
        (lambda grad: {}, "expected the returned grad_input dict to have keys"),
        (lambda grad: {"x": 1}, "but expected the gradient to be either None or a Tensor"),
        (lambda grad: {"x": [grad]}, "but expected the gradient to be either None or a Tensor"),
    ],
)
def test_wrong_gradients(name: str, given: Any, complaint: str) -> None:
    custom_ops.impl(name, device_types="cpu")(lambda x, k: x.detach() * k)
    custom_ops.impl_save_for_backward(name)(lambda inputs, output: None)
    custom_ops.impl_backward(name)(lambda ctx, saved, grad: given(grad))
    y = call(name, torch.ones(2, requires_grad=True), 1.0)
    with pytest.raises(RuntimeError, match=complaint):
        y.sum().backward()


def test_definitions() -> None:
    impl = submodule("_custom_op.impl")
    with pytest.raises(ValueError, match="Expected there to be a namespace"):
        custom_ops.custom_op("scale", "(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="is a reserved namespace"):
        custom_ops.custom_op("aten::scale", "(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="only supports functional operators"):
        custom_ops.custom_op(f"test_custom_op_parts_{next(_COUNT)}::f", "(Tensor(a!) x) -> Tensor")
    with pytest.raises(ValueError, match="does not support arguments named 'self'"):
        custom_ops.custom_op(f"test_custom_op_parts_{next(_COUNT)}::f", "(Tensor self) -> Tensor")
    with pytest.raises(ValueError, match="Could not find the operator"):
        custom_ops.impl("test_custom_op_parts::missing", device_types="cpu")(lambda x: x)
    with pytest.raises(ValueError, match="expected `func` to have name 'f'"):
        impl.custom_op("test_custom_op_parts::f")(lambda x: x)


def test_the_object() -> None:
    impl = submodule("_custom_op.impl")
    ns = f"test_custom_op_parts_{next(_COUNT)}"

    def twice(x, n):  # type: ignore[no-untyped-def]
        """Doubles."""

    op = impl.custom_op(f"{ns}::twice", "(Tensor x, int n) -> Tensor[]")(twice)
    assert repr(op) == f'<CustomOp(op="{ns}::twice")>' and op.__doc__ == "Doubles."
    op.impl("cpu")(lambda x, n: [x.detach() * 2] * 1 + [x.detach() + n])
    op.impl_abstract()(lambda x, n: [torch.empty_like(x), torch.empty_like(x)])
    a, b = op(torch.ones(2), 3)
    assert a.tolist() == [2.0, 2.0] and b.tolist() == [4.0, 4.0]
    with pytest.raises(RuntimeError, match="already has an Autograd kernel registered to DispatchKey::Autograd"):
        op.impl_backward()(lambda ctx, saved, grads: {"x": grads[0]})
    assert [t.shape for t in op(torch.ones(2, device="meta"), 3)] == [(2,), (2,)]
    with pytest.raises(ValueError, match="we only support device_type in"):
        op.impl("nothing")
    op._destroy()


def test_questions_about_operators() -> None:
    utils = submodule("_library.utils")
    assert utils.lookup_op("aten::add.Tensor") is torch.ops.aten.add.Tensor
    assert utils.lookup_op("aten::sin") is torch.ops.aten.sin.default and utils.is_builtin(torch.ops.aten.sin.default)
    for text, functional in (
        ("f(Tensor x) -> Tensor", True),
        ("f(Tensor x) -> ()", False),
        ("f(Tensor(a!) x) -> Tensor", False),
        ("f(Tensor(a) x) -> Tensor(a)", False),
    ):
        assert utils.is_functional_schema(text) is functional, text
    assert utils.is_functional_schema(torch.ops.aten.view.default._schema, allow_valid_view=True)
    kinds = torch.ops.aten.index.Tensor._schema.arguments
    assert [utils.is_tensorlist_like_type(a.type) for a in kinds] == [False, True]
    assert [utils.is_tensor_like_type(a.type) for a in kinds] == [True, False]


def test_types_of_schemas() -> None:
    infer = submodule("_library.infer_schema")
    known = infer.SUPPORTED_PARAM_TYPES
    assert known[Tensor] == "Tensor" and known[int] == "SymInt" and known[list[Tensor]] == "Tensor[]"
    assert known[float | None] == "float?" and infer.SUPPORTED_RETURN_TYPES[list[Tensor]] == "Tensor[]"
    assert infer.tuple_to_list(tuple[int, ...]) == list[int] and infer.tuple_to_list(tuple) is list
    assert infer.tuple_to_list(tuple[int, float]) == list[Union[int, float]]  # noqa: UP007


def test_names_of_the_core() -> None:
    c = submodule("_C")
    schema = c.parse_schema("mine::f.over(Tensor(a!) x, int n=2, *, bool? flag=None) -> Tensor(a!)")
    assert (schema.name, schema.overload_name, schema.is_mutable) == ("mine::f", "over", True)
    assert [a.name for a in schema.arguments] == ["x", "n", "flag"] and schema.arguments[1].default_value == 2
    with pytest.raises(RuntimeError):
        c.parse_schema("mine::f(Tensor x")
    x = torch.ones(2)
    assert c._any_requires_grad(x, [x, torch.ones(1, requires_grad=True)]) and not c._any_requires_grad(x, 3)
    assert c._any_output_is_alias_to_input_or_output((x,), {}, (x[1:],))
    assert not c._any_output_is_alias_to_input_or_output((x,), {}, (x + 1, x + 2))
    assert len(c._jit_get_schemas_for_operator("aten::sin")) >= 1
    assert c._jit_resolve_packet("aten::sum", x) == "default"
    assert c._jit_resolve_packet("aten::sum", x, [0]) == "dim_IntList"
    assert not c._any_requires_grad([[torch.ones(1, requires_grad=True)]])
    assert submodule("_library").utils.lookup_op("aten::sin") is torch.ops.aten.sin.default


def test_checks_by_name() -> None:
    with pytest.raises(ValueError, match="expected test_utils to be subset of"):
        torch.library.opcheck(torch.ops.aten.sin.default, (torch.ones(2),), test_utils="blah")


def test_rules_of_a_library_for_a_mode_end_with_it() -> None:
    base: Any = submodule("utils._python_dispatch").TorchDispatchMode

    class Mode(base):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    @torch.library.custom_op("of_this_test::ruled", mutates_args=())
    def ruled(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    asked = []

    def rule(mode: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        asked.append(str(func))
        return args[0] * 5

    x = torch.ones(2)
    with torch.library._scoped_library("of_this_test", "FRAGMENT") as library:
        library._register_torch_dispatch_rule("ruled", Mode, rule)
        with Mode():
            assert ruled(x).tolist() == [5.0, 5.0]
        assert ruled(x).tolist() == [2.0, 2.0]
    assert asked == ["of_this_test.ruled.default"]
