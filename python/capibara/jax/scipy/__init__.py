"""jax.scipy."""
from capibara._modules import explain_missing
from capibara.jax.scipy import cluster, fft, integrate, linalg, ndimage, signal, special, stats  # noqa: F401

explain_missing(__name__, later=dict.fromkeys(("interpolate", "optimize", "sparse", "spatial")))
