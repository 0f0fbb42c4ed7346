"""Modules that PyTorch's own tests import: traces, settings, tags, marks of a compiler that is not here."""

from __future__ import annotations

import sys
import traceback
import types
import warnings
from importlib import import_module
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch


def of(name: str, library: Any = torch) -> Any:
    return import_module(f"{library.__name__}.{name}")


TAGGED = """add.Tensor add_.Tensor sum.dim_IntList mul.out bernoulli.default nonzero.default
    dropout.default view.default expand_copy.default exp.default amax.default convolution.default
    rand.default""".split()


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize("name", TAGGED)
def test_operators_have_pytorchs_tags(name: str) -> None:
    def tags(library: Any) -> set[str]:
        packet, _, overload = name.partition(".")
        return {tag.name for tag in getattr(getattr(library.ops.aten, packet), overload).tags}

    assert tags(torch) == tags(_oracle.load())


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize("name", ["masked.sum", "masked.mean", "masked.amax", "masked.argmin", "masked.logsumexp"])
def test_identities_of_reductions_by_their_long_names(name: str) -> None:
    def found(library: Any) -> str:
        return str(of("masked", library)._reduction_identity(name, library.ones(2)))

    assert found(torch) == str(of("masked._ops", _oracle.load())._reduction_identity(name, _oracle.load().ones(2)))


def test_resize_has_a_gradient() -> None:
    resize = of("autograd._functions").Resize
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = resize.apply(x, (3, 2))
    (y * torch.arange(6.0).reshape(3, 2)).sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    with pytest.raises(RuntimeError, match="requested resize to 2 "):
        resize.apply(x, (2,))


@mindtorch_only
def test_which_results_share_memory() -> None:
    utils = of("_subclasses.fake_utils")
    x = torch.ones(2, 3)
    assert utils.outputs_alias_inputs([x.t()], {"a": x}) and not utils.outputs_alias_inputs([x + 1], [x])
    assert utils.outputs_are_inputs([x], [x]) and not utils.outputs_are_inputs([x.t()], [x])
    assert utils.output_alias_each_other([x, x.t()]) and not utils.output_alias_each_other([x, x + 1])
    assert torch._C._is_alias_of(x, x[0]) and not torch._C._is_alias_of(x, x.clone())


def test_metadata_of_two_tensors() -> None:
    meta = of("_subclasses.meta_utils")
    x = torch.ones(2, 3)
    meta.assert_metadata_eq(meta.assert_eq, x, torch.zeros(2, 3))
    for other in (x.double(), x.t(), x.clone().requires_grad_()):
        with pytest.raises(AssertionError):
            meta.assert_metadata_eq(meta.assert_eq, x, other)


def test_frames_are_kept_and_shown() -> None:
    module = of("utils._traceback")
    text = "".join(module.CapturedTraceback.extract().format())
    assert "test_frames_are_kept_and_shown" in text
    assert len(module.CapturedTraceback.format_all([module.CapturedTraceback.extract(), None])) == 2
    try:
        raise ValueError
    except ValueError as error:
        assert module.format_traceback_short(error.__traceback__).endswith("in test_frames_are_kept_and_shown")
    source = "def f(x):\n    raise RuntimeError(x)  # HERE\n"
    space: dict[str, Any] = {"__compile_source__": source}
    exec(compile(source, "<string>", "exec"), space)
    with pytest.raises(RuntimeError) as caught, module.report_compile_source_on_error():
        space["f"](1)
    assert "HERE" in "".join(traceback.format_tb(caught.value.__traceback__))


def test_a_function_on_a_device() -> None:
    @of("utils._device").set_device("meta")
    def made() -> Any:
        return torch.ones(2)

    assert made().device.type == "meta" and torch.ones(2).device.type == "cpu"


def test_a_public_name_that_warns() -> None:
    module = types.ModuleType("of_this_test")
    sys.modules["of_this_test"] = module

    def _old(x: int) -> int:
        return x + 1

    _old.__module__ = "of_this_test"
    try:
        assert of("_utils_internal").deprecated()(_old) is _old
        with pytest.warns(UserWarning, match="old is DEPRECATED"):
            assert vars(module)["old"](1) == 2
        with pytest.raises(RuntimeError, match="symbol already exists"):
            of("_utils_internal").deprecated()(_old)
    finally:
        del sys.modules["of_this_test"]


@mindtorch_only
def test_a_module_of_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    config = of("utils._config_module")
    monkeypatch.setenv("OF_THIS_TEST", "1")
    module: Any = types.ModuleType("settings_of_this_test")
    monkeypatch.setitem(sys.modules, "settings_of_this_test", module)
    module.speed = 3
    module.forced = config.Config(default=False, env_name_force="OF_THIS_TEST")
    module.other = config.Config(alias="speed")
    config.install_config_module(module)
    assert (module.speed, module.forced, module.other) == (3, True, 3)
    with module.patch(speed=4):
        assert module.other == 4
    assert module.speed == 3
    with pytest.raises(AttributeError, match="no_such does not exist"):
        module.no_such = 1


def test_a_library_that_ends_with_its_block() -> None:
    library = of("library")
    with library._scoped_library("of_this_test", "FRAGMENT") as made:
        made.define("twice(Tensor x) -> Tensor")
        made.impl("twice", lambda x: x * 2, "CPU")
        assert torch.ops.of_this_test.twice(torch.ones(1)).item() == 2.0
    with pytest.raises(AttributeError):
        torch.ops.of_this_test.twice(torch.ones(1))


def test_rules_for_vmap_are_kept() -> None:
    @torch.library.custom_op("of_this_test::thrice", mutates_args=())
    def thrice(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    @thrice.register_vmap
    def rule(info: Any, in_dims: Any, x: Any) -> Any:
        return thrice(x), in_dims[0]

    assert torch.vmap(thrice)(torch.ones(2, 3)).tolist() == [[3.0] * 3] * 2


@mindtorch_only
def test_what_a_compiler_would_do_runs_as_it_is() -> None:
    counter = of("_dynamo.testing").CompileCounter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.compile(lambda x: x + 1, backend=counter)(torch.ones(1)).item() == 2.0
    assert counter.frame_count == 0
    assert of("_higher_order_ops.invoke_subgraph").mark_compile_region(len) is len
    assert of("_higher_order_ops").InvokeQuant()(len, [1, 2]) == 2
    assert of("_dynamo.testing").rand_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert str(of("_logging._internal").LazyString(lambda a: a * 2, "x")) == "xx"
    for call in (
        of("_inductor.graph").GraphLowering,
        of("_inductor.compile_fx").compile_fx,
        of("_higher_order_ops.flex_attention").flex_attention,
        of("_lazy").mark_step,
        of("ao.nn.intrinsic").LinearReLU,
    ):
        with pytest.raises(NotImplementedError, match="torch\\."):
            call()
    with pytest.raises(RuntimeError, match="No working"):
        of("_inductor.codecache").CppCodeCache.load("")


def test_a_block_mask_of_one_block() -> None:
    flex = of("nn.attention.flex_attention")
    x = torch.randn(1, 1, 4, 2)
    mask = flex._create_empty_block_mask(x, x)
    assert mask.kv_num_blocks.tolist() == [[[1]]] and mask.BLOCK_SIZE == (1 << 30, 1 << 30)


# Modules whose names can be imported and raise when used: module, names.
REFUSED = [
    ("_functorch.aot_autograd", "aot_function aot_module aot_export_module compiled_function AOTConfig"),
    ("_functorch.compilers", "ts_compile memory_efficient_fusion draw_graph_compile"),
    ("_functorch.partitioners", "default_partition min_cut_rematerialization_partition draw_graph"),
    ("_functorch.fx_minifier", "minifier"),
    ("_functorch.python_key", "pythonkey_decompose"),
    ("_inductor.decomposition", "select_decomp_table"),
    ("_subclasses.functional_tensor", "FunctionalTensor FunctionalTensorMode dispatch_functionalize"),
    ("_higher_order_ops.schema", "HopSchemaGenerator"),
    ("_higher_order_ops.cudagraph_conditional_nodes", "ControlFlowOpWarmupDispatchMode"),
    ("_library.fake_profile", "OpProfile load_op_profiles"),
    ("fx.passes.runtime_assert", "insert_deferred_runtime_asserts"),
    ("fx.experimental.symbolic_shapes", "DimDynamic StatelessSymbolicContext eval_guards bind_symbols"),
    ("_dynamo.testing", "AotEagerAndRecordGraphs InductorAndRecordGraphs"),
]


@mindtorch_only
@pytest.mark.parametrize("module, names", REFUSED)
def test_names_that_refuse(module: str, names: str) -> None:
    for name in names.split():
        with pytest.raises(NotImplementedError, match=f"torch.{module}"):
            getattr(of(module), name)()


def test_compilers_that_do_nothing() -> None:
    graph = of("fx").symbolic_trace(lambda x: x + 1)
    boxed = of("_functorch.compilers").nop(graph, [])
    assert boxed([torch.ones(2)]).tolist() == [2.0, 2.0] and boxed._boxed_call
    assert of("_functorch.aot_autograd").make_boxed_func(lambda a, b: a - b)([5, 3]) == 2


def test_decompositions_are_there_when_imported() -> None:
    table = of("_decomp").decomposition_table
    assert torch.ops.aten.silu.default in table and torch.ops.aten.addmm.default in table


def test_context_of_a_trace() -> None:
    guards = of("_guards")
    assert guards.TracingContext.try_get() is None
    mode = of("_subclasses.fake_tensor").FakeTensorMode()
    with guards.tracing(guards.TracingContext(mode)):
        assert guards.detect_fake_mode() is mode and guards.TracingContext.get().fake_mode is mode
    assert guards.detect_fake_mode() is None
    with pytest.raises(RuntimeError, match="within an ongoing trace"):
        guards.TracingContext.get()


def test_metadata_of_tensors() -> None:
    extract = of("_subclasses.fake_tensor").extract_tensor_metadata
    x = torch.ones(2, 3, 4, 5)
    assert extract(x) == extract(torch.zeros(2, 3, 4, 5)) != extract(x.double())
    last = extract(x.contiguous(memory_format=torch.channels_last))
    assert last.memory_format is torch.channels_last and last.storage_bytes == 480
    assert extract(x[:, :, ::2]).memory_format is None
    assert extract(torch.eye(3).to_sparse()).sparse_dim == 2


def test_tests_with_settings_changed() -> None:
    testing = of("_dynamo.testing")

    class Cases:
        limit = 1

        def test_limit(self) -> int:
            return self.limit

    made = testing.make_test_cls_with_patches(Cases, "Patched", "_two", (Cases, "limit", 2))
    assert made.__name__ == "PatchedCases" and not hasattr(made, "test_limit")
    assert made.test_limit_two(Cases()) == 2 and Cases().test_limit() == 1
    assert testing.normalize_gm("a = 1 \n  # one\n\n\n\nb = 2\n") == "a = 1\n\nb = 2\n"


def test_copies_of_inputs() -> None:
    clone = of("_dynamo.utils").clone_input
    x = torch.arange(12.0).reshape(3, 4).t().requires_grad_()
    y = clone(x)
    assert y.stride() == x.stride() and y.requires_grad and y.tolist() == x.tolist() and y.data_ptr() != x.data_ptr()
