"""jax.stages: the classes of jit's stages."""
from typing import Union

from capibara._core import Compiled, JitFunction as Wrapped, Lowered, Traced  # noqa: F401
from capibara._types import ArgInfo  # noqa: F401
from capibara._modules import explain_missing

CompilerOptions = dict[str, Union[str, bool]]
explain_missing(__name__)
