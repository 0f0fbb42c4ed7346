"""pyro-ppl: regression by variational inference, prediction, a Markov chain, the parameter store saved and loaded."""

import os
import tempfile
from typing import Any

from _stages import run, seeded


def importing(kept: dict[str, Any]) -> Any:
    import pyro

    return pyro.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    import pyro
    import pyro.distributions as dist

    pyro.set_rng_seed(0)
    pyro.clear_param_store()
    kept["x"] = torch.rand(20)
    kept["y"] = 2.0 * kept["x"] - 0.5 + 0.1 * torch.randn(20)

    def model(x: Any, y: Any = None) -> Any:
        slope = pyro.sample("slope", dist.Normal(0.0, 3.0))
        start = pyro.sample("start", dist.Normal(0.0, 3.0))
        noise = pyro.sample("noise", dist.HalfNormal(1.0))
        with pyro.plate("data", len(x)):
            return pyro.sample("obs", dist.Normal(slope * x + start, noise), obs=y)

    kept["model"] = model
    trace = pyro.poutine.trace(model).get_trace(kept["x"], kept["y"])
    return {"density": trace.log_prob_sum(), "sites": list(trace.nodes)}


def training(kept: dict[str, Any]) -> Any:
    from pyro.infer import SVI, Trace_ELBO
    from pyro.infer.autoguide import AutoNormal
    from pyro.optim import ClippedAdam

    kept["guide"] = AutoNormal(kept["model"])
    svi = SVI(kept["model"], kept["guide"], ClippedAdam({"lr": 0.05}), Trace_ELBO(num_particles=2))
    return [svi.step(kept["x"], kept["y"]) for _ in range(20)]


def evaluate(kept: dict[str, Any]) -> Any:
    from pyro.infer import Predictive

    return {k: v.mean(0) for k, v in Predictive(kept["model"], guide=kept["guide"], num_samples=8)(kept["x"]).items()}


def chain(kept: dict[str, Any]) -> Any:
    from pyro.infer import HMC, MCMC

    chain = MCMC(HMC(kept["model"], step_size=0.05, num_steps=3), 4, warmup_steps=2, disable_progbar=True)
    chain.run(kept["x"], kept["y"])
    return chain.get_samples()


def enumerated(kept: dict[str, Any]) -> Any:
    import pyro
    import pyro.distributions as dist
    import torch
    from pyro.infer import TraceEnum_ELBO, config_enumerate

    pyro.set_rng_seed(1)

    @config_enumerate
    def mixture(data: Any) -> Any:
        weights = pyro.param("weights", torch.tensor([0.4, 0.6]), constraint=dist.constraints.simplex)
        places = pyro.param("places", torch.tensor([-1.0, 1.0]))
        with pyro.plate("data", len(data)):
            kind = pyro.sample("kind", dist.Categorical(weights))
            pyro.sample("obs", dist.Normal(places[kind], 0.5), obs=data)

    loss = TraceEnum_ELBO(max_plate_nesting=1).differentiable_loss(mixture, lambda data: None, kept["y"])
    loss.backward()
    return {"loss": loss, "gradient": pyro.get_param_store()._params["places"].grad}


def save(kept: dict[str, Any]) -> Any:
    import pyro

    path = os.path.join(tempfile.mkdtemp(), "store")
    store = pyro.get_param_store()
    store.save(path)
    before = {k: v.detach().clone() for k, v in store.items()}
    pyro.clear_param_store()
    store.load(path)
    assert all((store[k] == v).all() for k, v in before.items())
    return {k: store[k] for k in sorted(before)}


run(importing, build, training, evaluate, chain, enumerated, save)
