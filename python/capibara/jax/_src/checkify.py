"""jax._src.checkify: names of jax.experimental.checkify."""
import typing

from capibara._modules import explain_missing
from capibara.jax.experimental._check_errors import JaxException  # noqa: F401
from capibara.jax.experimental.checkify import *  # noqa: F401,F403
from capibara.jax.experimental.checkify import Error, checkify, user_checks  # noqa: F401

Out = typing.TypeVar("Out")
explain_missing(__name__)
