"""Autograd: gradients, modes, custom functions, hooks."""
from __future__ import annotations

import copy
from typing import Any

from ._case import Case


def inferred(torch: Any) -> Any:
    with torch.inference_mode():
        return torch.ones(2)


def no_grad_view(torch: Any, tensor: Any) -> Any:
    with torch.no_grad():
        return tensor[:1]


def double(ctx: Any, x: Any) -> Any:
    return x * 2


def multiply(ctx: Any, x: Any, y: Any) -> Any:
    return x * y


def no_backward(torch: Any) -> Any:
    return type("NoBackward", (torch.autograd.Function,), {"forward": staticmethod(double)})


def wrong_count(torch: Any) -> Any:
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient

    body = {"forward": staticmethod(multiply), "backward": staticmethod(backward)}
    return type("WrongCount", (torch.autograd.Function,), body)


def wrong_shape(torch: Any) -> Any:
    def backward(ctx: Any, gradient: Any) -> Any:
        return torch.ones(3)

    body = {"forward": staticmethod(double), "backward": staticmethod(backward)}
    return type("WrongShape", (torch.autograd.Function,), body)


def once(torch: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 2 * ctx.saved_tensors[0]

    body = {
        "forward": staticmethod(forward),
        "backward": staticmethod(torch.autograd.function.once_differentiable(backward)),
    }
    return type("Once", (torch.autograd.Function,), body)


def backward_twice(y: Any) -> None:
    y.backward()
    y.backward()


def backward_after_write(y: Any) -> None:
    y.add_(1)
    y.sum().backward()


CASES: list[Case] = [
    Case(
        "backward_number",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.sum().backward(0),
        "TypeError",
        "'int' object is not iterable",
    ),
    Case(
        "backward_letters",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.sum().backward("a"),
        "TypeError",
        "gradients can be either Tensors or None, but got str",
    ),
    Case(
        "leaf_inplace",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.add_(1),
        "RuntimeError",
        "a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    Case(
        "leaf_view_inplace",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a[:1].mul_(2),
        "RuntimeError",
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    Case(
        "leaf_setitem",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.__setitem__(0, 5.0),
        "RuntimeError",
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    Case(
        "leaf_fill",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.zero_(),
        "RuntimeError",
        "a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    Case(
        "leaf_copy",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.copy_(torch.zeros(2)),
        "RuntimeError",
        "a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    Case(
        "leaf_out",
        lambda torch: dict(a=torch.ones(2, requires_grad=True), b=torch.ones(2)),
        lambda torch, v: torch.add(v.b, v.b, out=v.a),
        "RuntimeError",
        "add(): functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad.",
    ),
    Case(
        "out_with_grad_input",
        lambda torch: dict(a=torch.ones(2, requires_grad=True), o=torch.zeros(2)),
        lambda torch, v: torch.mul(v.a, 2, out=v.o),
        "RuntimeError",
        "mul(): functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad.",
    ),
    Case(
        "backward_non_scalar",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: (v.a * 2).backward(),
        "RuntimeError",
        "grad can be implicitly created only for scalar outputs",
    ),
    Case(
        "backward_no_grad",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a.sum().backward(),
        "RuntimeError",
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    Case(
        "backward_shape",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: (v.a * 2).backward(torch.ones(3)),
        "RuntimeError",
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a shape of "
        "torch.Size([2]).",
    ),
    Case(
        "backward_twice",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: backward_twice(v.a.exp().sum()),
        "RuntimeError",
        "Trying to backward through the graph a second time (or directly access saved tensors after they "
        "have already been freed). Saved intermediate values of the graph are freed when you call "
        ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph "
        "a second time or if you need to access saved tensors after calling backward.",
    ),
    Case(
        "backward_after_inplace",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: backward_after_write(v.a.exp()),
        "RuntimeError",
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor [2]], which is output 0 of Exp, is at version 1; expected version 0 instead. "
        "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False).",
    ),
    Case(
        "backward_empty_inputs",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.sum().backward(inputs=[]),
        "RuntimeError",
        "`inputs` argument to `backward()` cannot be empty.",
    ),
    Case(
        "grad_unused",
        lambda torch: dict(a=torch.ones(2, requires_grad=True), b=torch.ones(2, requires_grad=True)),
        lambda torch, v: torch.autograd.grad(v.a.sum(), [v.b]),
        "RuntimeError",
        "The differentiated Tensor at index 0 appears to not have been used in the graph. Set "
        "allow_unused=True if this is the desired behavior.",
    ),
    Case(
        "grad_no_requires",
        lambda torch: dict(a=torch.ones(2, requires_grad=True), b=torch.ones(2)),
        lambda torch, v: torch.autograd.grad(v.a.sum(), [v.b]),
        "RuntimeError",
        "One of the differentiated Tensors does not require grad",
    ),
    Case(
        "grad_materialize_unused",
        lambda torch: dict(a=torch.ones(2, requires_grad=True), b=torch.ones(2, requires_grad=True)),
        lambda torch, v: torch.autograd.grad(v.a.sum(), [v.b], allow_unused=False, materialize_grads=True),
        "ValueError",
        "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.",
    ),
    Case(
        "grad_wrong_shape",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: setattr(v.a, "grad", torch.ones(3)),
        "RuntimeError",
        "attempting to assign a gradient of size '[3]' to a tensor of size '[2]'. Please ensure that the "
        "gradient and the tensor are the same size",
    ),
    Case(
        "grad_wrong_dtype",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: setattr(v.a, "grad", torch.ones(2, dtype=torch.float64)),
        "RuntimeError",
        "attempting to assign a gradient with dtype 'double' to a tensor with grad_dtype 'Float'. The "
        "gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the "
        "tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. Set grad_dtype "
        "with caution. Diverging the dtypes of a tensor and its gradient may break downstream systems that "
        "assume they match.",
    ),
    Case(
        "grad_wrong_type",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: setattr(v.a, "grad", 5),
        "TypeError",
        "assigned grad expected to be a Tensor or None but got grad of type int",
    ),
    Case(
        "grad_itself",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: setattr(v.a, "grad", v.a),
        "RuntimeError",
        "can't assign Variable as its own grad",
    ),
    Case(
        "requires_grad_nonleaf",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: (v.a * 2).requires_grad_(False),
        "RuntimeError",
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
        "in a subgraph that doesn't require differentiation use var_no_grad = var.detach().",
    ),
    Case(
        "retain_grad_no_grad",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a.retain_grad(),
        "RuntimeError",
        "can't retain_grad on Tensor that has requires_grad=False",
    ),
    Case(
        "hook_no_grad",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a.register_hook(lambda g: g),
        "RuntimeError",
        "cannot register a hook on a tensor that doesn't require gradient",
    ),
    Case(
        "post_hook_nonleaf",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: (v.a * 2).register_post_accumulate_grad_hook(lambda t: None),
        "RuntimeError",
        "post accumulate grad hooks cannot be registered on non-leaf tensors",
    ),
    Case(
        "hook_wrong_shape",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: (v.a.register_hook(lambda g: torch.ones(3)), v.a.sum().backward()),
        "RuntimeError",
        "hook '<lambda>' has changed the size of value",
    ),
    Case(
        "hook_wrong_type",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: (v.a.register_hook(lambda g: 5), v.a.sum().backward()),
        "TypeError",
        "expected Variable, but hook returned 'int'",
    ),
    Case(
        "deepcopy_nonleaf",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: copy.deepcopy(v.a * 2),
        "RuntimeError",
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
        "moment.  If you were attempting to deepcopy a module, this may be because of a "
        "torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001",
    ),
    Case(
        "detach_inplace_view",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: (v.a * 1)[:1].detach_(),
        "RuntimeError",
        "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) "
        "for training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and "
        "hence detach_() cannot be called on these gradients. To fix this error, please refer to the "
        "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution.",
    ),
    Case(
        "inference_inplace",
        lambda torch: dict(a=torch.ones(2), b=inferred(torch)),
        lambda torch, v: v.b.add_(1),
        "RuntimeError",
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get "
        "a normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more "
        "details.",
    ),
    Case(
        "inference_saved",
        lambda torch: dict(a=torch.ones(2, requires_grad=True), b=inferred(torch)),
        lambda torch, v: v.a * v.b,
        "RuntimeError",
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode "
        "in computation tracked by autograd. To work around this, you can make a clone to get a normal "
        "tensor and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.",
    ),
    Case(
        "inference_requires_grad",
        lambda torch: dict(b=inferred(torch)),
        lambda torch, v: v.b.requires_grad_(),
        "RuntimeError",
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.",
    ),
    Case(
        "inference_version",
        lambda torch: dict(b=inferred(torch)),
        lambda torch, v: v.b._version,
        "RuntimeError",
        "Inference tensors do not track version counter.",
    ),
    Case(
        "no_grad_view_inplace",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: no_grad_view(torch, v.a * 1).mul_(2),
        "RuntimeError",
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that "
        "this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
        "both the view and the inplace either both inside the no_grad block (if you don't want the inplace "
        "to be tracked) or both outside (if you want the inplace to be tracked).",
    ),
    Case(
        "multi_view_inplace",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: (v.a * 1).unbind()[0].mul_(2),
        "RuntimeError",
        "Output 0 of Unbind is a view and is being modified inplace. This view is the output of a function "
        "that returns multiple views. Such functions do not allow the output views to be modified inplace. "
        "You should replace the inplace operation by an out-of-place one.",
    ),
    Case(
        "function_without_backward",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: no_backward(torch).apply(v.a).sum().backward(),
        "NotImplementedError",
        "You must implement either the backward or vjp method for your custom autograd.Function to use it "
        "with backward mode AD.",
    ),
    Case(
        "function_wrong_count",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: wrong_count(torch).apply(v.a, v.a).sum().backward(),
        "RuntimeError",
        "function WrongCountBackward returned an incorrect number of gradients (expected 2, got 1)",
    ),
    Case(
        "function_wrong_shape",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: wrong_shape(torch).apply(v.a).sum().backward(),
        "RuntimeError",
        "Function WrongShapeBackward returned an invalid gradient at index 0 - got [3] but expected shape "
        "compatible with [2]",
    ),
    Case(
        "function_instance_call",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: no_backward(torch)()(v.a),
        "RuntimeError",
        "Legacy autograd function with non-static forward method is deprecated. Please use new-style "
        "autograd function with static forward method. (Example: "
        "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)",
    ),
    Case(
        "once_differentiable_twice",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: torch.autograd.grad(
            torch.autograd.grad(once(torch).apply(v.a).sum(), v.a, create_graph=True)[0].sum(), v.a
        ),
        "RuntimeError",
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ),
]
