"""skorch: a network as an estimator of scikit-learn: fitting, scoring, searching, saving and loading."""

import os
import tempfile
from typing import Any

from _stages import run, seeded


def importing(kept: dict[str, Any]) -> Any:
    import skorch

    return skorch.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    from skorch import NeuralNetClassifier
    from skorch.callbacks import EpochScoring, LRScheduler

    kept["x"] = torch.rand(40, 4).numpy()
    kept["y"] = (kept["x"].sum(1) > 2).astype("int64")

    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, width: int = 8) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 2), torch.nn.Softmax(-1)
            )

        def forward(self, x: Any) -> Any:
            return self.layers(x)

    kept["make"] = lambda: NeuralNetClassifier(
        Net,
        max_epochs=4,
        lr=0.05,
        optimizer=torch.optim.AdamW,
        batch_size=8,
        verbose=0,
        iterator_train__shuffle=True,
        callbacks=[LRScheduler("StepLR", step_size=2), EpochScoring("roc_auc", name="auc", lower_is_better=False)],
    )
    kept["net"] = kept["make"]().initialize()
    return sum(p.abs().sum() for p in kept["net"].module_.parameters())


def training(kept: dict[str, Any]) -> Any:
    seeded()
    kept["net"].fit(kept["x"], kept["y"])
    return {name: kept["net"].history[:, name] for name in ("train_loss", "valid_loss", "auc")}


def evaluate(kept: dict[str, Any]) -> Any:
    seeded()
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    search = GridSearchCV(kept["make"](), {"module__width": [4, 8]}, cv=2, scoring="accuracy", refit=False)
    search.fit(kept["x"], kept["y"])
    pipe = make_pipeline(StandardScaler(), kept["make"]()).fit(kept["x"], kept["y"])
    return {
        "found": search.cv_results_["mean_test_score"],
        "piped": pipe.predict(kept["x"]),
        "chances": kept["net"].predict_proba(kept["x"]),
    }


def save(kept: dict[str, Any]) -> Any:
    folder = tempfile.mkdtemp()
    paths = {name: os.path.join(folder, name) for name in ("f_params", "f_optimizer", "f_history")}
    kept["net"].save_params(**paths)
    again = kept["make"]().initialize()
    again.load_params(**paths)
    again.partial_fit(kept["x"], kept["y"])
    return {"chances": again.predict_proba(kept["x"][:4]), "epochs": len(again.history)}


run(importing, build, training, evaluate, save)
