"""Modules whose `forward` is generated from a graph.

Invariant: `code` is the source of the `forward` that runs; editing the graph changes neither before `recompile`.
"""

from __future__ import annotations

import contextlib
import copy
import linecache
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch

from ._codegen import PythonCode, _BoxedCodeGen, _PyTreeCodeGen
from ._compatibility import compatibility
from ._module_source import _exec_with_source as _exec_with_source
from ._module_source import _format_import_block as _format_import_block
from ._module_source import _forward_from_src as _forward_from_src
from ._module_source import _loader as _loader
from ._module_source import _method_from_src as _method_from_src
from ._namespace import _custom_builtins, import_line
from .graph import Graph

__all__ = ["GraphModule", "reduce_graph_module", "reduce_package_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
FX_GRAPH_MODULE_FILE_PREFIX = "fx_generated_"


def _addindent(text: str, spaces: int) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line if line.strip() else "" for line in rest)])


# -- attributes by path ---------------------------------------------------------------------------------------------
def _put(module: torch.nn.Module, field: str, value: Any) -> None:
    """A tensor that is no parameter becomes a buffer."""
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        module.register_buffer(field, value)
    else:
        setattr(module, field, value)


def _copy_attr(from_module: torch.nn.Module, to_module: torch.nn.Module, target: str) -> None:
    """Give one module what another has at a path; modules on the way are made where they are missing."""
    *prefix, field = target.split(".")
    for item in prefix:
        source, made = getattr(from_module, item), getattr(to_module, item, None)
        if source is made:
            # The whole of it was copied before.
            return
        if made is None:
            made = torch.nn.Module()
            setattr(to_module, item, made)
        from_module, to_module = source, made
    _put(to_module, field, getattr(from_module, field))


def _assign_attr(from_obj: Any, to_module: torch.nn.Module, target: str) -> None:
    *prefix, field = target.split(".")
    for item in prefix:
        found = getattr(to_module, item, None)
        if found is None:
            found = torch.nn.Module()
            setattr(to_module, item, found)
        to_module = found
    _put(to_module, field, from_obj)


def _get_attr(model: Any, attr_name: str) -> Any:
    return _get_attr_via_attr_list(model, attr_name.split("."))


def _del_attr(model: Any, attr_name: str) -> None:
    *prefix, field = attr_name.split(".")
    delattr(_get_attr_via_attr_list(model, prefix), field)


def _get_attr_via_attr_list(model: Any, attr_list: list[str]) -> Any:
    for item in attr_list[:-1]:
        model = getattr(model, item, None)
        if model is None:
            raise AssertionError(f"Attribute '{item}' not found in model")
    return getattr(model, attr_list[-1]) if attr_list else model


def _has_attr(model: Any, attr_name: str) -> bool:
    for item in attr_name.split("."):
        if not hasattr(model, item):
            return False
        model = getattr(model, item)
    return True


# -- pickles --------------------------------------------------------------------------------------------------------
class _CodeOnlyModule(torch.nn.Module):
    """What a module that is read again has before its code was traced."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


@compatibility(is_backward_compatible=True)
def reduce_graph_module(body: dict[str, Any], import_block: str) -> torch.nn.Module:
    """A module from its attributes and the source of its code."""
    source = body.get("_code") or body["code"]
    return _deserialize_graph_module(_forward_from_src(import_block + source, {}), body)


@compatibility(is_backward_compatible=True)
def reduce_package_graph_module(importer: Any, body: dict[str, Any], generated_module_name: str) -> torch.nn.Module:
    """A module from an archive of `torch.package`."""
    return _deserialize_graph_module(importer.import_module(generated_module_name).forward, body)


def _deserialize_graph_module(
    forward: Callable[..., Any], body: dict[str, Any], graph_module_cls: type | None = None
) -> torch.nn.Module:
    """The graph is not written down; it is traced again from the code."""
    from ._lazy_graph_module import _make_graph_module
    from ._symbolic_trace import Tracer

    setattr(_CodeOnlyModule, "forward", forward)
    tracer_cls: Any = body.get("_tracer_cls") or Tracer

    class KeepModules(tracer_cls):  # type: ignore[misc]
        def is_leaf_module(self, _: torch.nn.Module, __: str) -> bool:
            return True

    shell = _CodeOnlyModule(body)
    graph = KeepModules().trace(shell, **body.get("_tracer_extras", {}))
    traces = body.pop("_graphmodule_graph_node_meta_stack_trace", None) or {}
    for node in graph.nodes:
        if traces.get(node.name) is not None:
            node.meta["stack_trace"] = traces[node.name]
    graph._tracer_cls = tracer_cls
    made: torch.nn.Module = _make_graph_module(
        shell, graph, class_name=body.get("_graphmodule_cls_name", "GraphModule"), graph_module_cls=graph_module_cls
    )
    for name, value in body.items():
        if not hasattr(made, name):
            setattr(made, name, value)
    return made


def _reduced(body: dict[str, Any], code: PythonCode) -> tuple[Any, ...]:
    """What a pickle keeps: the attributes and the source, without the graph."""
    del body["_graph"]
    return reduce_graph_module, (body, _format_import_block(code.globals))


def _reduced_for_package(module: GraphModule, body: dict[str, Any], code: PythonCode, exporter: Any) -> tuple[Any, ...]:
    """What an archive of `torch.package` keeps: the attributes, and the source as a module of its own."""
    body["_graphmodule_cls_name"] = type(module).__name__
    body["_graphmodule_graph_node_meta_stack_trace"] = {
        node.name: node.meta["stack_trace"] for node in module._graph.nodes if "stack_trace" in node.meta
    }
    del body["_graph"]
    name = f"fx-generated._{exporter.get_unique_id()}"
    exporter.save_source_string(name, _format_import_block(code.globals, exporter.importer) + code.src)
    return reduce_package_graph_module, (body, name)


# -- calls ----------------------------------------------------------------------------------------------------------
class _WrappedCall:
    """Runs a generated module; an error in its own lines is shown with them."""

    def __init__(self, cls: Any, cls_call: Any) -> None:
        self.cls = cls
        self.cls_call = cls_call

    @staticmethod
    def _generate_error_message(frame_summary: traceback.FrameSummary) -> str:
        number, line = frame_summary.lineno, frame_summary.line
        assert number is not None and line is not None
        lines = linecache.getlines(frame_summary.filename)
        return "\n".join(
            [
                traceback.format_exc(),
                f"Call using an FX-traced Module, line {number} of the traced Module's generated forward function:",
                "".join(lines[number - 2 : number]),
                "~" * len(line) + "~~~ <--- HERE",
                "\n".join(lines[number : number + 2]),
            ]
        )

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            above: Any = super(self.cls, obj)
            return above.__call__(*args, **kwargs)
        except Exception as error:
            last = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__))[-1]
            if "eval_with_key" not in last.filename:
                raise
            print(self._generate_error_message(last), file=sys.stderr)
            raise error.with_traceback(None)  # noqa: B904


def _print_readable(
    module: Any,
    module_name: str,
    print_output: bool = True,
    include_stride: bool = False,
    include_device: bool = False,
    colored: bool = False,
    expanded_def: bool = False,
    additional_meta: list[str] | None = None,
) -> str:
    graph = module.graph
    if not isinstance(graph, Graph):
        raise AssertionError("print_readable must be used on a module with a graph")
    options: dict[str, Any] = dict(include_stride=include_stride, include_device=include_device, colored=colored)
    source = graph.python_code(
        "self", verbose=True, expanded_def=expanded_def, additional_meta=additional_meta, **options
    ).src
    text = _addindent(f"class {module_name}(torch.nn.Module):\n" + source.lstrip("\n"), 4)
    inner = [
        _print_readable(child, name, print_output=False, additional_meta=additional_meta, **options)
        for name, child in module.named_children()
        if isinstance(child, GraphModule)
    ]
    text += _addindent("\n".join(["", *inner]), 4)
    if print_output:
        print(text)
    return text


# Kept by a deep copy.
_COPIED = (
    *("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_replace_hooks"),
    *("_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks"),
)


@compatibility(is_backward_compatible=True)
class GraphModule(torch.nn.Module):
    """A module made from a graph and what the graph speaks of."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # A `forward` belongs to a class, so every instance has its own.
        base: Any = next(t for t in cls.__mro__ if t.__qualname__.split(".")[-1] != "GraphModuleImpl")
        return super().__new__(type("GraphModuleImpl", (base,), {"__module__": base.__module__}))

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        targets = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, torch.nn.Module):
            if hasattr(root, "training"):
                self.training = root.training
            if isinstance(root, _CodeOnlyModule):
                for name, _ in (*root.named_children(), *root.named_buffers(), *root.named_parameters()):
                    _copy_attr(root, self, name)
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                    )
            # Short paths first: a longer one goes into what a shorter one brought.
            for target in sorted(targets, key=lambda t: t.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError("Unsupported type " + str(root) + " passed for root!")
        self.graph = graph
        tracer = graph._tracer_cls
        # A class in a function cannot be found again by those who read the module.
        self._tracer_cls = tracer if tracer and "<locals>" not in tracer.__qualname__ else None
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        self._replace_hooks: list[Callable[..., object]] = []
        self._create_node_hooks: list[Callable[..., object]] = []
        self._erase_node_hooks: list[Callable[..., object]] = []
        self._deepcopy_hooks: list[Callable[..., object]] = []
        self.shape_env = None

    __jit_unused_properties__ = ["graph", "_boxed_call"]

    @property
    def _boxed_call(self) -> bool:
        return isinstance(self._graph._codegen, _BoxedCodeGen)

    @property
    def graph(self) -> Graph:
        """The graph; assigning one generates the code."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph: Graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of `forward`."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self) -> PythonCode:
        """Generate the code from the graph as it is now."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec = codegen.pytree_info.in_spec
            self._out_spec = codegen.pytree_info.out_spec
        made = self._graph.python_code(root_module="self")
        self._code: str = made.src
        self._lineno_map = made._lineno_map
        self._prologue_start = made._prologue_start
        cls: Any = type(self)
        cls.forward = _forward_from_src(self._code, made.globals, getattr(self._graph, "_co_fields", {}))
        # `Module.__call__` is looked up when called: tracing replaces it.
        own_call = cls.__call__ if "__call__" in vars(cls) else None
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, own_call)
        self._recompile_submodules()

        def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self._wrapped_call(self, *args, **kwargs)

        cls.__call__ = call_wrapped
        return made

    def _recompile_submodules(self) -> list[tuple[str, PythonCode]]:
        return [(name, child.recompile()) for name, child in self.named_children() if isinstance(child, GraphModule)]

    # -- submodules -------------------------------------------------------------------------------------------------
    def add_submodule(self, target: str, m: torch.nn.Module) -> bool:
        """Put a module at a path; False where something on the way is no module."""
        *prefix, field = target.split(".")
        holder: torch.nn.Module = self
        for item in prefix:
            found = getattr(holder, item, None)
            if found is None:
                found = torch.nn.Module()
                setattr(holder, item, found)
            if not isinstance(found, torch.nn.Module):
                return False
            holder = found
        holder.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take the module at a path away; False where there is none."""
        *path, last = target.split(".")
        holder: Any = self
        for item in path:
            holder = getattr(holder, item, None)
            if not isinstance(holder, torch.nn.Module):
                return False
        if not isinstance(getattr(holder, last, None), torch.nn.Module):
            return False
        delattr(holder, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take away every module of which the graph uses nothing."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            parts = node.target.split(".")
            used.update(".".join(parts[: i + 1]) for i in range(len(parts)))
            if node.op == "call_module":
                try:
                    inner = self.get_submodule(node.target)
                except AttributeError:
                    continue
                used.update(f"{node.target}.{name}" for name, _ in inner.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name not in used]:
            self.delete_submodule(name)

    # -- files and copies -------------------------------------------------------------------------------------------
    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write the module as a Python package with its values."""
        folder = Path(folder)
        folder.mkdir(exist_ok=True)
        torch.save(self.state_dict(), folder / "state_dict.pt")
        tab = " " * 8
        imports = "\n".join(import_line(name) for name in _custom_builtins)
        package = import_line("torch").split()[1]
        lines = [
            f"\n{import_line('torch')}\n{imports}\n\nfrom {package}.nn import *\n"
            f"class {module_name}(torch.nn.Module):\n"
            "    def __init__(self):\n        super().__init__()\n"
        ]
        pickled: list[str] = []
        nn = torch.nn
        plain = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
        for name, module in self.named_children():
            if type(module) in plain:
                lines.append(f"{tab}setattr(self, '{name}', {module!r})\n")
                continue
            file = folder / f"{name}.pt"
            torch.save(module, file)
            pickled.append(name)
            shown = repr(module).replace("\r", " ").replace("\n", " ")
            lines.append(f"{tab}setattr(self, '{name}', torch.load(r'{file}', weights_only=False)) # {shown}\n")
        for name, buffer in self._buffers.items():
            if buffer is not None:
                made = f"torch.empty({list(buffer.shape)}, dtype={buffer.dtype})"
                lines.append(f"{tab}self.register_buffer('{name}', {made})\n")
        for name, param in self._parameters.items():
            if param is not None:
                made = f"torch.nn.Parameter(torch.empty({list(param.shape)}, dtype={param.dtype}))"
                lines.append(f"{tab}setattr(self, '{name}', {made})\n")
        lines.append(f"{tab}self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))\n")
        lines.append(f"{_addindent(self.code, 4)}\n")
        (folder / "module.py").write_text("".join(lines))
        (folder / "__init__.py").write_text("from .module import *")
        if pickled:
            warnings.warn(
                "Was not able to save the following children modules as reprs -"
                f"saved as pickled files instead: {pickled}",
                stacklevel=2,
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return _reduced(self.__dict__.copy(), self.recompile())

    def __reduce_package__(self, exporter: Any) -> tuple[Any, ...]:
        return _reduced_for_package(self, self.__dict__.copy(), self.recompile(), exporter)

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: Any) -> GraphModule:
        made: GraphModule = type(self).__new__(type(self))
        memo[id(self)] = made
        shell = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        self._deepcopy_init()(made, shell, shell.__dict__["_graph"])
        for name in _COPIED:
            if name in self.__dict__:
                setattr(made, name, copy.deepcopy(self.__dict__[name], memo))
        made.meta = copy.deepcopy(getattr(self, "meta", {}), memo)
        for name, value in made.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(made, name, value)
        for hook in getattr(self, "_deepcopy_hooks", ()):
            hook(made)
        return made

    def __copy__(self) -> GraphModule:
        from ._lazy_graph_module import _make_graph_module

        made = _make_graph_module(self, self.graph)
        made.meta = getattr(self, "meta", {})
        return made

    # -- text -------------------------------------------------------------------------------------------------------
    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """The code of this module and of those in it, with what is known of the values."""
        if fast_sympy_print:
            raise NotImplementedError("print_readable(): fast_sympy_print=True: there are no symbolic sizes here")
        return _print_readable(
            self, self._get_name(), print_output, include_stride, include_device, colored, expanded_def, additional_meta
        )

    def __str__(self) -> str:
        reminder = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, reminder])

    def _replicate_for_data_parallel(self) -> GraphModule:
        made = self.__copy__()
        object.__setattr__(made, "_is_replica", True)
        return made

    # -- hooks ------------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable[..., object]) -> Iterator[None]:
        """Inside, `f(old, new, user)` is called when a node takes another's place or name."""
        if not callable(f):
            raise AssertionError("Replace hook must be a callable.")
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def _register_replace_node_hook(self, f: Callable[..., object]) -> None:
        _hook(f, "create_node")
        self._replace_hooks.append(f)

    def _unregister_replace_node_hook(self, f: Callable[..., object]) -> None:
        _hook(f, "create_node")
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: Callable[..., object]) -> None:
        _hook(f, "create_node")
        self._create_node_hooks.append(f)

    def _unregister_create_node_hook(self, f: Callable[..., object]) -> None:
        _hook(f, "create_node")
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable[..., object]) -> None:
        _hook(f, "erase_node")
        self._erase_node_hooks.append(f)

    def _unregister_erase_node_hook(self, f: Callable[..., object]) -> None:
        _hook(f, "erase_node")
        self._erase_node_hooks.remove(f)

    def _register_deepcopy_hook(self, f: Callable[..., object]) -> None:
        _hook(f, "deepcopy")
        self._deepcopy_hooks.append(f)

    def _unregister_deepcopy_hook(self, f: Callable[..., object]) -> None:
        _hook(f, "deepcopy")
        self._deepcopy_hooks.remove(f)


def _hook(f: Any, kind: str) -> None:
    if not callable(f):
        raise AssertionError(f"{kind} hook must be a callable.")
