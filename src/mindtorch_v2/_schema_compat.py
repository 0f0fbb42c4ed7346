"""Whether programs written for one version of an operator's schema work with another.

Invariant: both schemas are only read; arguments are compared by place, those that are written to (`out`) apart.
"""

from __future__ import annotations

from typing import Any


def _first_out(schema: Any) -> int:
    for i, a in enumerate(schema.arguments):
        if a.is_out:
            return i
    return len(schema.arguments)


def _memory(a: Any) -> Any:
    info = a.alias_info
    return None if info is None else (info.is_write, info.before_set, info.after_set, info.elements)


def _takes(wide: Any, narrow: Any) -> bool:
    """Whether values of one type are values of another."""
    if wide == narrow or narrow == f"Optional[{wide}]" == wide:
        return True
    if wide.startswith("Optional["):
        inner = wide[len("Optional[") : -1]
        return (
            narrow == "NoneType"
            or _takes(inner, narrow.removeprefix("Optional[").removesuffix("]"))
            or (_takes(inner, narrow))
        )
    return wide == "number" and narrow in ("int", "float", "complex")


def _alike(schema: Any, old: Any) -> bool:
    """What both directions ask."""
    mine, its = ((s.name, s.overload_name, s._is_vararg, s._is_varret, len(s.returns)) for s in (schema, old))
    return mine == its


def _argument_backward(new: Any, old: Any) -> bool:
    """Whether every call that gave the old argument may give the new one."""
    if new.name != old.name or (new.kwarg_only and not old.kwarg_only):
        return False
    if old.has_default_value() and not (new.has_default_value() and new.default_value == old.default_value):
        return False
    return _memory(new) == _memory(old) and _takes(new.type, old.type)


def backward(schema: Any, old: Any) -> bool:
    """Whether calls written for the old schema work."""
    new_args, old_args = schema.arguments, old.arguments
    if not _alike(schema, old) or len(new_args) < len(old_args):
        return False
    for new, was in zip(schema.returns, old.returns):
        if new.name != was.name or _memory(new) != _memory(was) or not _takes(was.type, new.type):
            return False
    new_out, old_out = _first_out(schema), _first_out(old)
    if any(not _argument_backward(n, o) for n, o in zip(new_args[:old_out], old_args[:old_out])):
        return False
    if any(not a.has_default_value() for a in new_args[old_out:new_out]):
        return False
    outs = old_args[old_out:]
    return len(new_args) - new_out >= len(outs) and all(map(_argument_backward, new_args[new_out:], outs))


def _argument_forward(new: Any, old: Any) -> bool:
    return (
        new.name == old.name
        and new.type == old.type
        and not (new.kwarg_only and not old.kwarg_only)
        and new.has_default_value() == old.has_default_value()
        and new.default_value == old.default_value
        and _memory(new) == _memory(old)
    )


def forward(schema: Any, old: Any) -> tuple[bool, str]:
    """Whether calls written for this schema work with the old one, as long as they leave new arguments out; else why
    not, where PyTorch says it."""
    if not _alike(schema, old):
        return False, ""
    new_args, old_args = schema.arguments, old.arguments
    new_out, old_out = _first_out(schema), _first_out(old)
    if len(new_args) - new_out != len(old_args) - old_out:
        return False, "Function schema should have the same number of out arguments"
    for new, was in zip(new_args[:new_out], old_args[:old_out]):
        if not _argument_forward(new, was):
            return False, f"'{new.name}' is not forward compatible with the older version of the schema"
    for new in new_args[old_out:new_out]:
        head = f"Function schema is not forward compatible since the new argument '{new.name}' of type {new.type.str()}"
        if not new.has_default_value():
            return False, f"{head} did not provide a default value."
        if isinstance(new.default_value, (list, tuple, dict)):
            return False, f"{head} has a container type as its default value."
    for new, was in zip(new_args[new_out:], old_args[old_out:]):
        if not _argument_forward(new, was):
            # The quotation marks are PyTorch's.
            return False, f"Out argument ''{new.name} is not FC with the older version of the schema"
    return True, ""
