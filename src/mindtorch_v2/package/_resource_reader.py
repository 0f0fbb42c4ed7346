"""What `importlib.resources` reads the files of an archive through."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from ._directory_reader import DirectoryReader


class _PackageResourceReader:
    """The files of one package of an archive."""

    def __init__(self, importer: Any, fullname: str) -> None:
        self.importer = importer
        self.fullname = fullname

    def open_resource(self, resource: str) -> io.BytesIO:
        """A file, opened for reading."""
        return io.BytesIO(self.importer.load_binary(self.fullname, resource))

    def resource_path(self, resource: str) -> str:
        """Where a file is on the disk; only those of a directory are somewhere."""
        reader = self.importer.zip_reader
        path = self.importer._zipfile_path(self.fullname, resource)
        if isinstance(reader, DirectoryReader) and reader.has_record(path):
            return os.path.join(reader.directory, path)
        raise FileNotFoundError

    def is_resource(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return bool(self.importer.zip_reader.has_record(self.importer._zipfile_path(self.fullname, name)))

    def contents(self) -> Iterator[str]:
        """The names of files and directories in the package."""
        package = PurePosixPath(self.importer._zipfile_path(self.fullname))
        seen: set[str] = set()
        for filename in self.importer.zip_reader.get_all_records():
            try:
                first = PurePosixPath(filename).relative_to(package).parts[0]
            except ValueError:
                continue
            if first not in seen:
                seen.add(first)
                yield first
