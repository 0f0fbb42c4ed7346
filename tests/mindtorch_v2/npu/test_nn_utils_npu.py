"""Helpers of `nn` on NPUs: the same numbers as on the CPU.

Invariant: each program takes a device and nothing else that differs.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from .. import _npu
from .._subject import subject as torch

flex = importlib.import_module("mindtorch_v2.nn.attention.flex_attention")
attention = importlib.import_module("mindtorch_v2.nn.attention")


def layer(device: str) -> Any:
    torch.manual_seed(3)
    return torch.nn.Linear(6, 4).to(device)


def trained(module: Any, device: str) -> list[Any]:
    torch.manual_seed(4)
    x = torch.randn(5, 6).to(device)
    module(x).square().sum().backward()
    total = torch.nn.utils.clip_grad_norm_(module.parameters(), 0.5)
    torch.nn.utils.clip_grad_value_(module.parameters(), 0.1)
    vector = torch.nn.utils.parameters_to_vector(module.parameters())
    return [total, vector, *(p.grad for p in module.parameters())]


def weight_norm(device: str) -> Any:
    return trained(torch.nn.utils.parametrizations.weight_norm(layer(device)), device)


def spectral_norm(device: str) -> Any:
    module = torch.nn.utils.parametrizations.spectral_norm(layer("cpu")).to(device)
    return trained(module, device)


def orthogonal(device: str) -> Any:
    module = torch.nn.utils.parametrizations.orthogonal(layer("cpu"), orthogonal_map="cayley").to(device)
    return trained(module, device)


def pruned(device: str) -> Any:
    prune = importlib.import_module("mindtorch_v2.nn.utils.prune")
    return trained(prune.l1_unstructured(layer(device), "weight", 0.5), device)


def functional_call(device: str) -> Any:
    module = layer(device)
    weight = torch.ones(4, 6, device=device, requires_grad=True)
    out = torch.func.functional_call(module, {"weight": weight}, torch.ones(2, 6, device=device))
    return [out, *torch.autograd.grad(out.sum(), weight)]


def flexible(device: str) -> Any:
    torch.manual_seed(5)
    q, k, v = (torch.randn(2, h, n, 8).to(device).requires_grad_() for h, n in ((4, 19), (2, 23), (2, 23)))
    bias = torch.randn(4, 19, 23).to(device).requires_grad_()
    mask = flex.create_block_mask(lambda b, h, q, k: (q + 4 >= k) & (k != 2), 2, 4, 19, 23, device=device, BLOCK_SIZE=8)
    out, more = flex.flex_attention(
        q,
        k,
        v,
        lambda s, b, h, i, j: torch.tanh(s) + bias[h, i, j],
        mask,
        enable_gqa=True,
        return_aux=flex.AuxRequest(lse=True),
    )
    return [out, more.lse, mask.kv_indices, *torch.autograd.grad(out.square().sum(), [q, k, v, bias])]


@pytest.mark.parametrize(
    "program", [weight_norm, spectral_norm, orthogonal, pruned, functional_call, flexible], ids=lambda p: p.__name__
)
def test_as_on_the_cpu(program: Any) -> None:
    for actual, expected in zip(program("npu"), program("cpu")):
        assert actual.device.type == "npu"
        assert torch.allclose(actual.detach().cpu(), expected.detach(), rtol=1e-4, atol=1e-4)


@_npu.emulator_only
def test_what_is_not_allowed_is_refused(emulator: Any) -> None:
    S = attention.SDPBackend
    x = torch.ones(1, 2, 4, 16, device="npu", dtype=torch.float16)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    with attention.sdpa_kernel(S.MATH):
        by_parts = sdpa(x, x, x)
    with attention.sdpa_kernel(S.FLASH_ATTENTION):
        fused = sdpa(x, x, x)
    assert torch.allclose(by_parts.cpu(), fused.cpu())
    with (
        attention.sdpa_kernel(S.FLASH_ATTENTION),
        pytest.warns(UserWarning, match="vendor's fused function"),
        pytest.raises(RuntimeError, match="No available kernel"),
    ):
        sdpa(x, x, x, dropout_p=0.5)
    with attention.sdpa_kernel(S.CUDNN_ATTENTION), pytest.raises(RuntimeError, match="No viable backend"):
        sdpa(x, x, x)
