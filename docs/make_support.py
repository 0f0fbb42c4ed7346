"""Makes the support matrix: which operator runs where, and through which vendor functions on NPUs (`make docs`).

The page is plain HTML rows; docs/_static/matrix.js filters them. `docs/make_support.py FILE` writes the page alone.

Invariant: everything is read from the tables that serve the calls; nothing is said here about a single operator, and
neither an NPU nor an emulator is started.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2._api import lazy_tables
from mindtorch_v2._autograd.record import Formulas
from mindtorch_v2._backends.common.kernels import derived
from mindtorch_v2._backends.npu import kernels, lines, lists, load, table
from mindtorch_v2._dispatch import registry
from mindtorch_v2._dispatch.keys import CPU, META, NPU
from mindtorch_v2._dispatch.op import Op, Spec
from mindtorch_v2._dtype import dtype

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
SHORT = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "uint8": "u8",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "bool": "bool",
    "complex64": "c64",
    "complex128": "c128",
}
DTYPES: list[dtype] = [getattr(torch, name) for name in SHORT]
HEAD = """---
hide-toc: true
---
# What runs where

Made from the tables of mindtorch_v2 {package} (PyTorch's API {version}): {rows} rows, {named} of them with names of
their own; the others are overloads.

```{{raw}} html
<form class="matrix-filters" onsubmit="return false">
<input id="matrix-search" type="search" placeholder="operator or vendor function" aria-label="search the matrix">
<select id="matrix-family" aria-label="family"><option value="">every family</option>{families}</select>
<select id="matrix-npu" aria-label="npu"><option value="">npu: any way</option>
<option value="vendor">npu: vendor functions</option>
<option value="parts">npu: of parts</option><option value="missing">npu: not available</option></select>
<select id="matrix-dtype" aria-label="dtype"><option value="">any dtype on npu</option>{dtypes}</select>
<select id="matrix-grad" aria-label="gradient"><option value="">grad: any</option><option value="yes">grad: yes</option>
<option value="parts">grad: of parts</option><option value="no">grad: no</option></select>
<output id="matrix-count"></output>
</form>
<div class="matrix-frame"><table class="matrix" id="matrix"><thead><tr><th>operator</th><th>cpu</th>
<th>meta</th><th>npu</th><th>dtypes on npu</th><th>grad</th><th>forms</th></tr></thead><tbody>
"""
TAIL = """
</tbody></table></div>
<script src="_static/matrix.js"></script>
```

## How to read it

- **cpu**: `kernel` computes in one call; `parts` is composed of other operators.
- **meta**: `rule` gives shapes without data; `data` means that the shape depends on values, which `meta` has not.
- **npu**: the vendor functions that serve a call (in-place forms and forms for numbers included); `parts` is composed
  of other operators on the device, or of several vendor calls; `+ parts` serves so what the functions do not accept.
  Nothing ever runs on the host instead.
- **dtypes on npu**: what one vendor call computes, on 910B; in brackets what it computes in a wider dtype, cast back.
  Without a list, the parts decide; other dtypes are refused by name.
- **grad**: has a derivative (`yes`), has none on purpose (`no`), or gets it from its parts.
- **forms**: `_` there is an in-place form, `out` there is an `out=` form.
- A `view` shares memory on every device and needs no kernel. A `composite` is written in terms of other operators and
  runs, and differentiates, wherever they do; where vendor functions are named beside one, they serve it whole.
"""


def package_version() -> str:
    """The version of this package; `torch.__version__` is that of the API."""
    found = re.search(r'^version = "(.+)"$', PROJECT.read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def fused(op: Op, served: lines.Fused | lists.ListKernel) -> tuple[str, str]:
    """How a composite is served whole, and in which dtypes: those of its first function."""
    params = table.signature(served.functions[0]).params
    mask = next((p.mask for p in params if p.mask and p.kind in (table.TENSOR, table.TENSORS)), 0)
    dtypes = " ".join(SHORT[dt.name] for dt in DTYPES if mask >> int(dt.code) & 1)
    return ", ".join(served.functions) + " + parts", dtypes


def calls(kernel: Any) -> Iterator[kernels.Call]:
    """The vendor calls a kernel may make."""
    if isinstance(kernel, kernels.Line):
        yield kernel.call
        yield from (call for _, call in kernel.by_number)
    elif isinstance(kernel, (kernels.ByArgument, kernels.ByFunction)):
        for inner in kernel.kernels.values():
            yield from calls(inner)


def uses_parts(kernel: Any) -> bool:
    if isinstance(kernel, (kernels.ByArgument, kernels.ByFunction)):
        return any(uses_parts(inner) for inner in kernel.kernels.values())
    return not isinstance(kernel, kernels.Line) or kernel.otherwise is not None


def computed(op: Op, dt: dtype) -> tuple[dtype, dtype] | None:
    """In which dtype a pointwise row computes operands of dtype `dt`, and that of its result; None where it refuses."""
    args: list[Any] = []
    for a in op.schema.args:
        if a.is_tensor:
            args.append(None if a.optional else torch.empty(2, dtype=dt, device="meta"))
        else:
            args.append(a.default if a.has_default else 1)
    try:
        spec = op.infer(tuple(args))
    except (RuntimeError, TypeError, NotImplementedError):
        return None
    first = spec if isinstance(spec, Spec) else spec[0]
    return first.compute, first.dtype


def accepted(op: Op, call: kernels.Call) -> str:
    """The dtypes one call serves; in brackets those that it serves in a wider one."""
    direct: list[str] = []
    wider: list[str] = []
    pointwise = len(lines.pointwise_positions(op.rule)) > 0
    mask = next((p.mask for p in call.sig.params if p.mask and p.kind in (table.TENSOR, table.TENSORS)), 0)
    for dt in DTYPES:
        if pointwise and call.common:
            wanted = computed(op, dt)
            found = None if wanted is None else call.compute_dtype(*wanted)
        else:
            found = kernels.nearest(dt, mask) if mask else None
        if found is not None:
            (direct if found is dt else wider).append(SHORT[dt.name])
    return " ".join(direct) + (f" [{' '.join(wider)}]" if wider else "")


def on_npu(op: Op) -> tuple[str, str]:
    """How the operator is served on NPUs, and in which dtypes."""
    kernel = op.kernels.get(int(NPU))
    state = lines.state(op)
    if state.startswith("missing: "):
        return f"not available: {state[9:]}", ""
    if not state:
        return "HOLE", ""
    if state == "composite" or op.is_view:
        return "", ""
    served = lines.served_fused(kernel)
    if served is not None:
        return fused(op, served)
    made = list(calls(kernel))
    names = dict.fromkeys(found.name for call in made for found in (call, call.inplace) if found is not None)
    if not names:
        return "parts", ""
    return ", ".join(names) + (" + parts" if uses_parts(kernel) else ""), accepted(op, made[0])


def gradient(op: Op) -> str:
    if op.composite is not None:
        return "parts"
    return "yes" if isinstance(op.derivative, Formulas) and op.derivative.formulas else "no"


def forms(op: Op) -> str:
    inplace = op.row.inplace_op is not None or any(op.title() + "_" in cls.__dict__ for cls in torch.Tensor.__mro__)
    return " ".join([*(["_"] if inplace else []), *(["out"] if op.row.out_op is not None else [])])


def cells(op: Op) -> tuple[str, ...]:
    """What the matrix says of an operator: cpu, meta, npu, dtypes on npu, grad, forms."""
    npu, dtypes = on_npu(op)
    if op.is_view or op.composite is not None:
        kind = "view" if op.is_view else "composite"
        cpu = meta = kind
        npu = npu or kind
    else:
        cpu = "kernel" if int(CPU) in op.kernels else "parts" if op.row.fallback is not None else "HOLE"
        meta = "rule" if op.rule is not None else "data" if derived(op, META) is None else "parts"
    return cpu, meta, npu, dtypes, gradient(op), forms(op)


def way(npu: str) -> str:
    """What the filter for NPUs goes by."""
    if npu.startswith("not available"):
        return "missing"
    return "vendor" if npu.startswith("acl") else "parts" if "parts" in npu else ""


def html_row(op: Op, address: str) -> str:
    said = cells(op)
    name = f"<code>{escape(op.name)}</code>"
    first = f'<a href="{escape(address)}">{name}</a>' if address else name
    # Long lists of vendor functions may be broken at their commas and nowhere else.
    columns = "".join(f"<td>{escape(cell).replace(', ', ', <wbr>')}</td>" for cell in said)
    return f'<tr data-family="{op.row.family}" data-npu="{way(said[2])}"><td>{first}</td>{columns}</tr>'


def rows() -> list[Op]:
    lazy_tables.load_all()
    load.load_kernels()
    return [op for op in registry.ops() if op.row is not None and op.row.kind not in ("inplace", "out")]


def page(address: Callable[[str], str] = lambda name: "") -> str:
    """The page; `address` says where an operator is described, by its public name."""
    every = sorted(rows(), key=lambda op: (op.row.family, op.name.lstrip("_"), op.name))
    families = dict.fromkeys(op.row.family for op in every)
    head = HEAD.format(
        package=package_version(),
        version=torch.__version__,
        rows=len(every),
        named=len({op.title() for op in every}),
        families="".join(f"<option>{family}</option>" for family in families),
        dtypes="".join(f"<option>{short}</option>" for short in SHORT.values()),
    )
    return head + "\n".join(html_row(op, address(op.title())) for op in every) + TAIL


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the support matrix, from the tables.")
    parser.add_argument("file", type=Path)
    given = parser.parse_args()
    given.file.write_text(page())


if __name__ == "__main__":
    main()
