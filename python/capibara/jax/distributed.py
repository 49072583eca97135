"""jax.distributed: several processes that run one program."""
import atexit
import os
import sys
import threading

from capibara import _core, _tracebacks
from capibara._errors import DistributedError  # noqa: F401
from capibara._modules import explain_missing

_METHODS = ("ompi", "slurm", "mpi4py", "deactivate")
_previous_hook = None
_watching = None  # the thread that reports the main thread's position


def initialize(coordinator_address=None, num_processes=None, process_id=None, local_device_ids=None, cluster_detection_method=None,
               initialization_timeout=300, heartbeat_timeout_seconds=10, shutdown_timeout_seconds=300, coordinator_bind_address=None,
               slice_index=None, partition_index=None, *, collective_timeout_seconds=None):
    """Connects to the other processes. Call it once, before any computation.

    Without arguments, processes started by `capibara launch`, mpirun, mpiexec or srun connect by MPI. Otherwise they connect to the
    coordinator's HOST:PORT, where process 0 serves a key-value store; missing arguments are read from JAX_COORDINATOR_ADDRESS,
    JAX_NUM_PROCESSES, JAX_PROCESS_ID and JAX_COORDINATOR_BIND_ADDRESS. The store only admits processes that know the job's secret:
    CAPIBARA_JOB_SECRET, or the content of the file CAPIBARA_JOB_SECRET_FILE, or a secret that process 0 writes to the user's cache
    folder. cluster_detection_method="deactivate" ignores the launcher of the processes.

    A process that is silent for heartbeat_timeout_seconds counts as dead. A collective that takes longer than
    collective_timeout_seconds raises DistributedError; without that timeout, only a warning names the missing processes.
    """
    _check(num_processes, process_id, local_device_ids, cluster_detection_method, slice_index, partition_index)
    if cluster_detection_method == "deactivate":
        for name, value in (("coordinator_address should", coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS")),
                            ("Number of processes must", num_processes), ("The process id of the current process must", process_id)):
            if value is None:
                raise ValueError(f"{name} be defined.")
    _core.initialize_processes(coordinator_address, num_processes, process_id, coordinator_bind_address or "", int(initialization_timeout),
                               int(heartbeat_timeout_seconds), int(shutdown_timeout_seconds), float(collective_timeout_seconds or 0))
    atexit.register(shutdown)
    _watch_main_thread()


def is_initialized():
    """True if this process is connected to the others."""
    return _core.process_group()[2]


def shutdown():
    """Waits for the other processes and disconnects."""
    global _watching
    _watching = None
    _core.shut_down_processes()
    atexit.unregister(shutdown)


def _check(num_processes, process_id, local_device_ids, method, slice_index, partition_index):
    if local_device_ids is not None:
        raise NotImplementedError(f"distributed.initialize: a process takes all its devices, got local_device_ids={local_device_ids!r}")
    if slice_index is not None or partition_index is not None:
        raise NotImplementedError("distributed.initialize: partitions of a TPU pod are not supported, got "
                                  f"partition_index={slice_index if partition_index is None else partition_index!r}")
    if method is not None and method not in _METHODS:
        raise ValueError(f"distributed.initialize: cluster_detection_method must be one of {_METHODS}, got {method!r}")
    if process_id is not None and not isinstance(process_id, int):
        raise TypeError(f"process_id must be a nonnegative int. Got process_id={process_id} of type {type(process_id)}.")
    if num_processes is not None and not isinstance(num_processes, int):
        raise TypeError(f"num_processes must be a positive int. Got num_processes={num_processes} of type {type(num_processes)}.")
    if num_processes is not None and process_id is not None and not 0 <= process_id < num_processes:
        raise ValueError("process_id and num_processes must be nonnegative, with process_id < num_processes. "
                         f"Got process_id={process_id}, num_processes={num_processes}.")


def _line_of(frame):
    """FILE:LINE of the user's program: of the call into the library if the frame is inside the library."""
    own = frame
    while frame is not None:
        if _tracebacks.is_internal(frame):
            own = frame.f_back
        frame = frame.f_back
    return f"{os.path.basename(own.f_code.co_filename)}:{own.f_lineno}" if own is not None else ""


def _watch_main_thread():
    """Reports the main thread's position, and the exception that ends it, for the other processes' messages."""
    global _watching, _previous_hook
    main = threading.main_thread().ident

    def run():
        while _watching is threading.current_thread():
            _core.set_process_where(_line_of(sys._current_frames().get(main)))
            pause.wait(0.5)

    def excepthook(kind, error, traceback):
        last = traceback
        while last is not None and last.tb_next is not None and not _tracebacks.is_internal(last.tb_next.tb_frame):
            last = last.tb_next
        line = f" ({os.path.basename(last.tb_frame.f_code.co_filename)}:{last.tb_lineno})" if last is not None else ""
        _core.set_process_ending(f"{kind.__name__}: {error}{line}"[:500])
        _previous_hook(kind, error, traceback)

    pause = threading.Event()
    _watching = threading.Thread(target=run, name="capibara-where", daemon=True)
    _watching.start()
    if _previous_hook is None:
        _previous_hook, sys.excepthook = sys.excepthook, excepthook


explain_missing(__name__)
