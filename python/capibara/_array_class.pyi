"""For type checkers, jax.Array and the class of arrays are the same."""
from capibara._core import Array as Array
