"""Contract B: backends by device, one registry, no silent hole, a meta device without data (cpu and meta).

Invariant: every test is named after the id it proves.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .._subject import IS_ORACLE, mindtorch_only
from .._subject import subject as torch

if not IS_ORACLE:
    registry: Any = importlib.import_module("mindtorch_v2._dispatch.registry")


def run_python(code: str, **environment: str) -> str:
    """What `code` prints in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def restored_add() -> Iterator[Any]:
    """The cpu kernel of add; put back after the test."""
    original = registry.kernels("add")["cpu"]
    yield original
    registry.register("add", "cpu", original)


# B1 -------------------------------------------------------------------------------------------------------------------


@mindtorch_only
@pytest.mark.parametrize("module", ["common.view", "common.convert", "cpu", "cpu.creation", "meta", "npu"])
def test_B1_backends_are_organised_by_device(module: str) -> None:
    importlib.import_module(f"mindtorch_v2._backends.{module}")


@mindtorch_only
def test_B1_views_share_storage_through_the_common_module() -> None:
    base = torch.arange(6.0)
    for view in (base.view(2, 3), base[1:], base.view(2, 3).t(), base.unsqueeze(0)):
        assert view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()


def test_B1_to_moves_between_devices() -> None:
    value = torch.arange(6.0).view(2, 3).t()
    moved = value.to("meta")
    assert moved.device.type == "meta"
    assert (tuple(moved.shape), moved.stride(), moved.dtype) == ((3, 2), (1, 3), torch.float32)
    assert value.to("cpu") is value


# B2 -------------------------------------------------------------------------------------------------------------------


@mindtorch_only
def test_B2_ascend_is_a_shim_for_npu() -> None:
    ascend = importlib.import_module("mindtorch_v2._backends.ascend")
    npu = importlib.import_module("mindtorch_v2._backends.npu")
    assert ascend.is_available is npu.is_available
    assert ascend.is_available() in (True, False)


@mindtorch_only
def test_B2_aclnn_available_answers_without_hardware() -> None:
    code = "import mindtorch_v2 as torch; print(torch._C._npu_aclnn_available())"
    assert run_python(code, MINDTORCH_NPU="off") == "False"


# B3 -------------------------------------------------------------------------------------------------------------------


@mindtorch_only
def test_B3_one_registry_lists_operators_and_their_devices() -> None:
    names = list(registry.names())
    assert len(names) >= 120
    for name in ("add", "mul", "sum", "mm", "view", "softmax", "index_put"):
        assert name in names
    kernels = registry.kernels("add")
    assert set(kernels) >= {"cpu", "meta"}
    assert registry.get("add") is not None


@mindtorch_only
def test_B3_a_registered_kernel_is_the_one_that_runs(restored_add: Any) -> None:
    seen: list[Any] = []

    def kernel(self: Any, other: Any, alpha: Any) -> Any:
        seen.append((self, other, alpha))
        return restored_add(self, other, alpha)

    registry.register("add", "cpu", kernel)
    assert registry.kernels("add")["cpu"] is kernel
    assert (torch.ones(2) + torch.ones(2)).tolist() == [2.0, 2.0]
    assert torch.add(torch.ones(2), torch.ones(2), alpha=3).tolist() == [4.0, 4.0]
    assert len(seen) == 2
    assert seen[1][2] == 3


@mindtorch_only
def test_B3_a_kernel_registered_after_the_call_path_was_remembered_is_used(restored_add: Any) -> None:
    leaf = torch.ones(2, requires_grad=True)
    leaf + leaf, leaf.detach() + 1, leaf.detach().clone().add_(1)

    def kernel(self: Any, other: Any, alpha: Any) -> Any:
        return restored_add(self, other, alpha) * 10

    registry.register("add", "cpu", kernel)
    assert (torch.ones(2) + torch.ones(2)).tolist() == [20.0, 20.0]
    result = leaf + leaf
    assert result.tolist() == [20.0, 20.0]
    assert result.requires_grad


@mindtorch_only
def test_B3_register_takes_the_meta_rule_of_the_operator(restored_add: Any) -> None:
    rule = registry.kernels("add")["meta"]
    assert rule is not None
    registry.register("add", "cpu", restored_add)
    result = torch.ones(2, 1, device="meta") + torch.ones(3, device="meta")
    assert tuple(result.shape) == (2, 3)


@mindtorch_only
def test_B3_importing_backends_registers_all_devices() -> None:
    code = (
        "import mindtorch_v2._backends\n"
        "from mindtorch_v2._dispatch import registry\n"
        "print(sorted(d for d in registry.kernels('add') if d in ('cpu', 'meta')))"
    )
    assert run_python(code) == "['cpu', 'meta']"


@mindtorch_only
def test_B3_a_device_without_hardware_costs_nothing_at_import() -> None:
    code = (
        "import sys\n"
        "import mindtorch_v2\n"
        "print([m for m in ('acl', 'torch', 'scipy.special', 'mindtorch_v2._backends.npu.aclnn') if m in sys.modules])"
    )
    assert run_python(code) == "[]"


@mindtorch_only
def test_B3_a_new_name_becomes_an_operator_with_a_meta_rule() -> None:
    code = (
        "import mindtorch_v2 as torch\n"
        "from mindtorch_v2._dispatch import registry\n"
        "record = registry.register('twice', 'cpu', lambda x: x + x, meta=lambda x: torch.empty_like(x))\n"
        "print('twice' in registry.names(), registry.get('twice') is record)\n"
        "print(record.call((torch.ones(2),)).tolist())\n"
    )
    assert run_python(code) == "True True\n[2.0, 2.0]"


# B4 -------------------------------------------------------------------------------------------------------------------


@mindtorch_only
def test_B4_an_operator_without_a_kernel_names_operator_and_device() -> None:
    """A row that cpu has no kernel for does not run on another device instead."""
    code = (
        "import mindtorch_v2 as torch\n"
        "from mindtorch_v2._dispatch import registry\n"
        "record = registry.register('only_elsewhere', 'meta', lambda x: x)\n"
        "try:\n"
        "    record.call((torch.ones(2),))\n"
        "except NotImplementedError as error:\n"
        "    print('only_elsewhere' in str(error), \"'cpu'\" in str(error))\n"
    )
    assert run_python(code) == "True True"


@mindtorch_only
def test_B4_a_device_without_hardware_is_an_error_that_names_it() -> None:
    code = """
import mindtorch_v2 as torch
for make in (lambda: torch.ones(2).to("npu"), lambda: torch.ones(2, device="npu")):
    try:
        make()
    except RuntimeError as error:
        print("npu" in str(error).lower())
"""
    assert run_python(code, MINDTORCH_NPU="off") == "True\nTrue"


# B5 -------------------------------------------------------------------------------------------------------------------


def meta(*shape: int, dtype: Any = None) -> Any:
    return torch.empty(shape, dtype=dtype or torch.float32, device="meta")


def test_B5_meta_carries_shape_stride_dtype_and_no_data() -> None:
    tensor = torch.empty((2, 3), dtype=torch.float64, device="meta")
    assert tensor.device.type == "meta" and tensor.is_meta
    assert (tuple(tensor.shape), tensor.stride(), tensor.dtype) == ((2, 3), (3, 1), torch.float64)
    assert tensor.untyped_storage().device.type == "meta"
    assert tensor.untyped_storage().nbytes() == 48
    assert tensor.data_ptr() == 0


def test_B5_a_huge_meta_tensor_costs_nothing() -> None:
    huge = torch.empty((1 << 20, 1 << 20), device="meta")
    product = huge @ huge.t() + 1
    assert tuple(product.shape) == (1 << 20, 1 << 20)
    assert product.sum(0).numel() == 1 << 20


READS: dict[str, Callable[[Any], Any]] = {
    "item": lambda t: t.item(),
    "tolist": lambda t: t.tolist(),
    "numpy": lambda t: t.numpy(),
    "float": lambda t: float(t),
    "int": lambda t: int(t),
    "bool": lambda t: bool(t),
    "index": lambda t: [1, 2][t],
    "to cpu": lambda t: t.to("cpu"),
    "cpu": lambda t: t.cpu(),
    "copy": lambda t: torch.zeros(()).copy_(t),
    "nonzero": lambda t: t.nonzero(),
    "mask": lambda t: t[t > 0],
    "equal": lambda t: torch.equal(t, t + 1),
}


@pytest.mark.parametrize("name", READS)
def test_B5_reading_data_of_meta_is_an_error(name: str) -> None:
    tensor = torch.empty((), device="meta", dtype=torch.int64 if name == "index" else torch.float32)
    with pytest.raises((RuntimeError, NotImplementedError, TypeError)) as caught:
        READS[name](tensor)
    assert "meta" in str(caught.value).lower()


OPERATORS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "add": (lambda t: t + t, (3, 4)),
    "broadcast": (lambda t: t.unsqueeze(0) * t.unsqueeze(1), (3, 3, 4)),
    "sum": (lambda t: t.sum(1, keepdim=True), (3, 1)),
    "argmax": (lambda t: t.argmax(0), (4,)),
    "mm": (lambda t: t @ t.t(), (3, 3)),
    "softmax": (lambda t: t.softmax(1), (3, 4)),
    "cat": (lambda t: torch.cat([t, t], 1), (3, 8)),
    "stack": (lambda t: torch.stack([t, t]), (2, 3, 4)),
    "index": (lambda t: t[torch.tensor([0, 2], device="meta")], (2, 4)),
    "gather": (lambda t: t.gather(1, torch.zeros(3, 2, dtype=torch.int64, device="meta")), (3, 2)),
    "where": (lambda t: torch.where(t > 0, t, t), (3, 4)),
    "compare": (lambda t: t < t, (3, 4)),
    "to": (lambda t: t.to(torch.float64), (3, 4)),
    "view": (lambda t: t.view(-1)[2:6], (4,)),
    "layer_norm": (lambda t: torch.nn.functional.layer_norm(t, (4,)), (3, 4)),
    "embedding": (lambda t: torch.nn.functional.embedding(torch.zeros(2, dtype=torch.int64, device="meta"), t), (2, 4)),
    "linear": (lambda t: torch.nn.functional.linear(t, t), (3, 3)),
    "zeros_like": (lambda t: torch.zeros_like(t), (3, 4)),
    "mse_loss": (lambda t: torch.nn.functional.mse_loss(t, t), ()),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_B5_operators_work_on_meta(name: str) -> None:
    call, shape = OPERATORS[name]
    result = call(meta(3, 4))
    assert result.device.type == "meta"
    assert tuple(result.shape) == shape


def test_B5_autograd_works_on_meta() -> None:
    weight = torch.empty(4, 3, device="meta", requires_grad=True)
    torch.nn.functional.relu(meta(2, 4) @ weight).sum().backward()
    assert weight.grad.device.type == "meta"
    assert tuple(weight.grad.shape) == (4, 3)


def test_B5_meta_and_cpu_do_not_mix() -> None:
    with pytest.raises(RuntimeError, match="(?i)meta"):
        meta(2) + torch.ones(2)
    assert (meta(2) + torch.tensor(1.0)).device.type == "meta"
