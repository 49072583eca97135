"""jax._src.distributed: the index of this process among several."""
from capibara import _core
from capibara._modules import explain_missing


class _State:
    """The current group of processes."""

    client = None  # not jaxlib's service: processes connect by capibara's own store or MPI
    service = None

    @property
    def process_id(self) -> int:
        return _core.process_group()[0]

    @property
    def num_processes(self) -> int:
        return _core.process_group()[1]


global_state = _State()

explain_missing(__name__)
