"""`torch._dynamo.external_utils`: what running programs ask."""

from . import is_compiling as is_compiling
