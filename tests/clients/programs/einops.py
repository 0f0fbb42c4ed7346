"""einops: functions, layers, `einsum`, `pack`: training, saving and loading."""

from typing import Any

from _stages import reloaded, run, seeded, train


def importing(kept: dict[str, Any]) -> Any:
    import einops
    import einops.layers.torch

    return einops.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    kept["x"] = torch.rand(4, 3, 8, 8)
    kept["model"] = model(torch)
    return kept["model"](kept["x"])


def model(torch: Any) -> Any:
    from einops.layers.torch import Rearrange, Reduce

    return torch.nn.Sequential(
        Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4),
        torch.nn.Linear(48, 5),
        Reduce("b n c -> b c", "mean"),
    )


def training(kept: dict[str, Any]) -> Any:
    return train(kept["model"], lambda: kept["model"](kept["x"]).pow(2).sum())


def evaluate(kept: dict[str, Any]) -> Any:
    from einops import einsum, pack, rearrange, reduce, repeat, unpack

    x = kept["x"]
    packed, shapes = pack([x, x[:, :1]], "b * h w")
    return {
        "rearrange": rearrange(x, "b c h w -> (b w) c h").sum(-1),
        "reduce": reduce(x, "b c (h 2) w -> b h", "max"),
        "repeat": repeat(x[0, 0], "h w -> h (w k)", k=2),
        "einsum": einsum(x, x, "b c h w, b c h v -> b w v").sum(0),
        "pack": [packed.sum(), *(part.sum() for part in unpack(packed, shapes, "b * h w"))],
    }


def save(kept: dict[str, Any]) -> Any:
    import torch

    return reloaded(model(torch), kept["model"])(kept["x"])


run(importing, build, training, evaluate, save)
