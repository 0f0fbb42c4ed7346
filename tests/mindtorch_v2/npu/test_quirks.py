"""What chips do differently: the table against the vendor facts, and operators on a chip that lacks their functions.

Invariant: a quirk rests on a fact that is kept as data.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._api.lazy_tables import load_all
from mindtorch_v2._backends.npu import quirks, table
from mindtorch_v2._backends.npu.kernels import ByArgument, ByFunction, Line
from mindtorch_v2._backends.npu.lines import served_fused
from mindtorch_v2._dispatch import registry
from mindtorch_v2._dispatch.keys import NPU

from . import _control
from ._layouts import environment, said

FACTS = Path(__file__).parents[3] / "csrc" / "ascend_emulator" / "facts.jsonl"


def facts() -> dict[str, Any]:
    with FACTS.open() as lines:
        return {fact["name"]: fact for fact in map(json.loads, lines)}


def test_quirks_name_functions_of_the_table_and_give_evidence() -> None:
    for quirk in quirks.QUIRKS:
        assert table.has(quirk.function), quirk.function
        assert quirk.evidence and quirk.chips, quirk.function


def test_functions_that_chips_lack_are_documented_so() -> None:
    known = facts()
    absent = [q for q in quirks.QUIRKS if q.replacement == quirks.ABSENT]
    assert absent
    for quirk in absent:
        fact = known[quirk.function]
        for chip in quirk.chips:
            only = fact.get("chips", {}).get(chip, {}).get("only", "FLOAT").split()
            assert fact["products"] and (chip not in fact["products"] or "FLOAT" not in only), quirk.function


# Functions of the lines that 910A lacks and nothing on it replaces.
WITHOUT = {"aclnnConvolution"}


def test_lines_have_another_way_where_chips_or_libraries_lack_their_function() -> None:
    torch.ones(1, device="npu")
    load_all()
    known, missed = facts(), []
    for op in registry.ops():
        for line in lines_of(op.kernels.get(int(NPU))):
            fact, name = known[line.call.name], line.call.name
            documented = fact.get("products", ["910A"])
            if "910A" not in documented and name not in WITHOUT:
                if line.absent is None or not any(q.function == name for q in quirks.QUIRKS):
                    missed.append((op.name, name, "910A"))
            elif fact.get("since") and line.absent is None:
                missed.append((op.name, name, f"before CANN {fact['since']}"))
    assert not missed


def test_composites_served_fused_do_without_what_910a_lacks() -> None:
    torch.ones(1, device="npu")
    load_all()
    known = facts()
    wholes = [(op, served_fused(op.kernels.get(int(NPU)))) for op in registry.ops()]
    named = {name for _, one in wholes if one is not None for name in one.functions}
    assert named
    for name in named:
        lacking = "910A" not in known[name].get("products", ["910A"])
        assert lacking == any(q.function == name and "910A" in q.chips for q in quirks.QUIRKS), name


def lines_of(kernel: Any) -> Iterator[Line]:
    if isinstance(kernel, Line):
        yield kernel
    elif isinstance(kernel, (ByArgument, ByFunction)):
        for one in kernel.kernels.values():
            yield from lines_of(one)


@pytest.mark.parametrize(
    ("chip", "cann", "applies"),
    [
        ("910A", "", True),
        ("910B", "", False),
        ("910A", "8.1.RC1", True),
        ("910A", "8.5.0", False),
        ("910A", "9.0", False),
    ],
)
def test_a_quirk_applies_to_chips_and_versions(chip: str, cann: str, applies: bool) -> None:
    quirk = quirks.Quirk("aclnnX", "", ("910A",), quirks.ABSENT, "why", until="8.5")
    assert quirks.applies(quirk, "x", "aclnnX", chip, cann) is applies
    assert not quirks.applies(quirk, "x", "aclnnY", chip, cann)


PROGRAM = """
def run(device):
    x = torch.arange(24.0, device=device).view(2, 3, 4) - 5
    i = torch.tensor([[[0, 2, 1, 1]], [[2, 2, 0, 1]]], device=device)
    k = torch.tensor([1, 0], device=device)
    mask = x > 3
    yield x.gather(1, i)
    yield x.scatter(1, i, x[:, :2])
    yield x.scatter(1, i, 9.0)
    yield x.scatter_add(1, i, x)
    yield x.clone().scatter_(2, i, -1.0, reduce="add")
    yield x.scatter_reduce(1, i, x, "sum", include_self=False)
    yield x.scatter_reduce(1, i, x, "mean")
    yield x.index_add(1, k, x[:, :2], alpha=2)
    yield x.index_copy(2, k, x[..., :2])
    yield x.clone().index_copy_(2, k, x[..., 2:])
    yield x.masked_scatter(mask, x)
    yield x.flip(0, 2)
    yield torch.tensor(5.0, device=device).gather(0, k * 0)
    yield x.unfold(2, 3, 1)
    yield x.sign(), x.isinf(), x.abs().add(1).log(), x.exp(), (x * float("inf")).nan_to_num(1.0), x.nansum(1)
    yield k << 3, (k * 40) >> 2, x.angle(), x.cumprod(1), torch.polar(x, x), torch.linspace(0, 5, 3, device=device)
    yield torch.nn.functional.max_pool2d(x, 2, 1), torch.nn.functional.adaptive_avg_pool3d(x[None], 2)
    image = x[None]
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        yield torch.nn.functional.interpolate(image, scale_factor=1.5, mode=mode)
    yield torch.nn.functional.interpolate(image, size=(2, 3), mode="bilinear", antialias=True)
    pooled, at = torch.nn.functional.max_pool2d(image, 2, return_indices=True)
    yield torch.nn.functional.max_unpool2d(pooled, at, 2), x.logit(0.1), x.isposinf(), x.heaviside(x)
    yield tuple(torch._foreach_add([x, x[0]], 2.0)), tuple(torch._foreach_norm([x, x[0]]))
    flat = x.reshape(6, 4)
    yield torch.cdist(flat, flat[:2]), torch.nn.functional.pad(image, (1, 1, 1, 1), mode="circular")
    # The first query sees one key: nothing is rounded, which the matrix unit of this chip would do with others.
    yield torch.nn.functional.scaled_dot_product_attention(image, image, image, is_causal=True)[..., :1, :]
    yield torch.nn.functional.rms_norm(x, (4,)), torch.nn.functional.kl_div(x, x.abs())
    yield k.repeat_interleave(torch.tensor([2, 3], device=device), dim=0), (x % 3).unique(), (flat % 2).unique(dim=0)
    yield torch.unique_consecutive(k), torch.nn.functional.grid_sample(image, image[..., :2] / 9)
    A = torch.tensor([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]], device=device)
    yield torch.linalg.inv(A), torch.linalg.cholesky(A), torch.linalg.cholesky(A, upper=True), torch.linalg.lu_factor(A)
    yield k.gather(0, k[:0].reshape(2, 0)), torch.special.i0(x / 3), torch.nextafter(x, -x)
    z = [x.clone(), x[0].clone()]
    torch._foreach_addcdiv_(z, z, [x.exp(), x[0].exp()], [1.0, 2.0])
    torch._foreach_sqrt_(z)
    yield tuple(z)
    line = x[0].detach().requires_grad_()
    torch.nn.functional.interpolate(line[None], size=7).sum().backward()
    yield line.grad
    y = x.detach().requires_grad_()
    loss = torch.nn.functional.mse_loss(y.unfold(2, 2, 1).flip(0).gather(1, i[..., :3, None]), x[:, :1, :3, None])
    loss.backward()
    yield y.grad


def flat(t):
    return [flat(u) for u in t] if isinstance(t, tuple) else [tuple(t.shape), t.detach().cpu()]


def real(t):
    return torch.view_as_real(t) if t.is_complex() else t.double()


def same(a, b):
    if isinstance(a, list) and isinstance(a[0], list):
        return all(same(x, y) for x, y in zip(a, b))
    return a[0] == b[0] and torch.allclose(real(a[1]), real(b[1]), rtol=1e-5, equal_nan=True)


torch.npu.use_emulator(chip="910A")
for number, (cpu, npu) in enumerate(zip(run("cpu"), run("npu"))):
    assert same(flat(npu), flat(cpu)), (number, cpu, npu)
for reduce in ("amax", "prod"):
    try:
        t = torch.ones(2, device="npu")
        t.scatter_reduce(0, torch.tensor([0, 1], device="npu"), t, reduce)
    except NotImplementedError as error:
        print("is not available on NPU" in str(error))
"""


@_control.emulator_only
def test_operators_without_a_function_on_910a() -> None:
    assert said(environment(None), PROGRAM) == "True\nTrue"


SHORT = """
torch.npu.use_emulator(chip="310P")
for n in (3, 16):
    x = torch.arange(2.0 * n).view(2, n) + 1
    y = x.npu().requires_grad_()
    out = torch.nn.functional.rms_norm(y, (n,))
    print(torch.allclose(out.detach().cpu(), torch.nn.functional.rms_norm(x, (n,))), type(out.grad_fn).__name__)
"""


@_control.emulator_only
def test_rows_that_are_too_short_for_310p() -> None:
    """The composition normalizes them."""
    first, second = said(environment(None), SHORT).splitlines()
    assert first.startswith("True") and "RmsNorm" not in first
    assert second == "True RmsNormBackward"


@pytest.mark.parametrize("name", ["sin", "atanh", "sum", "prod", "logical_not", "special.expit"])
def test_a_number_of_the_cpu_alone_is_no_operand_for_a_result_on_an_npu(name: str) -> None:
    fn: Any = torch
    for part in name.split("."):
        fn = getattr(fn, part)
    out = torch.ones(1, 2, dtype=torch.complex64, device="npu")
    with pytest.raises(RuntimeError, match="at least two devices, npu:0 and cpu"):
        fn(torch.tensor(0.5), *(0,) * (name in ("sum", "prod")), out=out)
    assert torch.add(torch.tensor(1.0), torch.tensor(2.0), out=torch.ones(3, device="npu").resize_(0)).item() == 3
