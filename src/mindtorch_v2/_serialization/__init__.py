"""What `torch.save` and `torch.load` are made of.

`archive` and `archive_writer` are PyTorch's zip container, `names` turns our names in pickles into PyTorch's and back,
`unpickler` is the restricted unpickler with its closed table in `allowed`, `locations` says where storages live,
`reading`, `saving` and `legacy` put them together, `atomic` replaces files whole.

Invariant: nothing a file says is believed. Every offset and length is compared with what the file holds before memory
is allocated, and whatever is wrong with a file is a `CheckpointError`.
"""
