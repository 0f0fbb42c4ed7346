"""What libraries import or look up of PyTorch: every name is there, where PyTorch has it, with PyTorch's kind."""

from __future__ import annotations

import importlib
import io
from types import ModuleType
from typing import Any

import pytest

from .._subject import mindtorch_only
from .._subject import subject as torch

pytestmark = mindtorch_only

NAMES = """
    torch.BoolTensor torch.ByteTensor torch.FloatTensor torch.HalfTensor torch.IntTensor torch.LongTensor
    torch.UntypedStorage torch._C torch._C.DisableTorchFunctionSubclass torch._C.DispatchKey torch._C.DispatchKeySet
    torch._C._TensorMeta torch._C._log_api_usage_once torch._C._nn._parse_to torch._dynamo
    torch._dynamo.OptimizedModule torch._dynamo._trace_wrapped_higher_order_op.TransformGetItemToIndex
    torch._dynamo.allow_in_graph torch._dynamo.assume_constant_result torch._dynamo.disable
    torch._dynamo.eval_frame.OptimizedModule torch._dynamo.is_compiling torch._dynamo.mark_static_address
    torch._higher_order_ops.associative_scan.associative_scan torch._jit_internal.Future
    torch._subclasses.FakeTensor torch.accelerator.current_accelerator torch.accelerator.is_available
    torch.amp.GradScaler torch.ao.quantization torch.ao.quantization.DeQuantStub torch.ao.quantization.QuantStub
    torch.autocast torch.autograd.graph.save_on_cpu torch.autograd.profiler torch.autograd.profiler.record_function
    torch.backends.cpu.get_cpu_capability torch.backends.cuda torch.backends.cudnn torch.backends.cudnn.benchmark
    torch.backends.cudnn.deterministic torch.backends.cudnn.enabled torch.backends.cudnn.flags torch.backends.mps
    torch.backends.mps.is_available torch.backends.mps.is_built torch.compile torch.compiler.allow_in_graph
    torch.compiler.disable torch.compiler.is_compiling torch.compiler.is_exporting torch.cuda torch.cuda.CUDAGraph
    torch.cuda.Stream torch.cuda.StreamContext torch.cuda.amp torch.cuda.empty_cache torch.cuda.graph
    torch.cuda.is_current_stream_capturing torch.cuda.manual_seed_all torch.cuda.set_rng_state_all torch.device
    torch.distributed.ProcessGroup torch.distributed.device_mesh.DeviceMesh torch.distributed.is_available
    torch.distributed.tensor.DTensor torch.distributions.constraints
    torch.distributions.relaxed_bernoulli.RelaxedBernoulli torch.distributions.wishart.Wishart torch.fft
    torch.fft.fft torch.fft.fftn torch.fft.fftshift torch.fft.ifft torch.fft.ifftn torch.fft.ifftshift
    torch.float4_e2m1fn_x2 torch.float8_e4m3fn torch.float8_e4m3fnuz torch.float8_e5m2 torch.float8_e5m2fnuz
    torch.float8_e8m0fnu torch.fx torch.fx.Graph torch.fx.GraphModule torch.fx.Node torch.fx.Proxy torch.fx.Tracer
    torch.fx.graph_module._copy_attr torch.fx.node.Target torch.fx.wrap torch.get_autocast_dtype
    torch.get_default_device torch.get_default_dtype torch.hub torch.hub.HASH_REGEX torch.hub._get_torch_home
    torch.hub.download_url_to_file torch.hub.get_dir torch.hub.load_state_dict_from_url torch.hub.urlparse
    torch.is_autocast_enabled torch.isin torch.jit.Final torch.jit.ScriptModule torch.jit._overload_method
    torch.jit._script_if_tracing torch.jit.annotations.BroadcastingList2 torch.jit.annotations.List torch.jit.export
    torch.jit.ignore torch.jit.is_scripting torch.jit.is_tracing torch.jit.script torch.jit.unused
    torch.library.Library torch.library.custom_op torch.library.register_autograd torch.library.register_fake
    torch.linalg.norm torch.multinomial torch.nn.Buffer torch.nn.attention.flex_attention
    torch.nn.attention.flex_attention.AuxRequest torch.nn.attention.flex_attention.BlockMask
    torch.nn.attention.flex_attention._DEFAULT_SPARSE_BLOCK_SIZE torch.nn.attention.flex_attention.create_block_mask
    torch.nn.attention.flex_attention.flex_attention torch.nn.attention.sdpa_kernel torch.nn.functional.grouped_mm
    torch.nn.modules.module.Module torch.nn.modules.module._EXTRA_STATE_KEY_SUFFIX
    torch.nn.parallel.DistributedDataParallel torch.nn.utils.parametrizations.weight_norm torch.nn.utils.weight_norm
    torch.onnx torch.onnx.register_custom_op_symbolic torch.onnx.symbolic_helper.parse_args
    torch.onnx.symbolic_opset11 torch.ops torch.ops.load_library torch.profiler torch.profiler.ProfilerActivity
    torch.profiler.profile torch.serialization torch.serialization.add_safe_globals
    torch.serialization.clear_safe_globals torch.serialization.get_safe_globals torch.serialization.safe_globals
    torch.set_default_device torch.set_default_dtype torch.storage torch.storage.TypedStorage
    torch.storage.UntypedStorage torch.storage._load_from_bytes torch.topk torch.uint16 torch.uint32 torch.uint64
    torch.utils._python_dispatch.is_traceable_wrapper_subclass torch.utils._pytree.LeafSpec
    torch.utils._pytree.PyTree torch.utils._pytree.SUPPORTED_NODES torch.utils._pytree.TreeSpec
    torch.utils._pytree._dict_flatten torch.utils._pytree._dict_flatten_with_keys torch.utils._pytree._get_node_type
    torch.utils._pytree.register_pytree_node torch.utils._pytree.tree_flatten torch.utils._pytree.tree_map
    torch.utils._pytree.tree_unflatten torch.utils.checkpoint.checkpoint torch.utils.model_zoo.tqdm
    torch.version.cuda torch.version.hip torch.xpu torch.xpu.is_available
""".split()


def found(library: Any, name: str) -> Any:
    """What a program finds that imports the longest module in a name, and looks the rest up."""
    parts = name.split(".")[1:]
    for length in range(len(parts), -1, -1):
        try:
            value = importlib.import_module(".".join((library.__name__, *parts[:length])))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            value = getattr(value, part)
        return value
    raise AssertionError(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_name_is_there(name: str) -> None:
    found(torch, name)


def kind(value: Any) -> str:
    if isinstance(value, (bool, int, str, type(None))):
        return repr(value)
    return "module" if isinstance(value, ModuleType) else "class" if isinstance(value, type) else str(callable(value))


# Objects of another make: annotations, an object in a module's place, and what PyTorch has for several processes.
OURS = {
    "torch.ops",
    "torch.distributed.ProcessGroup",
    "torch.jit.Final",
    "torch.fx.node.Target",
    "torch.utils._pytree.PyTree",
}


def test_a_library_that_cannot_be_loaded() -> None:
    with pytest.raises(OSError, match="Could not load this library: nowhere.so"):
        torch.ops.load_library("nowhere.so")


def test_libraries_of_pytorchs_own_tests_hold_classes_that_are_refused_by_name() -> None:
    with pytest.warns(UserWarning, match="libtorchbind_test.so is a part of PyTorch's distribution and was not loaded"):
        torch.ops.load_library("nowhere/libtorchbind_test.so")
    assert "nowhere/libtorchbind_test.so" in torch.classes.loaded_libraries
    with pytest.raises(RuntimeError, match="Tried to instantiate class '_TorchScriptTesting._Foo', but it"):
        torch.classes._TorchScriptTesting._Foo(1)
    with pytest.raises(OSError, match="Could not load this library: other.so"):
        torch.classes.load_library("other.so")


def test_bytes_of_a_storage() -> None:
    stored = io.BytesIO()
    torch.save(torch.arange(3).untyped_storage(), stored)
    assert torch.storage._load_from_bytes(stored.getvalue()).nbytes() == 24


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OURS])
def test_it_is_of_pytorchs_kind(oracle: Any, name: str) -> None:
    assert kind(found(torch, name)) == kind(found(oracle, name))
