"""`torch._environment`: where the program runs; nowhere in particular."""


def is_fbcode() -> bool:
    return False


def is_prod() -> bool:
    return False
