"""Patterns of names: `*` inside a part, `**` for any number of parts."""

from __future__ import annotations

import re
from collections.abc import Iterable

GlobPattern = str | Iterable[str]


class GlobGroup:
    """Names that match one of several patterns and none of others."""

    def __init__(self, include: GlobPattern, *, exclude: GlobPattern = (), separator: str = ".") -> None:
        self._dbg = f"GlobGroup(include={include}, exclude={exclude})"
        self.include = self._glob_list(include, separator)
        self.exclude = self._glob_list(exclude, separator)
        self.separator = separator

    def __str__(self) -> str:
        return self._dbg

    __repr__ = __str__

    def matches(self, candidate: str) -> bool:
        """Whether a name is in the group."""
        candidate = self.separator + candidate
        return any(p.fullmatch(candidate) for p in self.include) and not any(
            p.fullmatch(candidate) for p in self.exclude
        )

    @staticmethod
    def _glob_list(elems: GlobPattern, separator: str = ".") -> list[re.Pattern[str]]:
        return [GlobGroup._glob_to_re(e, separator) for e in ([elems] if isinstance(elems, str) else elems)]

    @staticmethod
    def _glob_to_re(pattern: str, separator: str = ".") -> re.Pattern[str]:
        sep, inside = re.escape(separator), f"[^{re.escape(separator)}]"

        def component(part: str) -> str:
            if part == "**":
                return f"(?:{sep}{inside}+)*"
            if "**" in part:
                raise ValueError("** can only appear as an entire path segment")
            return sep + f"{inside}*".join(re.escape(piece) for piece in part.split("*"))

        return re.compile("".join(component(part) for part in pattern.split(separator)))
