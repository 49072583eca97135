"""Types of capibara.jax.scipy.sparse. Made by tools/python/make_stubs.py."""
from capibara.jax.scipy.sparse import linalg as linalg
