"""`torch.hub`: models that a repository offers in its `hubconf.py`, and files from the network.

Invariant: a download appears under its name only when it is whole and its hash is right; nothing of an archive is
written outside its folder.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib.util
import json
import os
import re
import shutil
import sys
import uuid
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

import mindtorch_v2 as torch

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

# The hash in a file's name: `resnet18-f37072fd.pth`.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
ENV_GITHUB_TOKEN = "GITHUB_TOKEN"
ENV_TORCH_HOME = "TORCH_HOME"
ENV_XDG_CACHE_HOME = "XDG_CACHE_HOME"
DEFAULT_CACHE_DIR = "~/.cache"
VAR_DEPENDENCY = "dependencies"
MODULE_HUBCONF = "hubconf.py"
READ_DATA_CHUNK = 128 * 1024
_TRUSTED_REPO_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")

_hub_dir: str | None = None


# -- folders ------------------------------------------------------------------------------------------------------
def _get_torch_home() -> str:
    cache = os.path.join(os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR), "torch")
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, cache))


def get_dir() -> str:
    """Where downloads are kept: what `set_dir` was given, else `hub` in $TORCH_HOME or the user's cache."""
    if os.getenv("TORCH_HUB"):
        warnings.warn("TORCH_HUB is deprecated, please use env TORCH_HOME instead", stacklevel=2)
    return os.path.join(_get_torch_home(), "hub") if _hub_dir is None else _hub_dir


def set_dir(d: str | os.PathLike[str]) -> None:
    """Keep downloads in another folder."""
    global _hub_dir
    _hub_dir = os.path.expanduser(os.fspath(d))


# -- repositories -------------------------------------------------------------------------------------------------
@contextmanager
def _add_to_sys_path(path: str) -> Iterator[None]:
    sys.path.insert(0, path)
    try:
        yield
    finally:
        sys.path.remove(path)


def _import_module(name: str, path: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise AssertionError(f"failed to load spec from {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _hubconf(folder: str) -> Any:
    """The module that says what a repository offers."""
    with _add_to_sys_path(folder):
        return _import_module(MODULE_HUBCONF, os.path.join(folder, MODULE_HUBCONF))


def _entry(module: Any, model: Any) -> Callable[..., Any]:
    """The function that makes a model, once the packages it needs are found."""
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    needed = getattr(module, VAR_DEPENDENCY, None) or ()
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    found = getattr(module, model, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    made: Callable[..., Any] = found
    return made


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = "check",
    verbose: bool = True,
) -> builtins.list[str]:
    """What a repository `owner/name[:branch]` of GitHub offers."""
    module = _hubconf(_get_cache_or_reload(github, force_reload, trust_repo, verbose, skip_validation))
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = "check",
) -> str | None:
    """The docstring of something that a repository of GitHub offers."""
    folder = _get_cache_or_reload(github, force_reload, trust_repo, True, skip_validation)
    return _entry(_hubconf(folder), model).__doc__


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: bool | str | None = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Call `model(*args, **kwargs)` of a repository of GitHub, or with `source="local"` of a folder."""
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        repo_or_dir = _get_cache_or_reload(repo_or_dir, force_reload, trust_repo, verbose, skip_validation)
    return _load_local(repo_or_dir, model, *args, **kwargs)


def _load_local(hubconf_dir: str, model: str, *args: Any, **kwargs: Any) -> Any:
    with _add_to_sys_path(hubconf_dir):
        module = _import_module(MODULE_HUBCONF, os.path.join(hubconf_dir, MODULE_HUBCONF))
        return _entry(module, model)(*args, **kwargs)


# -- GitHub -------------------------------------------------------------------------------------------------------
def _parse_repo_info(github: str) -> tuple[str, str, str]:
    """Owner, name and branch; without a branch `main` if there is one, else `master`."""
    repo, _, ref = github.partition(":")
    owner, name = repo.split("/")
    if ref:
        return owner, name, ref
    try:
        with urlopen(f"https://github.com/{owner}/{name}/tree/main/"):
            return owner, name, "main"
    except HTTPError as e:
        if e.code == 404:
            return owner, name, "master"
        raise
    except URLError as e:
        for ref in ("main", "master"):
            if os.path.exists(os.path.join(get_dir(), f"{owner}_{name}_{ref}")):
                return owner, name, ref
        raise RuntimeError(
            f"It looks like there is no internet connection and the repo could not be found in the cache ({get_dir()})"
        ) from e


def _validate_not_a_forked_repo(owner: str, name: str, ref: str) -> None:
    """A commit of a fork can be had under the name of the original: only branches and tags are taken."""
    headers = {"Accept": "application/vnd.github.v3+json"}
    token = os.environ.get(ENV_GITHUB_TOKEN)
    if token is not None:
        headers["Authorization"] = f"token {token}"
    for kind in ("branches", "tags"):
        page = 0
        while True:
            page += 1
            url = f"https://api.github.com/repos/{owner}/{name}/{kind}?per_page=100&page={page}"
            with urlopen(Request(url, headers=headers)) as answer:
                found = json.loads(answer.read().decode(answer.headers.get_content_charset("utf-8")))
            if not found:
                break
            if any(f["name"] == ref or f["commit"]["sha"].startswith(ref) for f in found):
                return
    raise ValueError(
        f"Cannot find {ref} in https://github.com/{owner}/{name}. If it's a commit from a forked repo, please call "
        "hub.load() with forked repo directly."
    )


def _check_repo_is_trusted(owner: str, name: str, folder: str, trust_repo: bool | str | None) -> None:
    """Ask the user before code of a stranger is loaded for the first time."""
    noted = Path(get_dir(), "trusted_list")
    noted.touch()
    known = noted.read_text().split()
    trusted = (
        f"{owner}_{name}" in known or os.path.isdir(os.path.join(get_dir(), folder)) or owner in _TRUSTED_REPO_OWNERS
    )
    if trust_repo is False or (trust_repo == "check" and not trusted):
        answer = input(
            f"The repository {owner}_{name} does not belong to the list of trusted repositories and as such cannot be "
            "downloaded. Do you trust this repository and wish to add it to the trusted list of repositories (y/N)?"
        ).lower()
        if answer in ("n", "no", ""):
            raise Exception("Untrusted repository.")
        if answer not in ("y", "yes"):
            raise ValueError(f"Unrecognized response {answer}.")
        if trusted:
            print("The repository is already trusted.")
    if not trusted:
        with noted.open("a") as f:
            f.write(f"{owner}_{name}\n")


def _get_cache_or_reload(
    github: str, force_reload: bool, trust_repo: bool | str | None, verbose: bool = True, skip_validation: bool = False
) -> str:
    """The folder with a repository, downloaded unless it is there."""
    os.makedirs(get_dir(), exist_ok=True)
    owner, name, ref = _parse_repo_info(github)
    plain = ref.replace("/", "_")
    folder = f"{owner}_{name}_{plain}"
    path = os.path.join(get_dir(), folder)
    _check_repo_is_trusted(owner, name, folder, trust_repo)
    if not force_reload and os.path.exists(path):
        if verbose:
            sys.stderr.write(f"Using cache found in {path}\n")
        return path
    if not skip_validation:
        _validate_not_a_forked_repo(owner, name, ref)
    archive = os.path.join(get_dir(), plain + ".zip")
    url = f"https://github.com/{owner}/{name}/zipball/{ref}"
    sys.stdout.write(f'Downloading: "{url}" to {archive}\n')
    download_url_to_file(url, archive, progress=False)
    with zipfile.ZipFile(archive) as packed:
        top = os.path.join(get_dir(), packed.infolist()[0].filename)
        shutil.rmtree(top, ignore_errors=True)
        _safe_extract_zip(packed, get_dir())
    os.remove(archive)
    shutil.rmtree(path, ignore_errors=True)
    shutil.move(top, path)
    return path


def _safe_extract_zip(packed: zipfile.ZipFile, extract_to: str) -> None:
    """Unpack, unless a name in the archive leads elsewhere."""
    root = Path(extract_to).resolve()
    for member in packed.infolist():
        name = os.path.normpath(member.filename)
        if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", name):
            raise ValueError(f"Archive entry has absolute path: {member.filename}")
        if ".." in PurePosixPath(name.replace("\\", "/")).parts:
            raise ValueError(f"Archive entry contains directory traversal: {member.filename}")
        if not (root / name).resolve().is_relative_to(root):
            raise ValueError(f"Archive entry escapes target directory: {member.filename}")
        packed.extract(member, root)


def __getattr__(name: str) -> Any:
    if name != "tqdm":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    try:
        return importlib.import_module("tqdm").tqdm
    except ImportError:
        return _Faketqdm


# -- files --------------------------------------------------------------------------------------------------------
class _Faketqdm:
    """How much of a download is done, in one line of stderr: what stands for `tqdm` where that is not installed."""

    def __init__(self, total: int | None = None, disable: bool = False, unit: Any = None, **_: Any) -> None:
        self.total = total
        self.shown = not disable
        self.done = 0

    def __enter__(self) -> _Faketqdm:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def set_description(self, *args: Any, **kwargs: Any) -> None:
        """The line has no place for one."""

    def write(self, s: str) -> None:
        sys.stderr.write(f"{s}\n")

    def update(self, n: int) -> None:
        self.done += n
        if self.shown:
            text = f"{self.done:.1f} bytes" if self.total is None else f"{100 * self.done / max(self.total, 1):.1f}%"
            sys.stderr.write("\r" + text)
            sys.stderr.flush()

    def close(self) -> None:
        if self.shown:
            sys.stderr.write("\n")


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Copy what is at a URL to a file, whose SHA-256 must begin with `hash_prefix` if that is given."""
    dst = os.path.expanduser(dst)
    part = f"{dst}.{uuid.uuid4().hex}.partial"
    digest = hashlib.sha256()
    try:
        with open(part, "xb") as f, urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as source:
            length = source.headers.get("Content-Length")
            shown = _Faketqdm(None if length is None else int(length), not progress)
            while data := source.read(READ_DATA_CHUNK):
                f.write(data)
                digest.update(data)
                shown.update(len(data))
            shown.close()
        if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
        shutil.move(part, dst)
    finally:
        if os.path.exists(part):
            os.remove(part)


def _is_legacy_zip_format(filename: str) -> bool:
    """Whether a file is one packed by hand, from before checkpoints were archives themselves."""
    if not zipfile.is_zipfile(filename):
        return False
    with zipfile.ZipFile(filename) as packed:
        members = packed.infolist()
    return len(members) == 1 and not members[0].is_dir()


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """`torch.load` of what is at a URL, which is kept in `model_dir`. With `check_hash` the file's name must carry the
    beginning of its SHA-256, as `name-<hash>.pth`."""
    if os.getenv("TORCH_MODEL_ZOO"):
        warnings.warn("TORCH_MODEL_ZOO is deprecated, please use env TORCH_HOME instead", stacklevel=2)
    model_dir = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(model_dir, exist_ok=True)
    name = os.path.basename(urlparse(url).path) if file_name is None else file_name
    path = os.path.join(model_dir, name)
    if not os.path.exists(path):
        sys.stdout.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress=progress)
    if _is_legacy_zip_format(path):
        warnings.warn(
            "Falling back to the old format < 1.6. This support will be deprecated in favor of default zipfile format "
            "introduced in 1.6. Please redo torch.save() to save it in the new zipfile format.",
            FutureWarning,
            stacklevel=2,
        )
        with zipfile.ZipFile(path) as packed:
            _safe_extract_zip(packed, model_dir)
            path = os.path.join(model_dir, packed.infolist()[0].filename)
    state: dict[str, Any] = torch.load(path, map_location=map_location, weights_only=weights_only)
    return state
