"""Names of modules that came from archives: each archive has a prefix of its own in front of them."""

from __future__ import annotations

import itertools
import re

_numbers = itertools.count()
_PREFIX = re.compile(r"<torch_package_\d+>")


class PackageMangler:
    """Puts the prefix of one archive in front of names, and takes it away."""

    def __init__(self) -> None:
        self._mangle_parent = f"<torch_package_{next(_numbers)}>"

    def mangle(self, name: str) -> str:
        """A name with the prefix."""
        if len(name) == 0:
            raise AssertionError("name must not be empty")
        return f"{self._mangle_parent}.{name}"

    def demangle(self, mangled: str) -> str:
        """A name without the prefix, if it is this one's."""
        return mangled.partition(".")[2] if mangled.startswith(self._mangle_parent + ".") else mangled

    def parent_name(self) -> str:
        """The prefix."""
        return self._mangle_parent


def is_mangled(name: str) -> bool:
    """Whether a name has a prefix."""
    return _PREFIX.match(name) is not None


def demangle(name: str) -> str:
    """A name without any prefix; the prefix alone is empty."""
    return name.partition(".")[2] if is_mangled(name) else name


def get_mangle_prefix(name: str) -> str:
    """The prefix of a name; a name without one as it is."""
    return name.partition(".")[0] if is_mangled(name) else name
