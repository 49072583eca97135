"""Operating a training: what saves it, watches it and measures it."""
