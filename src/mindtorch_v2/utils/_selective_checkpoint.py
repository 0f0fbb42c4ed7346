"""Checkpoints that keep the results of some operators, and logs of what a checkpoint ran.

Invariant: the modes made here count the calls of each operator; the n-th call of an operator while a checkpoint is run
again stands for its n-th call in the forward pass.
"""

from __future__ import annotations

import enum
import traceback
from collections.abc import Callable
from typing import Any

from .._operators import OpOverload, OpOverloadPacket, ops
from .._tensor_base import TensorBase
from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_leaves, tree_map

_MISMATCH = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that "
    "changed between forward and backward."
)
_RECOMPUTE = object()
_CONSUMED = object()

SAC_IGNORED_OPS = {ops.aten.detach.default}


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's result: kept, or computed again. MUST and PREFER differ for compilers only, and
    offloading to the CPU is theirs as well: here it is computed again."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is told beside the operator and its arguments."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class _Counter(TorchDispatchMode):
    """Numbers the calls of each operator since the mode was entered."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[Any, int] = {}

    def __enter__(self) -> Any:
        self.counts.clear()
        return super().__enter__()

    def number(self, func: Any) -> int:
        n = self.counts.get(func, 0)
        self.counts[func] = n + 1
        return n


class _Kept:
    """A tensor and the version it had."""

    def __init__(self, value: Any) -> None:
        tensor = isinstance(value, TensorBase)
        self.value: Any = value.detach() if tensor else value
        self.version: int | None = value._version if tensor else None

    def get(self, allow_mutation: bool) -> Any:
        if self.version is not None and not allow_mutation and self.value._version != self.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.value


Storage = dict[Any, dict[int, Any]]


class _Keeping(_Counter):
    """On in the forward pass: asks the policy, keeps what it says."""

    def __init__(self, policy: Callable[..., Any], storage: Storage) -> None:
        super().__init__()
        self.policy = policy
        self.storage = storage

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func in SAC_IGNORED_OPS:
            return out
        n = self.number(func)
        policy = self.policy(SelectiveCheckpointContext(is_recompute=False, op_output=out), func, *args, **kwargs)
        keep = policy is True or policy in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
        self.storage.setdefault(func, {})[n] = tree_map(_Kept, out) if keep else _RECOMPUTE
        return out


class _Repeating(_Counter):
    """On while the call is run again: gives what was kept, once."""

    def __init__(self, storage: Storage, allow_mutation: bool) -> None:
        super().__init__()
        self.storage = storage
        self.allow_mutation = allow_mutation

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in SAC_IGNORED_OPS:
            return func(*args, **kwargs)
        n = self.number(func)
        calls = self.storage.get(func)
        if calls is None:
            raise RuntimeError(f"{func} encountered during backward but not found in storage. {_MISMATCH}")
        entry = calls.get(n)
        if entry is None:
            raise RuntimeError(
                f"{func} invocation index {n} encountered during backward but not found in storage. {_MISMATCH}"
            )
        if entry is _CONSUMED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        if entry is _RECOMPUTE:
            return func(*args, **kwargs)
        calls[n] = _CONSUMED
        return tree_map(lambda kept: kept.get(self.allow_mutation), entry)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """Contexts for `checkpoint(context_fn=)`: operators in the list, or for which `policy(ctx, op, *args, **kwargs)`
    says so, are not computed again."""
    policy: Any = policy_fn_or_list
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, OpOverload):
                hint = (
                    (
                        "Please update the OpOverloadPacket to a specific OpOverload.For example, if you have "
                        "`torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                    )
                    if isinstance(op, OpOverloadPacket)
                    else ""
                )
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. {hint}"
                )

        def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in policy_fn_or_list else CheckpointPolicy.PREFER_RECOMPUTE
    elif not callable(policy_fn_or_list):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: Storage = {}
    return _Keeping(policy, storage), _Repeating(storage, allow_cache_entry_mutation)


# -- logs -------------------------------------------------------------------------------------------------------------
class OperatorLog(TorchDispatchMode):
    """Writes down every operator, with tensors numbered as they appear, and where it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.stacks: list[list[str]] = []
        self._numbers: dict[int, int] = {}
        # Kept so that no other tensor gets their place in memory, and so their number.
        self._seen: list[Any] = []

    def _name(self, value: Any) -> str:
        if not isinstance(value, TensorBase):
            return repr(value)
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._numbers)
            self._seen.append(value)
        return f"${self._numbers[id(value)]}"

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = [self._name(a) for a in tree_leaves(args)] + [f"{k}={self._name(v)}" for k, v in kwargs.items()]
        out = func(*args, **kwargs)
        made = ", ".join(
            f"{self._name(t)}: {str(t.dtype).split('.')[-1]}[{', '.join(map(str, t.shape))}]"
            for t in tree_leaves(out)
            if isinstance(t, TensorBase)
        )
        self.lines.append(f"{made} = torch._ops.{func}({', '.join(given)})")
        self.stacks.append([f"{f.filename}:{f.lineno}:{f.name}" for f in reversed(traceback.extract_stack()[:-1])])
        return out

    def traces(self, label: str) -> str:
        """Every operator with the stack it was called from, innermost first."""
        n = len(self.lines)
        return "".join(
            f"{line}   ({i + 1} of {n} in {label})\n\n" + "\n".join(stack) + "\n\n\n"
            for i, (line, stack) in enumerate(zip(self.lines, self.stacks))
        )


_RULE = "+" + "-" * 78 + "+"
_REPORT = f"""An error happened while unpacking tensors; dumping logs of latest computation
because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.
Scroll all the way down for guidance on how to navigate these logs.

{_RULE}
|        1. Stack traces of the operators that ran in the original forward     |
{_RULE}

{{0}}
{_RULE}
|        2. Stack traces of the operators that ran during recomputation        |
{_RULE}

{{1}}
{_RULE}
|       3. Log of operators in the original forward and recomputation          |
{_RULE}
(Scroll up to correlate stack traces with each operation listed below. This
 helps identify their source in the code.)

Operations executed during the original forward:

{{2}}

Operations executed during recomputation:

{{3}}

{_RULE}
 ERROR: Detected non-determinism while running activation checkpointing

 You are seeing this error because you passed `debug=True` to checkpoint and
 tensors to be saved during the original forward and differ between those saved
 during recomputation. This can happen if different operators were ran in the
 original forward and in the recomputation.
"""


class DebugLogs:
    """The logs of one checkpoint's two runs; the contexts to run them in, and the report."""

    def __init__(self) -> None:
        self.forward = OperatorLog()
        self.again = OperatorLog()

    def contexts(self) -> tuple[Any, Any]:
        return self.forward, self.again

    def report(self) -> str:
        return _REPORT.format(
            self.forward.traces("original"),
            self.again.traces("recompute"),
            "\n".join(self.forward.lines),
            "\n".join(self.again.lines),
        )
