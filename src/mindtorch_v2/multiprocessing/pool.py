"""A pool of processes whose arguments and results may hold tensors."""

from __future__ import annotations

import multiprocessing.pool
from multiprocessing import util
from typing import Any

from .queue import SimpleQueue


def clean_worker(*args: Any, **kwargs: Any) -> None:
    """A worker that frees what it shared before it goes."""
    import gc

    pools: Any = multiprocessing.pool
    pools.worker(*args, **kwargs)
    # What is in cycles would keep its names in the file system.
    gc.collect()


class Pool(multiprocessing.pool.Pool):
    """`multiprocessing.Pool` over queues of this package."""

    def _setup_queues(self) -> None:
        own: Any = self
        own._inqueue = SimpleQueue(ctx=own._ctx)
        own._outqueue = SimpleQueue(ctx=own._ctx)
        own._quick_put = own._inqueue._writer.send
        own._quick_get = own._outqueue._reader.recv

    def _repopulate_pool(self) -> None:
        own: Any = self
        for _ in range(own._processes - len(own._pool)):
            args = (own._inqueue, own._outqueue, own._initializer, own._initargs, own._maxtasksperchild)
            worker = own.Process(own._ctx, target=clean_worker, args=(*args, own._wrap_exception))
            worker.name = worker.name.replace("Process", "PoolWorker")
            worker.daemon = True
            worker.start()
            own._pool.append(worker)
            util.debug("added worker")
