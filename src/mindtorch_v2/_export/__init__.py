"""`torch._export`: PyTorch's inside of `torch.export`; its marks are here, exporting is not."""
