"""Batches of arrays, files, datasets and iterators, prefetched by threads or processes."""
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from capibara import _core
from capibara import jax as _jax
from capibara._arguments import require_number

_native = _core.training
_SOURCES = ("a path of .npy or .safetensors, a list of .npy paths, an array or a tuple or dict of arrays of equal length, an object with "
            "__len__ and __getitem__, or an iterable of batches")
_dataset = None  # of a worker process


class DataLoader:
    """Batches of a source, in an order that depends on the arguments but not on the number of workers.

    source: a path of .npy (a list of them: an array of the batch each) or .safetensors, an array or a tuple or dict of arrays with the
    examples along the first dimension, an object with __len__ and __getitem__ whose examples are arrays or tuples of arrays, or an
    iterable of batches. Examples come in endless passes, reshuffled in each, so iteration never ends; an iterable ends when it is
    exhausted, and has one worker.
    `num_workers` threads prefetch at most `prefetch` batches; with processes=True an object's examples are read by as many processes, to
    which it is pickled. `start` is the number of the first batch.
    """

    def __init__(self, source: object, batch_size: int = 8, *, shuffle: bool = True, seed: int = 0, num_workers: int = 1, prefetch: int = 4,
                 processes: bool = False, start: int = 0) -> None:
        numbers = {"batch_size": batch_size, "seed": seed, "num_workers": num_workers, "prefetch": prefetch, "start": start}
        for name, value in numbers.items():
            require_number("DataLoader", name, value, least=0 if name in ("seed", "start") else 1)
        self.batch_size, self._structure, self._pool = batch_size, None, None
        options = (int(batch_size), bool(shuffle), int(seed), int(num_workers), int(prefetch))
        kind, make = self._kind(source)
        if processes and kind != "dataset":
            raise ValueError("DataLoader: processes read objects with __len__ and __getitem__ (argument 'processes'), the source is "
                             f"{kind}")
        if processes:
            self._pool = ProcessPoolExecutor(num_workers, multiprocessing.get_context("spawn"), _remember, (source,))
        self._native = make(options, int(start))

    def _kind(self, source):
        if isinstance(source, (str, Path)):
            return self._files([str(source)])
        if isinstance(source, (list, tuple)) and source and all(isinstance(path, (str, Path)) for path in source):
            return self._files([str(path) for path in source])
        if _holds_arrays(source):
            leaves, self._structure = _jax.tree_util.tree_flatten(source)
            arrays = [np.asarray(leaf) for leaf in leaves]
            return "arrays", lambda options, start: _native.NativeBatches.arrays(arrays, options, start)
        if hasattr(source, "__len__") and hasattr(source, "__getitem__") and not isinstance(source, (dict, bytes)):
            def rows(numbers):
                return self._rows(source, numbers)
            return "dataset", lambda options, start: _native.NativeBatches.examples(len(source), rows, options, start)
        if hasattr(source, "__iter__") and not isinstance(source, (dict, bytes)):
            batches = iter(source)

            def following():
                return self._flat(next(batches, None))
            return "an iterable", lambda options, start: _native.NativeBatches.stream(following, options, start)
        raise TypeError(f"DataLoader: expected {_SOURCES} (argument 'source'), got {source!r}")

    def _files(self, paths):
        ends = {Path(path).suffix for path in paths}
        absent = [path for path in paths if not Path(path).is_file()]
        if absent and ends <= {".npy", ".safetensors"}:
            raise ValueError(f"DataLoader: expected files (argument 'source'), there is no {absent[0]!r}, got {', '.join(paths)}")
        if ends == {".npy"}:
            return ".npy files", lambda options, start: _native.NativeBatches.npy(paths, options, start)
        if ends == {".safetensors"} and len(paths) == 1:
            return "a safetensors file", lambda options, start: _native.NativeBatches.safetensors(paths[0], [], options, start)
        raise ValueError(f"DataLoader: expected .npy files or one .safetensors file (argument 'source'), got {', '.join(paths)}; text is "
                         "read by training.Loader, of a TokenFile")

    def _rows(self, source, numbers):
        rows = self._pool.submit(_read, list(numbers)).result() if self._pool else [source[number] for number in numbers]
        flat = [self._flat(row) for row in rows]
        return [np.stack([np.asarray(row[i]) for row in flat]) for i in range(len(flat[0]))]

    def _flat(self, batch):
        if batch is None:
            return None
        leaves, structure = _jax.tree_util.tree_flatten(batch)
        if self._structure is None:
            self._structure = structure
        if structure != self._structure:
            raise ValueError(f"DataLoader: a batch has the structure {structure}, the first one had {self._structure}")
        return leaves

    @property
    def position(self) -> int:
        """The number of the next batch."""
        return self._native.position

    def __len__(self) -> int:
        """The number of batches per pass; raises TypeError for an iterable."""
        if self._native.batches is None:
            raise TypeError("DataLoader: an iterable of batches has no length")
        return self._native.batches

    def next(self) -> object:
        """The next batch; raises StopIteration after the last one of an iterable."""
        arrays = self._native.next()
        if arrays is None:
            raise StopIteration
        return tuple(arrays) if self._structure is None else _jax.tree_util.tree_unflatten(self._structure, arrays)

    __next__ = next

    def __iter__(self) -> "Iterator[object]":
        return self

    def close(self) -> None:
        """Stops the worker processes, if any."""
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> "DataLoader":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _holds_arrays(source):
    if hasattr(source, "shape"):
        return True
    leaves = source.values() if isinstance(source, dict) else source if isinstance(source, tuple) else ()
    return bool(leaves) and all(hasattr(leaf, "shape") for leaf in leaves)


def _remember(dataset):
    global _dataset
    _dataset = dataset


def _read(numbers):
    return [_dataset[number] for number in numbers]
