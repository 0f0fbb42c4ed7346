"""Files that are replaced whole or not at all.

Invariant: under its name a file is at every moment either the old one or the complete new one. The new one has no name
until it is complete (where the file system can do that), so that a process that dies leaves nothing behind. What
cannot be replaced (a device, a pipe, a file in a folder where nothing can be made) is written in place.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from types import TracebackType
from typing import Any

# Bytes given to the system at a time; it takes at most 2 GiB.
_PIECE = 1 << 28


class AtomicFile:
    """A file to write; leaving the `with` block without an exception puts it into its place."""

    def __init__(self, path: str | bytes) -> None:
        # The target of a symbolic link is replaced, not the link.
        self.path = os.path.realpath(os.fsdecode(path))
        self.folder, self.name = os.path.split(self.path)
        self.named: str | None = None
        self.in_place = False
        self.old = _status(self.path)
        self.position = 0
        if self.old is not None and stat.S_ISDIR(self.old.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self.path)
        if self.old is not None and not os.access(self.path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), self.path)
        self.fd = self._open()

    def _open(self) -> int:
        if self.old is not None and not stat.S_ISREG(self.old.st_mode):
            return self._open_in_place()
        try:
            fd = self._open_new()
        except PermissionError:
            if self.old is None:
                raise
            return self._open_in_place()
        if self.old is not None:
            _take_over(fd, self.old)
        return fd

    def _open_in_place(self) -> int:
        self.in_place = True
        return os.open(self.path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)

    def _open_new(self) -> int:
        unnamed = getattr(os, "O_TMPFILE", 0)
        if unnamed:
            try:
                return os.open(self.folder, unnamed | os.O_WRONLY | os.O_CLOEXEC, 0o666)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
                    raise
        self.named = self._spare()
        return os.open(self.named, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)

    def _spare(self) -> str:
        return os.path.join(self.folder, f".{self.name[:100]}.{secrets.token_hex(6)}.tmp")

    def write(self, data: Any) -> None:
        """Append all of `data`."""
        view = memoryview(data).cast("B")
        done = 0
        while done < len(view):
            done += os.write(self.fd, view[done : done + _PIECE])
        self.position += done

    def skip(self, count: int) -> None:
        """Leave a hole of `count` zero bytes."""
        if self.in_place and not stat.S_ISREG(os.fstat(self.fd).st_mode):
            for start in range(0, count, 1 << 20):
                self.write(bytes(min(1 << 20, count - start)))
            return
        self.position = os.lseek(self.fd, count, os.SEEK_CUR)

    def __enter__(self) -> AtomicFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._commit()
        finally:
            os.close(self.fd)
            if self.named is not None and os.path.lexists(self.named):
                os.unlink(self.named)

    def _commit(self) -> None:
        if self.in_place:
            return
        if self.old is not None:
            # Nothing is given up for bytes that the disk has not got; where nothing is replaced there is nothing to
            # lose, and the system writes them when it likes.
            os.fsync(self.fd)
        if self.named is not None or not self._link():
            os.replace(str(self.named), self.path)
            self.named = None
        if self.old is None:
            return
        folder = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        except OSError as error:
            # Some file systems do not do that for folders.
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise
        finally:
            os.close(folder)

    def _link(self) -> bool:
        """Give the file its name, or one beside it where the name is taken. Whether the former."""
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        # With a folder given Python calls linkat, which follows the link to the file without a name.
        unnamed = f"/proc/self/fd/{self.fd}"
        try:
            if self.old is None:
                try:
                    os.link(unnamed, self.name, dst_dir_fd=folder)
                    return True
                except FileExistsError:
                    os.fsync(self.fd)
            self.named = self._spare()
            os.link(unnamed, os.path.basename(self.named), dst_dir_fd=folder)
            return False
        finally:
            os.close(folder)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _take_over(fd: int, old: os.stat_result) -> None:
    """Give the new file the old one's permissions, and its owner where that is allowed."""
    mine = os.fstat(fd)
    if (mine.st_uid, mine.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(fd, old.st_uid, old.st_gid)
        except PermissionError:
            pass
    os.fchmod(fd, stat.S_IMODE(old.st_mode))
