"""Types of functions promised to be linear."""
from collections.abc import Callable

from capibara._stub_types import PyTree

def linear_call(
    fun: Callable[[PyTree, PyTree], PyTree], fun_transpose: Callable[[PyTree, PyTree], PyTree], residual_args: PyTree, linear_args: PyTree
) -> PyTree: ...
