"""The public headers and the emulator's own say the same of types and codes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .._subject import mindtorch_only

pytestmark = mindtorch_only
ROOT = Path(__file__).parents[3] / "csrc" / "ascend_emulator"
NUMBER = re.compile(r"^\s*(?:constexpr int |static const int |#define )?(ACL_\w+)\s*(?:=\s*)?(-?\d+)\s*[,;]?", re.M)


def _numbers(*names: str) -> dict[str, int]:
    return {key: int(value) for name in names for key, value in NUMBER.findall((ROOT / name).read_text())}


@pytest.mark.skipif(not ROOT.exists(), reason="the tests stand alone, without the sources")
def test_numbers_are_those_of_the_emulator() -> None:
    own = _numbers("core/acl.h", "core/codes.h")
    public = _numbers("include/acl/acl_base.h", "include/acl/acl_rt.h")
    both = own.keys() & public.keys()
    assert len(both) > 60
    assert {key: (own[key], public[key]) for key in both if own[key] != public[key]} == {}


@pytest.mark.skipif(not ROOT.exists(), reason="the tests stand alone, without the sources")
def test_the_readme_names_every_function_that_is_missing() -> None:
    from ._kernels import facts, implemented

    section = (ROOT / "README.md").read_text().split("## Functions that are not there\n")[1].split("\n## ")[0]
    assert set(re.findall(r"`(acl\w+)`", section)) == set(facts()) - implemented()
