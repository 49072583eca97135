"""Types of jax.ad: the function that vjp returns."""
from typing import Any

from capibara._core import Ref
from capibara._stub_types import PyTree
from capibara.jax.tree_util import Partial

class GradValue:
    """The cotangent of this argument is returned."""

class DontWant:
    """The cotangent of this argument is not computed."""

class GradRef:
    """Takes the place of a cotangent that was added to the ref passed for it."""

class DidntWant:
    """Takes the place of a cotangent that was not requested."""

class VJP(Partial[tuple[Any, ...]]):
    """The pullback: from cotangents of a result to cotangents of the arguments."""

    def __call__(self, cotangent: PyTree, /) -> tuple[Any, ...]: ...
    def with_refs(self, *wanted: Ref | GradValue | DontWant | PyTree) -> VJP: ...
