"""Headers of operators in a home as a wheel has it: one file, unpacked when a programmer asks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindtorch_v2._backends.npu import emulator_tool
from mindtorch_v2._backends.npu.emulator_tool import PACKED, with_headers

TEXTS = {"aclnn_add.h": "int add;\n", "level2/aclnn_add.h": '#include "../aclnn_add.h"\n'}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    (made / "include" / "acl").mkdir(parents=True)
    (made / "include" / "acl" / "acl.h").write_text("int acl;\n")
    (made / PACKED).write_text(json.dumps(TEXTS))
    return made


def headers(home: Path) -> dict[str, str]:
    folder = home / "include" / "aclnnop"
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.h")}


def test_they_are_unpacked_once(home: Path) -> None:
    assert with_headers(home) == home and headers(home) == TEXTS
    before = (home / "include" / "aclnnop" / "aclnn_add.h").stat()
    assert with_headers(home) == home
    assert (home / "include" / "aclnnop" / "aclnn_add.h").stat().st_ino == before.st_ino
    assert sorted(path.name for path in (home / "include").iterdir()) == ["acl", "aclnnop"]


def test_those_of_another_package_are_replaced(home: Path) -> None:
    with_headers(home)
    (home / PACKED).write_text(json.dumps({"aclnn_mul.h": "int mul;\n"}))
    assert with_headers(home) == home and headers(home) == {"aclnn_mul.h": "int mul;\n"}


def test_a_home_that_cannot_be_written_is_copied(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack = emulator_tool.unpack

    def refuse(where: Path, text: bytes, digest: str) -> None:
        if where == home:
            raise PermissionError(where)
        unpack(where, text, digest)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(emulator_tool, "unpack", refuse)
    copy = with_headers(home)
    assert copy != home and headers(copy) == TEXTS and headers(home) == {}
    assert (copy / "include" / "acl" / "acl.h").read_text() == "int acl;\n"
    assert with_headers(home) == copy


def test_a_home_with_headers_stays_as_it_is(home: Path) -> None:
    (home / PACKED).unlink()
    assert with_headers(home) == home and headers(home) == {}
