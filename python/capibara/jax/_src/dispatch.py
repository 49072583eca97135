"""jax._src.dispatch: waiting for effects, and primitives on concrete arrays."""
from capibara._modules import explain_missing
from capibara.jax import effects_barrier
from capibara.jax.interpreters.xla import apply_primitive  # noqa: F401


def wait_for_tokens():
    """Waits for all side effects to complete."""
    effects_barrier()


explain_missing(__name__)
