"""`torch._vendor`: what PyTorch carries from other projects; of it the order of versions is here."""
