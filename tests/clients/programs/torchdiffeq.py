"""torchdiffeq: solvers, and gradients through them by recording and by the adjoint equation."""

from typing import Any

from _stages import run, seeded, train


def importing(kept: dict[str, Any]) -> Any:
    import torchdiffeq

    return torchdiffeq.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    from torchdiffeq import odeint

    net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))

    class Field(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

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


run(importing, build, training)
