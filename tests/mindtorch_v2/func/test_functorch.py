"""`functorch`, the old name of `torch.func`, against PyTorch's."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch


def _part(library: Any, name: str) -> Any:
    return importlib.import_module(f"{library.__name__}._functorch.{name}")


def _models(library: Any, kind: str, count: int = 1) -> list[Any]:
    nn = library.nn
    made = []
    for seed in range(count):
        library.manual_seed(seed)
        if kind == "plain":
            model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        elif kind == "tied":
            model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
            model[1].weight = model[0].weight
        else:
            model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        made.append(model)
    return made


def _told(library: Any, kind: str) -> dict[str, Any]:
    """What is made of a model, and what a call of it gives and leaves behind."""
    made = _part(library, "make_functional")
    (model,) = _models(library, kind)
    x = library.linspace(-1, 1, 15).reshape(5, 3)
    told: dict[str, Any] = {}
    if kind == "buffers":
        fmodel, params, buffers = made.make_functional_with_buffers(model)
        told["every"] = fmodel.all_names_map
        told["buffer names"] = fmodel.buffer_names
        result = fmodel(params, buffers, x)
        told["buffers"] = [b.tolist() for b in buffers]
    else:
        fmodel, params = made.make_functional(model)
        told["every"] = fmodel.names_map
        result = fmodel(params, x)
    told["names"] = fmodel.param_names
    told["kinds"] = [(type(p).__name__, p.requires_grad, tuple(p.shape)) for p in params]
    told["repr"] = repr(fmodel)
    told["places"] = [p.device.type for p in fmodel.parameters()]
    told["unchanged"] = [b.tolist() for b in model.buffers()]
    told["result"] = result.detach()
    told["gradients"] = [g.detach() for g in library.autograd.grad(result.square().sum(), params)]
    return told


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["plain", "tied", "buffers"])
def test_modules_become_functions(kind: str) -> None:
    ours, theirs = _told(torch, kind), _told(_oracle.load(), kind)
    for name in ("result", "gradients"):
        torch.testing.assert_close(
            ours.pop(name), _oracle.tree_map(_oracle.from_oracle, theirs.pop(name), _oracle.is_oracle_tensor)
        )
    for name in ("buffers",) if kind == "buffers" else ():
        torch.testing.assert_close(torch.tensor(ours.pop(name)[0]), torch.tensor(theirs.pop(name)[0]))
    assert ours == theirs


@pytest.mark.oracle
def test_models_are_stacked() -> None:
    for library in (torch, _oracle.load()):
        made = _part(library, "make_functional")
        fmodel, params, buffers = made.combine_state_for_ensemble(_models(library, "buffers", 3))
        assert [tuple(p.shape) for p in params] == [(3, 4, 3), (3, 4), (3, 4), (3, 4), (3, 2, 4), (3, 2)]
        assert not any(p.requires_grad for p in params) and [b.shape[0] for b in buffers] == [3, 3, 3]
        x = library.ones(5, 3)
        many = library.vmap(fmodel.eval(), (0, 0, None))(params, buffers, x)
        assert tuple(many.shape) == (3, 5, 2)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name", "vmap grad grad_and_value jacrev jacfwd hessian functionalize make_functional combine_state".split()
)
def test_old_names_say_where_they_are_now(name: str) -> None:
    said = []
    for library in (torch, _oracle.load()):
        old = _part(library, "deprecated")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if name == "make_functional":
                old.make_functional(library.nn.Linear(2, 2))
            elif name == "combine_state":
                old.combine_state_for_ensemble([library.nn.Linear(2, 2)])
            else:
                getattr(old, name)(lambda x: x.sin().sum())(library.ones(3))
        said.append([(w.category, str(w.message)) for w in caught if "functorch" in str(w.message)])
    assert said[0] == said[1] and len(said[0]) == 1


@pytest.mark.parametrize("chunks", [1, 2, 3, 7])
def test_a_number_of_parts(chunks: int) -> None:
    x, y = torch.arange(10.0).reshape(5, 2), torch.arange(10.0).reshape(2, 5)
    mapped = _part(torch, "apis").chunk_vmap(lambda a, b: (a * b).sum(), (0, 1), chunks=chunks)
    assert mapped(x, y).tolist() == (x * y.t()).sum(1).tolist()


def test_refusals() -> None:
    made = _part(torch, "make_functional")
    with pytest.raises(RuntimeError, match="has buffers. Please use make_functional_with_buffers"):
        made.make_functional(torch.nn.BatchNorm1d(2))
    with pytest.raises(RuntimeError, match="Expected at least one model, got 0"):
        made.combine_state_for_ensemble([])
    with pytest.raises(RuntimeError, match="same training/eval mode"):
        made.combine_state_for_ensemble([torch.nn.ReLU(), torch.nn.ReLU().eval()])
    with pytest.raises(RuntimeError, match="same class"):
        made.combine_state_for_ensemble([torch.nn.ReLU(), torch.nn.Tanh()])


@pytest.mark.oracle
@pytest.mark.parametrize("src", range(-3, 3))
def test_dimensions_into_others_and_out_of_them(src: int) -> None:
    def told(library: Any) -> Any:
        inside = importlib.import_module(f"{library.__name__}._C._functorch")
        x = library.arange(24).reshape(2, 3, 4)
        split = inside.reshape_dim_outof(src, x.shape[src], x)
        return [inside.reshape_dim_into(src, dst, x).tolist() for dst in range(-2, 2)], split.tolist()

    assert told(torch) == told(_oracle.load())


@pytest.mark.oracle
def test_vmap_with_results_as_they_lie() -> None:
    def told(library: Any) -> Any:
        restore_vmap = importlib.import_module(f"{library.__name__}._functorch.vmap").restore_vmap
        x = library.arange(12.0).reshape(3, 4)
        out, dims = restore_vmap(lambda a, b: (a.sum(), b, {"c": a + b}), (1, None), 4, "error")(x, library.ones(3))
        return [t.tolist() for t in (out[0], out[1], out[2]["c"])], dims

    assert told(torch) == told(_oracle.load())


def test_functions_of_classes_of_modules() -> None:
    old = importlib.import_module(f"{torch.__name__}._functorch.make_functional")
    weights, function, names = old.functional_init(torch.nn.Linear, (3,))(2, 4)
    assert [tuple(w.shape) for w in weights] == [(3, 4, 2), (3, 4)] and names == ("weight", "bias")
    one = tuple(w[0] for w in weights)
    assert function(one, (torch.ones(2),)).shape == (4,)
    weights, buffers, function, names, of_buffers = old.functional_init_with_buffers(torch.nn.BatchNorm1d)(2)
    assert of_buffers == ("running_mean", "running_var", "num_batches_tracked")
    assert function(weights, buffers, (torch.ones(3, 2),)).shape == (3, 2)
    with pytest.raises(RuntimeError, match="has buffers"):
        old.functional_init(torch.nn.BatchNorm1d)(2)
    with pytest.raises(ValueError, match="should be > 0"):
        old.functional_init(torch.nn.Linear, (0,))(2, 4)


@pytest.mark.oracle
def test_transforms_record_inside_inference_mode() -> None:
    def told(library: Any) -> Any:
        f = library.func
        with library.inference_mode():
            x, v = library.arange(3.0) + 1, library.ones(3)
            value, along = f.jvp(library.sin, (x,), (v,))
            slope = f.grad(lambda a: (a**2).sum())(x)
            found = [slope, value, along, f.vjp(library.sin, x)[1](v)[0]]
            found += [f.jacrev(library.sin)(x), f.jacfwd(library.sin)(x)]
            assert library.is_inference_mode_enabled() and not slope.is_inference()
        return [str(t) for t in found]

    assert told(torch) == told(_oracle.load())


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers_inside_transforms(kind: str) -> None:
    layer = getattr(torch.nn, kind)(3, 4)
    x = torch.randn(5, 2, 3)
    weights = dict(layer.named_parameters())

    def loss(held: Any, given: Any) -> Any:
        return torch.func.functional_call(layer, held, (given,))[0].sin().sum()

    found = torch.func.grad(loss)(weights, x)
    loss(weights, x).backward()
    parts = torch.func.vmap(torch.func.grad(loss), (None, 1))(weights, x.unsqueeze(2))
    for name, p in weights.items():
        torch.testing.assert_close(found[name], p.grad)
        torch.testing.assert_close(parts[name].sum(0), p.grad)


@pytest.mark.oracle
def test_levels_and_the_loop_can_be_switched() -> None:
    def told(library: Any) -> Any:
        inside = importlib.import_module(f"{library.__name__}._C._functorch")
        kinds = inside.TransformType
        assert inside.peek_interpreter_stack() is None and inside.get_interpreter_stack() is None
        seen: list[Any] = [inside._vmap_increment_nesting(3, "error"), inside._grad_increment_nesting()]
        seen += [inside._jvp_increment_nesting(), inside.peek_interpreter_stack().level()]
        assert [one.key() for one in inside.get_interpreter_stack()] == [kinds.Vmap, kinds.Grad, kinds.Jvp]
        inside.pop_dynamic_layer_stack_and_undo_to_depth(1)
        seen += [inside.get_dynamic_layer_stack_depth(), inside.dlevel(library.ones(2))]
        inside.pop_dynamic_layer_stack_and_undo_to_depth(0)
        seen += [inside._grad_increment_nesting(), inside._grad_decrement_nesting(), inside._is_vmap_fallback_enabled()]
        inside._set_vmap_fallback_enabled(False)
        try:
            library.vmap(lambda t: library.histc(t, 3))(library.ones(3, 4))
        except RuntimeError as error:
            seen.append(str(error))
        finally:
            inside._set_vmap_fallback_enabled(True)
        return seen

    assert told(torch) == told(_oracle.load())


def test_modules_that_are_there_without_an_import() -> None:
    made = importlib.import_module(f"{torch.__name__}._functorch")
    assert made.config.__name__.endswith("_functorch.config") and callable(made.vmap.restore_vmap)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = made.nothing


def test_gradients_of_many_fit_their_inputs() -> None:
    part = _part(torch, "autograd_function")
    g = torch.arange(24.0).reshape(2, 3, 4)
    assert part.reductify_leaf(None, None, 0, 2) is None and part.reductify_leaf(g, None, None, 2) is g
    assert torch.equal(part.reductify_leaf(g, 0, None, 2), g.sum(0))
    assert torch.equal(part.reductify_leaf(g, 0, 1, 2), g.movedim(0, 1))
    assert torch.equal(part.reductify_leaf(g[0], None, 1, 5), g[0].unsqueeze(1).expand(3, 5, 4))
    assert torch.equal(part.reductify_leaf(g, 0, 1, 2, (4,)), g.sum(1).t())
    both = part.reductify((g, None), (0, None), (None, 0), 2)
    assert torch.equal(both[0], g.sum(0)) and both[1] is None


def test_a_context_with_other_saved_tensors() -> None:
    part = _part(torch, "autograd_function")

    class Ctx:
        saved_tensors = (1,)
        needs_input_grad = (True,)

    ctx: Any = Ctx()
    wrapped = part.CtxWithSavedTensors(ctx, (2, 3))
    nested = part.CtxWithSavedTensors(wrapped, (4,))
    nested.note = "kept"
    assert (wrapped.saved_tensors, nested.saved_tensors, ctx.saved_tensors) == ((2, 3), (4,), (1,))
    assert nested.needs_input_grad == (True,) and ctx.__dict__ == {"note": "kept"}
    ctx._pt_inner_ctx = 1
    with pytest.raises(RuntimeError, match="name collision"):
        part.CtxWithSavedTensors(ctx, ())
