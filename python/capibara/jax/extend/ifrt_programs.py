"""jax.extend.ifrt_programs: programs for IFRT's plugins.

IFRT belongs to jaxlib: there are none here, only the name that libraries import.
"""
import sys

from capibara._modules import explain_missing

ifrt_programs = sys.modules[__name__]  # jax shows jaxlib's module under the name of its own

explain_missing(__name__)
