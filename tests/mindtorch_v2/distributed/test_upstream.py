"""Tests of `torch.distributed` that PyTorch's wheel carries, on this package."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from ._ranks import Ranks

# Of those for CPUs, the ones that ranks can run one after the other in one group.
_NAMES = """
Backend_enum_class DistributedDataParallelCPU DistributedDataParallelCPU_grad_is_view
DistributedDataParallel_requires_grad accumulate_gradients_no_sync accumulate_gradients_no_sync_allreduce_hook
accumulate_gradients_no_sync_allreduce_with_then_hook accumulate_gradients_no_sync_grad_is_view all_gather
all_gather_coalesced_complex all_gather_coalesced_with_empty all_gather_object_default_pg all_gather_object_subgroup
all_reduce_coalesced_full_group_max all_reduce_coalesced_max_complex_unsupported all_reduce_coalesced_sum
all_reduce_complex_unsupported_ops all_reduce_full_group_product all_reduce_max all_reduce_sum_async
all_reduce_sum_complex all_to_all_complex all_to_all_single_equal_split_full_group all_to_all_single_unequal_split
batch_isend_irecv_gloo batch_isend_irecv_gloo_tags batch_isend_irecv_op_list_err broadcast broadcast_full_group
ddp_create_graph destroy_full_group dump_DDP_relevant_env_vars gather gather_checks gather_full_group gather_object
get_backend get_future get_rank_size_full_group grads_same_across_ranks_with_no_sync irecv isend_autograd_profiler
isend_torch_profiler reduce_full_group_min reduce_sum_twice scatter scatter_checks scatter_complex scatter_object_list
send_recv_any_source_torch_profiler send_recv_autograd_profiler send_recv_with_tag sparse_all_reduce_sum
static_graph_api_cpu
"""


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    _oracle.load()
    made = Ranks("mindtorch_v2", 3)
    yield made
    made.close()


@mindtorch_only
@pytest.mark.parametrize("name", _NAMES.split())
def test_passes(ranks: Ranks, name: str) -> None:
    assert ranks.values("_upstream.run", f"test_{name}") == [""] * 3


@mindtorch_only
@pytest.mark.parametrize("case", ["Processes", "Threads", "Operators"])
def test_cases_on_their_bases(case: str) -> None:
    _oracle.load()
    command = [sys.executable, "-m", f"{__package__}._upstream_cases", case]
    root = Path(__file__).parents[str(__package__).count(".") + 1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
