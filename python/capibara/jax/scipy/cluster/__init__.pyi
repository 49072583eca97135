"""Types of capibara.jax.scipy.cluster. Made by tools/python/make_stubs.py."""
from capibara.jax.scipy.cluster import vq as vq
