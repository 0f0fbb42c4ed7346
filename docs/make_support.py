"""Writes docs/support.md: which operator runs where, and through which vendor function on NPUs (`make docs`).

Invariant: everything is read from the tables that serve the calls; nothing is said here about a single operator.
"""
from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindtorch_v2
from mindtorch_v2._backends.npu import kernels, lines, load, table
from mindtorch_v2._dispatch import registry
from mindtorch_v2._dispatch.keys import CPU, NPU
from mindtorch_v2._dispatch.op import Op

HEAD = """# What runs where

Made by `make docs` from the tables of mindtorch_v2 {version}. Every operator also has its in-place and `out=` forms
where PyTorch has them; on `meta` every operator runs. Views need no kernel, composites run wherever their parts do.

On NPUs *functions* are the vendor's, *dtypes* what they are documented for on 910B: other dtypes are computed in the
nearest one that holds every value, in other operators where the row says *or parts*, or refused by name.
*parts*: composed of other operators on the device.

| operator | cpu | npu | functions | dtypes |
| --- | --- | --- | --- | --- |
"""


def calls(kernel: Any) -> Iterator[kernels.Call]:
    """The vendor calls a kernel may make."""
    if isinstance(kernel, kernels.Line):
        yield kernel.call
        yield from (call for _, call in kernel.by_number)
    elif isinstance(kernel, (kernels.ByArgument, kernels.ByFunction)):
        for inner in kernel.kernels.values():
            yield from calls(inner)


def by_parts(kernel: Any) -> bool:
    if isinstance(kernel, (kernels.ByArgument, kernels.ByFunction)):
        return any(by_parts(k) for k in kernel.kernels.values())
    return not isinstance(kernel, kernels.Line) or kernel.otherwise is not None


def dtypes(call: kernels.Call) -> str:
    mask = call.common or next((p.mask for p in call.sig.params if p.mask and p.kind == table.TENSOR), 0)
    return " ".join(d.name for d in table.dtypes_of(mask))


def row(op: Op) -> str:
    kernel = op.kernels.get(int(NPU))
    made = list(calls(kernel))
    names: list[str] = []
    for call in made:
        for found in (call, call.inplace):
            if found is not None and found.name not in names:
                names.append(found.name)
    state = lines.state(op)
    if state in ("derived", "composite"):
        state = "view" if op.is_view else "parts" if state == "derived" else state
    elif state == "line":
        state = "yes, or parts" if by_parts(kernel) else "yes"
    cpu = "view" if op.is_view else "composite" if op.composite is not None else (
        "yes" if int(CPU) in op.kernels else "parts")
    return f"| `{op.name}` | {cpu} | {state or 'no'} | {', '.join(names)} | {dtypes(made[0]) if made else ''} |"


def text() -> str:
    load.load_kernels()
    rows = [op for op in registry.ops() if op.row is not None and op.row.kind not in ("inplace", "out")]
    return HEAD.format(version=mindtorch_v2.__version__) + "\n".join(row(op) for op in sorted(
        rows, key=lambda op: op.name.lstrip("_"))) + "\n"


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("support.md"))
    target.write_text(text())
    print(f"wrote {target}")
