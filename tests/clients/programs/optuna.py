"""optuna: a study whose objective trains a network, with pruning; the best network saved and loaded."""

import io
from typing import Any

from _stages import run, seeded


def importing(kept: dict[str, Any]) -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    kept["x"] = torch.rand(64, 3)
    kept["y"] = kept["x"].prod(-1, keepdim=True)
    return kept["y"].sum()


def training(kept: dict[str, Any]) -> Any:
    import optuna

    def objective(trial: Any) -> float:
        torch = seeded(trial.number)
        width = trial.suggest_int("width", 2, 16)
        rate = trial.suggest_float("rate", 1e-3, 1e-1, log=True)
        kind = trial.suggest_categorical("kind", ["SGD", "Adam", "RMSprop"])
        model = torch.nn.Sequential(torch.nn.Linear(3, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))
        optimizer = getattr(torch.optim, kind)(model.parameters(), lr=rate)
        for step in range(5):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(kept["x"]), kept["y"])
            loss.backward()
            optimizer.step()
            trial.report(loss.item(), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        kept.setdefault("models", {})[trial.number] = model
        return float(loss.detach())

    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=1), pruner=optuna.pruners.MedianPruner(n_startup_trials=3)
    )
    study.optimize(objective, n_trials=12)
    kept["study"] = study
    return [[t.state.name, t.value, *t.params.values()] for t in study.trials]


def evaluate(kept: dict[str, Any]) -> Any:
    import torch

    kept["best"] = kept["models"][kept["study"].best_trial.number]
    with torch.no_grad():
        return {"best": kept["study"].best_params, "values": kept["best"](kept["x"][:4])}


def save(kept: dict[str, Any]) -> Any:
    import torch

    file = io.BytesIO()
    torch.save(kept["best"].state_dict(), file)
    file.seek(0)
    width = kept["study"].best_params["width"]
    again = torch.nn.Sequential(torch.nn.Linear(3, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))
    again.load_state_dict(torch.load(file))
    with torch.no_grad():
        return again(kept["x"][:4])


run(importing, build, training, evaluate, save)
