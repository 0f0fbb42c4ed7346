"""captum: six attributions of a small network, before it is saved and after it is loaded."""

from typing import Any

from _stages import reloaded, run, seeded, train


def importing(kept: dict[str, Any]) -> Any:
    import captum.attr

    return captum.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    kept["model"] = model(torch)
    kept["x"] = torch.rand(5, 4)
    return kept["model"](kept["x"])


def model(torch: Any) -> Any:
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).eval()


def training(kept: dict[str, Any]) -> Any:
    """Fewer attributions to what does not matter."""
    from captum.attr import Saliency

    def loss() -> Any:
        found = Saliency(kept["model"]).attribute(kept["x"].clone().requires_grad_(), target=1)
        return kept["model"](kept["x"]).pow(2).mean() + found.mean()

    return train(kept["model"], loss)


def evaluate(kept: dict[str, Any]) -> Any:
    from captum.attr import DeepLift, InputXGradient, IntegratedGradients, LayerConductance, Occlusion, Saliency

    model, x = kept["model"], kept["x"]
    return {
        "integrated": IntegratedGradients(model).attribute(x, target=1, n_steps=20),
        "saliency": Saliency(model).attribute(x, target=1),
        "product": InputXGradient(model).attribute(x, target=1),
        "occlusion": Occlusion(model).attribute(x, (1,), target=1),
        "deep lift": DeepLift(model).attribute(x, target=1),
        "layer": LayerConductance(model, model[0]).attribute(x, target=1, n_steps=20),
    }


def save(kept: dict[str, Any]) -> Any:
    import torch
    from captum.attr import IntegratedGradients

    loaded = reloaded(model(torch), kept["model"])
    return IntegratedGradients(loaded).attribute(kept["x"], target=1, n_steps=20)


run(importing, build, training, evaluate, save)
