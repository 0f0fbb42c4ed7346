"""Devices."""
from __future__ import annotations

from ._case import Case

CASES: list[Case] = [
    Case(
        "mixed_devices_add",
        lambda torch: dict(a=torch.ones(2), b=torch.ones(2, device="meta")),
        lambda torch, v: v.a + v.b,
        "RuntimeError",
        "Tensor on device meta is not on the expected device cpu!",
    ),
    Case(
        "mixed_devices_cat",
        lambda torch: dict(a=torch.ones(2), b=torch.ones(2, device="meta")),
        lambda torch, v: torch.cat([v.a, v.b]),
        "RuntimeError",
        "Tensor on device meta is not on the expected device cpu!",
    ),
    Case(
        "meta_item",
        lambda torch: dict(a=torch.ones((), device="meta")),
        lambda torch, v: v.a.item(),
        "RuntimeError",
        "Tensor.item() cannot be called on meta tensors",
    ),
    Case(
        "meta_tolist",
        lambda torch: dict(a=torch.ones(2, device="meta")),
        lambda torch, v: v.a.tolist(),
        "NotImplementedError",
        "Cannot copy out of meta tensor; no data!",
    ),
    Case(
        "meta_numpy",
        lambda torch: dict(a=torch.ones(2, device="meta")),
        lambda torch, v: v.a.numpy(),
        "TypeError",
        "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
    ),
    Case(
        "meta_to_cpu",
        lambda torch: dict(a=torch.ones(2, device="meta")),
        lambda torch, v: v.a.to("cpu"),
        "NotImplementedError",
        "Cannot copy out of meta tensor; no data!",
    ),
    Case(
        "meta_copy_to_cpu",
        lambda torch: dict(a=torch.zeros(2), b=torch.ones(2, device="meta")),
        lambda torch, v: v.a.copy_(v.b),
        "NotImplementedError",
        "Cannot copy out of meta tensor; no data!",
    ),
    Case(
        "meta_bool",
        lambda torch: dict(a=torch.ones((), device="meta")),
        lambda torch, v: bool(v.a),
        "RuntimeError",
        "Tensor.item() cannot be called on meta tensors",
    ),
    Case(
        "device_unknown",
        lambda torch: {},
        lambda torch, v: torch.device("gpu"),
        "RuntimeError",
        "Expected one of <devices> device type at start of device string: gpu",
    ),
    Case(
        "device_bad_index",
        lambda torch: {},
        lambda torch, v: torch.device("cpu:x"),
        "RuntimeError",
        "Invalid device string: 'cpu:x'",
    ),
    Case(
        "device_negative_index",
        lambda torch: {},
        lambda torch, v: torch.device("cpu", -2),
        "RuntimeError",
        "Device index must not be negative",
    ),
    Case(
        "device_factory_unknown",
        lambda torch: {},
        lambda torch, v: torch.ones(2, device="nowhere"),
        "RuntimeError",
        "Expected one of <devices> device type at start of device string: nowhere",
    ),
]
