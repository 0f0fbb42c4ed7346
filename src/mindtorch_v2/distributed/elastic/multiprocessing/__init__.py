"""`torch.distributed.elastic.multiprocessing`: what a worker of torchrun leaves for its agent."""
