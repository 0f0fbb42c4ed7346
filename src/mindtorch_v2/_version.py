"""The version of PyTorch whose API this package follows.

Invariant: it is a string everywhere a string is expected, but compares by the order of versions (PEP 440), also with
tuples of numbers.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

__all__ = ["TorchVersion", "__version__"]

_PATTERN: Final = (
    r"\s*v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>alpha|beta|preview|pre|a|b|c|rc)[-_.]?(?P<pre_n>\d*))?"
    r"(?:-(?P<post_short>\d+)|(?P<post>[-_.]?(?:post|rev|r)[-_.]?(?P<post_n>\d*)))?"
    r"(?P<dev>[-_.]?dev[-_.]?(?P<dev_n>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*"
)
# Order of the stages before a release; the stage of a release itself is 3, of a bare development version -1.
_STAGES: Final = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}


def _key(version: object) -> tuple[Any, ...] | None:
    """A tuple that sorts as the version does; None when it is not a version."""
    if not isinstance(version, str):
        if isinstance(version, Iterable):
            version = ".".join(str(part) for part in version)
        elif hasattr(version, "release"):
            # packaging's Version objects print in canonical form.
            version = str(version)
        else:
            return None
    found = re.fullmatch(_PATTERN, version, re.IGNORECASE)
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    post = found["post"] is not None or found["post_short"] is not None
    if found["pre"] is not None:
        stage = (_STAGES[found["pre"].lower()], int(found["pre_n"] or 0))
    else:
        stage = (-1, 0) if found["dev"] is not None and not post else (3, 0)
    post_key = (1, int(found["post_short"] or found["post_n"] or 0)) if post else (0, 0)
    dev_key = (0, int(found["dev_n"] or 0)) if found["dev"] is not None else (1, 0)
    parts = re.split(r"[-_.]", found["local"].lower()) if found["local"] is not None else []
    local = tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts)
    return (int(found["epoch"] or 0), tuple(release), stage, post_key, dev_key, local)


class TorchVersion(str):
    """A version string that compares with strings, tuples and `packaging` versions by the order of versions."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        theirs = _key(other)
        return str.__eq__(self, other) if theirs is None else _key(str(self)) == theirs

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        ours, theirs = _key(str(self)), _key(other)
        return str.__lt__(self, other) if ours is None or theirs is None else ours < theirs

    def __le__(self, other: Any) -> bool:
        ours, theirs = _key(str(self)), _key(other)
        return str.__le__(self, other) if ours is None or theirs is None else ours <= theirs

    def __gt__(self, other: Any) -> bool:
        ours, theirs = _key(str(self)), _key(other)
        return str.__gt__(self, other) if ours is None or theirs is None else ours > theirs

    def __ge__(self, other: Any) -> bool:
        ours, theirs = _key(str(self)), _key(other)
        return str.__ge__(self, other) if ours is None or theirs is None else ours >= theirs

    # Defining __eq__ would otherwise make the string unhashable.
    __hash__ = str.__hash__


__version__: Final = TorchVersion("2.13.0")
