"""transformers: the families of the group "speech"."""

from _family import families

families("speech")
