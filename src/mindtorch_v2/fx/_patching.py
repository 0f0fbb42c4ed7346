"""Replacing attributes and globals while a program is traced, and putting them back."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Patch:
    """One replacement: of an attribute of a class, or of a global in its dict."""

    def __init__(self, place: Any, name: str, new: Any) -> None:
        self.place = place
        self.name = name
        self.new = new
        self.is_dict = isinstance(place, dict)
        self.was_there = name in place if self.is_dict else True
        self.old = (place.get(name) if self.is_dict else getattr(place, name)) if self.was_there else None

    def patch(self) -> None:
        if self.is_dict:
            self.place[self.name] = self.new
        else:
            setattr(self.place, self.name, self.new)

    def revert(self) -> None:
        if not self.was_there:
            del self.place[self.name]
        elif self.is_dict:
            self.place[self.name] = self.old
        else:
            setattr(self.place, self.name, self.old)


class _Patcher:
    """Replacements that end together."""

    def __init__(self) -> None:
        self.patches_made: list[_Patch] = []
        self.visited: set[int] = set()

    def _apply(self, place: Any, name: str, new_fn: Any, deduplicate: bool) -> None:
        setattr(new_fn, "__fx_already_patched", deduplicate)
        patch = _Patch(place, name, new_fn)
        if getattr(patch.old, "__fx_already_patched", False):
            return
        self.patches_made.append(patch)
        patch.patch()

    def patch(
        self, frame_dict: dict[str, Any], name: str, new_fn: Callable[..., Any], deduplicate: bool = True
    ) -> None:
        """Replace a global, or hide a builtin behind one."""
        if name not in frame_dict and not hasattr(builtins, name):
            raise KeyError(name)
        self._apply(frame_dict, name, new_fn, deduplicate)

    def patch_method(self, cls: Any, name: str, new_fn: Callable[..., Any], deduplicate: bool = True) -> None:
        """Replace a method."""
        self._apply(cls, name, new_fn, deduplicate)

    def visit_once(self, thing: Any) -> bool:
        """Whether `thing` is seen for the first time."""
        if id(thing) in self.visited:
            return False
        self.visited.add(id(thing))
        return True

    def revert_all_patches(self) -> list[_Patch]:
        """Put everything back, in the opposite order; what was replaced is remembered."""
        for patch in reversed(self.patches_made):
            patch.revert()
        return self.patches_made

    def reapply_all_patches(self) -> list[_Patch]:
        """Replace again what was put back."""
        for patch in self.patches_made:
            patch.patch()
        return self.patches_made


class _Current:
    patcher: _Patcher | None = None


@contextmanager
def _new_patcher() -> Iterator[_Patcher]:
    """A patcher whose replacements end with the block."""
    before = _Current.patcher
    patcher = _Current.patcher = _Patcher()
    try:
        yield patcher
    finally:
        patcher.revert_all_patches()
        _Current.patcher = before


@contextmanager
def _maybe_revert_all_patches() -> Iterator[None]:
    """Inside, nothing is replaced."""
    current = _Current.patcher
    if current is not None:
        current.revert_all_patches()
    try:
        yield
    finally:
        if current is not None:
            current.reapply_all_patches()
