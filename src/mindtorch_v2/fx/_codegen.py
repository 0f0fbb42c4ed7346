"""Python code of a graph: the text of `forward`, and the globals it needs.

Invariant: a value is set to None after its last use, so that the generated function holds no memory longer than needed.
"""

from __future__ import annotations

import enum
import inspect
import os
import pprint
import re
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import mindtorch_v2 as torch

from .._operators import OpOverload
from ..utils import _pytree as pytree
from ._compatibility import compatibility
from ._names import is_from_torch, qualified_name, type_repr
from ._namespace import _custom_builtins, _Namespace
from .node import Node, _stringify_shape
from .tensor_type import TensorType

if TYPE_CHECKING:
    from .graph import _node_list

TransformCodeFunc = Callable[[list[str]], list[str]]
_origin_type_map: dict[Any, Any] = {
    list: typing.List,  # noqa: UP006
    dict: typing.Dict,  # noqa: UP006
    set: typing.Set,  # noqa: UP006
    frozenset: typing.FrozenSet,  # noqa: UP006
    tuple: typing.Tuple,  # noqa: UP006
}
reflectable_magic_methods = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "floordiv": "{} // {}",
    "truediv": "{} / {}",
    "div": "{} / {}",
    "mod": "{} % {}",
    "pow": "{} ** {}",
    "lshift": "{} << {}",
    "rshift": "{} >> {}",
    "and_": "{} & {}",
    "or_": "{} | {}",
    "xor": "{} ^ {}",
    "getitem": "{}[{}]",
    "matmul": "{} @ {}",
}
magic_methods = {
    "eq": "{} == {}",
    "ne": "{} != {}",
    "lt": "{} < {}",
    "gt": "{} > {}",
    "le": "{} <= {}",
    "ge": "{} >= {}",
    "pos": "+{}",
    "neg": "-{}",
    "invert": "~{}",
    **reflectable_magic_methods,
}
inplace_methods = {
    "iadd": "{} += {}",
    "iand": "{} &= {}",
    "ifloordiv": "{} //= {}",
    "ilshift": "{} <<= {}",
    "imod": "{} %= {}",
    "imul": "{} *= {}",
    "imatmul": "{} @= {}",
    "ior": "{} |= {}",
    "ipow": "{} **= {}",
    "irshift": "{} >>= {}",
    "isub": "{} -= {}",
    "itruediv": "{} /= {}",
    "ixor": "{} ^= {}",
    "setitem": "{}[{}] = {}",
}
_color_codes = {
    "yellow": "\033[33m",
    "cyan": "\033[36m",
    "green": "\033[32m",
    "blue": "\033[34m",
    "red": "\033[31m",
    "dim": "\033[2m",
    "dim_blue": "\033[2m\033[34m",
    "dim_green": "\033[2m\033[32m",
}
_counter = re.compile(r"# COUNTER: (\d+)")


def _identity(x: str) -> str:
    return x


def _make_color_fn(code: str) -> Callable[[str], str]:
    return lambda text: f"{code}{text}\033[0m"


_color_fns = {k: _make_color_fn(v) for k, v in _color_codes.items()}


@compatibility(is_backward_compatible=True)
@dataclass
class PythonCode:
    """Everything needed to run a graph as Python code."""

    # The source of the function.
    src: str
    # What its global names stand for.
    globals: dict[str, Any]
    # From the function's lines to the places of nodes in the graph.
    _lineno_map: dict[int, int | None] | None
    # The line on which the function begins.
    _prologue_start: int = 0


class _PyTreeInfo(NamedTuple):
    """How structured inputs and outputs of a graph are taken apart."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


@dataclass(frozen=True)
class _ParsedStackTrace:
    """One frame of a stack trace."""

    file: str
    lineno: str
    name: str
    code: str

    def get_summary_str(self) -> str:
        return f"File: {self.file}:{self.lineno} in {self.name}, code: {self.code}"


def _parse_stack_trace(
    stack_trace: str | None, filter_fn: Callable[[str, str, str], bool] | None = None
) -> _ParsedStackTrace | None:
    """The innermost frame of a stack trace that passes the filter."""
    if stack_trace is None:
        return None
    lines = stack_trace.strip().split("\n")
    for i in range(len(lines) - 2, -1, -1):
        found = re.match(r"^File \"(.+)\", line (\d+), in (.+)$", lines[i].strip())
        if found:
            file, number, name = found.groups()
            code = lines[i + 1].strip()
            if filter_fn is None or filter_fn(file, name, code):
                return _ParsedStackTrace(file, number, name, code)
    return None


def _format_target(base: str, target: str) -> str:
    """Attributes of attributes; those that are no identifiers through `getattr`."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


class _Writer:
    """Writes the body of one function."""

    def __init__(self, codegen: CodeGen, root_module: str, namespace: _Namespace, options: dict[str, Any]) -> None:
        self.codegen = codegen
        self.root_module = root_module
        self.namespace = namespace
        self.verbose: bool = options["verbose"]
        self.expanded_def: bool = options["expanded_def"]
        self.additional_meta: list[str] | None = options["additional_meta"]
        self.include_stride = options["include_stride"] or os.environ.get("FX_GRAPH_SHOW_STRIDE", "0") == "1"
        self.include_device = options["include_device"] or os.environ.get("FX_GRAPH_SHOW_DEVICE", "0") == "1"
        self.include_meta = os.environ.get("FX_GRAPH_SHOW_META", "0") == "1"
        self.colors: dict[str, Callable[[str], str]] = (
            _color_fns if options["colored"] else dict.fromkeys(_color_fns, _identity)
        )
        self.free_vars: list[str] = []
        self.body: list[str] = []
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self.return_annotation = ""
        self.last_summary: str | None = None
        self.last_uses: dict[Node, list[Node]] = {}
        for name, (_, obj) in _custom_builtins.items():
            self.add_global(name, obj)

    # -- names ------------------------------------------------------------------------------------------------------
    def add_global(self, name_hint: str, obj: Any) -> str:
        """The name by which the code speaks of something outside of the graph."""
        if is_from_torch(obj) and obj is not torch.device:
            return type_repr(obj) if isinstance(obj, type) else qualified_name(obj)
        name = self.namespace.create_name(name_hint, obj)
        if name in self.globals:
            if self.globals[name] is not obj and self.globals[name] != obj:
                raise AssertionError(f"Global name {name} already assigned to different object")
            return name
        self.globals[name] = obj
        return name

    def type_text(self, o: Any) -> str:
        """An annotation."""
        if o == ():
            return "()"
        text = type_repr(o)
        if isinstance(o, types.UnionType) and "|" in text:
            return "|".join(self.type_text(a) for a in typing.get_args(o))
        origin = getattr(o, "__origin__", None)
        if origin:
            if type(o).__name__ == "_GenericAlias":
                origin = _origin_type_map.get(origin, origin)
            name = self.add_global(type_repr(origin), origin)
            args = o.__args__ if isinstance(o, TensorType) else typing.get_args(o)
            return f"{name}[{','.join(self.type_text(a) for a in args)}]" if args else name
        return self.add_global(text, o)

    def value(self, arg: Any) -> str:
        """An argument as an expression."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            return f"{self.add_global(qualified_name(type(arg)), type(arg))}{tuple(arg)!r}"
        if isinstance(arg, OpOverload):
            return self.add_global(qualified_name(arg), arg)
        if isinstance(arg, enum.Enum):
            return f"{self.add_global(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, torch.Tensor):
            return f"torch.Tensor(size={list(arg.size())}, dtype={str(arg.dtype).split('.')[-1]})"
        if isinstance(arg, tuple):
            return f"({self.value(arg[0])},)" if len(arg) == 1 else f"({', '.join(self.value(a) for a in arg)})"
        if isinstance(arg, list):
            return f"[{', '.join(self.value(a) for a in arg)}]"
        if isinstance(arg, slice):
            return f"slice({self.value(arg.start)}, {self.value(arg.stop)}, {self.value(arg.step)})"
        return self.colors["blue"](repr(arg))

    def arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
        return ", ".join([*(self.value(a) for a in args), *(f"{k} = {self.value(v)}" for k, v in kwargs.items())])

    # -- statements -------------------------------------------------------------------------------------------------
    def note_last_uses(self, nodes: _node_list) -> None:
        seen: set[Node] = set()
        for node in reversed(nodes):
            for used in node._input_nodes:
                if used not in seen:
                    seen.add(used)
                    self.last_uses.setdefault(node, []).append(used)

    def release(self, user: Node) -> None:
        """End a statement: values that nobody needs any more are set to None."""
        if user.op == "placeholder":
            return
        gone = [] if user.op == "output" else list(self.last_uses.get(user, ()))
        if user.op != "output" and not user.users:
            gone.append(user)
        if gone:
            self.body.append(f";  {self.colors['dim'](' = '.join([*map(repr, gone), 'None']))}\n")
        else:
            self.body.append("\n")

    def summary(self, node: Node) -> None:
        """A comment with the place in the traced program."""
        if node.op in ("placeholder", "output"):
            return
        extra = ", ".join(f"{k}: {node.meta[k]}" for k in self.additional_meta or () if k in node.meta)
        extra = f"# {extra} " if extra else ""
        notes = node.meta.get("custom", {})
        if notes:
            short = {k: f"{str(v)[:40]}..." if len(str(v)) > 40 else v for k, v in notes.items()}
            extra += f"# Annotation: {short}"
        else:
            extra += "#"
        recompute, group = node.meta.get("recompute"), node.meta.get("ac_graph_id")
        if recompute is not None and group is not None:
            extra += f" ac_graph_id: {group} - {recompute.name}"
        elif recompute is not None:
            extra += f" recompute: {recompute.name}"
        elif group is not None:
            extra += f" ac_graph_id: {group}"
        parsed = _parse_stack_trace(node.stack_trace) if node.stack_trace else None
        where = "No stacktrace found for following nodes" if parsed is None else parsed.get_summary_str()
        text = f"\n{self.colors['dim'](f'{extra} {where}')}\n"
        if text != self.last_summary:
            self.last_summary = text
            self.body.append(text)

    def annotation(self, node: Node) -> str:
        text = "" if node.type is None else f" : {self.type_text(node.type)}"
        if not self.verbose:
            return text
        from ..utils._dtype_abbrs import dtype_abbrs
        from .passes.shape_prop import TensorMetadata

        value = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value", None)))
        if isinstance(value, torch.Tensor):
            c = self.colors
            core = c["red"](dtype_abbrs[value.dtype]) + c["blue"](_stringify_shape(value.shape))
            core += c["dim_blue"](_stringify_shape(value.stride()) if self.include_stride else "")
            core += c["dim_green"](f"{value.device}" if self.include_device else "")
            plain = type(value) is torch.Tensor or type(value).__name__ == "FakeTensor"
            return f': "{core}"' if plain else f': "{type(value).__name__}({core})"'
        if isinstance(value, TensorMetadata):
            return f': "{dtype_abbrs[value.dtype]}{_stringify_shape(value.shape)}"'
        return text

    def emit(self, node: Node) -> None:
        """The statement of a node, without its end."""
        kind = self.annotation(node)
        if self.include_meta and node.meta:
            self.body.append('"""\n')
            self.body.extend(f"{k}: {pprint.pformat(str(v), width=80, compact=True)}\n" for k, v in node.meta.items())
            self.body.append('"""\n')
        if node.op == "placeholder":
            self._emit_placeholder(node, kind)
        elif node.op == "output":
            if node.type is not None:
                self.return_annotation = f" -> {self.type_text(node.type)}"
            descs = node.meta.get("desc", None) if self.expanded_def else None
            self.body.append(
                self.codegen._call_method_with_signature_check(
                    self.codegen.generate_output, node.args[0], descs=descs, repr_fn=self.value
                )
            )
        elif node.op == "call_function":
            self.body.append(self._call(node, kind))
        elif node.op == "call_method":
            callee = _format_target(self.value(node.args[0]), node.target)
            self.body.append(f"{node!r}{kind} = {callee}({self.arguments(node.args[1:], node.kwargs)})")
        elif node.op == "call_module":
            callee = _format_target(self.root_module, node.target)
            self.body.append(f"{node!r}{kind} = {callee}({self.arguments(node.args, node.kwargs)})")
        elif node.op == "get_attr":
            self.body.append(f"{node!r}{kind} = {_format_target(self.root_module, node.target)}")
        else:
            raise NotImplementedError(f"node: {node.op} {node.target}")

    def _emit_placeholder(self, node: Node, kind: str) -> None:
        default = "" if not node.args else f" = {self.value(node.args[0])}"
        desc = node.meta.get("desc", None) if self.expanded_def else None
        comment = "" if desc is None else f"  # {desc}"
        self.free_vars.append(f"{node.target}{kind}{default}{comment}")
        raw = node.target.replace("*", "")
        if raw != repr(node):
            self.body.append(f"{node!r} = {raw}\n")

    def _call(self, node: Node, kind: str) -> str:
        target = node.target
        if getattr(target, "__module__", "") == "_operator":
            given = [self.value(a) for a in node.args]
            if target.__name__ in magic_methods:
                return f"{node!r}{kind} = {magic_methods[target.__name__].format(*given)}"
            if target.__name__ in inplace_methods:
                return f"{inplace_methods[target.__name__].format(*given)};  {node!r}{kind} = {given[0]}"
        name = self.add_global(qualified_name(target), target)
        if name == "getattr" and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return f"{node!r}{kind} = {_format_target(self.value(node.args[0]), node.args[1])}"
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(name)
        return f"{node!r}{kind} = {name}({self.arguments(node.args, node.kwargs)})"


@compatibility(is_backward_compatible=False)
class CodeGen:
    """Writes the function of a graph; subclasses change its head, its inputs and its result."""

    _sym_repr: ClassVar[Callable[[Any], str]] = repr

    def __init__(self) -> None:
        self._body_transformer: TransformCodeFunc | None = None
        self._func_name: str = "forward"

    def _format_multiline_args(self, args: list[str]) -> str:
        return "".join(self._format_single_arg(arg) for arg in args)

    def _format_single_arg(self, arg: str) -> str:
        if "#" in arg:
            code, comment = arg.split("#", 1)
            return f"    {code.rstrip()},  # {comment.lstrip()}\n"
        return f"    {arg},\n"

    def _format_multiline_container(
        self,
        items: Sequence[Any],
        descs: Sequence[str] | None = None,
        prefix: str = "",
        repr_fn: Callable[[Any], str] | None = None,
    ) -> str:
        left, right = ("(", ")") if isinstance(items, tuple) else ("[", "]")
        ends = [""] * len(items) if descs is None else [f"  # {desc}" for desc in descs]
        lines = "".join(f"    {(repr_fn or repr)(item)},{end}\n" for item, end in zip(items, ends))
        return f"{prefix}{left}\n{lines}{right}"

    def _call_method_with_signature_check(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Subclasses written for earlier versions take fewer options."""
        known = inspect.signature(method).parameters
        return method(*args, **{k: v for k, v in kwargs.items() if k in known})

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """The head of the function."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        if expanded_def:
            args = self._format_multiline_args(free_vars)
            return f"def {self._func_name}(\n{args}){maybe_return_annotation}:"
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(
        self, output_args: Any, *, descs: Sequence[str] | None = None, repr_fn: Callable[[Any], str] | None = None
    ) -> str:
        """The return statement."""
        if descs is not None and isinstance(output_args, (list, tuple)):
            return self._format_multiline_container(output_args, descs, "return ", repr_fn)
        return f"return {(repr_fn or repr)(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """The inputs of the graph from those of the function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The function's result from the graph's."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the text a subclass writes needs."""
        return []

    def _gen_python_code(
        self,
        nodes: _node_list,
        root_module: str,
        namespace: _Namespace,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        if record_func:
            raise NotImplementedError("record_func=True: generated code takes no notes for the profiler here")
        options = dict(
            verbose=verbose,
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
            expanded_def=expanded_def,
            additional_meta=additional_meta,
        )
        writer = _Writer(self, root_module, namespace, options)
        writer.note_last_uses(nodes)
        body = writer.body
        for i, node in enumerate(nodes):
            if verbose:
                writer.summary(node)
            # Lines are counted by node when transformers of the body are done; then these comments go.
            body.append(f"# COUNTER: {i}\n")
            writer.emit(node)
            writer.release(node)
        if not body:
            body.append("pass\n")
        wraps = ""
        if writer.wrapped:
            from ._symbolic_trace import wrap

            name = writer.add_global("wrap", wrap)
            wraps = "\n".join(f'{name}("{n}")' for n in writer.wrapped)
        if self._body_transformer:
            body = self._body_transformer(body)
        for name, value in self.additional_globals():
            writer.add_global(name, value)
        head = self._call_method_with_signature_check(
            self.gen_fn_def, writer.free_vars, writer.return_annotation, expanded_def=expanded_def
        )
        lines, numbers = _numbered("".join(body), head.count("\n") + 1)
        code = "\n".join("    " + line for line in "\n".join(lines).lstrip("\n").split("\n"))
        return PythonCode(f"\n{wraps}\n\n{head}\n{code}", writer.globals, numbers, wraps.count("\n") + 4)


def _numbered(body: str, first: int) -> tuple[list[str], dict[int, int | None]]:
    """The lines of a body, and for each the place of the node it belongs to."""
    lines: list[str] = []
    numbers: dict[int, int | None] = {}
    current = None
    for line in body.split("\n"):
        found = _counter.search(line)
        if found is not None:
            current = int(found.group(1))
        else:
            numbers[len(lines) + first] = current
            lines.append(line)
    return lines, numbers


class _BoxedCodeGen(CodeGen):
    """Takes all inputs in one list, which it empties."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        text = f"def {self._func_name}(self, args_list){maybe_return_annotation}:"
        names = [v.split(":")[0].split("=")[0].strip() for v in free_vars if v != "self"]
        if names:
            text += "\n    args_iter = iter(args_list)"
            text += "".join(f"\n    {name} = next(args_iter)" for name in names)
            text += "\n    args_list.clear()"
        return text


class _PyTreeCodeGen(CodeGen):
    """Takes structured inputs apart and puts the result together."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info: _PyTreeInfo = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, outputs: Any) -> Any:
        if self.pytree_info.out_spec is None:
            return outputs
        if not isinstance(outputs, (list, tuple)):
            outputs = [outputs]
        return pytree.tree_unflatten(outputs, self.pytree_info.out_spec)

    def _format_annotations(self, free_vars: list[str], expanded_def: bool) -> str:
        annotated = [x for x in free_vars if ":" in x]
        if not annotated:
            return ""
        if expanded_def:
            return "\n    " + "\n    ".join(annotated)
        return "\n    " + "".join(x + "; " for x in annotated) + "\n"

    def gen_var_bindings(self, fn_args: list[str], free_vars: list[str], expanded_def: bool) -> str:
        """The statement that takes the inputs apart."""
        spec = self.pytree_info.in_spec
        given = f"[{', '.join(fn_args)}], self._in_spec"
        if spec.type is tuple and spec.num_children == 2 and spec.child(0).type is tuple and spec.child(1).type is dict:
            count = spec.child(0).num_children
            names = self.pytree_info.orig_args
            keywords = ", ".join(f"'{k}':{v}" for k, v in zip(spec.child(1).context, names[count:]))
            given = f"([{', '.join(names[:count])}], {{{keywords}}}), self._in_spec"
        # A name cannot be annotated where several are assigned at once.
        plain = [x.split(":")[0].split("#")[0] for x in free_vars]
        return (
            self._format_annotations(free_vars, expanded_def)
            + f"\n    {', '.join(plain)}, = fx_pytree.tree_flatten_spec({given})"
        )

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        names = self.pytree_info.orig_args
        if names and names[0] == "self":
            free_vars.insert(0, "self")
        text = super().gen_fn_def(names[:], maybe_return_annotation, expanded_def=expanded_def)
        return text + self.gen_var_bindings(names, free_vars, expanded_def) if free_vars else text

    def generate_output(
        self, output_args: Any, *, descs: Sequence[str] | None = None, repr_fn: Callable[[Any], str] | None = None
    ) -> str:
        if not self.pytree_info.out_spec:
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        if descs is not None and isinstance(output_args, (list, tuple)):
            shown = self._format_multiline_container(output_args, descs, "return pytree.tree_unflatten(", repr_fn)
            return shown + ", self._out_spec)"
        return f"return pytree.tree_unflatten({(repr_fn or repr)(output_args)}, self._out_spec)"


@contextmanager
def _override_sym_repr(override: Callable[[Any], str]) -> Iterator[None]:
    before = CodeGen._sym_repr
    try:
        setattr(CodeGen, "_sym_repr", override)
        yield
    finally:
        setattr(CodeGen, "_sym_repr", before)
