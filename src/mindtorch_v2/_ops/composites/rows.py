"""The rows that compiled composites end in.

Invariant: the tables fill `ROWS` as they declare the rows; nothing here is called before they are loaded.
"""

from __future__ import annotations

from typing import Any, Final, final

from ..._dispatch.op import Op
from ..._mypyc import i64


@final
class Rows:
    """Fields of one type: a call of one is a direct call of `Op`."""

    # views
    view: Op
    unsafe_view: Op
    reshape_alias: Op
    reshape: Op
    transpose: Op
    t: Op
    permute: Op
    slice: Op
    expand: Op
    squeeze: Op
    unsqueeze: Op
    # products
    mm: Op
    addmm: Op
    bmm: Op
    mv: Op
    dot: Op
    row_of: Op
    # values
    add: Op
    mul: Op
    conj: Op
    clone: Op
    to_copy: Op
    # normalisation and losses
    softmax: Op
    log_softmax: Op
    layer_norm: Op
    plain_layer_norm: Op
    nll_forward: Op
    nll_nd: Any
    cross_entropy: Any


ROWS: Final = Rows()


def below(op: Op, args: tuple[Any, ...], keys: i64) -> Any:
    """Call an operator with the very tensors whose keys are already known."""
    if op.last_keys == keys:
        return op.last_kernel.run(op, args, keys)
    return op.below(keys, args).run(op, args, keys)
