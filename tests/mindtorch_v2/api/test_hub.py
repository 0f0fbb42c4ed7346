"""`torch.hub` with repositories in folders and files at `file:` addresses."""

from __future__ import annotations

import hashlib
import io
import urllib.error
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .. import _oracle
from .._subject import submodule

hub: Any = submodule("hub")

HUBCONF = '''
dependencies = ["os"]
from hub_test_helper import scale


def model(n, *, factor=1):
    """A list of numbers."""
    return [scale(i, factor) for i in range(n)]


def _hidden():
    pass


constant = 3
'''


@pytest.fixture
def repository(tmp_path: Path) -> str:
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    (tmp_path / "hub_test_helper.py").write_text("def scale(i, factor):\n    return i * factor\n")
    return str(tmp_path)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Downloads go here."""
    hub.set_dir(tmp_path / "hub")
    yield tmp_path / "hub"
    hub._hub_dir = None


def test_models_of_a_folder(repository: str) -> None:
    assert hub.load(repository, "model", 3, source="local", factor=2) == [0, 2, 4]
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        hub.load(repository, "other", source="local")
    with pytest.raises(RuntimeError, match="Cannot find callable constant in hubconf"):
        hub.load(repository, "constant", source="local")
    with pytest.raises(ValueError, match="model should be a string of function name"):
        hub.load(repository, 3, source="local")
    with pytest.raises(ValueError, match='Unknown source: "gitlab"'):
        hub.load(repository, "model", source="gitlab")
    Path(repository, "hubconf.py").write_text("dependencies = ['no_such_package_at_all']\ndef model(): pass\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package_at_all"):
        hub.load(repository, "model", source="local")


def test_what_is_in_the_cache_needs_no_network(home: Path) -> None:
    folder = home / "owner_name_main"
    folder.mkdir(parents=True)
    (folder / "hubconf.py").write_text(HUBCONF.replace("hub_test_helper", "cached_helper"))
    (folder / "cached_helper.py").write_text("def scale(i, factor):\n    return i + factor\n")
    assert hub.list("owner/name:main", trust_repo=True, verbose=False) == ["model", "scale"]
    assert hub.help("owner/name:main", "model", trust_repo=True) == "A list of numbers."
    assert hub.load("owner/name:main", "model", 2, trust_repo=True) == [1, 2]


def test_strangers_are_asked_about(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda text: "n")
    with pytest.raises(Exception, match="Untrusted repository."):
        hub.load("stranger/name:main", "model")
    monkeypatch.setattr("builtins.input", lambda text: "perhaps")
    with pytest.raises(ValueError, match="Unrecognized response perhaps."):
        hub.load("stranger/name:main", "model")


def test_downloads(tmp_path: Path) -> None:
    source = tmp_path / "source.bin"
    source.write_bytes(b"some bytes" * 1000)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    target = tmp_path / "target.bin"
    hub.download_url_to_file(source.as_uri(), str(target), digest[:8], progress=False)
    assert target.read_bytes() == source.read_bytes()
    target.write_bytes(b"old")
    with pytest.raises(RuntimeError, match='invalid hash value \\(expected "0000", got'):
        hub.download_url_to_file(source.as_uri(), str(target), "0000", progress=False)
    with pytest.raises(urllib.error.URLError):
        hub.download_url_to_file((tmp_path / "nothing").as_uri(), str(target), progress=False)
    # The old file is whole, and nothing else is left behind.
    assert target.read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["source.bin", "target.bin"]


def test_archives_write_nowhere_else(tmp_path: Path) -> None:
    for name in ("../outside", "/absolute", "a/../../outside"):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as z:
            z.writestr(name, "x")
        with zipfile.ZipFile(packed) as z, pytest.raises(ValueError, match="Archive entry"):
            hub._safe_extract_zip(z, str(tmp_path / "inside"))
    assert list(tmp_path.iterdir()) == []


def test_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", "/some/where")
    assert hub.get_dir() == "/some/where/hub"
    monkeypatch.delenv("TORCH_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert hub.get_dir() == "/cache/torch/hub"
    hub.set_dir("~/mine")
    try:
        assert hub.get_dir() == str(Path.home() / "mine")
    finally:
        hub._hub_dir = None


@pytest.mark.oracle
def test_names_are_pytorchs() -> None:
    oracle = _oracle.load()
    assert sorted(hub.__all__) == sorted(oracle.hub.__all__)
