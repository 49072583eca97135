"""jax.distributed: this process as one of several that run one program."""
import atexit
import os

from capibara import _core
from capibara._modules import explain_missing


def initialize(coordinator_address=None, num_processes=None, process_id=None, local_device_ids=None, *, initialization_timeout=300,
               coordinator_bind_address=None):
    """Meets the other processes at the coordinator's HOST:PORT, where process 0 serves a key-value store.

    Call it before devices are asked for. What is not given is read from JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES,
    JAX_PROCESS_ID and JAX_COORDINATOR_BIND_ADDRESS. Process 0 listens at coordinator_address, unless coordinator_bind_address
    says otherwise. Only processes that know the job's secret are let in: CAPIBARA_JOB_SECRET, or the content of the file
    CAPIBARA_JOB_SECRET_FILE, or one that process 0 leaves in the user's cache folder.
    """
    address = coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS")
    count = num_processes if num_processes is not None else os.environ.get("JAX_NUM_PROCESSES")
    own = process_id if process_id is not None else os.environ.get("JAX_PROCESS_ID")
    for name, value in (("coordinator_address", address), ("num_processes", count), ("process_id", own)):
        if value is None:
            raise ValueError(f"{name} should be defined.")
    if local_device_ids is not None:
        raise NotImplementedError(f"distributed.initialize: a process takes all its devices, got local_device_ids={local_device_ids!r}")
    bind_address = coordinator_bind_address or os.environ.get("JAX_COORDINATOR_BIND_ADDRESS") or ""
    _core.initialize_processes(str(address), int(count), int(own), int(initialization_timeout), str(bind_address))
    atexit.register(shutdown)


def is_initialized():
    """Whether this process has met the others."""
    return _core.process_group()[2]


def shutdown():
    """Waits for the others and leaves."""
    _core.shut_down_processes()
    atexit.unregister(shutdown)


explain_missing(__name__)
