"""What compiled code calls above its own layer: operators behind Python's syntax, and the core's hooks.

Invariant: filled once, while the package is imported; nothing here is called before that, and nothing is replaced
afterwards. A field is one attribute read of a compiled object, where a registry would be a lookup by name.
"""

from __future__ import annotations

from typing import Any, Final, final


class OpBase:
    """What a tensor needs to know of an operator: that it can be called with its arguments in schema order."""

    def call(self, args: tuple[Any, ...]) -> Any:
        raise NotImplementedError


@final
class CoreOperators:
    """Rows that the tensor, the engine and formulas call; a field has the name of its row."""

    add: OpBase
    sub: OpBase
    rsub: OpBase
    mul: OpBase
    div: OpBase
    floor_divide: OpBase
    remainder: OpBase
    pow: OpBase
    matmul: OpBase
    neg: OpBase
    abs: OpBase
    eq: OpBase
    ne: OpBase
    lt: OpBase
    le: OpBase
    gt: OpBase
    ge: OpBase
    bitwise_and: OpBase
    bitwise_or: OpBase
    bitwise_xor: OpBase
    bitwise_not: OpBase
    lshift: OpBase
    rshift: OpBase
    add_: OpBase
    sub_: OpBase
    mul_: OpBase
    div_: OpBase
    floor_divide_: OpBase
    remainder_: OpBase
    pow_: OpBase
    bitwise_and_: OpBase
    bitwise_or_: OpBase
    bitwise_xor_: OpBase
    lshift_: OpBase
    rshift_: OpBase
    reciprocal: OpBase
    positive: OpBase
    conj: OpBase
    _neg_view: OpBase
    as_strided: OpBase
    copy_: OpBase
    zero_: OpBase
    ones_like: OpBase
    alias: OpBase
    clone: OpBase
    real: OpBase
    sum: OpBase
    view: OpBase
    to_copy: OpBase
    select: OpBase
    slice: OpBase
    unsqueeze: OpBase
    expand: OpBase
    index: OpBase
    index_put_: OpBase
    masked_fill_: OpBase
    masked_select: OpBase
    fill_: OpBase
    nonzero: OpBase
    cat: OpBase
    stack: OpBase


CORE: Final = CoreOperators()


@final
class Hooks:
    """What the core needs of modules that are built on it: the class of new tensors, and slow paths."""

    tensor: Any  # the class of new tensors
    class_keys: Any  # key bits of a subclass
    # autograd
    refresh_grad_fn: Any
    warn_grad: Any
    check_grad: Any
    grad_copy: Any
    sparse_grad: Any
    sparse_zeros: Any
    # new tensors
    zeros: Any
    dense_like: Any
    scalar: Any
    from_data: Any
    untyped_storage: Any  # the Python object of a storage that has none yet
    construct: Any  # `Tensor(...)`
    asked_data: Any  # `t.data` of a tensor whose class may answer
    sparse_bytes: Any  # `t.nbytes`
    lifted: Any  # shows a tensor made of numbers to the modes of `__torch_dispatch__`
    # values on other devices
    host_item: Any
    warn_scalar: Any  # a number of a tensor that requires grad
    to_host: Any
    all_values: Any  # of a tensor inside `vmap`
    at_levels_of: Any  # a new tensor at the levels of `vmap` of another one
    many_like: Any  # a gradient at the levels of `vmap` of another one
    batched_truth: Any  # `bool` of a tensor inside `vmap`
    # tangents of nested tensors, which are those of their values
    nested_tangent: Any
    nested_dual: Any
    # indexing; `asked` goes through __torch_function__
    getitem: Any
    setitem: Any
    asked_getitem: Any
    asked_setitem: Any
    can_answer_key: Any
    asked_operator: Any
    asked_factory: Any
    # `t == array` and `array / t`, which PyTorch computes itself.
    with_array: Any
    public_index_put: Any
    public_index_put_: Any

    def __init__(self) -> None:
        self.tensor = None
        self.refresh_grad_fn = None


HOOKS: Final = Hooks()
