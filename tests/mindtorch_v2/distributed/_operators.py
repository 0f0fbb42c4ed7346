"""PyTorch's table of operators on tensors of a mesh, against the same calls on plain tensors.

Invariant: all ranks draw the same samples and placements; what must come is computed by a rank alone.
`python -m tests.mindtorch_v2.distributed._operators [--ranks 2] [--first 0] [--last 700] [--names stft]` asks all
of it and says which calls differ.
"""

from __future__ import annotations

import argparse
import random
import warnings
from collections import Counter
from typing import Any

# What draws numbers has others on each rank's part; what is not set has any value.
RANDOM = frozenset(
    """bernoulli multinomial normal nn.functional.dropout nn.functional.dropout2d nn.functional.dropout3d rand_like
    nn.functional.alpha_dropout nn.functional.feature_alpha_dropout nn.functional.rrelu randn_like randint_like cauchy
    exponential geometric log_normal uniform empty_like new_empty new_empty_strided empty_strided empty rand randn
    randint empty_permuted nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d
    nn.functional.multi_head_attention_forward svd_lowrank pca_lowrank torch.ops.aten._safe_softmax.default
    normal.number_mean bernoulli.p linalg.svd svd linalg.eig linalg.eigh linalg.qr qr geqrf linalg.householder_product
    nn.functional.scaled_dot_product_attention torch.ops.aten._efficient_attention_forward
    torch.ops.aten._flash_attention_forward""".split()
)


# What is refused, by name and the words of the refusal; PyTorch refuses each of them too, some in other words.
MIXED = "got mixed torch.Tensor and DTensor"
REFUSED = {
    "as_strided": "as_strided not supported with DTensor",
    "resize_": "does not have a sharding strategy registered",
    "__getitem__": MIXED,  # of a list or a plain tensor
    "masked.var": MIXED,
    "masked.std": MIXED,
    "linalg.matrix_power": MIXED,  # to the power of nothing
    "short": "Invalid scalar type",  # which gloo does not send
    "to_sparse": "backend",
    "nn.functional.embedding": "no way is known to write in place",  # with a largest norm
}


def unexpected(name: str, found: str) -> bool:
    """Whether a call is wrong, and not one that is refused."""
    return bool(found) and not (name in REFUSED and REFUSED[name] in found)


def _placed(dist: Any, draw: random.Random, tensor: Any, mesh: Any) -> Any:
    places = dist.tensor
    dims = [dim for dim, size in enumerate(tensor.shape) if size > 1]
    chosen = draw.choice([None, *dims]) if dims else None
    placement = places.Replicate() if chosen is None else places.Shard(chosen)
    return places.distribute_tensor(tensor.detach(), mesh, [placement])


def _mapped(function: Any, value: Any, kind: Any) -> Any:
    if isinstance(value, kind):
        return function(value)
    if isinstance(value, (list, tuple)):
        made = [_mapped(function, each, kind) for each in value]
        return (
            type(value)(*made)
            if hasattr(value, "_fields")
            else type(value)(made)
            if type(value) is list
            else tuple(made)
        )
    if isinstance(value, dict):
        return {name: _mapped(function, each, kind) for name, each in value.items()}
    return value


def _infos_tensors(value: Any) -> list[Any]:
    from .. import _oracle

    found: list[Any] = []
    _mapped(found.append, value, _oracle.load().Tensor)
    return found


def asked(torch: Any, dist: Any, rank: int, size: int, number: int, samples: int) -> list[tuple[str, str]]:
    """Of the calls of one entry: what was called, and what is wrong with it, if anything."""
    from .. import _oracle
    from ..parity import _infos, report

    info = _oracle.load_op_db()[number]
    if info.name in RANDOM:
        return []
    mesh = dist.device_mesh.init_device_mesh("cpu", (size,))
    float32 = _oracle.load().float32
    dtype = next((each for each in (float32, _oracle.load().int64) if each in info.dtypes), None)
    if dtype is None:
        return []
    told: list[tuple[str, str]] = []
    try:
        function = report.function_of(info)
        given = report.samples(info, dtype, count=samples)
    except Exception:
        return []
    for at, sample in enumerate(given):
        theirs = _infos.arguments(sample)
        if any(each.layout is not _oracle.load().strided for each in _infos_tensors(theirs)):
            continue  # which no mesh has
        args, kwargs = _oracle.convert_argument(theirs)
        draw = random.Random(f"{info.name} {at}")
        try:
            torch.manual_seed(0)
            want = function(*_mapped(torch.clone, args, torch.Tensor), **_mapped(torch.clone, kwargs, torch.Tensor))
        except Exception:  # other tests compare what is refused
            continue
        found = ""
        try:
            made: list[Any] = []

            def place(each: Any) -> Any:
                made.append(_placed(dist, draw, each, mesh))  # noqa: B023 (called at once)
                return made[-1]  # noqa: B023

            placed = _mapped(place, (args, kwargs), torch.Tensor)
            if not made:
                continue
            torch.manual_seed(0)
            got = function(*placed[0], **placed[1])
            got = _mapped(lambda each: each.full_tensor(), got, dist.tensor.DTensor)
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4, equal_nan=True)
        except Exception as error:
            found = f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
        told.append((f"{report.label(info)} {at}", found))
    return told


def main() -> None:
    from .. import _oracle
    from ._ranks import Ranks

    parser = argparse.ArgumentParser(description="PyTorch's table of operators on tensors of a mesh.")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=100_000)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--names", default="")
    given = parser.parse_args()
    infos = _oracle.load_op_db()
    ranks = Ranks("mindtorch_v2", given.ranks, seconds=20.0)
    calls, wrong, causes = 0, 0, Counter[str]()
    for number in range(given.first, min(given.last, len(infos))):
        if given.names not in infos[number].name:
            continue
        try:
            answers = ranks.ask("_operators.asked", number, given.samples)
            same = all(kind == "value" for kind, _ in answers)
        except (AssertionError, EOFError, OSError) as error:
            answers, same = [("error", repr(error))], False
        told = answers[0][1] if same else [(infos[number].name, str(answers)[:300])]
        for at, (what, found) in enumerate(told):
            calls += 1
            others = [each[1][at][1] for each in answers[1:] if same]
            found = found or next((each for each in others if each), "")
            if found:
                wrong += 1
                causes[found[:60]] += 1
                print(f"{number} {what}: {found}", flush=True)
        apart = same and any([bool(b) for _, b in each[1]] != [bool(b) for _, b in told] for each in answers[1:])
        if not same or apart:  # ranks that do not agree are not asked again
            ranks.close()
            ranks = Ranks("mindtorch_v2", given.ranks, seconds=20.0)
    ranks.close()
    for cause, count in causes.most_common(20):
        print(count, cause)
    print(f"{given.ranks} ranks: {calls - wrong} of {calls} calls right")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
