"""jax._src.interpreters.ad: names of jax.interpreters.ad."""
from capibara._errors import UnexpectedTracerError as CustomVJPException  # noqa: F401 - of values that a function with a rule closes over
from capibara._modules import explain_missing
from capibara.jax.interpreters.ad import *  # noqa: F401,F403

explain_missing(__name__)
