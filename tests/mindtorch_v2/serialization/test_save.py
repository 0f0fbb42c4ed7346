"""Writing files: whole or not at all, to paths and to streams."""

from __future__ import annotations

import errno
import functools
import io
import os
import pickle
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from .._subject import mindtorch_only, submodule
from .._subject import subject as torch
from ._samples import WEIGHTS, same

pytestmark = mindtorch_only


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 5}], ids=str)
def test_round_trip(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    value = WEIGHTS[name](torch)
    path = tmp_path / "a.pt"
    torch.save(value, path, **options)
    same(torch.load(path, weights_only=options.get("pickle_protocol", 2) == 2), value, (torch, torch))
    assert os.listdir(tmp_path) == ["a.pt"]


def dying(at: int, path: Path, zipped: bool) -> int:
    """Save in a child process that ends in the middle of its `at`-th call of the system; its exit code."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    calls, write = [0], os.write

    def counted(*args: Any, _call: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == at:
            if _call is write:
                write(args[0], args[1][: len(args[1]) // 2])
            os._exit(42)
        return _call(*args, **kwargs)

    try:
        for name in ("write", "fsync", "link", "replace"):
            setattr(os, name, functools.partial(counted, _call=getattr(os, name)))
        value = {"new": torch.arange(100.0), "more": [torch.ones(40_000 * i) for i in range(4)]}
        torch.save(value, path, _use_new_zipfile_serialization=zipped)
    except BaseException:
        os._exit(1)
    os._exit(0)


@pytest.mark.parametrize("unnamed", [True, False])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_process_killed_at_every_write_leaves_the_old_file(
    unnamed: bool, zipped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE")
    path = tmp_path / "a.pt"
    torch.save({"old": torch.zeros(3)}, path)
    old = path.read_bytes()
    replaced, at = False, 0
    while True:
        at += 1
        code = dying(at, path, zipped)
        assert code in (0, 42)
        replaced = replaced or path.read_bytes() != old
        assert list(torch.load(path)) == (["new", "more"] if replaced else ["old"])
        # A file without a name is gone with its process; it has a second name for one moment, when it is complete.
        rest = sorted(set(os.listdir(tmp_path)) - {"a.pt"})
        if unnamed:
            assert all(torch.load(tmp_path / name)["new"].numel() == 100 for name in rest) and len(rest) <= 1
        for name in rest:
            os.remove(tmp_path / name)
        if code == 0:
            break
    assert replaced and at > 5


@pytest.mark.parametrize("unnamed", [True, False])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_full_disk_leaves_the_old_file(
    unnamed: bool, zipped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE")
    path = tmp_path / "a.pt"
    torch.save(1, path)
    old = path.read_bytes()
    write, left = os.write, [0]

    def full(fd: int, data: Any) -> int:
        left[0] -= len(data)
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data)

    monkeypatch.setattr(os, "write", full)
    for room in (0, 1, 100, 1000, 4000):
        left[0] = room
        with pytest.raises(OSError, match="No space left"):
            torch.save(torch.zeros(1000), path, _use_new_zipfile_serialization=zipped)
        assert path.read_bytes() == old and os.listdir(tmp_path) == ["a.pt"]
    left[0] = 1 << 20
    torch.save(torch.zeros(1000), path, _use_new_zipfile_serialization=zipped)
    assert torch.load(path).numel() == 1000 and os.listdir(tmp_path) == ["a.pt"]


def test_what_cannot_be_pickled_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save(1, path)
    for zipped in (True, False):
        with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
            torch.save([torch.ones(3), lambda: 0], path, _use_new_zipfile_serialization=zipped)
        assert torch.load(path) == 1 and os.listdir(tmp_path) == ["a.pt"]


@pytest.mark.parametrize("unnamed", [True, False])
def test_links_and_permissions(unnamed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE")
    real, link = tmp_path / "real" / "a.pt", tmp_path / "link.pt"
    real.parent.mkdir()
    link.symlink_to(real)
    mask = os.umask(0o027)
    try:
        torch.save(1, link)  # the target need not exist yet
        assert link.is_symlink() and torch.load(real) == 1
        assert stat.S_IMODE(real.stat().st_mode) == 0o640
        real.chmod(0o604)
        torch.save(2, link)
        assert link.is_symlink() and torch.load(real) == 2 and stat.S_IMODE(real.stat().st_mode) == 0o604
    finally:
        os.umask(mask)
    assert os.listdir(real.parent) == ["a.pt"]


def test_devices_and_pipes_are_written_in_place(tmp_path: Path) -> None:
    torch.save(torch.ones(10), "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    torch.save({"a": torch.arange(5)}, pipe)
    output, _ = reader.communicate()
    assert torch.load(io.BytesIO(output))["a"].tolist() == [0, 1, 2, 3, 4]


def test_streams() -> None:
    class Plain:
        """No more than PyTorch asks for."""

        def __init__(self) -> None:
            self.parts: list[bytes] = []
            self.flushed = False

        def write(self, data: Any) -> int:
            self.parts.append(bytes(data))
            return len(data)

        def flush(self) -> None:
            self.flushed = True

    class Short(io.RawIOBase):
        """Takes a few bytes at a time."""

        def __init__(self) -> None:
            self.data = b""

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            self.data += bytes(data[:7])
            return min(7, len(data))

    for zipped in (True, False):
        plain, short = Plain(), Short()
        torch.save(torch.arange(9), plain, _use_new_zipfile_serialization=zipped)
        torch.save(torch.arange(9), short, _use_new_zipfile_serialization=zipped)
        assert plain.flushed and b"".join(plain.parts) == short.data
        assert torch.load(io.BytesIO(short.data)).tolist() == list(range(9))


def test_a_stream_may_hold_something_in_front() -> None:
    buffer = io.BytesIO()
    for value in (1, torch.ones(2), "x"):
        for zipped in (True, False):
            buffer = io.BytesIO()
            buffer.write(b"header")
            torch.save(value, buffer, _use_new_zipfile_serialization=zipped)
            buffer.seek(6)
            got = torch.load(buffer)
            assert torch.equal(got, value) if isinstance(value, torch.Tensor) else got == value


def test_records_are_aligned_and_checked(tmp_path: Path) -> None:
    config = submodule("utils.serialization").config
    path = tmp_path / "model.pt"
    for alignment in (64, 4096):
        with config.patch("save.storage_alignment", alignment):
            torch.save([torch.ones(n) for n in (1, 100, 0, 33)], path)
        raw = path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            for entry in archive.infolist():
                name, extra = (int.from_bytes(raw[entry.header_offset + i :][:2], "little") for i in (26, 28))
                assert (entry.header_offset + 30 + name + extra) % alignment == 0
                assert entry.filename.startswith("model/")
            assert archive.read("model/.storage_alignment") == str(alignment).encode()
        assert [t.numel() for t in torch.load(path)] == [1, 100, 0, 33]
    torch.serialization.set_crc32_options(False)
    try:
        assert torch.serialization.get_crc32_options() is False
        torch.save(torch.ones(3), path)
    finally:
        torch.serialization.set_crc32_options(True)
    with zipfile.ZipFile(path) as archive:
        assert {entry.CRC for entry in archive.infolist()} == {0}
    assert torch.load(path).tolist() == [1, 1, 1]


def test_skip_data(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    value = {"a": torch.ones(1000), "b": torch.arange(4)}
    with torch.serialization.skip_data():
        torch.save(value, path)
        with pytest.raises(RuntimeError, match="Cannot use skip_data=True with _use_new_zipfile_serialization=False"):
            torch.save(value, path, _use_new_zipfile_serialization=False)
    got = torch.load(path)
    assert not got["a"].any() and not got["b"].any() and got["a"].shape == (1000,)
    torch.save(value, path)
    with torch.serialization.skip_data():
        got = torch.load(path)
    assert got["a"].shape == (1000,) and got["b"].dtype == torch.int64


def test_files_beyond_4_gib(tmp_path: Path) -> None:
    """Holes all of it: nothing is written but headers."""
    path = tmp_path / "large.pt"
    value = [torch.empty(5 << 30, dtype=torch.uint8), torch.empty(3, dtype=torch.int32)]
    with torch.serialization.skip_data():
        torch.save(value, path)
    assert path.stat().st_size > 5 << 30 and path.stat().st_blocks < 1000
    got = torch.load(path, mmap=True)
    assert got[0].shape == (5 << 30,) and got[0][-1] == 0 and got[1].tolist() == [0, 0, 0]


@pytest.mark.oracle
def test_files_beyond_4_gib_in_the_oracle(oracle: Any, tmp_path: Path) -> None:
    path = tmp_path / "large.pt"
    for writer, reader in ((torch, oracle), (oracle, torch)):
        value = [writer.empty(5 << 30, dtype=writer.uint8), writer.empty(3, dtype=writer.int32)]
        with writer.serialization.skip_data():
            writer.save(value, path)
        got = reader.load(path, mmap=True)
        assert tuple(got[0].shape) == (5 << 30,) and got[1].tolist() == [0, 0, 0]
        path.unlink()


def test_importing_the_package_loads_none_of_it() -> None:
    code = "import sys, mindtorch_v2; print(sorted(m for m in sys.modules if 'serializ' in m or m == 'pickletools'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_large_records_have_their_checksum(tmp_path: Path) -> None:
    """Computed beside the writing."""
    path = tmp_path / "a.pt"
    torch.save(torch.arange(2_000_000), path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
