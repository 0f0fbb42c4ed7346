"""One wrong call, and how its complaint is compared.

Invariant: `normalise` removes only what names a library, an address, a place in a source file, or the list of all
overloads.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple


class Case(NamedTuple):
    name: str
    setup: Callable[[Any], dict[str, Any]]
    call: Callable[[Any, Any], Any]
    error: str
    text: str
    # PyTorch says the same of tensors without data: the complaint is about shapes, dtypes or other arguments.
    meta: bool = False


def normalise(text: str) -> str:
    text = text.replace("mindtorch_v2", "torch")
    text = re.sub(r"0x[0-9a-f]+", "0x0", text)
    # The list of overloads is generated from all schemas of a name; which argument types were given is what helps.
    text = re.sub(r",? but expected one of:.*", "", text, flags=re.DOTALL)
    # Each library lists its own device types, and has its own base class of Tensor.
    text = re.sub(r"Expected one of [\w, ]+ device type", "Expected one of <devices> device type", text)
    # CPython's own words, which depend on whether a method or attribute is written in C.
    text = re.sub(r"^[\w.]*?(\w+)\(\) takes .*given\)?$", r"\1() takes another number of arguments", text)
    text = re.sub(r"^[\w.]*?(\w+)\(\) takes no keyword arguments$", r"\1() got an unexpected keyword argument", text)
    text = re.sub(r"(got an unexpected keyword argument) '\w+'$", r"\1", text)
    text = re.sub(r"^property '(\w+)' of 'Tensor' object has no setter$", r"attribute '\1' is not writable", text)
    # Where in C++ or Python files an operator's registrations stand.
    text = re.sub(r"  Previous registration of TORCH_LIBRARY was .*", "", text, flags=re.DOTALL)
    text = re.sub(r" Duplicate registration: .*", "", text, flags=re.DOTALL)
    text = re.sub(r"  \(Error occurred while processing TORCH_LIBRARY_IMPL block at .*\)$", "", text)
    return re.sub(
        r"^attribute '(\w+)' of '[\w.]*TensorBase' objects is not writable$", r"attribute '\1' is not writable", text
    )


def define_twice(torch: Any) -> None:
    library = torch.library.Library("bad_b", "FRAGMENT")
    library.define("f(Tensor x) -> Tensor")
    library.define("f(Tensor x) -> Tensor")
