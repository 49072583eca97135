"""Types of capibara.jax.stages. Made by tools/python/make_stubs.py."""
from capibara import _core as _core
from capibara._core import Compiled as Compiled
from capibara._core import Lowered as Lowered
from capibara._core import Traced as Traced
from capibara._shape_struct import ArgInfo as ArgInfo

from typing import TypeAlias

CompilerOptions: TypeAlias = dict[str, str | bool]
Wrapped = _core.JitFunction
