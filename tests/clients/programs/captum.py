"""captum: attributions of a small network."""

from typing import Any

from _stages import run, seeded


def importing(kept: dict[str, Any]) -> Any:
    import captum.attr

    return captum.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    kept["model"] = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).eval()
    kept["x"] = torch.rand(5, 4)
    return kept["model"](kept["x"])


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


run(importing, build, evaluate)
