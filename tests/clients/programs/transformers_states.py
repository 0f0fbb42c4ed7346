"""transformers: the families of the group "states"."""

from _family import families

families("states")
