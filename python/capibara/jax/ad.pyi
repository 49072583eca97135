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
    """In place of a cotangent: it was added to the ref that was given."""

class DidntWant:
    """In place of a cotangent that was not wanted."""

class VJP(Partial[tuple[Any, ...]]):
    """The function from cotangents of a result to cotangents of the arguments."""

    def __call__(self, cotangent: PyTree, /) -> tuple[Any, ...]: ...
    def with_refs(self, *wanted: Ref | GradValue | DontWant | PyTree) -> VJP: ...
