"""Cases on the bases that PyTorch's own tests have: ranks that are processes, and ranks that are threads.

Run as a program: PyTorch's base starts processes that import this file again.
"""

from __future__ import annotations

import unittest
from typing import Any

from ._upstream import use_their_tools

use_their_tools()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor, init_device_mesh  # noqa: E402
from torch.testing._internal.common_distributed import MultiThreadedTestCase  # noqa: E402
from torch.testing._internal.distributed._tensor.common_dtensor import DTensorOpTestBase, DTensorTestBase, with_comms  # noqa: E402

WHOLE = torch.arange(16.0).view(4, 4)


class Processes(DTensorTestBase):
    @property
    def world_size(self) -> int:
        return 2

    @with_comms
    def test_tensors_on_a_mesh(self) -> None:
        mesh = self.build_device_mesh()
        found = distribute_tensor(WHOLE, mesh, [Shard(0)])
        self.assertEqual((found * 2).full_tensor(), WHOLE * 2)
        self.assertEqual(found.sum().full_tensor().item(), 120.0)


class Threads(MultiThreadedTestCase):
    @property
    def world_size(self) -> int:
        return 4

    def setUp(self) -> None:
        super().setUp()
        self._spawn_threads()

    def test_collectives(self) -> None:
        rank = dist.get_rank()
        tensor = torch.full((3,), float(rank))
        dist.all_reduce(tensor)
        self.assertEqual(tensor, torch.full((3,), 6.0))
        rows = torch.empty(4)
        dist.all_gather_single(rows, torch.full((1,), float(rank)))
        self.assertEqual(rows, torch.arange(4.0))
        part = torch.empty(1)
        dist.reduce_scatter_single(part, torch.arange(4.0))
        self.assertEqual(part.item(), 4.0 * rank)
        group = dist.new_group([0, 2])
        if rank in (0, 2):
            one = torch.ones(1)
            dist.all_reduce(one, group=group)
            self.assertEqual(one.item(), 2.0)

    def test_a_mesh_of_two_dimensions(self) -> None:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
        for placements in ([Shard(0), Replicate()], [Shard(1), Shard(0)], [Replicate(), Shard(1)]):
            self.assertEqual(distribute_tensor(WHOLE, mesh, placements).full_tensor(), WHOLE)


class Operators(DTensorOpTestBase):
    def test_operators(self) -> None:
        mesh = self.build_device_mesh()
        weight = distribute_tensor(WHOLE, mesh, [Shard(1)])
        self.assertEqual(torch.relu(weight - 3).full_tensor(), torch.relu(WHOLE - 3))
        product: Any = weight @ distribute_tensor(WHOLE, mesh, [Shard(0)])
        self.assertEqual(product.placements, (Partial(),))
        self.assertEqual(product.full_tensor(), WHOLE @ WHOLE)


if __name__ == "__main__":
    unittest.main()
