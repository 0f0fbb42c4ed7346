"""Where public classes say they are defined, in a process where `torch` is this package, against PyTorch."""

from __future__ import annotations

import pytest

from .._subject import mindtorch_only
from ..api._public import MODULES
from ._process import answer

pytestmark = mindtorch_only

LIST = f"""
import importlib, json, warnings
warnings.simplefilter("ignore")
found = {{}}
for name in {MODULES!r}:
    try:
        module = importlib.import_module("torch" + ("." + name if name else ""))
    except ImportError:
        continue
    for key in dir(module):
        value = getattr(module, key, None)
        if isinstance(value, type) and not key.startswith("_"):
            found[name + "." + key] = [value.__module__, value.__qualname__]
print(json.dumps(found))
"""
# Classes of PyTorch's library that are something else here, or made elsewhere, and why.
OTHERWISE = {
    **dict.fromkeys((".Future", "futures.Future", ".ScriptFunction", ".ScriptModule"), "PyTorch's are of its scripts"),
    **dict.fromkeys(
        (f"{m}.Profiler{n}" for m in ("autograd", "autograd.profiler") for n in ("Activity", "Config", "State")),
        "an enum here, a C++ type there",
    ),
    **dict.fromkeys(
        (
            *("autograd.DeviceType", "autograd.profiler_util.DeviceType", "profiler.DeviceType"),
            *("profiler.ProfilerActivity", "profiler.RecordScope", "profiler.profiler.ProfilerActivity"),
        ),
        "an enum here, a C++ type there",
    ),
    "nn.LinearCrossEntropyOptions": "stands with its function",
    "nn.modules.LinearCrossEntropyOptions": "stands with its function",
    "nn.attention.SDPBackend": "an enum here, a C++ type there",
    "nn.functional.ScalingType": "an enum here, a C++ type there",
    "nn.functional.SwizzleType": "an enum here, a C++ type there",
    "random.Generator": "PyTorch shows an import",
    "testing.FileCheck": "written in Python here",
    "types.Storage": "PyTorch has a class for type checkers",
    "utils._pytree.KeyEntry": "a protocol there",
    **dict.fromkeys((f"xpu.{n}" for n in "Event MemPool Stream XPUGraph XPUPluggableAllocator".split()), "no hardware"),
}


# Modules whose classes have no instances here.
UNSERVED = ("distributed.", "jit.", "onnx.", "package.", "utils.cpp_extension.", "utils.mobile_optimizer.")

LOST = (
    LIST
    + """
import sys
def here(home, name):
    if not home.startswith("torch"):
        return True
    try:
        value = importlib.import_module(home)
        for part in name.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError):
        return False
    return True
print(json.dumps(sorted({":".join(v) for v in found.values() if not here(*v)})))
"""
)
# Classes that name a place where they are not.
NOWHERE = {
    "torch._library.custom_ops:CustomOpDef": "the package's own folder bears that name",
    "torch._ops:OpOverload": "the package's own folder bears that name",
    "torch._ops:OpOverloadPacket": "the package's own folder bears that name",
    "torch.mps.event:Event": "no hardware",
    "torch.mtia.mtia_graph:MTIAGraph": "no hardware",
    "torch.mtia.mtia_graph:graph": "no hardware",
}


def test_classes_are_found_where_they_say() -> None:
    """So that pickle and `typing.get_type_hints` find them."""
    done = answer(LOST.replace("print(json.dumps(found))", ""))
    assert sorted(set(done) - NOWHERE.keys()) == []


@pytest.mark.oracle
def test_classes_say_what_pytorchs_say() -> None:
    mine, theirs = answer(LIST), answer(LIST, runner=False)
    assert len(theirs) > 500
    other = {k for k in mine.keys() & theirs.keys() if mine[k] != theirs[k]} - OTHERWISE.keys()
    assert {k for k in other if not k.startswith(UNSERVED)} == set()
