"""`autocast`: switching it on and off, the cache of casts, gradients through casts, and autograd Functions in it."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref
from types import ModuleType
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch

Tensor = torch.Tensor

DEVICE_TYPES = "cpu cuda xpu hpu mps mtia ipu xla maia meta vulkan lazy ve fpga opengl opencl ideep mkldnn".split()


def low(t: Any) -> bool:
    return bool(t.dtype == torch.bfloat16)


# -- switching ----------------------------------------------------------------------------------------------------
def test_blocks_nest_and_restore() -> None:
    a = torch.ones(2, 2)
    assert not torch.is_autocast_enabled("cpu")
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
        assert low(a @ a)
        with torch.autocast("cpu", enabled=False):
            assert not torch.is_autocast_enabled("cpu")
            assert not low(a @ a)
            with torch.autocast("cpu", torch.float16):
                assert (a @ a).dtype == torch.float16
                assert torch.get_autocast_dtype("cpu") == torch.float16
        assert low(a @ a) and torch.get_autocast_dtype("cpu") == torch.bfloat16
    assert not torch.is_autocast_enabled("cpu") and not low(a @ a)


def test_an_exception_leaves_the_block() -> None:
    with pytest.raises(KeyError), torch.autocast("cpu", torch.bfloat16):
        raise KeyError
    assert not torch.is_autocast_enabled("cpu")


def test_the_same_block_can_be_entered_again() -> None:
    block = torch.autocast("cpu", torch.bfloat16)
    for _ in range(2):
        with block as entered:
            assert entered is block and low(torch.ones(2, 2) @ torch.ones(2, 2))
        assert not torch.is_autocast_enabled("cpu")


def test_decorator() -> None:
    @torch.autocast("cpu", torch.bfloat16)
    def product(a: Any, *, b: Any) -> Any:
        """Doc."""
        return a @ b

    assert product.__name__ == "product" and product.__doc__ == "Doc."
    assert low(product(torch.ones(2, 2), b=torch.ones(2, 2)))
    assert not torch.is_autocast_enabled("cpu")
    with pytest.raises(TypeError, match=r"autocast\(\)\(func\) requires a callable, but got int"):
        torch.autocast("cpu")(3)


def test_other_threads_are_not_affected() -> None:
    seen: list[Any] = []

    def look() -> None:
        seen.append((torch.is_autocast_enabled("cpu"), (torch.ones(2, 2) @ torch.ones(2, 2)).dtype))

    with torch.autocast("cpu", torch.bfloat16):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == [(False, torch.float32)]


def test_dtypes_that_autocast_cannot_use_switch_it_off() -> None:
    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported. Disabling autocast"):
        block = torch.autocast("cpu", torch.float32)
    with block:
        assert not torch.is_autocast_enabled("cpu")
    with pytest.warns(UserWarning, match="CUDA is not available or torch_xla is imported. Disabling autocast."):
        torch.autocast("cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.autocast("cpu", torch.float32, enabled=False)
        torch.autocast("cuda", enabled=False)


@pytest.mark.parametrize("kind", DEVICE_TYPES)
def test_device_types_as_the_oracle(oracle: ModuleType, kind: str) -> None:
    def answers(library: Any) -> list[Any]:
        found: list[Any] = []
        for ask in (
            lambda: library.amp.is_autocast_available(kind),
            lambda: _oracle.dtype_name(library.get_autocast_dtype(kind)),
            lambda: library.is_autocast_enabled(kind),
            lambda: library.set_autocast_enabled(kind, False),
            lambda: library.autocast(kind, enabled=False).device,
        ):
            try:
                found.append(ask())
            except RuntimeError as error:
                found.append(str(error).splitlines()[0])
        return found

    assert answers(torch) == answers(oracle)


OLD = {
    "is_autocast_cpu_enabled": (),
    "set_autocast_cpu_enabled": (False,),
    "is_autocast_ipu_enabled": (),
    "set_autocast_xla_enabled": (False,),
    "get_autocast_cpu_dtype": (),
    "get_autocast_gpu_dtype": (),
    "set_autocast_cpu_dtype": ("bfloat16",),
    "set_autocast_gpu_dtype": ("float16",),
}


@pytest.mark.parametrize("name", OLD)
def test_old_spellings(oracle: ModuleType, name: str) -> None:
    def call(library: Any) -> tuple[str, list[str]]:
        given = [getattr(library, a) if isinstance(a, str) else a for a in OLD[name]]
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            result = getattr(library, name)(*given)
        return str(result).rpartition(".")[2], [str(w.message).partition(" (Triggered")[0] for w in seen]

    ours, theirs = call(torch), call(oracle)
    assert ours[0] == theirs[0]
    # Each is said once in a process, here as there.
    assert ours[1] == theirs[1] or not ours[1] or not theirs[1]


def test_nesting_is_counted() -> None:
    assert torch.autocast_increment_nesting() == 1
    assert torch.autocast_increment_nesting() == 2
    assert torch.autocast_decrement_nesting() == 1
    assert torch.autocast_decrement_nesting() == 0


# -- the cache ----------------------------------------------------------------------------------------------------
def casts(loss: Any) -> int:
    """How many casts of leaves the graph of a loss has."""
    seen, todo, found = set(), [loss.grad_fn], 0
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        found += type(node).__name__ == "ToCopyBackward0"
        todo.extend(n for n, _ in node.next_functions)
    return found


def test_leaves_are_cast_once() -> None:
    w, x = torch.ones(3, 3, requires_grad=True), torch.ones(3, 3)
    with torch.autocast("cpu", torch.bfloat16):
        assert casts((x @ w) @ w) == 1
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
        assert not torch.is_autocast_cache_enabled()
        assert casts((x @ w) @ w) == 2
    assert torch.is_autocast_cache_enabled()


def test_the_outermost_block_forgets() -> None:
    w = torch.ones(3, 3, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        with torch.autocast("cpu", torch.bfloat16):
            inner = w @ torch.ones(3, 3)
        still = w @ torch.ones(3, 3)
        assert inner.grad_fn.next_functions[0][0] is still.grad_fn.next_functions[0][0]
        torch.clear_autocast_cache()
        fresh = w @ torch.ones(3, 3)
        assert fresh.grad_fn.next_functions[0][0] is not still.grad_fn.next_functions[0][0]
    with torch.autocast("cpu", torch.bfloat16):
        other = w @ torch.ones(3, 3)
    assert other.grad_fn.next_functions[0][0] is not fresh.grad_fn.next_functions[0][0]


def test_a_weight_that_changed_in_the_next_block_is_cast_anew() -> None:
    w = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        before = w @ torch.ones(2, 2)
    with torch.no_grad():
        w.mul_(2)
    with torch.autocast("cpu", torch.bfloat16):
        after = w @ torch.ones(2, 2)
    assert float(after[0, 0]) == 2 * float(before[0, 0])


def test_what_was_cast_without_recording_is_not_kept() -> None:
    w = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        with torch.no_grad():
            assert not (w @ w).requires_grad
        assert (w @ w).requires_grad


@mindtorch_only
def test_the_cache_keeps_no_weight_alive() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        w = torch.ones(2, 2, requires_grad=True)
        gone = weakref.ref(w)
        with torch.no_grad():
            low(w @ w)
        del w
        gc.collect()
        assert gone() is None


# -- gradients ----------------------------------------------------------------------------------------------------
def test_gradients_come_back_in_the_dtype_of_the_leaf() -> None:
    w, x = torch.full((2, 2), 0.5, requires_grad=True), torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        y = x @ w
        loss = y.float().sum()
    assert low(y)
    loss.backward()
    assert w.grad.dtype == torch.float32 and x.grad.dtype == torch.float32
    assert w.grad.tolist() == [[2.0, 2.0]] * 2 and x.grad.tolist() == [[1.0, 1.0]] * 2


def test_backward_inside_the_block() -> None:
    w = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        (w @ w).sum().backward()
    assert w.grad.dtype == torch.float32 and w.grad.tolist() == [[4.0, 4.0]] * 2


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_is_computed_again_is_cast_as_before(reentrant: bool) -> None:
    seen: list[Any] = []

    def product(a: Any) -> Any:
        y = a @ a
        seen.append(y.dtype)
        return y.float()

    a = torch.ones(2, 2, requires_grad=True)
    module = submodule("utils.checkpoint")
    with module.set_checkpoint_early_stop(False):
        with torch.autocast("cpu", torch.bfloat16):
            y = module.checkpoint(product, a, use_reentrant=reentrant)
        y.sum().backward()
        z = module.checkpoint(product, a, use_reentrant=reentrant)
        with torch.autocast("cpu", torch.bfloat16):
            z.sum().backward()
    assert seen == [torch.bfloat16, torch.bfloat16, torch.float32, torch.float32]
    assert a.grad.tolist() == [[8.0, 8.0]] * 2


def test_operators_from_outside() -> None:
    name = f"amp_tests::product_{id(object())}"

    @torch.library.custom_op(name, mutates_args=())
    def product(x: Tensor) -> Tensor:
        return torch.mm(x, x)

    a = torch.ones(2, 2)
    with torch.autocast("cpu", torch.bfloat16):
        assert low(product(a))
        torch.library.register_autocast(name, "cpu", torch.float16)
        assert product(a).dtype == torch.float16
        # What came first stays.
        product.register_autocast("cpu", torch.bfloat16)
        assert product(a).dtype == torch.float16
    assert product(a).dtype == torch.float32
    with pytest.raises(ValueError, match="Device type 'meta' does not support autocast."):
        torch.library.register_autocast(name, "meta", torch.float16)


def test_recurrent_layers_take_what_they_are_given() -> None:
    layer = submodule("nn").GRU(3, 4)
    x = torch.ones(5, 2, 3, dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        assert low(layer(x)[0])
    with pytest.raises(ValueError, match="RNN input dtype"):
        layer(x)


# -- autograd Functions -------------------------------------------------------------------------------------------
def function(cast_inputs: Any = None) -> tuple[Any, list[Any]]:
    seen: list[Any] = []

    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
        def forward(ctx: Any, a: Any, pair: Any) -> Any:
            ctx.save_for_backward(a, pair[0])
            seen.append((a.dtype, pair[0].dtype, torch.is_autocast_enabled("cpu")))
            return a @ pair[0]

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, grad: Any) -> Any:
            a, b = ctx.saved_tensors
            seen.append((torch.is_autocast_enabled("cpu"), (a @ b).dtype))
            return (grad @ b.t()).to(a.dtype), None

    return Product, seen


def test_functions_run_as_the_block_says() -> None:
    product, seen = function()
    a, b = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2)
    with torch.autocast("cpu", torch.bfloat16):
        y = product.apply(a, (b,))
    y.sum().backward()
    assert low(y) and a.grad.dtype == torch.float32
    assert seen == [(torch.float32, torch.float32, True), (True, torch.bfloat16)]


def test_functions_with_cast_inputs_run_with_autocast_off() -> None:
    product, seen = function(torch.float16)
    a, b = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2)
    with torch.autocast("cpu", torch.bfloat16):
        y = product.apply(a, (b,))
    y.sum().backward()
    assert y.dtype == torch.float16 and a.grad.dtype == torch.float32
    assert seen == [(torch.float16, torch.float16, False), (False, torch.float16)]
    y = product.apply(a, (b,))
    assert y.dtype == torch.float32


def test_decorators_without_arguments_of_their_own() -> None:
    def forward(ctx: Any, a: Any) -> Any:
        return a

    assert torch.amp.custom_fwd(forward, device_type="cpu").__name__ == "forward"
    assert torch.amp.custom_bwd(forward, device_type="cpu").__name__ == "forward"
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`, got: `<class 'int'>`"):
        torch.amp.custom_fwd(forward, device_type=3)
