"""gpytorch: regression with an exact Gaussian process: training, prediction, saving and loading."""

from typing import Any

from _stages import reloaded, run, seeded


def importing(kept: dict[str, Any]) -> Any:
    import gpytorch

    return gpytorch.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    import gpytorch

    kept["x"] = torch.linspace(0, 1, 20)
    kept["y"] = torch.sin(kept["x"] * 6.28) + 0.1 * torch.randn(20)

    class Process(gpytorch.models.ExactGP):
        def __init__(self, x: Any, y: Any, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean = gpytorch.means.ConstantMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    kept["likelihood"] = gpytorch.likelihoods.GaussianLikelihood()
    kept["model"] = Process(kept["x"], kept["y"], kept["likelihood"])
    return kept["y"]


def training(kept: dict[str, Any]) -> Any:
    import gpytorch
    import torch

    model, likelihood = kept["model"].train(), kept["likelihood"].train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = -objective(model(kept["x"]), kept["y"])
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses


def evaluate(kept: dict[str, Any]) -> Any:
    import gpytorch
    import torch

    model, likelihood = kept["model"].eval(), kept["likelihood"].eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        found = likelihood(model(torch.linspace(0, 1, 7)))
    return {"mean": found.mean, "variance": found.variance}


def save(kept: dict[str, Any]) -> Any:
    """The trained weights in a process that has not been trained."""
    import gpytorch
    import torch

    fresh = type(kept["model"])(kept["x"], kept["y"], gpytorch.likelihoods.GaussianLikelihood())
    fresh = reloaded(fresh, kept["model"]).eval()
    with torch.no_grad():
        return fresh.likelihood(fresh(torch.linspace(0, 1, 7))).mean


run(importing, build, training, evaluate, save)
