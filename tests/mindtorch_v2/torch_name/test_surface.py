"""Parts that libraries import and this package serves in another way, or not: compiling, scripts, several processes,
exporting. What they answer, and what they refuse, against PyTorch where it can be asked.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest

import mindtorch_v2

from .. import _oracle
from .._outcome import plain
from .._subject import mindtorch_only

pytestmark = mindtorch_only


def told(library: Any, line: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(eval(line, {"torch": library, "f": lambda x: x + 1, "t": library.ones(3, 2), "dict": dict}))
        except Exception as error:
            return f"{type(error).__name__}: {str(error).partition(', known options')[0]}"


COMPILING = [
    "torch.compile(f, backend='nope')",
    "torch.compile(f, mode='nope')",
    "torch.compile(f, mode='default', options={'max_autotune': True})",
    "torch.compile(f, options={'nope': True})",
    "torch.compile(f, options={'max_autotune': 3})",
    "torch.compile(3)",
    "torch.compile(None)(None)",
    "torch.compile(f, dynamic=3)",
    "torch.compile(f, backend='eager')(t)",
    "torch.compile(dynamic=True, fullgraph=True, backend='eager')(f)(t)",
    "list(torch.compile(torch.nn.Linear(2, 3)).state_dict())",
    "torch.compile(torch.nn.Linear(2, 3)).in_features",
    "str(torch.compile(torch.nn.Linear(2, 3)))",
    "type(torch.compile(torch.nn.Linear(2, 3))).__name__",
    "isinstance(torch.compile(torch.nn.Linear(2, 3)), torch._dynamo.OptimizedModule)",
    "torch.compile(torch.nn.Linear) is torch.nn.Linear",
    "(m := torch.nn.ReLU(), m.compile(backend='eager'), m(t), list(m.state_dict()))[1:]",
    "torch.nn.ReLU().compile(mode='nope')",
    "torch.compiler.is_compiling(), torch.compiler.is_exporting(), torch.compiler.is_dynamo_compiling()",
    "torch.compiler.list_backends()",
    "torch.compiler.get_default_backend()",
    "torch.compiler.disable(f)(t), torch.compiler.disable(recursive=False)(f)(t)",
    "torch.compiler.disable(f).__wrapped__ is f",
    "torch.compiler.allow_in_graph(f) is f, torch._dynamo.allow_in_graph(3)",
    "torch.compiler.assume_constant_result(f)(t)",
    "torch._dynamo.config.cache_size_limit, torch._dynamo.config.suppress_errors",
    "torch._dynamo.config.nope",
    "setattr(torch._dynamo.config, 'nope', 1)",
    "torch._dynamo.mark_static_address(3)",
    "torch._inductor.list_mode_options()",
    "torch._inductor.list_mode_options('nope')",
]
SCRIPTS = [
    "torch.jit.script(f)(t) if False else None",
    "torch.jit.is_scripting(), torch.jit.is_tracing()",
    "torch.jit.ignore(f) is f, torch.jit.unused(f) is f, torch.jit.export(f) is f, torch.jit.ignore(drop=True)(f) is f",
    "torch.jit.ignore(3)",
    "torch.jit.annotate(int, 3)",
    "torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance({'a': t}, dict[str, int])",
    "torch.jit.interface(f)",
    "torch.jit.fork(f, t).wait()",
    "torch.jit.wait(torch.jit.fork(f, t))",
]
MAPPED = [
    "torch.vmap(lambda x: x.sum())(t)",
    "torch.vmap(lambda x, y: x + y, in_dims=(0, None), out_dims=1)(t, torch.ones(2))",
    "torch.vmap(lambda x, y: x * y, in_dims=(1, 0))(t, torch.ones(2, 3))",
    "torch.vmap(torch.vmap(lambda a, b: a * b, in_dims=(None, 0)), in_dims=(0, None))(t[:, 0], torch.arange(4.0))",
    "torch.vmap(lambda d: {'a': d['x'] + 1, 'b': (d['y'],)}, in_dims=({'x': 0, 'y': 1},))({'x': t, 'y': t.mT})",
    "torch.vmap(lambda x: (x, x.sum()), out_dims=(1, 0))(t)",
    "torch.func.vmap(lambda x: x, in_dims=-1)(t)",
    "torch.vmap(lambda x: x, in_dims=None)(t)",
    "torch.vmap(lambda x: x, in_dims=3)(t)",
    "torch.vmap(lambda x: x, in_dims=(0, 0))(t)",
    "torch.vmap(lambda x, y: x)(t, torch.ones(4))",
    "torch.vmap(lambda x: 3)(t)",
    "torch.vmap(lambda x: x + torch.rand(2))(t)",
    "torch.vmap(lambda: 3)()",
    "torch.vmap(lambda x: x)(3)",
    "torch.vmap(lambda x: x, out_dims=5)(t)",
    "torch.vmap(lambda x: x, out_dims='a')(t)",
    "torch.vmap(lambda x: x, randomness='x')(t)",
    "torch.vmap(lambda x: x, chunk_size=0)(t)",
]
OTHERS = [
    "torch.autograd.forward_ad.unpack_dual(t).tangent, type(torch.autograd.forward_ad.unpack_dual(t)).__name__",
    "torch.autograd.forward_ad.make_dual(t, t)",
    "torch.autograd.forward_ad.exit_dual_level()",
    "torch._tensor_str._tensor_str(t, 3), torch._tensor_str._str(t, tensor_contents='..')",
    "torch._tensor_str._add_suffixes('EdgeIndex([1, 2]', ['nnz=3', 'sort=' + 'x' * 70], 10, force_newline=False)",
    "torch._tensor_str.PRINT_OPTS.threshold, torch._tensor_str.PRINT_OPTS.linewidth",
    "torch.ops.aten._sparse_addmm(t, torch.ones(3, 2), torch.ones(2, 2), beta=2, alpha=3)",
    "str(torch.ops.aten._sparse_mm_reduce_impl.default._schema), str(torch.ops.aten._pin_memory.default._schema)",
    "torch._C._get_default_device()",
    "len(torch.serialization.MAP_LOCATION.__args__), torch.serialization.FileLike == torch.types.FileLike",
    "torch.distributions.__dict__['Normal'] is torch.distributions.Normal",
    "sorted(n for n, v in torch.distributions.__dict__.items() if isinstance(v, type) and n[0] != '_')",
    "str(torch._C.DispatchKey.CPU), int(torch._C.DispatchKey.AutogradPrivateUse1), int(torch._C.DispatchKey.Meta)",
    "str(torch._C.DispatchKeySet(torch._C.DispatchKey.CPU))",
    "torch._C._nn._parse_to('cpu', torch.float32)",
    "torch._C._nn._parse_to(t)",
    "isinstance(torch.Tensor, torch._C._TensorMeta), isinstance(int, torch._C._TensorMeta)",
    "torch._C._log_api_usage_once('x')",
    "torch._higher_order_ops.associative_scan(lambda a, b: a + b, t, 0, combine_mode='generic')",
    "torch._prims_common.make_contiguous_strides_for((2, 3, 4)), torch._prims_common.canonicalize_dims(3, (-1, 0))",
    "torch._prims_common.canonicalize_dim(3, 3)",
    "torch.nn.attention.flex_attention._DEFAULT_SPARSE_BLOCK_SIZE",
]
NAMES = "_dynamo _inductor _higher_order_ops _prims_common nn.attention.flex_attention"


@pytest.mark.oracle
@pytest.mark.parametrize("line", [*COMPILING, *SCRIPTS, *MAPPED, *OTHERS])
def test_answers_as_pytorch(line: str) -> None:
    oracle = _oracle.load()
    for name in NAMES.split():
        importlib.import_module(f"torch.{name}")
        importlib.import_module(f"mindtorch_v2.{name}")
    assert told(mindtorch_v2, line) == told(oracle, line)


def test_compiling_warns_once() -> None:
    from mindtorch_v2._dynamo import eval_frame

    eval_frame._SAID.clear()
    with pytest.warns(UserWarning, match="there is no compiler here; the program runs eagerly"):
        mindtorch_v2.compile(abs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mindtorch_v2.compile(abs)
    compiled = mindtorch_v2.compile(mindtorch_v2.nn.Dropout())
    assert compiled.eval()._orig_mod.training is False
    compiled.p = 0.25
    assert compiled._orig_mod.p == 0.25


def test_settings_are_kept_and_patched() -> None:
    config: Any = mindtorch_v2._dynamo.config
    assert config.verbose is False
    with config.patch(verbose=True, cache_size_limit=3):
        assert config.verbose and config.recompile_limit == 3
    assert not config.verbose and config.recompile_limit == 8
    with pytest.raises(AttributeError, match="torch._dynamo.config.nope does not exist"):
        config.patch(nope=1).__enter__()


REFUSED = [
    "jit.save(None, 'x')",
    "jit.load('x')",
    "jit.CompilationUnit()",
    "onnx.export(None, (), 'x')",
    "export.export(None, ())",
    "ao.quantization.quantize_dynamic(None)",
    "ao.quantization.QConfig()",
    "utils.cpp_extension.load('x', [])",
    "utils.cpp_extension.CppExtension('x', [])",
    "utils.mobile_optimizer.optimize_for_mobile(None)",
    "_dynamo.explain(None)",
]


@pytest.mark.parametrize("line", REFUSED)
def test_refuses_by_name(line: str) -> None:
    path = line.partition("(")[0]
    importlib.import_module("mindtorch_v2." + path.rpartition(".")[0])
    kind = RuntimeError if "CompilationUnit" in line else NotImplementedError
    with pytest.raises(kind, match=path.rpartition(".")[2]):
        eval("torch." + line, {"torch": mindtorch_v2})


def test_distributed_before_there_is_a_group() -> None:
    distributed: Any = mindtorch_v2.distributed
    assert distributed.is_available() and not distributed.is_initialized()
    DTensor: Any = importlib.import_module("mindtorch_v2.distributed.tensor").DTensor
    assert not isinstance(mindtorch_v2.ones(1), DTensor)
    for call in (distributed.get_rank, lambda: mindtorch_v2.nn.parallel.DistributedDataParallel(None)):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()
