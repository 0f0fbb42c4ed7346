"""timm, with the tests' stand-in for torchvision: five families of image models: training, features, saving."""

import io
import os
import sys
from typing import Any

from _stages import run_parts, seeded, train

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "stand_in"))

SIZE = 32
MODELS: dict[str, dict[str, Any]] = {
    "resnet18": {},
    "mobilenetv3_small_050": {},
    "convnext_atto": {"depths": (1, 1, 1, 1), "dims": (8, 16, 24, 32)},
    "efficientnet_lite0": {},
    "vit_tiny_patch16_224": {"img_size": SIZE, "depth": 2, "embed_dim": 48},
}


def stages(name: str, options: dict[str, Any]) -> list[Any]:
    def build(kept: dict[str, Any]) -> Any:
        torch = seeded()
        import timm

        kept["model"] = timm.create_model(name, pretrained=False, num_classes=5, **options)
        kept["x"], kept["y"] = torch.rand(2, 3, SIZE, SIZE), torch.tensor([1, 4])
        return [timm.__version__, sum(p.numel() for p in kept["model"].parameters())]

    def training(kept: dict[str, Any]) -> Any:
        torch = seeded(1)
        model = kept["model"].train()
        for m in model.modules():  # two images of one pixel give batch norms nothing to divide by
            if isinstance(m, torch.nn.BatchNorm2d):
                m.eval()
        return train(model, lambda: torch.nn.functional.cross_entropy(model(kept["x"]), kept["y"]), rate=1e-3)

    def evaluate(kept: dict[str, Any]) -> Any:
        import torch

        with torch.no_grad():
            model = kept["model"].eval()
            features = model.forward_features(kept["x"])
            return {"logits": model(kept["x"]), "features": features.flatten(1).mean(1)}

    def save(kept: dict[str, Any]) -> Any:
        import timm
        import torch

        file = io.BytesIO()
        torch.save(kept["model"].state_dict(), file)
        file.seek(0)
        again = timm.create_model(name, pretrained=False, num_classes=5, **options)
        again.load_state_dict(torch.load(file))
        with torch.no_grad():
            return again.eval()(kept["x"])

    return [build, training, evaluate, save]


run_parts({name: stages(name, options) for name, options in MODELS.items()})
