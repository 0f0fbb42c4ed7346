"""`torch.library`: operators, kernels and derivatives that come from outside."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, List, Optional, Sequence, Tuple, Union  # noqa: UP035 (users write them)

import pytest

from .._subject import mindtorch_only
from .._subject import subject as torch

Tensor = torch.Tensor
library = torch.library
_COUNT = itertools.count()


@pytest.fixture
def ns() -> str:
    """A namespace nobody used."""
    return f"test_library_{next(_COUNT)}"


@pytest.fixture
def lib(ns: str) -> Iterator[Any]:
    made = library.Library(ns, "FRAGMENT")
    yield made
    made._destroy()


def scaled(ns: str) -> Any:
    """x * k with a derivative and a shape rule."""

    def scale(x: Tensor, k: float) -> Tensor:
        return torch.from_numpy(torch.Tensor.detach(x).numpy() * k)

    scale.__annotations__.update(x=Tensor, k=float, **{"return": Tensor})
    op = library.custom_op(f"{ns}::scale", scale, mutates_args=())

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.k = inputs[1]

    op.register_autograd(lambda ctx, g: (g * ctx.k, None), setup_context=setup)
    op.register_fake(lambda x, k: torch.empty_like(x))
    return op


# -- custom_op ----------------------------------------------------------------------------------------------------
def test_a_custom_operator_computes_and_differentiates(ns: str) -> None:
    op = scaled(ns)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = op(x, 3.0)
    assert y.tolist() == [3.0, 6.0]
    assert type(y.grad_fn).__name__ == f"GeneratedBackwardFor_{ns}_scale_defaultBackward"
    (y * y).sum().backward()
    assert x.grad.tolist() == [18.0, 36.0]
    assert not op(x.detach(), 3.0).requires_grad
    with torch.no_grad():
        assert not op(x, 3.0).requires_grad


def test_it_is_found_in_torch_ops(ns: str) -> None:
    op = scaled(ns)
    packet = getattr(torch.ops, ns).scale
    x = torch.ones(2)
    assert packet(x, 2.0).tolist() == packet.default(x, k=2.0).tolist() == op(x, k=2.0).tolist() == [2.0, 2.0]
    assert str(packet.default._schema) == f"{ns}::scale(Tensor x, float k) -> Tensor"
    assert packet.overloads() == ["default"] and packet.default.name() == f"{ns}::scale"
    assert repr(op) == f"<CustomOpDef({ns}::scale)>"


def test_meta_tensors_ask_the_fake(ns: str) -> None:
    y = scaled(ns)(torch.empty(2, 3, device="meta", dtype=torch.float64), 2.0)
    assert y.device.type == "meta" and y.shape == (2, 3) and y.dtype == torch.float64


def test_without_a_fake(ns: str) -> None:
    @library.custom_op(f"{ns}::same", mutates_args=(), schema="(Tensor x) -> Tensor")
    def same(x: Any) -> Any:
        return x.clone()

    with pytest.raises(RuntimeError, match=f"no fake impl registered for <CustomOpDef\\({ns}::same\\)>"):
        same(torch.empty(2, device="meta"))


def test_without_a_derivative_backward_says_so(ns: str) -> None:
    @library.custom_op(f"{ns}::same", mutates_args=(), schema="(Tensor x) -> Tensor")
    def same(x: Any) -> Any:
        return x.clone()

    y = same(torch.ones(2, requires_grad=True))
    assert y.requires_grad
    with pytest.raises(RuntimeError, match="no autograd formula was registered. Please use register_autograd"):
        y.sum().backward()


def test_what_the_kernel_does_is_not_recorded(ns: str) -> None:
    seen: list[bool] = []

    @library.custom_op(f"{ns}::square", mutates_args=(), schema="(Tensor x) -> Tensor")
    def square(x: Any) -> Any:
        y = x * x
        seen.append(y.requires_grad)
        return y

    square.register_autograd(
        lambda ctx, g: g * 2 * ctx.saved_tensors[0],
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    x = torch.tensor([3.0], requires_grad=True)
    assert torch.autograd.grad(square(x), x)[0].tolist() == [6.0] and seen == [False]
    assert torch.autograd.gradcheck(square, (torch.rand(3, dtype=torch.float64, requires_grad=True),))
    assert torch.autograd.gradgradcheck(square, (torch.rand(3, dtype=torch.float64, requires_grad=True),))


def test_lists_of_tensors_and_several_results(ns: str) -> None:
    @library.custom_op(f"{ns}::sums", mutates_args=(), schema="(Tensor[] xs, Tensor y) -> (Tensor, Tensor)")
    def sums(xs: Any, y: Any) -> Any:
        assert isinstance(xs, list)
        return xs[0] + xs[1], xs[1] * y

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0][1], inputs[1])

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        second, y = ctx.saved_tensors
        return [g, g + h * y], h * second

    sums.register_autograd(backward, setup_context=setup)
    a, b, y = (torch.tensor([v], requires_grad=True) for v in (2.0, 3.0, 5.0))
    first, second = sums([a, b], y)
    (first + 10 * second).sum().backward()
    assert (a.grad.item(), b.grad.item(), y.grad.item()) == (1.0, 51.0, 30.0)


def test_a_list_of_results(ns: str) -> None:
    @library.custom_op(f"{ns}::halves", mutates_args=(), schema="(Tensor x) -> Tensor[]")
    def halves(x: Any) -> Any:
        return [x[:1].clone(), x[1:].clone()]

    halves.register_autograd(lambda ctx, grads: torch.cat(list(grads)))
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    low, high = halves(x)
    (low * 3 + high).sum().backward()
    assert x.grad.tolist() == [3.0, 1.0]


def test_keyword_only_arguments(ns: str) -> None:
    @library.custom_op(f"{ns}::affine", mutates_args=(), schema="(Tensor x, *, float k=2.0, int n=1) -> Tensor")
    def affine(x: Any, *, k: float = 2.0, n: int = 1) -> Any:
        return x * k + n

    inputs: list[Any] = []

    def setup(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        ctx.k = keyword_only_inputs["k"]
        assert len(inputs) == 1 and keyword_only_inputs["n"] == 1

    affine.register_autograd(lambda ctx, g: g * ctx.k, setup_context=setup)
    x = torch.ones(2, requires_grad=True)
    assert affine(x.detach()).tolist() == [3.0, 3.0] and affine(x.detach(), n=0, k=5.0).tolist() == [5.0, 5.0]
    affine(x, k=4.0).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0] and not inputs


def test_a_result_may_not_share_memory(ns: str) -> None:
    @library.custom_op(f"{ns}::view", mutates_args=(), schema="(Tensor x) -> Tensor")
    def view(x: Any) -> Any:
        return x.view(-1)

    with pytest.raises(RuntimeError, match="may not alias any inputs to this custom operator or other returns"):
        view(torch.ones(2, 2))


def test_writing_arguments(ns: str) -> None:
    @library.custom_op(f"{ns}::fill_", mutates_args={"x"}, schema="(Tensor(a0!) x, float v) -> ()")
    def fill_(x: Any, v: float) -> None:
        x.numpy().fill(v)

    x = torch.zeros(2)
    assert fill_(x, 3.0) is None
    assert x.tolist() == [3.0, 3.0] and x._version == 1
    y = torch.ones(2, requires_grad=True) * 1
    saved = y * y
    with torch.no_grad():
        fill_(y, 2.0)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        saved.sum().backward()
    with pytest.raises(RuntimeError, match="Cannot register autograd formula for non-functional operator"):
        fill_.register_autograd(lambda ctx: None)


@mindtorch_only
def test_writing_arguments_functionalized(ns: str) -> None:
    @library.custom_op(f"{ns}::swap_", mutates_args="unknown", schema="(Tensor(a!) x, Tensor(b!) y) -> ()")
    def swap_(x: Any, y: Any) -> None:
        old = x.clone()
        x.copy_(y)
        y.copy_(old)

    base = torch.arange(4.0)
    with torch.functionalize():
        swap_(base[:2], base[2:])
    assert base.tolist() == [2.0, 3.0, 0.0, 1.0]


def test_kernels_by_device(ns: str) -> None:
    @library.custom_op(f"{ns}::where_am_i", mutates_args=(), schema="(Tensor x) -> Tensor", device_types="cuda")
    def where_am_i(x: Any) -> Any:
        return x + 1

    with pytest.raises(NotImplementedError, match=f"{ns}::where_am_i"):
        where_am_i(torch.zeros(1))

    @where_am_i.register_kernel("cpu")
    def _(x: Any) -> Any:
        return x + 2

    assert where_am_i(torch.zeros(1)).item() == 2
    with where_am_i.set_kernel_enabled("cpu", enabled=False):
        assert where_am_i(torch.zeros(1)).item() == 1
    assert where_am_i(torch.zeros(1)).item() == 2


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda op: op(3, 1.0), "Expected a value of type 'Tensor' for argument 'x' but instead found type 'int'"),
        (lambda op: op(torch.ones(1), 1.0, 2), "expected at most 2 argument\\(s\\) but received 3 argument\\(s\\)"),
        (lambda op: op(k=1.0), "is missing value for argument 'x'. Declaration: .*scale\\(Tensor x, float k\\)"),
    ],
)
def test_arguments_that_do_not_fit(ns: str, call: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        call(scaled(ns))


# -- infer_schema -------------------------------------------------------------------------------------------------
def many(
    x: Tensor,
    n: int,
    f: float = 1.5,
    *,
    flag: bool = True,
    s: str = "a",
    o: Optional[Tensor] = None,  # noqa: UP045
    d: torch.dtype = torch.float32,
) -> Tuple[Tensor, Tensor]:  # noqa: UP006
    raise AssertionError


def lists(
    xs: Sequence[Tensor],
    n: List[int],  # noqa: UP006
    f: Optional[Sequence[float]],  # noqa: UP045
    e: torch.device,
    v: Union[int, float, bool],  # noqa: UP007
    ot: list[Optional[Tensor]],  # noqa: UP045
) -> list[Tensor]:
    raise AssertionError


def nothing(x: Tensor) -> None:
    raise AssertionError


def untyped(x, y):  # type: ignore[no-untyped-def]
    raise AssertionError


def variadic(*xs: Tensor) -> Tensor:
    raise AssertionError


def dictionary(x: dict[str, int]) -> Tensor:
    raise AssertionError


def endless(x: Tensor):  # type: ignore[no-untyped-def]
    raise AssertionError


for _f in (many, lists, nothing, variadic, dictionary):
    # The names in annotations are this module's; functions defined under `from __future__` hold text.
    _f.__globals__.update(Tensor=Tensor, torch=torch)


@pytest.mark.parametrize(
    ("fn", "written", "expected"),
    [
        (
            many,
            (),
            '(Tensor x, SymInt n, float f=1.5, *, bool flag=True, str s="a", Tensor? o=None, ScalarType d=float32) -> '
            "(Tensor, Tensor)",
        ),
        (lists, (), "(Tensor[] xs, SymInt[] n, float[]? f, Device e, Scalar v, Tensor?[] ot) -> Tensor[]"),
        (nothing, {"x"}, "(Tensor(a0!) x) -> ()"),
        (nothing, "unknown", "(Tensor(a0!) x) -> ()"),
    ],
)
def test_schemas_are_inferred(fn: Any, written: Any, expected: str) -> None:
    assert library.infer_schema(fn, mutates_args=written) == expected
    assert library.infer_schema(fn, mutates_args=written, op_name="ns::f") == "ns::f" + expected


@pytest.mark.parametrize(
    ("fn", "written", "text"),
    [
        (untyped, (), "Parameter x must have a type annotation"),
        (variadic, (), "We do not support positional-only args, varargs, or varkwargs"),
        (dictionary, (), "Parameter x has unsupported type"),
        (endless, (), "Parameter x must|No return type annotation was provided"),
        (nothing, {"q"}, "{'q'} in mutates_args were not found in the custom op's signature"),
        (many, {"n"}, "Parameter n is in mutable_args but only Tensors or collections of Tensors can be mutated"),
        (nothing, "x", "mutates_args must either be a sequence of the names of the arguments"),
    ],
)
def test_schemas_that_cannot_be_inferred(fn: Any, written: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        library.infer_schema(fn, mutates_args=written)


# -- Library ------------------------------------------------------------------------------------------------------
def test_define_and_impl(lib: Any, ns: str) -> None:
    assert lib.define("double(Tensor x) -> Tensor") == "double"
    lib.impl("double", lambda x: x * 2, "CPU")
    op = getattr(torch.ops, ns).double
    assert op(torch.ones(2)).tolist() == [2.0, 2.0]
    x = torch.ones(2, requires_grad=True)
    op(x).sum().backward()  # the kernel's own operators are recorded
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(NotImplementedError, match=f"{ns}::double"):
        op(torch.empty(2, device="meta"))
    lib.impl("double", lambda x: torch.empty_like(x), "Meta")
    assert op(torch.empty(2, device="meta")).shape == (2,)


def test_overloads(lib: Any, ns: str) -> None:
    lib.define("f.int(Tensor x, int n) -> Tensor")
    lib.define("f.str(Tensor x, str s) -> Tensor")
    lib.impl("f.int", lambda x, n: x + n, "CPU")
    lib.impl("f.str", lambda x, s: x + len(s), "CPU")
    op = getattr(torch.ops, ns).f
    assert op(torch.zeros(1), 2).item() == 2 and op(torch.zeros(1), "abc").item() == 3
    assert sorted(op.overloads()) == ["int", "str"] and op.int.name() == f"{ns}::f.int"


def test_composite_kernels(lib: Any, ns: str) -> None:
    lib.define("cube(Tensor x) -> Tensor")
    lib.impl("cube", lambda x: x * x * x, "CompositeImplicitAutograd")
    op = getattr(torch.ops, ns).cube
    x = torch.tensor([2.0], requires_grad=True)
    op(x).backward()
    assert x.grad.item() == 12.0 and op(torch.empty(3, device="meta")).shape == (3,)


def test_an_autograd_kernel(lib: Any, ns: str) -> None:
    lib.define("tenfold(Tensor x) -> Tensor")
    lib.impl("tenfold", lambda x: x * 10, "CPU")
    op = getattr(torch.ops, ns).tenfold

    class Tenfold(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                return op(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * -1

    lib.impl("tenfold", Tenfold.apply, "Autograd")
    x = torch.ones(1, requires_grad=True)
    y = op(x)
    y.backward()
    assert y.item() == 10.0 and x.grad.item() == -1.0


def test_functions_that_register(lib: Any, ns: str) -> None:
    library.define(f"{ns}::plus", "(Tensor x, float k=1.0) -> Tensor", lib=lib)

    @library.impl(f"{ns}::plus", "cpu", lib=lib)
    def plus(x: Any, k: float = 1.0) -> Any:
        return x.detach() + k

    @library.register_fake(f"{ns}::plus", lib=lib)
    def fake(x: Any, k: float = 1.0) -> Any:
        return torch.empty_like(x)

    library.register_autograd(f"{ns}::plus", lambda ctx, g: (g * 7, None), lib=lib)
    op = getattr(torch.ops, ns).plus
    x = torch.zeros(2, requires_grad=True)
    y = op(x)
    y.sum().backward()
    assert y.tolist() == [1.0, 1.0] and x.grad.tolist() == [7.0, 7.0]
    assert op(torch.empty(4, device="meta")).shape == (4,)


def test_the_older_decorators(lib: Any, ns: str) -> None:
    lib.define("minus(Tensor x) -> Tensor")

    @library.impl(lib, "minus", "CPU")
    def minus(x: Any) -> Any:
        return -x

    assert getattr(torch.ops, ns).minus(torch.ones(1)).item() == -1


def test_one_definition_of_a_namespace(ns: str) -> None:
    first = library.Library(ns, "DEF")
    with pytest.raises(RuntimeError, match=f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}"):
        library.Library(ns, "DEF")
    second = library.Library(ns, "FRAGMENT")
    second.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="with the same name and overload name multiple times"):
        first.define("f(Tensor x) -> Tensor")


def _line() -> str:
    """File and line of the caller."""
    frame = sys._getframe(1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def test_a_second_definition_names_the_place_of_the_first(ns: str) -> None:
    first, at_first = library.Library(ns, "DEF"), _line()
    second, at_second = library.Library(ns, "FRAGMENT"), _line()
    first.define("f(Tensor x) -> Tensor")
    assert second.define("f.two(Tensor x, Tensor y) -> Tensor") == "f"
    for lib, again, place, original in (
        (second, "f(Tensor x) -> Tensor", at_second, at_first),
        (first, "f(Tensor x) -> Tensor", at_first, at_first),
        (first, "f.two(Tensor x) -> Tensor", at_first, at_second),
    ):
        with pytest.raises(RuntimeError) as refused:
            lib.define(again)
        assert str(refused.value) == (
            f"Tried to register an operator ({ns}::{again}) with the same name and overload name multiple times. Each "
            "overload's schema should only be registered with a single call to def(). Duplicate registration: "
            f"registered at {place}. Original registration: registered at {original}"
        )
    with pytest.raises(RuntimeError) as refused:
        library.Library(ns, "DEF")
    assert f"  Previous registration of TORCH_LIBRARY was registered at {at_first}; latest" in str(refused.value)
    with pytest.raises(RuntimeError, match="Original registration: registered at .*:[0-9]+$"):
        library.Library("aten", "FRAGMENT").define("relu(Tensor self) -> Tensor")


def test_the_first_kernel_that_takes_anothers_place_is_warned_of() -> None:
    """In a process of its own: there is one warning per process."""
    program = (
        f"import warnings, {torch.__name__} as torch\n"
        "lib = torch.library.Library('warns', 'DEF')\n"
        "lib.define('f(Tensor x) -> Tensor')\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    lib.impl('f', lambda x: x, 'CPU')\n"
        "    assert not seen\n"
        "    lib.impl('f', lambda x: x + 1, 'CPU')\n"
        "    (one,) = seen\n"
        "print(str(one.message).partition(' (Triggered')[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "Warning only once for all operators,  other operators may also be overridden.\n"
        "  Overriding a previously registered kernel for the same operator and the same dispatch key\n"
        "  operator: warns::f(Tensor x) -> Tensor\n"
        "    registered at <string>:2\n"
        "  dispatch key: CPU\n"
        "  previous kernel: no debug info\n"
        "       new kernel: registered at <string>:2\n"
    )


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: library.Library("x", "OTHER"), ValueError, "Unsupported kind: OTHER"),
        (lambda: library.Library("prim", "DEF"), ValueError, "is a reserved namespace"),
        (lambda: library.Library("aten", "DEF"), RuntimeError, "Only a single TORCH_LIBRARY can be used"),
        (lambda: library.define("nons", "(Tensor x) -> Tensor"), ValueError, "Expected `qualname` to be of the form"),
        (lambda: library.register_fake("no_such::op", print), RuntimeError, "operator no_such::op does not exist"),
        (lambda: torch.ops.no_such.op, AttributeError, "'_OpNamespace' 'no_such' object has no attribute 'op'"),
        (lambda: torch.ops.aten.add.nope, AttributeError, "'aten.add' has no overload name 'nope'"),
    ],
)
def test_refusals(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_a_wrong_key(lib: Any) -> None:
    lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="could not parse dispatch key: Foo"):
        lib.impl("f", lambda x: x, "Foo")


def test_what_is_destroyed_is_gone(ns: str) -> None:
    made = library.Library(ns, "DEF")
    made.define("f(Tensor x) -> Tensor")
    made.impl("f", lambda x: x + 1, "CPU")
    assert getattr(torch.ops, ns).f(torch.zeros(1)).item() == 1
    made._destroy()
    again = library.Library(ns, "DEF")
    again.define("f(Tensor x) -> Tensor")
    again.impl("f", lambda x: x + 2, "CPU")
    assert getattr(torch.ops, ns).f(torch.zeros(1)).item() == 2
    again._destroy()


@mindtorch_only
def test_a_kernel_of_the_package_is_replaced_and_comes_back() -> None:
    made = library.Library("aten", "IMPL")
    x = torch.ones(2)
    made.impl("sinh", lambda x: x - 100, "CPU")
    try:
        assert torch.sinh(x).tolist() == [-99.0, -99.0]
    finally:
        made._destroy()
    assert torch.sinh(x).tolist() == pytest.approx([1.1752012, 1.1752012])


@mindtorch_only
def test_what_does_not_exist_is_named(ns: str) -> None:
    with pytest.raises(NotImplementedError, match="vmap"):
        library.register_vmap(torch.ops.aten.add.Tensor, lambda *a: None)
    with pytest.raises(NotImplementedError, match="Triton"):
        library.triton_op(f"{ns}::t", mutates_args=())


# -- opcheck ------------------------------------------------------------------------------------------------------
def test_opcheck_of_a_good_operator(ns: str) -> None:
    op = scaled(ns)
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    x = torch.randn(3, requires_grad=True)
    assert library.opcheck(op, (x, 2.0), test_utils=tests) == dict.fromkeys(tests, "SUCCESS")
    assert library.opcheck(getattr(torch.ops, ns).scale.default, (x, 2.0), test_utils=tests)


@mindtorch_only
def test_opcheck_of_everything(ns: str) -> None:
    results = library.opcheck(scaled(ns), (torch.randn(3, requires_grad=True), 2.0))
    assert set(results.values()) == {"SUCCESS"} and len(results) == 4
    assert set(library.opcheck(torch.ops.aten.sin.default, (torch.randn(3),)).values()) == {"SUCCESS"}


def test_opcheck_finds_a_hidden_write(ns: str) -> None:
    @library.custom_op(f"{ns}::sly", mutates_args=(), schema="(Tensor x) -> Tensor")
    def sly(x: Any) -> Any:
        x.add_(1)
        return x.clone()

    with pytest.raises(Exception, match="test_schema failed with .*[Aa]rgument x is not defined as mutable"):
        library.opcheck(sly, (torch.ones(2),), test_utils="test_schema")


def test_opcheck_finds_a_wrong_fake(ns: str) -> None:
    @library.custom_op(f"{ns}::grow", mutates_args=(), schema="(Tensor x) -> Tensor")
    def grow(x: Any) -> Any:
        return torch.cat([x, x])

    grow.register_fake(lambda x: torch.empty_like(x))
    results = library.opcheck(grow, (torch.ones(2),), test_utils="test_faketensor", raise_exception=False)
    assert isinstance(results["test_faketensor"], Exception)


def test_opcheck_finds_a_missing_derivative(lib: Any, ns: str) -> None:
    lib.define("double(Tensor x) -> Tensor")
    lib.impl("double", lambda x: x * 2, "CPU")
    results = library.opcheck(
        getattr(torch.ops, ns).double.default,
        (torch.ones(2, requires_grad=True),),
        test_utils="test_autograd_registration",
        raise_exception=False,
    )
    assert isinstance(results["test_autograd_registration"], Exception)


def test_tags_are_kept(ns: str, lib: Any) -> None:
    tag = torch.Tag
    names = getattr(torch.ops, ns)
    lib.define("plain(Tensor x) -> Tensor")
    assert names.plain.default.tags == [] and names.plain.default._defined_in_python
    lib.define("one(Tensor x) -> Tensor", tags=tag.pointwise)
    assert names.one.default.tags == [tag.pointwise]
    library.define(f"{ns}::two", "(Tensor x) -> Tensor", lib=lib, tags=(tag.core, tag.pointwise))
    assert names.two.default.tags == [tag.core, tag.pointwise]
    with pytest.raises(TypeError):
        lib.define("wrong(Tensor x) -> Tensor", tags=["core"])
    assert not torch.ops.aten.sin.default._defined_in_python
    made = library.custom_op(f"{ns}::three", lambda x: x.clone(), mutates_args=(), schema="(Tensor x) -> Tensor")
    assert made._opoverload.tags == [tag.pt2_compliant_tag]


def test_opcheck_takes_a_list_of_arguments(ns: str) -> None:
    tests = ("test_schema", "test_faketensor")
    assert library.opcheck(scaled(ns), [torch.randn(3), 2.0], test_utils=tests) == dict.fromkeys(tests, "SUCCESS")


def test_a_derivative_leaves_out_what_the_call_does(ns: str, lib: Any) -> None:
    lib.define("foo(Tensor w, int x=2, *, int y=3) -> Tensor")
    lib.impl("foo", lambda w, x=2, *, y=3: w * x * y, "CPU")

    def setup(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        ctx.by = inputs[1] * keyword_only_inputs["y"]

    library.register_autograd(f"{ns}::foo", lambda ctx, g: g * ctx.by, setup_context=setup, lib=lib)
    foo = getattr(torch.ops, ns).foo
    w = torch.ones(2, requires_grad=True)
    foo(w).sum().backward()
    assert w.grad.tolist() == [6.0, 6.0]
    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        foo(w, 5).sum().backward()


def test_the_value_of_an_empty_tensor() -> None:
    with pytest.raises(RuntimeError, match="_local_scalar_dense: Empty tensor not supported"):
        torch.ops.aten._local_scalar_dense(torch.empty(0))
