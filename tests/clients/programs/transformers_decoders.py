"""transformers: the families of the group "decoders"."""

from _family import families

families("decoders")
