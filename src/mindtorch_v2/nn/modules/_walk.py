"""Walking the tree of a module, lazily: what is yielded next is looked for when it is asked for.

Invariant: each module comes before its children, in the order of names, and once unless duplicates are wanted. A stack
of iterators stands for the recursion, so that a step costs the same at any depth; a class that walks in its own way is
asked to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ... import _native

if TYPE_CHECKING:
    from .module import Module


def modules(root: Module, memo: set[Any], prefix: str, once: bool, usual: Any) -> Iterator[tuple[str, Any]]:
    """A module and all below it with their paths; `usual` is the method of a class that has no own way."""
    if root in memo:
        return
    if once:
        memo.add(root)
    yield prefix, root
    stack = [(prefix, iter(root._modules.items()))]
    while stack:
        path, items = stack[-1]
        for name, module in items:
            if module is None:
                continue
            below = f"{path}.{name}" if path else name
            if getattr(type(module), "named_modules", None) is not usual:
                yield from module.named_modules(memo, below, once)
                continue
            if module in memo:
                continue
            if once:
                memo.add(module)
            yield below, module
            if module._modules:
                stack.append((below, iter(module._modules.items())))
                break
        else:
            stack.pop()


def members(root: Module, kind: str, recurse: bool, usual: Any) -> Iterator[Any]:
    """The parameters, or buffers, of a module and of all below it, each once; as `modules`, without paths."""
    seen: set[Any] = set()
    for member in getattr(root, kind).values():
        if member is not None and member not in seen:
            seen.add(member)
            yield member
    if not recurse:
        return
    memo: set[Any] = {root}
    stack = [iter(root._modules.values())]
    while stack:
        for module in stack[-1]:
            if module is None:
                continue
            own = getattr(type(module), "named_modules", None) is usual
            if own:
                if module in memo:
                    continue
                memo.add(module)
            for each in (module,) if own else [found for _, found in module.named_modules(memo)]:
                for member in getattr(each, kind).values():
                    if member is not None and member not in seen:
                        seen.add(member)
                        yield member
            if own and module._modules:
                stack.append(iter(module._modules.values()))
                break
        else:
            stack.pop()


def named_members(
    root: Module, kind: str, prefix: str, recurse: bool, once: bool, usual: Any
) -> Iterator[tuple[str, Any]]:
    """The same with their paths; not `once`: also those that were there before."""
    seen: set[Any] = set()
    lead = f"{prefix}." if prefix else ""
    for name, member in getattr(root, kind).items():
        if member is not None and member not in seen:
            if once:
                seen.add(member)
            yield lead + name, member
    if not recurse:
        return
    memo: set[Any] = {root} if once else set()
    stack = [(lead, iter(root._modules.items()))]
    while stack:
        lead, items = stack[-1]
        for name, module in items:
            if module is None:
                continue
            path = lead + name
            own = getattr(type(module), "named_modules", None) is usual
            if own:
                if module in memo:
                    continue
                if once:
                    memo.add(module)
            for below, each in ((path, module),) if own else list(module.named_modules(memo, path, once)):
                for named, member in getattr(each, kind).items():
                    if member is not None and member not in seen:
                        if once:
                            seen.add(member)
                        yield f"{below}.{named}" if below else named, member
            if own and module._modules:
                stack.append((f"{path}.", iter(module._modules.items())))
                break
        else:
            stack.pop()


def quicken(cls: type) -> None:
    """Let modules of a class and of those derived from it find their members, and call `forward`, natively: as far as
    the classes have Module's own methods."""
    classes = [cls]
    for each in classes:
        _native.quicken(each)
        classes += each.__subclasses__()
