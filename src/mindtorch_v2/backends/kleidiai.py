"""`torch.backends.kleidiai`: there is no KleidiAI."""


def is_available() -> bool:
    return False
