"""`torch.distributed.elastic.utils.log_level`."""


def get_log_level() -> str:
    """What loggers tell where the environment does not say."""
    return "WARNING"
