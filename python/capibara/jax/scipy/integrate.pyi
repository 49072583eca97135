"""Types of capibara.jax.scipy.integrate. Made by tools/python/make_stubs.py."""
from capibara.jax.numpy import trapezoid as trapezoid
