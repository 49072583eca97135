"""jax.experimental.colocated_python: Python functions and objects that run on the host of their arrays.

Every device of a process belongs to the host that runs its Python, so functions run immediately in this process and no data
is sent. Arrays of other processes' devices are refused.
"""
from capibara._modules import explain_missing
from capibara.jax.experimental.colocated_python.api import colocated_cpu_devices, colocated_python, colocated_python_class

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]

explain_missing(__name__)
