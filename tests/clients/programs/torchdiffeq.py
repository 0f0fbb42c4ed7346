"""torchdiffeq: solvers, events, gradients by recording and by the adjoint equation, saving and loading."""

from typing import Any

from _stages import reloaded, run, seeded, train


def importing(kept: dict[str, Any]) -> Any:
    import torchdiffeq

    return torchdiffeq.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    from torchdiffeq import odeint

    class Field(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))

        def forward(self, t: Any, y: Any) -> Any:
            return self.net(y**3)

    kept.update(field=Field(), y=torch.tensor([[2.0, 0.0]]), t=torch.linspace(0, 1, 5))
    return {m: odeint(kept["field"], kept["y"], kept["t"], method=m) for m in ("euler", "rk4", "dopri5", "bosh3")}


def training(kept: dict[str, Any]) -> Any:
    from torchdiffeq import odeint, odeint_adjoint

    field = kept["field"]
    return [
        train(field, lambda: odeint(field, kept["y"], kept["t"]).pow(2).mean()),
        train(field, lambda: odeint_adjoint(field, kept["y"], kept["t"]).pow(2).mean()),
    ]


def evaluate(kept: dict[str, Any]) -> Any:
    """A ball that falls to the ground, and how a solver does beside another."""
    import torch
    from torchdiffeq import odeint, odeint_event

    start = torch.tensor([10.0, 0.0])
    when, path = odeint_event(
        lambda t, y: torch.stack([y[1], torch.full_like(y[1], -9.81)]),
        start,
        torch.tensor(0.0),
        event_fn=lambda t, y: y[0],
        method="dopri5",
    )
    with torch.no_grad():
        fine, coarse = (odeint(kept["field"], kept["y"], kept["t"], method=m) for m in ("dopri8", "midpoint"))
    return {"event": [when, path], "error": (fine - coarse).abs().max()}


def save(kept: dict[str, Any]) -> Any:
    import torch
    from torchdiffeq import odeint

    with torch.no_grad():
        return odeint(reloaded(type(kept["field"])(), kept["field"]), kept["y"], kept["t"])


run(importing, build, training, evaluate, save)
