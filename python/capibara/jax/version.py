"""The version of jax whose interface this package provides."""
__version__ = "0.10.2"
__version_info__ = (0, 10, 2)
