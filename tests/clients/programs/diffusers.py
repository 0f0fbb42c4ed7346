"""diffusers: a small UNet with a DDPM schedule: training, sampling, saving and loading."""

import tempfile
from typing import Any

from _stages import run, seeded, train


def importing(kept: dict[str, Any]) -> Any:
    import diffusers

    diffusers.utils.logging.set_verbosity_error()
    return diffusers.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    from diffusers import DDPMScheduler, UNet2DModel

    kept["model"] = UNet2DModel(
        sample_size=8,
        in_channels=1,
        out_channels=1,
        layers_per_block=1,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    kept["schedule"] = DDPMScheduler(num_train_timesteps=20)
    kept["x"], kept["noise"] = torch.rand(2, 1, 8, 8), torch.randn(2, 1, 8, 8)
    return sum(p.abs().sum() for p in kept["model"].parameters())


def training(kept: dict[str, Any]) -> Any:
    import torch

    t = torch.tensor([3, 11])
    noisy = kept["schedule"].add_noise(kept["x"], kept["noise"], t)
    return train(kept["model"], lambda: (kept["model"](noisy, t).sample - kept["noise"]).pow(2).mean(), rate=1e-3)


def evaluate(kept: dict[str, Any]) -> Any:
    torch = seeded(4)
    schedule = kept["schedule"]
    schedule.set_timesteps(4)
    x = torch.randn(1, 1, 8, 8)
    with torch.no_grad():
        for t in schedule.timesteps:
            x = schedule.step(kept["model"].eval()(x, t).sample, t, x).prev_sample
    return x.sum(-1)


def save(kept: dict[str, Any]) -> Any:
    import torch
    from diffusers import UNet2DModel

    folder = tempfile.mkdtemp()
    kept["model"].save_pretrained(folder)
    with torch.no_grad():
        return UNet2DModel.from_pretrained(folder).eval()(kept["x"], 5).sample.sum(-1)


run(importing, build, training, evaluate, save)
