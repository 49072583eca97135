"""jax.experimental.array_serialization.serialization: a manager that writes arrays by TensorStore, which must be installed.

capibara's own checkpoints (docs/training.md) need no other package; this module is for programs written for jax's.
"""
import abc
import os
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax._devices import process_count, process_index
from capibara.jax._joining import make_array_from_callback
from capibara.jax.experimental import multihost_utils


def _tensorstore() -> Any:
    try:
        import tensorstore
    except ImportError as error:
        raise ImportError("jax.experimental.array_serialization needs the package 'tensorstore': pip install tensorstore") from error
    return tensorstore


def _store_of(path: str) -> dict[str, Any]:
    bucket = re.fullmatch(r"(gs|s3)://([^/]+)/(.*)", path)
    if bucket is None and re.match(r"(gs|s3)://", path):
        raise ValueError(f"an object store's path must name a bucket and an entry in it, got {path}")
    if bucket is None:
        return {"driver": "file", "path": path}
    return {"driver": {"gs": "gcs", "s3": "s3"}[bucket[1]], "bucket": bucket[2], "path": bucket[3]}


def get_tensorstore_spec(ckpt_path: str | os.PathLike[str], ocdbt: bool = False, process_idx: int | None = None, arr: Any = None,
                         driver: str = "zarr") -> dict[str, Any]:
    """The TensorStore spec of the array at a path; with `arr`, also its shape and type for writing."""
    path = re.sub(r"^(gs|s3):/+", r"\1://", os.path.normpath(str(ckpt_path)))
    if process_idx is not None:
        folder, name = os.path.split(path)
        path = os.path.join(folder, f"process_{process_idx}", name)
    if driver not in ("zarr", "zarr3"):
        raise ValueError(f"get_tensorstore_spec: argument 'driver' must be 'zarr' or 'zarr3', got {driver!r}")
    if ocdbt:
        folder, name = os.path.split(path)
        if not re.match(r"(gs|s3)://", folder) and not os.path.isabs(folder):
            raise ValueError(f"Checkpoint path should be absolute. Got {folder}")
        spec = {"driver": driver, "kvstore": {"driver": "ocdbt", "base": _store_of(folder), "path": name}}
    else:
        spec = {"driver": driver, "kvstore": _store_of(path)}
    if arr is not None:
        spec["metadata"] = _metadata(arr, driver)
    return spec


def _metadata(array: Any, driver: str) -> dict[str, Any]:
    sharding = getattr(array, "sharding", None)
    shape = tuple(array.shape)
    part = shape if sharding is None else sharding.shard_shape(shape)
    chunk = [max(1, size) for size in part]
    if driver == "zarr":
        return {"compressor": {"id": "zstd"}, "shape": list(shape), "chunks": chunk}
    return {"codecs": [], "shape": list(shape), "data_type": np.dtype(array.dtype).name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}}}


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """The interface of managers of background checkpoints."""

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raises the error of a background save."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Waits until everything is written, and raises the error of a failed save."""

    @abc.abstractmethod
    def serialize(self, arrays: Any, tensorstore_specs: Any, *, on_commit_callback: Callable[[], None]) -> None:
        """Starts writing arrays."""

    @abc.abstractmethod
    def deserialize(self, shardings: Sequence[Any], tensorstore_specs: Sequence[dict[str, Any]],
                    global_shapes: Sequence[Any] | None = None, dtypes: Sequence[Any] | None = None) -> list[Any]:
        """Reads arrays to devices."""


class GlobalAsyncCheckpointManager(GlobalAsyncCheckpointManagerBase):
    """Writes arrays by TensorStore: copied when `serialize` returns, on disk when `wait_until_finished` returns.

    Several processes each write their own shards and wait for one another in `serialize`; a single process continues at once.
    """

    def __init__(self, timeout_secs: int = 300) -> None:
        self._timeout, self._thread, self._error = timeout_secs, None, None

    def check_for_errors(self) -> None:
        """Raises the error of a background save."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        """Waits until everything is written, and raises what failed."""
        if self._thread is not None:
            self._thread.join(self._timeout)
            if self._thread.is_alive():
                raise TimeoutError(f"array_serialization: arrays were not written within timeout_secs={self._timeout}")
            self._thread = None
        self.check_for_errors()

    def serialize(self, arrays: Any, tensorstore_specs: Any, *, on_commit_callback: Callable[[], None] | None = None) -> None:
        """Starts writing arrays, each to its spec; `on_commit_callback` is called by process 0 when all are written."""
        self.wait_until_finished()
        store = _tensorstore()
        written = []
        for array, spec in zip(_leaves(arrays), _specs(tensorstore_specs)):
            spec = dict(spec)
            spec.setdefault("metadata", _metadata(array, spec["driver"]))
            if spec["driver"] == "zarr":
                spec.setdefault("dtype", np.dtype(array.dtype).name)
            target = store.open(store.Spec(spec), create=True, open=True).result()
            for part in getattr(array, "addressable_shards", [None]):
                if part is None:
                    written.append(target.write(np.asarray(array)))
                elif part.replica_id == 0:
                    written.append(target[part.index].write(np.asarray(part.data)))
        for future in written:
            future.copy.result()

        def commit() -> None:
            try:
                for future in written:
                    future.commit.result()
                if process_count() > 1:
                    multihost_utils.sync_global_devices("array_serialization: written")
                if on_commit_callback is not None and process_index() == 0:
                    on_commit_callback()
            except Exception as error:  # raised when the user waits
                self._error = error

        if process_count() > 1:
            commit()
            self.check_for_errors()
            return
        self._thread = threading.Thread(target=commit, name="array_serialization")
        self._thread.start()

    def serialize_with_paths(self, arrays: Sequence[Any], paths: Sequence[str], *,
                             on_commit_callback: Callable[[], None] | None = None) -> None:
        """Starts writing arrays, each to its path."""
        self.serialize(arrays, [get_tensorstore_spec(path) for path in paths], on_commit_callback=on_commit_callback)

    def deserialize(self, shardings: Sequence[Any], tensorstore_specs: Sequence[dict[str, Any]], global_shapes: Sequence[Any] | None = None,
                    dtypes: Sequence[Any] | None = None, concurrent_gb: int = 32) -> list[Any]:
        """Reads arrays with their shardings, one after the other; different shapes are zero-padded or truncated."""
        self.wait_until_finished()
        store, result = _tensorstore(), []
        for i, (sharding, spec) in enumerate(zip(shardings, tensorstore_specs)):
            source = store.open(store.Spec(spec), open=True).result()
            shape = tuple(source.shape) if global_shapes is None or global_shapes[i] is None else tuple(global_shapes[i])
            dtype = source.dtype.numpy_dtype if dtypes is None or dtypes[i] is None else np.dtype(dtypes[i])

            def part(index: tuple[slice, ...], source: Any = source, shape: tuple[int, ...] = shape, dtype: Any = dtype) -> np.ndarray:
                bounds = [s.indices(size)[:2] for s, size in zip(index, shape)]
                there = tuple(slice(begin, max(begin, min(end, size))) for (begin, end), size in zip(bounds, source.shape))
                block = np.zeros([end - begin for begin, end in bounds], dtype)
                known = np.asarray(source[there].read().result()) if source.shape else np.asarray(source.read().result())
                block[tuple(slice(0, size) for size in known.shape)] = known
                return block

            result.append(make_array_from_callback(shape, sharding, part))
        return result

    def deserialize_with_paths(self, shardings: Sequence[Any], paths: Sequence[str], global_shapes: Sequence[Any] | None = None,
                               dtypes: Sequence[Any] | None = None, concurrent_gb: int = 32) -> list[Any]:
        """Reads the arrays at paths, with their shardings."""
        return self.deserialize(shardings, [get_tensorstore_spec(path) for path in paths], global_shapes, dtypes, concurrent_gb)


def _leaves(tree: Any) -> list[Any]:
    return _core.tree_flatten(tree)[0]


def _specs(tree: Any) -> list[dict[str, Any]]:
    if isinstance(tree, dict) and "driver" in tree:
        return [tree]
    return [spec for branch in (tree.values() if isinstance(tree, dict) else tree) for spec in _specs(branch)]


explain_missing(__name__)
