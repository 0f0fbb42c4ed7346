"""Tables that are loaded when first asked for: their lists of names are true, and importing the package loads none."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .._subject import IS_ORACLE, submodule
from .._subject import subject as torch

pytestmark = pytest.mark.skipif(IS_ORACLE, reason="PyTorch has no such tables")


def test_listed_names_exist() -> None:
    lazy_tables = submodule("_api.lazy_tables")
    lazy_tables.load_all()
    assert [name for name in lazy_tables.FUNCTIONS if not callable(getattr(torch, name, None))] == []
    assert [name for name in lazy_tables.METHODS if not callable(getattr(torch.Tensor, name, None))] == []
    for name in lazy_tables.NAMESPACES:
        module, _, rest = name.partition("_")
        assert callable(getattr(getattr(torch, module), rest)), name
        assert rest in dir(getattr(torch, module)), name


def test_rows_are_listed() -> None:
    """A row that says it is a function or a method can be reached as one."""
    lazy_tables = submodule("_api.lazy_tables")
    lazy_tables.load_all()
    unlisted = []
    for op in submodule("_dispatch.registry").ops():
        if op.row is None or op.is_out or op.row.kind == "inplace":
            continue
        if op.row.function and not hasattr(torch, op.title()):
            unlisted.append(f"torch.{op.title()}")
        if op.row.method and not hasattr(torch.Tensor, op.title()):
            unlisted.append(f"Tensor.{op.title()}")
    assert unlisted == []


def test_import_loads_none() -> None:
    code = (
        "import sys, mindtorch_v2; from mindtorch_v2._api import lazy_tables; "
        "print([t for t in lazy_tables.TABLES if t != 'reduce' and f'mindtorch_v2._ops.{t}' in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


def test_a_method_loads_its_table() -> None:
    code = (
        "import mindtorch_v2 as t; x = t.tensor([3.0, 1.0, 2.0]); assert x.quantile(0.5).item() == 2; "
        "assert t.linalg.norm(x).item() > 3; assert t.gcd(t.tensor(6), t.tensor(4)).item() == 2"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_table_brings_the_lines_of_those_it_needs() -> None:
    """Each in a process of its own, where no other table was loaded before."""
    code = (
        "import sys, mindtorch_v2; from mindtorch_v2._api import lazy_tables; "
        "from mindtorch_v2._dispatch import registry; "
        "lazy_tables.load(sys.argv[1]); print([o.name for o in registry.ops() if o.row is not None "
        "and o.row.kind == 'op' and not o.kernels and o.row.fallback is None and o.composite is None])"
    )
    for table in submodule("_api.lazy_tables").TABLES:
        shown = subprocess.run([sys.executable, "-c", code, table], capture_output=True, text=True, check=True).stdout
        assert shown.strip() == "[]", table


def test_a_missing_name_is_an_attribute_error() -> None:
    for module in (torch.linalg, torch.special, torch.fft):
        with pytest.raises(AttributeError, match="nothing_like_that"):
            _ = module.nothing_like_that


def test_rows_without_a_public_name_are_found() -> None:
    """`torch.ops` and the registry know rows that are in no list before anything has loaded their table."""
    code = (
        "import mindtorch_v2 as t; from mindtorch_v2._dispatch import registry; "
        "assert t.ops.aten._thnn_fused_gru_cell.default.name() == 'aten::_thnn_fused_gru_cell'; "
        "assert not hasattr(t.ops.aten, 'nothing_like_that')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["conv2d", "native_batch_norm_backward"])
def test_registering_loads_the_table(name: str) -> None:
    """A kernel for a row whose table is still to come goes to that row; the row is not declared a second time."""
    code = (
        "import sys, mindtorch_v2 as t; from mindtorch_v2._dispatch import registry; from mindtorch_v2._api import "
        "lazy_tables; op = registry.register(sys.argv[1], 'toy', lambda *a: 0); assert op.row is not None; "
        "lazy_tables.load_all(); assert 'toy' in registry.kernels(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", code, name], check=True)


_INTERRUPTED = """
import random, sys
import mindtorch_v2 as torch
from mindtorch_v2._api import lazy_tables
from mindtorch_v2._dispatch import registry

class Stop(BaseException):
    pass

def tracer(calls):
    left = [calls]
    def trace(frame, event, argument):
        left[0] -= 1
        if left[0] == 0:
            sys.settrace(None)
            raise Stop
    return trace

chosen, stopped = random.Random(0), 0
for table in chosen.sample(lazy_tables.TABLES, len(lazy_tables.TABLES)):
    for calls in (1, 10, 40, chosen.randrange(1, 2000), chosen.randrange(1, 20000)):
        sys.settrace(tracer(calls))
        try:
            lazy_tables.load(table)
        except Stop:
            stopped += 1
        finally:
            sys.settrace(None)
    lazy_tables.load(table)
assert stopped > len(lazy_tables.TABLES), stopped
assert torch.sort(torch.tensor([2.0, 1.0]))[0].tolist() == [1.0, 2.0]
assert torch.linalg.cholesky(torch.eye(2)).tolist() == torch.eye(2).tolist()
print(*sorted(registry.OPS), *(f"{title}:{len(ops)}" for title, ops in sorted(registry.TITLES.items())))
"""


def test_a_load_that_was_interrupted_begins_again() -> None:
    """Ctrl-C while a first call loads its table costs that call alone: nothing is declared twice, or half."""
    whole = (
        "import mindtorch_v2\nfrom mindtorch_v2._api import lazy_tables\nfrom mindtorch_v2._dispatch import registry\n"
        "lazy_tables.load_all()\n" + _INTERRUPTED.strip().split("\n")[-1]
    )
    after, plain = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for code in (_INTERRUPTED, whole)
    )
    assert after.returncode == 0, after.stderr[-2000:]
    assert after.stdout == plain.stdout
