"""torch-geometric, its pure-Python part: convolutions, pooling, batches of graphs, training, saving and loading."""

import io
from typing import Any

from _stages import run, seeded, train


def importing(kept: dict[str, Any]) -> Any:
    import torch_geometric

    return torch_geometric.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    from torch_geometric import nn
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader
    from torch_geometric.utils import to_undirected

    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.GCNConv(5, 8)
            self.second = nn.GATConv(8, 4, heads=2)
            self.third = nn.SAGEConv(8, 8)
            self.norm = nn.GraphNorm(8)
            self.head = torch.nn.Linear(8, 2)

        def forward(self, data: Any) -> Any:
            x = self.first(data.x, data.edge_index).relu()
            x = self.norm(self.second(x, data.edge_index), data.batch).relu()
            x = self.third(x, data.edge_index)
            return self.head(nn.global_mean_pool(x, data.batch) + nn.global_max_pool(x, data.batch))

    graphs = []
    for n in (4, 6, 5, 7):
        edges = to_undirected(torch.randint(0, n, (2, 2 * n)))
        graphs.append(Data(x=torch.rand(n, 5), edge_index=edges, y=torch.tensor([n % 2])))
    kept["batch"] = next(iter(DataLoader(graphs, batch_size=4)))
    kept["make"], kept["model"] = Net, Net()
    return {"graphs": repr(kept["batch"]), "sum": sum(p.abs().sum() for p in kept["model"].parameters())}


def training(kept: dict[str, Any]) -> Any:
    import torch

    batch = kept["batch"]
    return train(kept["model"], lambda: torch.nn.functional.cross_entropy(kept["model"](batch), batch.y))


def evaluate(kept: dict[str, Any]) -> Any:
    import torch
    from torch_geometric import EdgeIndex
    from torch_geometric.utils import add_self_loops, degree, scatter, softmax, to_dense_adj

    edges = kept["batch"].edge_index
    typed, _ = EdgeIndex(edges, sparse_size=(22, 22)).sort_by("col", stable=True)
    with torch.no_grad():
        return {
            "logits": kept["model"].eval()(kept["batch"]),
            "degree": degree(edges[0]),
            "loops": add_self_loops(edges)[0],
            "dense": to_dense_adj(edges).sum(-1),
            "softmax": softmax(torch.arange(edges.shape[1]) / 10, edges[1]),
            "scatter": [scatter(kept["batch"].x, kept["batch"].batch, reduce=r) for r in ("sum", "mean", "max", "mul")],
            "sorted": typed.as_tensor(),
            "text": repr(typed).splitlines()[-1].strip(),
        }


def save(kept: dict[str, Any]) -> Any:
    import torch

    file = io.BytesIO()
    torch.save({"model": kept["model"].state_dict(), "graph": kept["batch"].to_dict()}, file)
    file.seek(0)
    loaded = torch.load(file)
    again = kept["make"]()
    again.load_state_dict(loaded["model"])
    assert (loaded["graph"]["edge_index"] == kept["batch"].edge_index).all()
    with torch.no_grad():
        return again.eval()(kept["batch"])


run(importing, build, training, evaluate, save)
