"""transformers: the families of the group "experts"."""

from _family import families

families("experts")
