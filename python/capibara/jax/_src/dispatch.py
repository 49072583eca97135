"""jax._src.dispatch: waiting for effects."""
from capibara._modules import explain_missing
from capibara.jax import effects_barrier


def wait_for_tokens():
    """Waits until all side effects have happened."""
    effects_barrier()


explain_missing(__name__)
