"""Schedulers: how sparse a sparsifier makes its tensors, by epoch."""
