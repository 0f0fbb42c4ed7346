"""How much of PyTorch's own table of operators passes (`make parity`): a table by category and family, and a list.

Every operator of `op_db` is asked, also those that nobody wrote yet: a name we do not have fails all its samples. The
samples and what counts as equal are those of the parity tests; nothing is skipped for being hard. `build/parity.txt`
gets one line for each operator and category that is not whole, with the first reason.

Invariant: the workers are separate processes; one that dies fails the operator it was at, and the rest is still asked.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

from .. import _oracle
from .._subject import subject as torch
from . import _infos, _own
from .test_errors import _share_memory
from .test_forms import _names_a_device, _reads_data, _tensors, _to_meta
from .test_gradients import leaves
from .test_values import PRECISE, _assert_same_up_to_ties, _layouts, _no_worse

CATEGORIES = ("forward float32", "other dtypes", "gradients", "errors", "meta", "variants")
FAMILIES = ("torch", "nn.functional", "linalg", "special", "fft", "masked", "signal", "sparse")
# How many samples of an operator are asked; of float32, all.
COUNTS = {"other dtypes": 8, "gradients": 25, "errors": 100, "meta": 25, "variants": 10}
SECONDS_PER_OPERATOR = 120

Verdict = str  # "" is a pass, anything else the reason why not


class Missing(Exception):
    """The library under test has no such name."""


def family(name: str) -> str:
    head = name.removeprefix("torch.").removeprefix("ops.")
    prefix = "nn.functional" if head.startswith("nn.functional.") else head.split(".", 1)[0]
    return prefix if prefix in FAMILIES else "torch"


def label(info: Any) -> str:
    return f"{info.name}-{info.variant_test_name}" if info.variant_test_name else str(info.name)


def function_of(info: Any) -> Callable[..., Any]:
    """The operator in the library under test, by its whole name; methods stand in for names without a module only."""
    found = _infos.rebound(info.op) or _infos.by_overload(info.op)
    if found is not None:
        return found
    value: Any = torch
    for part in info.name.removeprefix("torch.").split("."):
        value = getattr(value, part, None)
        if value is None:
            break
    if value is None or isinstance(value, torch.dtype):
        value = getattr(torch.Tensor, info.name, None)
    if value is None:
        raise Missing(f"no {info.name}")
    return value


def spread(items: list[Any], count: int | None) -> list[Any]:
    if count is None or len(items) <= count:
        return items
    return [items[int(i * len(items) / count)] for i in range(count)]


def samples(info: Any, dtype: Any, requires_grad: bool = False, count: int | None = None) -> list[Any]:
    oracle = _oracle.load()
    oracle.manual_seed(0)
    random.seed(0)
    return spread(list(info.sample_inputs_func(info, "cpu", dtype, requires_grad)), count)


def compare(info: Any, sample: Any, dtype: str, actual: Any, expected: Any) -> None:
    args, kwargs = _infos.arguments(sample)
    name = info.name.rpartition(".")[2]
    if _own.SKIPPED_INFOS.get(info.name) == "uninitialised memory":
        assert _layouts(actual) == _layouts(expected), f"{_layouts(actual)}, expected {_layouts(expected)}"
    elif name in _own.TIES:
        _assert_same_up_to_ties(name, actual, expected, args, kwargs, "")
    else:
        try:
            _oracle.assert_same(actual, expected, computed_in=dtype)
        except AssertionError:
            exact = dtype in PRECISE and _no_worse(info.op, sample, actual, expected, PRECISE[dtype], 1.0)
            if not exact and not same_when_processed(sample, actual, expected):
                raise


def same_when_processed(sample: Any, actual: Any, expected: Any) -> bool:
    """Where a result is only determined up to a sign or an order, PyTorch's table says what is."""
    process = getattr(sample, "output_process_fn_grad", None)
    if process is None or getattr(process, "__name__", "") == "<lambda>" and process.__code__.co_code == IDENTITY:
        return False
    mine = process(_oracle.tree_map(_oracle.to_oracle, actual, _oracle.is_subject_tensor))
    theirs = process(expected)
    pairs = zip(mine, theirs) if isinstance(theirs, (tuple, list)) else [(mine, theirs)]
    return all(_oracle.load().allclose(a, b, rtol=1e-4, atol=1e-4) for a, b in pairs)


IDENTITY = (lambda x: x).__code__.co_code


# -- categories: each yields (what was asked, the verdict) ----------------------------------------------------------
def forward(info: Any, dtype: str, count: int | None) -> Iterator[Verdict]:
    for sample in samples(info, getattr(_oracle.load(), dtype), count=count):
        args, kwargs = _infos.arguments(sample)
        expected = _infos.attempt(seeded(info.op), copied(args), copied(kwargs))
        if not isinstance(expected, _infos.Failure):
            yield judged(info, sample, lambda: run(info, sample, dtype, expected))  # noqa: B023 (called at once)


def copied(value: Any) -> Any:
    """Arguments that a call may write to; sparse ones are left as they are."""
    made = _infos.attempt(_infos.fresh, (value,), {})
    return value if isinstance(made, _infos.Failure) else made


def seeded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with fresh generators in both libraries: random results are compared too."""

    def call(*args: Any, **kwargs: Any) -> Any:
        _oracle.load().manual_seed(0)
        torch.manual_seed(0)
        return function(*args, **kwargs)

    return call


def run(info: Any, sample: Any, dtype: str, expected: Any) -> None:
    args, kwargs = _infos.arguments(sample)
    actual = seeded(function_of(info))(*_oracle.convert_argument(args), **_oracle.convert_argument(kwargs))
    compare(info, sample, dtype, actual, expected)


def judged(info: Any, sample: Any, check: Callable[[], None]) -> Verdict:
    try:
        check()
    except Missing as error:
        return str(error)
    except (KeyboardInterrupt, TimeoutError):
        raise
    except BaseException as error:
        text = f"{type(error).__name__}: {error}".replace("\n", " ")
        return f"{text[:300]}  {described(sample)}"
    return ""


def described(sample: Any) -> str:
    try:
        return _infos.describe(sample)[:200]
    except Exception:  # sparse tensors have no strides
        return ""


def forward_float32(info: Any) -> Iterator[Verdict]:
    if _oracle.load().float32 in info.dtypes:
        yield from forward(info, "float32", None)


def other_dtypes(info: Any) -> Iterator[Verdict]:
    names = sorted(_oracle.dtype_name(dtype) for dtype in info.dtypes)
    for dtype in names:
        if dtype != "float32":
            for verdict in forward(info, dtype, COUNTS["other dtypes"]):
                yield verdict and f"{dtype}: {verdict}"


def gradients(info: Any) -> Iterator[Verdict]:
    oracle = _oracle.load()
    if not info.supports_autograd or oracle.float64 not in info.dtypes:
        return
    for sample in samples(info, oracle.float64, True, COUNTS["gradients"]):
        args, kwargs = _infos.arguments(sample)
        expected = _infos.attempt(seeded(determined(info.op, sample)), args, kwargs)
        theirs = leaves(expected, oracle.Tensor)
        if theirs and leaves([args, kwargs], oracle.Tensor):
            yield judged(info, sample, lambda: gradient(info, sample, theirs))  # noqa: B023


def determined(function: Callable[..., Any], sample: Any) -> Callable[..., Any]:
    """The function, and of its result what is determined: the signs of singular vectors, say, are not."""
    process = sample.output_process_fn_grad
    return lambda *args, **kwargs: process(function(*args, **kwargs))


def gradient(info: Any, sample: Any, theirs: list[Any]) -> None:
    oracle = _oracle.load()
    args, kwargs = _infos.arguments(sample)
    mine = _oracle.convert_argument(args), _oracle.convert_argument(kwargs)
    ours = leaves(seeded(determined(function_of(info), sample))(*mine[0], **mine[1]), torch.Tensor)
    assert len(ours) == len(theirs), f"{len(ours)} results require grad, expected {len(theirs)}"
    inputs, my_inputs = leaves([args, kwargs], oracle.Tensor), leaves(list(mine), torch.Tensor)
    weights = [oracle.randn_like(result) for result in theirs]
    wanted = oracle.autograd.grad(theirs, inputs, weights, allow_unused=True)
    got = torch.autograd.grad(ours, my_inputs, [_oracle.from_oracle(w) for w in weights], allow_unused=True)
    for left, right in zip(got, wanted):
        assert (left is None) == (right is None), f"gradient is {left}, expected {right}"
        if right is not None:
            _oracle.assert_same(left, right.clone(), stride=False, computed_in="float64")


def errors(info: Any) -> Iterator[Verdict]:
    if info.error_inputs_func is None or not runs(info):
        return
    for entry in spread(list(info.error_inputs_func(info, "cpu")), COUNTS["errors"]):
        args, kwargs = _infos.arguments(entry.sample_input)
        if _infos.attempt(_share_memory, ([args, kwargs],), {}) is True:
            continue  # a tensor that crosses gets a storage of its own
        mine = _infos.attempt(lambda: (_oracle.convert_argument(args), _oracle.convert_argument(kwargs)), (), {})  # noqa: B023
        expected = _infos.attempt(seeded(info.op), args, kwargs)
        if isinstance(expected, _infos.Failure):
            yield judged(info, entry.sample_input, lambda: refused(info, mine, expected))  # noqa: B023


def runs(info: Any) -> bool:
    """Whether PyTorch itself has this operator on the CPU: else its refusals say nothing of the inputs."""
    dtype = first_dtype(info)
    few = samples(info, dtype, count=5) if dtype else []
    tried = [_infos.attempt(seeded(info.op), *copied(_infos.arguments(sample))) for sample in few]
    return not tried or not all(isinstance(found, _infos.Failure) for found in tried)


def refused(info: Any, given: Any, expected: _infos.Failure) -> None:
    assert not isinstance(given, _infos.Failure), given
    actual = _infos.attempt(function_of(info), *given)
    assert isinstance(actual, _infos.Failure), f"no exception, expected {expected}"
    assert actual.kind == expected.kind, f"{actual}, expected {expected}"


def meta(info: Any) -> Iterator[Verdict]:
    dtype = first_dtype(info)
    for sample in samples(info, dtype, count=COUNTS["meta"]) if dtype else ():
        args, kwargs = _infos.arguments(sample)
        data_decides = _infos.attempt(_reads_data, (info, args, kwargs), {}) is True
        expected = _infos.attempt(seeded(info.op), args, kwargs)
        if not data_decides and not isinstance(expected, _infos.Failure):
            yield judged(info, sample, lambda: on_meta(info, sample, expected))  # noqa: B023


def on_meta(info: Any, sample: Any, expected: Any) -> None:
    args, kwargs = _infos.arguments(sample)
    given = _to_meta(_oracle.convert_argument(args)), _to_meta(_oracle.convert_argument(kwargs))
    actual = seeded(function_of(info))(*given[0], **given[1])
    items = expected if isinstance(expected, (list, tuple)) else [expected]
    wanted = [_oracle.layout(item) for item in items if isinstance(item, _oracle.load().Tensor)]
    got = [_oracle.layout(item) for item in _tensors(actual)]
    if unstrided(got) != unstrided(wanted):
        # PyTorch's own meta functions give a few results other strides than its CPU's.
        theirs = seeded(info.op)(*_oracle_meta(args), **_oracle_meta(kwargs))
        wanted = [_oracle.layout(item) for item in (theirs if isinstance(theirs, (list, tuple)) else [theirs])]
    assert unstrided(got) == unstrided(wanted), f"{got}, expected {wanted}"
    if not _names_a_device(args, kwargs):
        assert all(item.device.type == "meta" for item in _tensors(actual)), "not on meta"


def _oracle_meta(value: Any) -> Any:
    return _oracle.tree_map(lambda tensor: tensor.to("meta"), value, _oracle.is_oracle_tensor)


def unstrided(found: list[Any]) -> list[Any]:
    """Layouts without the strides of tensors that have no elements, which follow no rule."""
    return [(shape, () if 0 in shape else stride, dtype) for shape, stride, dtype in found]


def variants(info: Any) -> Iterator[Verdict]:
    """The method, the in-place method, and out=."""
    dtype = first_dtype(info)
    if dtype is None:
        return
    for sample in samples(info, dtype, count=COUNTS["variants"]):
        args, kwargs = _infos.arguments(sample)
        for kind, method in (("method", info.method_variant), ("in-place", info.inplace_variant)):
            if method is None or kind == "in-place" and sample.broadcasts_input:
                continue
            expected = _infos.attempt(seeded(method), copied(args), copied(kwargs))
            if not isinstance(expected, _infos.Failure):
                verdict = judged(info, sample, lambda: by_method(info, sample, kind, method, expected))  # noqa: B023
                yield verdict and f"{kind}: {verdict}"
        if info.supports_out and "out" not in kwargs:
            expected = _infos.attempt(seeded(info.op), args, kwargs)
            target = _infos.attempt(_infos.fresh, (expected,), {})
            given = _infos.attempt(info.op, args, {**kwargs, "out": target})
            if not isinstance(given, _infos.Failure):
                returned = given is not None
                verdict = judged(info, sample, lambda: by_out(info, sample, expected, returned))  # noqa: B023
                yield verdict and f"out=: {verdict}"


def by_method(info: Any, sample: Any, kind: str, variant: Any, expected: Any) -> None:
    name = info.name.rpartition(".")[2] + ("_" if kind == "in-place" and not info.name.endswith("_") else "")
    method = _infos.rebound(variant)
    for place in (torch.Tensor, torch, torch.nn.functional):
        method = method or getattr(place, name, None)
    if method is None:
        raise Missing(f"no {name}")
    args, kwargs = _infos.arguments(sample)
    given = _oracle.convert_argument(args)
    actual = seeded(method)(*given, **_oracle.convert_argument(kwargs))
    if kind == "in-place":
        assert actual is given[0], "returns something else than self"
    compare(info, sample, _oracle.dtype_name(sample.input.dtype), actual, expected)


def by_out(info: Any, sample: Any, expected: Any, returned: bool) -> None:
    """`returned`: whether PyTorch's function gives its `out` back; a few give nothing."""
    many = isinstance(expected, (list, tuple))
    function = seeded(function_of(info))
    args, kwargs = _infos.arguments(sample)
    targets = [_oracle.from_oracle(t.detach(), requires_grad=False) for t in (expected if many else [expected])]
    for target in targets:
        target.fill_(1)
    actual = function(
        *_oracle.convert_argument(args), **_oracle.convert_argument(kwargs), out=tuple(targets) if many else targets[0]
    )
    assert returned or actual is None, "returns something, expected nothing"
    results = targets if not returned else list(actual) if many else [actual]
    assert all(left is right for left, right in zip(results, targets)), "returns something else than out"
    wanted = list(expected) if many else [expected]
    compare(
        info,
        sample,
        _oracle.dtype_name(wanted[0].dtype),
        results if many else results[0],
        wanted if many else wanted[0],
    )


def first_dtype(info: Any) -> Any:
    oracle = _oracle.load()
    return next((d for d in (oracle.float32, oracle.int64, oracle.bool) if d in info.dtypes), None)


ASKED: dict[str, Callable[[Any], Iterator[Verdict]]] = dict(
    zip(CATEGORIES, (forward_float32, other_dtypes, gradients, errors, meta, variants))
)


# -- workers --------------------------------------------------------------------------------------------------------
def ask(info: Any, category: str) -> dict[str, Any]:
    passed = total = 0
    reasons: list[str] = []
    try:
        for verdict in ASKED[category](info):
            total += 1
            passed += not verdict
            if verdict:
                reasons.append(verdict)
    except TimeoutError:
        total += 1
        reasons.append(f"took more than {SECONDS_PER_OPERATOR} s")
    except Exception as error:  # PyTorch's own samples could not be made, or not be handled
        total += 1
        reasons.append(f"{type(error).__name__}: {error}"[:300].replace("\n", " "))
    return {"passed": passed, "total": total, "reason": reasons[0] if reasons else ""}


def late(*_: Any) -> None:
    raise TimeoutError


def work(numbers: list[int], categories: list[str]) -> None:
    """Ask these operators; one line of JSON each, and one before it in case this process dies."""
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # samples may print
    signal.signal(signal.SIGALRM, late)
    infos = _oracle.load_op_db()
    torch.set_num_threads(1)
    for number in numbers:
        answers.write(json.dumps({"started": number}) + "\n")
        signal.alarm(SECONDS_PER_OPERATOR)
        found = {category: ask(infos[number], category) for category in categories}
        signal.alarm(0)
        answers.write(json.dumps({"number": number, "found": found}) + "\n")


def supervise(numbers: list[int], categories: list[str], results: dict[int, Any], log: Any) -> None:
    """Run a worker over these operators, and another one over the rest when it dies."""
    while numbers:
        command = [sys.executable, "-m", __spec__.name, "--work", ",".join(map(str, numbers)), "--only", *categories]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert worker.stdout is not None
        current = None
        for line in worker.stdout:
            answer = json.loads(line)
            if "started" in answer:
                current = answer["started"]
            else:
                results[answer["number"]] = answer["found"]
                current = None
        worker.wait()
        if current is None and worker.returncode != 0:
            raise SystemExit("a worker failed before its first operator; see build/parity.log")
        if current is not None:
            died = {"passed": 0, "total": 1, "reason": f"the process died ({worker.returncode})"}
            results[current] = dict.fromkeys(categories, died)
        numbers = [n for n in numbers if n not in results]


# -- the report -----------------------------------------------------------------------------------------------------
def percent(passed: int, total: int) -> str:
    return f"{100 * passed / total:5.1f} %" if total else "      -"


def table(names: dict[int, str], results: dict[int, Any], categories: list[str]) -> str:
    counts: dict[tuple[str, str], list[int]] = collections.defaultdict(lambda: [0, 0, 0, 0])
    for number, found in results.items():
        for category, answer in found.items():
            if answer["total"]:
                for place in (family(names[number]), "all"):
                    cell = counts[place, category]
                    cell[0] += answer["passed"]
                    cell[1] += answer["total"]
                    cell[2] += answer["passed"] == answer["total"]
                    cell[3] += 1
    lines = []
    for title, at in (("percent of samples that pass", 0), ("percent of operators whose samples all pass", 2)):
        lines += [title, f"{'':16}" + "".join(f"{category:>18}" for category in categories)]
        for place in ("all", *FAMILIES):
            cells = [counts[place, category] for category in categories]
            if any(cell[1] for cell in cells):
                lines.append(f"{place:16}" + "".join(f"{percent(cell[at], cell[at + 1]):>18}" for cell in cells))
        lines.append("")
    asked = [counts["all", category] for category in categories]
    lines.append(f"{'samples asked':16}" + "".join(f"{cell[1]:>18}" for cell in asked))
    return "\n".join(lines)


def is_missing(reason: str) -> bool:
    return reason.startswith(("no ", "AttributeError: module 'mindtorch_v2"))


def listing(names: dict[int, str], results: dict[int, Any], categories: list[str]) -> str:
    """What is missing altogether, then what fails, by category."""
    missing = sorted(
        names[n]
        for n, found in results.items()
        if found[categories[0]]["total"]
        and not found[categories[0]]["passed"]
        and is_missing(found[categories[0]]["reason"])
    )
    lines = [f"missing names ({len(missing)})", *(f"    {name}" for name in missing)]
    for category in categories:
        failing = sorted(
            (names[n], found[category])
            for n, found in results.items()
            if found[category]["passed"] < found[category]["total"] and names[n] not in missing
        )
        lines += ["", f"{category} ({len(failing)} operators)"]
        lines += [f"    {name}  {answer['passed']}/{answer['total']}  {answer['reason']}" for name, answer in failing]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Percent of PyTorch's table of operators that passes.")
    parser.add_argument("--out", default="build/parity.txt", help="where the list of what fails is written")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--names", default="", help="only operators whose name contains this")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=CATEGORIES,
        default=list(CATEGORIES),
        metavar="CATEGORY",
        help=f"only these of: {', '.join(CATEGORIES)}",
    )
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work([int(number) for number in options.work.split(",")], options.only)
        return
    begun = time.monotonic()
    names = {i: label(info) for i, info in enumerate(_oracle.load_op_db()) if options.names in info.name}
    results: dict[int, Any] = {}
    target = Path(options.out)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".log").open("w") as log:
        shards = [[n for at, n in enumerate(names) if at % options.jobs == shard] for shard in range(options.jobs)]
        threads = [Thread(target=supervise, args=(shard, options.only, results, log)) for shard in shards if shard]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if len(results) != len(names):
        raise SystemExit("not every operator was asked; see " + str(target.with_suffix(".log")))
    text = table(names, results, options.only)
    print(text)
    target.write_text(text + "\n\n" + listing(names, results, options.only))
    print(f"\n{len(names)} operators in {time.monotonic() - begun:.0f} s; what fails is in {target}")


if __name__ == "__main__":
    main()
