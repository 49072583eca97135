"""What the TPU toolbox raises."""


class TPUError(ValueError):
    """A configuration that no TPU has, a flag that its compiler does not know, or a request that needs one that is not here."""
