"""jax.scipy.cluster.vq: vector quantization."""
from capibara._modules import explain_missing
from capibara.jax import numpy as _jnp


def vq(obs, code_book, check_finite=True):
    """The index of the nearest code for every observation, and the distance to it.

    `check_finite` is SciPy's and has no effect: values are not checked in advance.
    """
    obs, code_book = _jnp.asarray(obs), _jnp.asarray(code_book)
    if obs.ndim != code_book.ndim:
        raise ValueError(f"vq: obs and code_book must have the same rank, got shapes {obs.shape} and {code_book.shape}")
    if obs.ndim not in (1, 2):
        raise ValueError(f"vq: obs must have rank 1 or 2, got shape {obs.shape}")
    if obs.ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    distances = _jnp.linalg.norm(obs[:, None, :] - code_book[None, :, :], axis=-1)
    return _jnp.argmin(distances, axis=-1), _jnp.min(distances, axis=-1)


explain_missing(__name__)
