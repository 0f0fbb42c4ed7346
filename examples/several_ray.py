"""`several.py` as actors of Ray: each is a process, on whatever node Ray gives it.

    pip install ray; python examples/several_ray.py --ranks 2

For NPUs give each actor one: `Rank.options(resources={"NPU": 1})`, and `--device npu`.
"""

from __future__ import annotations

import argparse
import os
import socket
from importlib import import_module
from typing import Any


class Rank:
    """One process of the group."""

    def address(self) -> tuple[str, int]:
        """Where the others find rank 0: this node, and a port that is free."""
        with socket.socket() as probe:
            probe.bind(("", 0))
            return socket.gethostbyname(socket.gethostname()), int(probe.getsockname()[1])

    def train(self, rank: int, size: int, host: str, port: int, steps: int, path: str, device: str) -> float:
        names = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": 0, "MASTER_ADDR": host, "MASTER_PORT": port}
        os.environ.update({name: str(value) for name, value in names.items()})
        return float(import_module("several").train(steps, path, device))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--checkpoint", default=os.path.abspath("several.pt"))
    parser.add_argument("--device", default="cpu", choices=["cpu", "npu"])
    given = parser.parse_args()
    ray: Any = import_module("ray")
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.pathsep.join(part for part in (here, os.environ.get("PYTHONPATH", "")) if part)
    ray.init(runtime_env={"env_vars": {"PYTHONPATH": path}}, include_dashboard=False)
    actors = [ray.remote(Rank).remote() for _ in range(given.ranks)]
    host, port = ray.get(actors[0].address.remote())
    rest = (given.ranks, host, port, given.steps, given.checkpoint, given.device)
    losses = ray.get([actor.train.remote(rank, *rest) for rank, actor in enumerate(actors)])
    print(f"losses {losses}")
    ray.shutdown()


if __name__ == "__main__":
    main()
