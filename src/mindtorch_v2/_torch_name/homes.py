"""Where PyTorch's public classes say they are defined, for those that stand in private modules here."""

from __future__ import annotations

# Private modules that PyTorch has under the same name, with the same things in them.
PRIVATE = frozenset(
    {
        *("_C", "_VF", "_tensor", "_lowrank", "_utils", "_weights_only_unpickler", "_tensor_str"),
        *(
            "_compile",
            "_decomp",
            "_dynamo",
            "_environment",
            "_export",
            "_functorch",
            "_guards",
            "_higher_order_ops",
            "_inductor",
        ),
        *(
            "_jit_internal",
            "_lazy",
            "_logging",
            "_prims",
            "_prims_common",
            "_refs",
            "_vendor",
            "_subclasses",
            "_vmap_internals",
            "_custom_op",
            "_custom_ops",
        ),
    }
)

# Modules by the beginnings of their names whose public functions PyTorch has in one module.
FOLDED = (
    ("nn.functional._", "torch.nn.functional"),
    ("distributed._collectives", "torch.distributed.distributed_c10d"),
)

# By module: what it defines, and what `__module__` says of it.
HOMES: dict[str, dict[str, str]] = {
    "_autograd.hooks": {"RemovableHandle": "torch.utils.hooks"},
    "_autograd.node": {"Node": "torch.autograd.graph"},
    "_backends.npu.errors": {"AcceleratorError": "torch", "AclError": "torch.npu", "OutOfMemoryError": "torch"},
    "_creation": dict.fromkeys(("empty_like", "full_like", "ones_like", "zeros_like"), "torch"),
    "_device": {"device": "torch"},
    "_dispatch_keys": dict.fromkeys(("DispatchKey", "DispatchKeySet", "ExcludeDispatchKeyGuard"), "torch"),
    "_dtype": {"dtype": "torch"},
    "_finfo": {"finfo": "torch", "iinfo": "torch"},
    "_layout": {"layout": "torch", "memory_format": "torch", "qscheme": "torch"},
    "_library.custom_op": {"CustomOpDef": "torch._library.custom_ops"},
    "_library.registrations": {"Library": "torch.library"},
    "_operators": {"FunctionSchema": "torch", "OpOverload": "torch._ops", "OpOverloadPacket": "torch._ops"},
    "_ops.linalg": {"_LinAlgError": "torch._C"},
    "_questions": dict.fromkeys("get_device is_distributed is_inference is_same_size is_signed".split(), "torch"),
    "_overrides": {
        "DisableTorchFunction": "torch._C",
        "DisableTorchFunctionSubclass": "torch._C",
        "TorchFunctionMode": "torch.overrides",
    },
    "_ragged.construct": {"_rebuild_njt": "torch.nested._internal.nested_tensor"},
    "_ragged.tensors": {"NestedTensor": "torch.nested._internal.nested_tensor"},
    "_random": {"Generator": "torch._C"},
    "_serialization.reader": {"PyTorchFileReader": "torch"},
    "_size": {"Size": "torch"},
    "_lobpcg": {"lobpcg": "torch._lobpcg"},
    "_sparse.methods": dict.fromkeys(("dsmm", "hspmm", "smm", "sspaddmm"), "torch"),
    "_stft": {"istft": "torch", "stft": "torch.functional"},
    "_storage": {"UntypedStorage": "torch.storage"},
    "_streams": {"Event": "torch", "Stream": "torch"},
    "_symbolic": dict.fromkeys(
        (
            "sym_float sym_int sym_ite sym_max sym_min sym_not sym_sum _sym_sqrt _sym_cos _sym_cosh _sym_sin _sym_sinh "
            "_sym_tan _sym_tanh _sym_asin _sym_acos _sym_atan"
        ).split(),
        "torch",
    ),
    "_tags": {"Tag": "torch"},
    "_torch_dispatch": {"TorchDispatchMode": "torch.utils._python_dispatch"},
    "_types": dict.fromkeys("index_put is_complex is_floating_point is_nonzero nonzero numel".split(), "torch"),
    "_typed_storage": {"TypedStorage": "torch.storage"},
    "_utils": dict.fromkeys(("_rebuild_from_type", "_rebuild_from_type_v2"), "torch._tensor"),
    "distributions._composed": dict.fromkeys(
        ("CatTransform", "ComposeTransform", "IndependentTransform", "StackTransform", "Transform"),
        "torch.distributions.transforms",
    ),
    "fx._codegen": {"CodeGen": "torch.fx.graph"},
    "nn.functional": dict.fromkeys(
        "avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear one_hot scaled_dot_product_attention softplus "
        "softshrink".split(),
        "torch._C._nn",
    ),
    "optim._adafactor": {"Adafactor": "torch.optim"},
    "optim._muon": {"Muon": "torch.optim"},
}
