"""Names by which PyTorch's own functions say to its script compiler what they take.

Invariant: there is no such compiler here; a call means the same without them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class BroadcastingListCls:
    """For annotations: a list of a fixed length, or one value for all."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingListCls()
BroadcastingList2 = BroadcastingListCls()
BroadcastingList3 = BroadcastingListCls()


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """Complain of what is neither one integer nor two."""
    if not (isinstance(arg, int) or len(arg) == 2):
        raise AssertionError(message.format(arg_name))


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str | None,
    func_name: str | None,
) -> Callable[..., Any]:
    """A function that is one of two, as the argument of that name or place says."""
    if if_true.__doc__ is not None and if_false.__doc__ is not None:
        raise RuntimeError("only one function can have a docstring")

    def fn(*args: Any, **kwargs: Any) -> Any:
        given = args[arg_index] if arg_index < len(args) else default
        return (if_true if kwargs.get(arg_name, given) else if_false)(*args, **kwargs)

    fn.__doc__ = if_true.__doc__ = if_false.__doc__ = if_true.__doc__ or if_false.__doc__
    if module_name is not None:
        fn.__module__ = module_name
    if func_name is not None:
        fn.__name__ = func_name
    return fn
