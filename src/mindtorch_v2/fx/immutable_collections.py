"""Lists and dicts that cannot be changed: the arguments of nodes, whose users are counted when they are assigned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn, TypeVar

from ..utils import _pytree as pytree
from ._compatibility import compatibility

__all__ = ["immutable_dict", "immutable_list"]

_T = TypeVar("_T")
_K = TypeVar("_K")
_V = TypeVar("_V")

_HELP = """If you are attempting to modify the kwargs or args of a torch.fx.Node object,
instead create a new copy of it and assign the copy to the node:

    new_args = ...  # copy and mutate args
    node.args = new_args"""


def _no_mutation(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(f"{type(self).__name__!r} object does not support mutation. {_HELP}")


@compatibility(is_backward_compatible=True)
class immutable_list(list[_T]):
    """A list whose elements stay as they are."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self),)


@compatibility(is_backward_compatible=True)
class immutable_dict(dict[_K, _V]):
    """A dict whose entries stay as they are."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self.items()),)


for _name in "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort".split():
    setattr(immutable_list, _name, _no_mutation)
for _name in "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update".split():
    setattr(immutable_dict, _name, _no_mutation)

setattr(immutable_list, "__hash__", lambda self: hash(tuple(self)))
setattr(immutable_dict, "__hash__", lambda self: hash(frozenset(self.items())))


def _from_list(values: Iterable[Any], context: Any) -> immutable_list[Any]:
    return immutable_list(values)


def _from_dict(values: Iterable[Any], context: Any) -> immutable_dict[Any, Any]:
    return immutable_dict(zip(context, values))


pytree.register_pytree_node(
    immutable_list,
    lambda d: (list(d), None),
    _from_list,
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
    flatten_with_keys_fn=lambda d: ([(pytree.SequenceKey(i), v) for i, v in enumerate(d)], None),
)
pytree.register_pytree_node(
    immutable_dict,
    lambda d: (list(d.values()), list(d.keys())),
    _from_dict,
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
    flatten_with_keys_fn=lambda d: ([(pytree.MappingKey(k), v) for k, v in d.items()], list(d.keys())),
)
