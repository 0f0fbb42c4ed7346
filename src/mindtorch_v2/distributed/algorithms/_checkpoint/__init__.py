"""`torch.distributed.algorithms._checkpoint`: modules that keep less for backward."""
