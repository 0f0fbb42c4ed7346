"""Tracing of functions whose source was rewritten: assertions become calls, annotated assignments too."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
from types import FunctionType
from typing import Any, cast

import mindtorch_v2 as torch

from .._symbolic_trace import Tracer
from ..graph import Graph

__all__ = ["AST_Rewriter", "RewritingTracer"]


class AST_Rewriter(ast.NodeTransformer):
    """Rewrites the source of a function."""

    def rewrite(self, fn: FunctionType) -> FunctionType:
        """The function that the rewritten source defines, with the globals and defaults of the first."""
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn)))
        definition = tree.body[0]
        if isinstance(definition, ast.FunctionDef):
            # It was decorated already.
            definition.decorator_list = []
        # This package is a variable of a function around it: the globals stay the module's own, where wrapped functions
        # are replaced while a program is traced.
        around = ast.parse("def around(__rewritten_torch):\n    return made")
        outer = around.body[0]
        assert isinstance(outer, ast.FunctionDef) and isinstance(definition, ast.FunctionDef)
        outer.body.insert(0, self.visit(definition))
        setattr(outer.body[1], "value", ast.Name(fn.__name__, ast.Load()))
        space = dict(fn.__globals__)
        exec(compile(ast.fix_missing_locations(around), "", "exec"), space)
        made: Any = space["around"](torch)
        made = FunctionType(
            made.__code__, fn.__globals__, name=fn.__name__, argdefs=fn.__defaults__, closure=made.__closure__
        )
        made = functools.update_wrapper(made, fn)
        made.__kwdefaults__ = copy.copy(fn.__kwdefaults__)
        del made.__wrapped__
        return cast(FunctionType, made)

    def visit_Assert(self, node: ast.Assert) -> ast.Expr:
        """`assert test, message` as a call that a trace sees."""
        call = ast.parse("__rewritten_torch._assert()", mode="eval").body
        assert isinstance(call, ast.Call)
        call.args = [node.test, node.msg if node.msg else ast.Constant(value="")]
        return ast.copy_location(ast.Expr(value=call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """`x: T = value` as `x = annotate(value, T)`."""
        if node.value is None:
            return node
        call = ast.parse("__rewritten_torch.fx.annotate.annotate()", mode="eval").body
        assert isinstance(call, ast.Call)
        call.args = [node.value, node.annotation]
        return ast.copy_location(ast.Assign(targets=[node.target], value=call), node)


class RewritingTracer(Tracer):
    """A tracer that rewrites what it traces."""

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module or function after rewriting."""
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn: Any) -> Any:
    """A function rewritten, or a module whose `forward` and whose children are."""
    if not isinstance(fn, torch.nn.Module):
        return AST_Rewriter().rewrite(cast(FunctionType, fn))

    class RewrittenModule(torch.nn.Module):
        def __init__(self, orig: torch.nn.Module) -> None:
            super().__init__()
            for name, value in orig.__dict__.items():
                self.__dict__[name] = copy.copy(value)
            for name, child in orig._modules.items():
                if child is not None and not type(child).__module__.startswith(("torch.nn", "mindtorch_v2.nn")):
                    self._modules[name] = _rewrite(child)

    setattr(RewrittenModule, "forward", AST_Rewriter().rewrite(cast(FunctionType, type(fn).forward)))
    return RewrittenModule(fn)
