"""jax.extend.ifrt_programs: programs for IFRT plugins.

IFRT is part of jaxlib: there are no such programs here, only the name that libraries import.
"""
import sys

from capibara._modules import explain_missing

ifrt_programs = sys.modules[__name__]  # jax re-exports jaxlib's module under its own name

explain_missing(__name__)
