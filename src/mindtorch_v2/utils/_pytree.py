"""`torch.utils._pytree`: nested containers as a flat list of leaves and a description of the nesting.

Invariant: `tree_unflatten(*tree_flatten(tree))` equals `tree`; what no node type is registered for is a leaf.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

from .._size import Size
from .._warn import warn
from ..return_types import ReturnType
from ._pytree_nodes import children_by_keys, defaultdict_deserialize, defaultdict_serialize

__all__ = [
    "Context",
    "DumpableContext",
    "FlattenFn",
    "FlattenFunc",
    "FlattenWithKeysFn",
    "FlattenWithKeysFunc",
    "FromDumpableContextFn",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "LeafSpec",
    "MappingKey",
    "PyTree",
    "PyTreeSpec",
    "SequenceKey",
    "ToDumpableContextFn",
    "TreeSpec",
    "UnflattenFn",
    "UnflattenFunc",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dict",
    "treespec_dumps",
    "treespec_leaf",
    "treespec_loads",
    "treespec_pprint",
    "treespec_tuple",
]

PyTree = Any
Context = Any
DumpableContext = Any
Leaf = Callable[[Any], bool] | None
FlattenFn = FlattenFunc = Callable[[Any], tuple[list[Any], Context]]
UnflattenFn = UnflattenFunc = Callable[[Iterable[Any], Context], Any]
FlattenWithKeysFn = FlattenWithKeysFunc = Callable[[Any], tuple[list[Any], Context]]
ToDumpableContextFn = FromDumpableContextFn = Callable[[Any], Any]
# A key has `get(parent)` and prints as Python would write it; a path is a tuple of keys.
KeyEntry = Any
KeyPath = tuple[Any, ...]
NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"
DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


class NodeDef(NamedTuple):
    """How one container type comes apart, also with a key for each child, and together again."""

    type: Any
    flatten_fn: Callable[[Any], tuple[list[Any], Context]]
    unflatten_fn: Callable[[Iterable[Any], Context], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[Any], Context]] | None = None


class _SerializeNodeDef(NamedTuple):
    """Under which name a container type is written, and how its context becomes JSON."""

    typ: Any
    serialized_type_name: str
    to_dumpable_context: Callable[[Any], Any] | None
    from_dumpable_context: Callable[[Any], Any] | None


# -- keys ---------------------------------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """A place in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """A key of a dictionary."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The name of an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


# Every class made by `namedtuple` stands under `namedtuple` itself.
SUPPORTED_NODES: dict[Any, NodeDef] = {}
# By class what `_node_type` answered, since the last registration; not for more classes than a program has of its own.
_ANSWERED: dict[Any, Any] = {}
_MOST = 1000
SUPPORTED_SERIALIZED_TYPES: dict[Any, _SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
CONSTANT_NODES: set[type[Any]] = set()
_DICTS: frozenset[Any] = frozenset({dict, OrderedDict, defaultdict})
_BUILT_IN: frozenset[Any] = _DICTS | {tuple, list, namedtuple, deque}


class TreeSpec:
    """The nesting of a tree without its leaves."""

    def __init__(self, type: Any, context: Context, children_specs: list[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self.children_specs = children_specs
        self.num_children = len(children_specs)
        self.num_leaves: int = sum(c.num_leaves for c in children_specs)
        self.num_nodes: int = 1 + sum(c.num_nodes for c in children_specs)

    def is_leaf(self) -> bool:
        return False

    def children(self) -> list[TreeSpec]:
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        return self.children_specs[index]

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The parts of `tree` where this nesting has leaves."""
        out: list[PyTree] = []
        self._flatten_up_to(tree, out)
        return out

    def _flatten_up_to(self, tree: PyTree, out: list[PyTree]) -> None:
        kind = _node_type(tree)
        dicts = self.type in _DICTS and kind in _DICTS
        if kind is not self.type and not dicts:
            what = "Node type" if self.type in _BUILT_IN else "Type"
            raise ValueError(f"{what} mismatch; expected {self.type!r}, but got {kind!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if dicts:
            children = children_by_keys(tree, self.context[1] if self.type is defaultdict else self.context)
        elif self.type is not deque and context != self.context:
            if self.type in _BUILT_IN:
                raise ValueError(
                    f"Node context mismatch for node type {self.type!r}; expected {self.context!r}, but got "
                    f"{context!r}."
                )
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        for child, spec in zip(children, self.children_specs):
            spec._flatten_up_to(child, out)

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is type(self)
            and isinstance(other, TreeSpec)
            and other.type is self.type
            and other.context == self.context
            and other.children_specs == self.children_specs
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, self.num_nodes))

    def __repr__(self) -> str:
        return self._text(0)

    def _text(self, indent: int) -> str:
        indent += 2
        children = (",\n" + " " * indent).join(c._text(indent) for c in self.children_specs)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"


class LeafSpec(TreeSpec):
    """A leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])
        self.num_leaves = 1

    def is_leaf(self) -> bool:
        return True

    def _flatten_up_to(self, tree: PyTree, out: list[PyTree]) -> None:
        out.append(tree)

    def _text(self, indent: int) -> str:
        return "*"


_LEAF = LeafSpec()


def treespec_leaf() -> LeafSpec:
    return LeafSpec()


# -- node types ---------------------------------------------------------------------------------------------------
def register_pytree_node(
    cls: Any,
    flatten_fn: Callable[[Any], Any],
    unflatten_fn: Callable[..., Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    """Make instances of `cls` nodes.

    serialized_type_name: what `treespec_dumps` calls the class; the two functions for contexts are for those that JSON
    cannot hold. flatten_with_keys_fn: as `flatten_fn`, with pairs of a key and a child.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _private_register_pytree_node(
        cls,
        flatten_fn,
        unflatten_fn,
        serialized_type_name=serialized_type_name,
        to_dumpable_context=to_dumpable_context,
        from_dumpable_context=from_dumpable_context,
        flatten_with_keys_fn=flatten_with_keys_fn,
    )


def _private_register_pytree_node(
    cls: Any,
    flatten_fn: Callable[[Any], Any],
    unflatten_fn: Callable[..., Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    """The same, also for a class that is a node already."""
    if cls in SUPPORTED_NODES:
        warn(f"{cls} is already registered as pytree node. Overwriting the previous registration.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    _ANSWERED.clear()
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    name = NO_SERIALIZED_TYPE_NAME_FOUND if serialized_type_name is None else serialized_type_name
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, name, to_dumpable_context, from_dumpable_context)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def _deregister_pytree_node(cls: Any) -> None:
    """Make instances of `cls` leaves again."""
    del SUPPORTED_NODES[cls]
    _ANSWERED.clear()
    del SERIALIZED_TYPE_TO_PYTHON_TYPE[SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name]
    CONSTANT_NODES.discard(cls)


def _register_namedtuple(cls: Any, *, serialized_type_name: str) -> None:
    """Give a class made by `namedtuple` a name for `treespec_dumps`."""
    known = SUPPORTED_NODES[namedtuple]
    _private_register_pytree_node(
        cls,
        known.flatten_fn,
        known.unflatten_fn,
        serialized_type_name=serialized_type_name,
        to_dumpable_context=_namedtuple_serialize,
        from_dumpable_context=_namedtuple_deserialize,
        flatten_with_keys_fn=known.flatten_with_keys_fn,
    )


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """The context of a constant: its value, since it has no children."""

    value: Any


def register_constant(cls: type[Any]) -> None:
    """Make instances of a class nodes without leaves, so that they are part of the nesting and compared with it."""
    equal: Any = cls.__eq__
    if equal is object.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ is None:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__hash__` implementation.")

    def flatten(x: Any) -> tuple[list[Any], Context]:
        return [], ConstantNode(x)

    _private_register_pytree_node(cls, flatten, lambda _, context: context.value, flatten_with_keys_fn=flatten)
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: Any) -> bool:
    """Whether `register_constant` was called for a class."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


def register_dataclass(
    cls: type[Any],
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Make instances of a class nodes whose children are the fields that are not None.

    A class that is no dataclass names all fields its constructor takes. Dropped fields get their default when the
    instance is put together again.
    """
    names = _field_names(cls, field_names, drop_field_names or [])

    def flatten(obj: Any) -> tuple[list[Any], Context]:
        present = [n for n in names if getattr(obj, n) is not None]
        return [getattr(obj, n) for n in present], [present, [n for n in names if n not in present]]

    def unflatten(values: Iterable[Any], context: Context) -> Any:
        present, absent = context
        return cls(**dict(zip(present, values)), **dict.fromkeys(absent))

    def with_keys(obj: Any) -> tuple[list[Any], Context]:
        values, (present, _) = flatten(obj)
        return [(GetAttrKey(name), value) for name, value in zip(present, values)], present

    _private_register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=with_keys
    )


def _field_names(cls: type[Any], given: list[str] | None, dropped: list[str]) -> list[str]:
    if not dataclasses.is_dataclass(cls):
        if given is None:
            raise ValueError(
                f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a "
                "dataclass."
            )
        return list(given)
    fields = [f.name for f in dataclasses.fields(cls) if f.init]
    if given is None:
        # PyTorch drops fields only from names that it is given.
        return fields
    missing = set(fields) - set(dropped) - set(given)
    unexpected = set(given) - (set(fields) - set(dropped))
    text = "field_names does not include all dataclass fields.\n"
    if missing:
        text += (
            f"Missing fields in `field_names`: {missing}. If you want to include these fields in the pytree, please "
            "add them to `field_names`, otherwise please add them to `drop_field_names`.\n"
        )
    if unexpected:
        text += (
            f"Unexpected fields in `field_names`: {unexpected}. Please remove these fields, or add them to "
            "`drop_field_names`.\n"
        )
    if missing or unexpected:
        raise ValueError(text)
    return list(given)


# -- kinds of tuples ------------------------------------------------------------------------------------------------
_SUBCLASSABLE = 1 << 10  # Py_TPFLAGS_BASETYPE


def is_namedtuple_class(cls: Any) -> bool:
    """Whether a class was made by `namedtuple`, or derives from one that was."""
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields, tuple)
        and all(type(f) is str for f in fields)
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple_instance(obj: Any) -> bool:
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Whether this is such a class or an instance of one."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Whether a class is a C structure's sequence, as `time.struct_time` is, or one of `torch.return_types`."""
    if not isinstance(cls, type) or not issubclass(cls, tuple):
        return False
    if issubclass(cls, ReturnType):
        return cls is not ReturnType
    counts = [getattr(cls, n, None) for n in ("n_fields", "n_sequence_fields", "n_unnamed_fields")]
    return cls.__bases__ == (tuple,) and all(isinstance(n, int) for n in counts) and not cls.__flags__ & _SUBCLASSABLE


def is_structseq_instance(obj: Any) -> bool:
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Whether this is such a class or an instance of one."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _node_type(tree: PyTree) -> Any:
    found = _ANSWERED.get(type(tree))
    if found is None:
        found = _found_type(tree)
        if len(_ANSWERED) < _MOST:
            _ANSWERED[type(tree)] = found
    return found


def _found_type(tree: PyTree) -> Any:
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        # One that was registered for its name alone is still a named tuple.
        return namedtuple if kind is not tuple and issubclass(kind, tuple) and is_namedtuple_class(kind) else kind
    if isinstance(tree, ReturnType):
        # These are made when first used, so they cannot all be registered beforehand.
        register_pytree_node(kind, _listed, lambda values, _: kind(values), flatten_with_keys_fn=_keyed(_listed))
        return kind
    return namedtuple if is_namedtuple_class(kind) else kind


def _values(d: Any) -> tuple[list[Any], list[Any]]:
    return list(d.values()), list(d.keys())


def _namedtuple_serialize(context: Any) -> str:
    known = SUPPORTED_SERIALIZED_TYPES.get(context)
    text = f"Can't serialize TreeSpec of namedtuple class {context} because we "
    advice = "serializated_type_name. Please register using `_register_namedtuple`."
    if known is None:
        raise NotImplementedError(f"{text}didn't register a {advice}")
    if known.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(f"{text}couldn't find a {advice}")
    return known.serialized_type_name


def _namedtuple_deserialize(name: str) -> Any:
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {name} because we couldn't find a serializated name."
        )
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[name]


def _keyed(flatten: Callable[[Any], Any], key: Callable[[Any, Any, int], Any] | None = None) -> Callable[[Any], Any]:
    """`flatten` with a key before each child; by default its place."""

    def with_keys(d: Any) -> tuple[list[Any], Context]:
        values, context = flatten(d)
        keys = [SequenceKey(i) if key is None else key(d, context, i) for i in range(len(values))]
        return list(zip(keys, values)), context

    return with_keys


def _own_key(d: Any, keys: Any, i: int) -> MappingKey:
    return MappingKey(keys[i])


def _listed(d: Any) -> tuple[list[Any], None]:
    return list(d), None


def _register_built_in() -> None:
    nodes: tuple[tuple[Any, str, Any, Any, Any], ...] = (
        (tuple, "builtins.tuple", _listed, lambda values, _: tuple(values), None),
        (Size, "torch.Size", _listed, lambda values, _: Size(tuple(values)), None),
        (list, "builtins.list", _listed, lambda values, _: list(values), None),
        (dict, "builtins.dict", _values, lambda values, keys: dict(zip(keys, values)), _own_key),
        (
            namedtuple,
            "collections.namedtuple",
            lambda d: (list(d), type(d)),
            lambda values, cls: cls(*values),
            lambda d, cls, i: GetAttrKey(cls._fields[i]),
        ),
        (
            OrderedDict,
            "collections.OrderedDict",
            _values,
            lambda values, keys: OrderedDict(zip(keys, values)),
            _own_key,
        ),
        (
            defaultdict,
            "collections.defaultdict",
            lambda d: (list(d.values()), [d.default_factory, list(d)]),
            lambda values, context: defaultdict(context[0], zip(context[1], values)),
            lambda d, context, i: MappingKey(context[1][i]),
        ),
        (
            deque,
            "collections.deque",
            lambda d: (list(d), d.maxlen),
            lambda values, maxlen: deque(values, maxlen=maxlen),
            None,
        ),
    )
    written: dict[Any, tuple[Any, Any]] = {
        namedtuple: (_namedtuple_serialize, _namedtuple_deserialize),
        defaultdict: (defaultdict_serialize, defaultdict_deserialize),
    }
    for kind, name, flat, back, key in nodes:
        to_text, from_text = written.get(kind, (None, None))
        _private_register_pytree_node(
            kind,
            flat,
            back,
            serialized_type_name=name,
            to_dumpable_context=to_text,
            from_dumpable_context=from_text,
            flatten_with_keys_fn=_keyed(flat, key),
        )


_register_built_in()


# -- trees --------------------------------------------------------------------------------------------------------
def tree_is_leaf(tree: PyTree, is_leaf: Leaf = None) -> bool:
    return (is_leaf is not None and is_leaf(tree)) or _node_type(tree) not in SUPPORTED_NODES


def tree_flatten(tree: PyTree, is_leaf: Leaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves from left to right, and the nesting."""
    if is_leaf is None and _node_type(tree) not in SUPPORTED_NODES:
        return [tree], _LEAF
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: PyTree, leaves: list[Any], is_leaf: Leaf) -> TreeSpec:
    kind = _node_type(tree)
    if (is_leaf is not None and is_leaf(tree)) or kind not in SUPPORTED_NODES:
        leaves.append(tree)
        return _LEAF
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree with this nesting and these leaves."""
    values = list(leaves)
    if treespec is _LEAF and len(values) == 1:
        return values[0]
    if len(values) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(values)} but the spec refers to "
            f"a pytree that holds {treespec.num_leaves} items ({treespec})."
        )
    return _unflatten(iter(values), treespec)


def _unflatten(leaves: Iterator[Any], spec: TreeSpec) -> PyTree:
    if spec.is_leaf():
        return next(leaves)
    children = [_unflatten(leaves, child) for child in spec.children_specs]
    return SUPPORTED_NODES[spec.type].unflatten_fn(children, spec.context)


def tree_iter(tree: PyTree, is_leaf: Leaf = None) -> Iterator[Any]:
    return iter(tree_flatten(tree, is_leaf)[0])


def tree_leaves(tree: PyTree, is_leaf: Leaf = None) -> list[Any]:
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: PyTree, is_leaf: Leaf = None) -> TreeSpec:
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Leaf = None) -> PyTree:
    """`func` on every leaf, and on what other trees have in its place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(r) for r in rests)]
    return tree_unflatten([func(*row) for row in zip(*columns)], spec)


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Leaf = None) -> PyTree:
    """As `tree_map`, for what `func` does; gives the tree itself back."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for row in zip(leaves, *(spec.flatten_up_to(r) for r in rests)):
        func(*row)
    return tree


def _selects(chosen: Any) -> Callable[[Any], bool]:
    if isinstance(chosen, (type, tuple)):
        return lambda leaf: isinstance(leaf, chosen)
    if callable(chosen):
        return lambda leaf: bool(chosen(leaf))
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Decorates a function of leaves so that other leaves pass unchanged."""
    chosen = _selects(type_or_types_or_pred)

    def wrapper(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda leaf: func(leaf) if chosen(leaf) else leaf

    return wrapper


def tree_map_only(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: Leaf = None
) -> PyTree:
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: Leaf = None
) -> PyTree:
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Leaf = None) -> bool:
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Leaf = None) -> bool:
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: Leaf = None) -> bool:
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: Leaf = None) -> bool:
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


# -- paths --------------------------------------------------------------------------------------------------------
def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of all arguments, without making a tree of them first."""
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_iter(tree)]


def _paths(path: KeyPath, tree: PyTree, is_leaf: Leaf) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    kind = _node_type(tree)
    with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to "
            "register_pytree_node."
        )
    for key, child in with_keys(tree)[0]:
        yield from _paths((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: Leaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves, each with the keys that lead to it."""
    return list(_paths((), tree, is_leaf))


def tree_flatten_with_path(tree: PyTree, is_leaf: Leaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The same, and the nesting."""
    spec = tree_structure(tree, is_leaf)
    return tree_leaves_with_path(tree, is_leaf), spec


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Leaf = None) -> PyTree:
    """`tree_map` whose function gets the path first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [list(column) for column in zip(*pairs)] + [spec.flatten_up_to(r) for r in rests]
    return spec.unflatten(func(*row) for row in zip(*columns))


def keystr(kp: KeyPath) -> str:
    """A path as Python would write it."""
    return "".join(str(key) for key in kp)


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What a path leads to."""
    for key in kp:
        obj = key.get(obj)
    return obj


# -- descriptions -------------------------------------------------------------------------------------------------
PyTreeSpec = TreeSpec


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The nesting of a tuple of such parts."""
    children = list(iterable)
    if not all(isinstance(child, TreeSpec) for child in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The nesting of a dictionary of such parts."""
    parts = dict(mapping, **kwargs)
    if not all(isinstance(child, TreeSpec) for child in parts.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {parts!r}.")
    return TreeSpec(dict, list(parts), list(parts.values()))


class _Asterisk:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """A tree of that nesting as Python would print it, with an asterisk for every leaf."""
    return repr(tree_unflatten([_Asterisk()] * treespec.num_leaves, treespec))


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A description of a nesting as text, by the names that node types were registered with."""
    from ._treespec_json import dumps

    return dumps(treespec, protocol)


def treespec_loads(serialized: str) -> TreeSpec:
    """The nesting that `treespec_dumps` described."""
    from ._treespec_json import loads

    return loads(serialized)


def __getattr__(name: str) -> Any:
    home = "._treespec_json" if name in ("EnumEncoder", "enum_object_hook") else "._pytree_private"
    found = getattr(import_module(home, __package__), name, None)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
