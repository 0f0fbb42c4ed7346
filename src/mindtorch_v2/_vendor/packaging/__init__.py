"""`torch._vendor.packaging`: versions and their order."""
