"""TPUCheckpointer: saves training steps to a folder in the background; every step is complete or absent after a crash."""
import atexit
import json
import math
import os
import signal
import sys
import threading
import warnings
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from capibara import _core, jax
from capibara._arguments import require_number, require_path
from capibara._errors import CheckpointError, CorruptCheckpointError  # noqa: F401
from capibara.jax.experimental import multihost_utils


class TPUCheckpointer:
    """Saves named pytrees of a step, and restores them.

    A step appears in the folder once all of it is on disk, or not at all: whenever the process is killed, the newest
    committed step is complete. Every chunk of every array has a checksum, and so do the small files. The layout is
    Orbax's over zarr v3, which Orbax, tensorstore and zarr read.

    checkpoint_dir: a folder, which is created if it does not exist, or gs://BUCKET/FOLDER.
    max_to_keep: the number of newest steps to keep; None keeps all.
    async_checkpointing: `save` returns at once and a thread of idle priority writes. It holds the arrays' memory and
        copies nothing, so a step that donates them gets fresh memory for its results. An error of the thread is raised by
        the next `save` or `wait`.
    save_interval_steps: how often `maybe_save` saves.
    link_unchanged: arrays that are unchanged since the previous step become hard links to its files; on gs:// the store copies them.
    """

    def __init__(self, checkpoint_dir: str | os.PathLike[str], max_to_keep: int | None = None, async_checkpointing: bool = True, *,
                 save_interval_steps: int = 1, link_unchanged: bool = True, chunk_bytes: int = 4 << 20) -> None:
        require_path("TPUCheckpointer", "checkpoint_dir", checkpoint_dir)
        require_number("TPUCheckpointer", "chunk_bytes", chunk_bytes, least=64)
        if max_to_keep is not None and (not isinstance(max_to_keep, int) or max_to_keep < 1):
            raise ValueError(f"TPUCheckpointer: max_to_keep is a number of steps from 1, or None for all, got {max_to_keep!r}")
        if not isinstance(save_interval_steps, int) or save_interval_steps < 1:
            raise ValueError(f"TPUCheckpointer: save_interval_steps is a number from 1, got {save_interval_steps!r}")
        self._core = _core.Checkpointer(os.fspath(checkpoint_dir), max_to_keep or 0, bool(async_checkpointing),
                                        bool(link_unchanged), chunk_bytes)
        self._interval = save_interval_steps
        self._signalled = False  # written only by the signal handler during the process's life
        self._terminated = False
        self._previous_handler = None
        self._looks_for_signals = False
        if async_checkpointing:
            _alive.add(self)

    @property
    def checkpoint_dir(self) -> str:
        """The folder of the steps."""
        return self._core.folder()

    def save(self, step: int, *, metadata: Mapping[str, object] | None = None, **items: object) -> None:
        """Saves pytrees under a step: save(1000, params=params, opt_state=opt_state, metadata={"loss": 2.5}).

        In a program of several processes, all of them call it, and the first one writes.
        """
        require_number("TPUCheckpointer.save", "step", step, least=0)
        try:
            text = json.dumps(metadata if metadata is not None else {})
        except (TypeError, ValueError) as error:
            raise TypeError(f"TPUCheckpointer.save: expected what JSON can write (argument 'metadata'), got {metadata!r}: {error}"
                            ) from None
        if jax.process_count() == 1:
            return self._core.save(step, items, text)
        items = jax.tree.map(_whole, items)
        self._together(lambda: self._core.save(step, items, text) if jax.process_index() == 0 else None)

    def wait(self) -> None:
        """Waits until everything is saved; raises the error of a background save. All processes call it."""
        self._together(self._core.wait)

    def _together(self, action):
        """Runs an action in every process, and raises in all of them if it fails in one."""
        error, result = None, None
        try:
            result = action()
        except Exception as raised:
            error = raised
        failed = _flags(error is not None)
        if error is not None:
            raise error
        if any(failed):
            raise CheckpointError(f"checkpoint: process {failed.index(True)} failed; it says why")
        return result

    def is_saving(self) -> bool:
        """True while a save is in progress."""
        return self._core.saving()

    def all_steps(self) -> list[int]:
        """The complete steps, in ascending order."""
        return self._core.steps()

    def latest_step(self) -> int | None:
        """The newest complete step; None if there is none."""
        steps = self._core.steps()
        return steps[-1] if steps else None

    def delete(self, step: int) -> None:
        """Removes a step."""
        self._core.remove(step)

    def arrays(self, step: int | None = None) -> "dict[str, jax.ShapeDtypeStruct]":
        """The arrays of a step: {name: jax.ShapeDtypeStruct}, read without the elements."""
        chosen = self._latest() if step is None else step
        return {name: jax.ShapeDtypeStruct(shape, dtype) for name, shape, dtype, _, _ in self._core.arrays(chosen)}

    def restore(self, step: int | None = None, like: Mapping[str, object] | None = None, only: Sequence[str] | None = None,
                shardings: object = None, on_corruption: str = "error") -> dict[str, Any]:
        """The items of a step as a dictionary: restore(1000)["params"].

        step: None for the newest.
        like: pytrees by item, of arrays or jax.ShapeDtypeStruct: the result has their structure, and shapes and dtypes must
            agree. Without it registered classes and named tuples are returned as dictionaries.
        only: names of items and arrays to read, "params" or "params.layer.w"; with `like`, the others are returned
            unchanged.
        shardings: pytrees of shardings by item, or one sharding for all, on which the arrays are placed.
        on_corruption: "error", or "previous" for the newest older step that is complete, with a warning.
        """
        return self._restored(step, like, only, shardings, on_corruption)[1]

    def restore_metadata(self, step: int | None = None) -> dict[str, Any]:
        """The metadata that was passed to `save`."""
        return json.loads(self._core.restore(step, {}, [self._one_array(step)], False)[3]) if self.all_steps() else {}

    def _one_array(self, step):
        arrays = self._core.arrays(self._latest() if step is None else step)
        return min(arrays, key=lambda array: array[3])[0]

    def _latest(self):
        step = self.latest_step()
        if step is None:
            raise CheckpointError(f"checkpoint: no step is saved in {self.checkpoint_dir}")
        return step

    def _restored(self, step, like, only, shardings, on_corruption):
        if step is not None:
            require_number("restore", "step", step, least=0)
        if only is not None and not isinstance(only, str) and not all(isinstance(name, str) for name in _list_of(only)):
            raise TypeError(f"restore: expected names of items and arrays (argument 'only'), got {only!r}")
        if on_corruption not in ("error", "previous"):
            raise ValueError(f"restore: on_corruption is 'error' or 'previous', got {on_corruption!r}")
        if like is not None and not isinstance(like, dict):
            raise TypeError(f"restore: like is a dictionary of pytrees by item, such as {{'params': params}}, got {type(like).__name__}")
        names = [only] if isinstance(only, str) else list(only or [])
        if like and not names and _spans_processes(shardings):
            return self._restored_in_parts(step, like, shardings, on_corruption)
        found, items, leaves, _ = self._core.restore(step, like or {}, names, on_corruption == "previous")
        if leaves:
            for name, values in leaves.items():
                items[name] = jax.tree.unflatten(jax.tree.structure(like[name]), values)
        if shardings is not None:
            items = _placed(items, shardings)
        return found, items

    def _restored_in_parts(self, step, like, shardings, on_corruption):
        """Every process reads the chunks that its own devices need."""
        places = {name: shardings[name] if isinstance(shardings, dict) else shardings for name in like}
        steps = [one for one in self.all_steps() if step is None or one <= step]
        if not steps or (step is not None and steps[-1] != step):
            raise CheckpointError(f"checkpoint restore: step {step if step is not None else ''} is not in {self.checkpoint_dir}")
        while True:
            found = steps.pop()
            try:
                return found, self._together(lambda: {name: self._read_placed(found, name, like[name], places[name]) for name in like})
            except CheckpointError as error:
                if on_corruption == "error" or not steps:
                    raise
                warnings.warn(f"checkpoint restore: step {found} is damaged, taking step {steps[-1]} instead: {error}", RuntimeWarning,
                              stacklevel=4)

    def _read_placed(self, step, item, tree, shardings):
        saved = {name: (tuple(shape), dtype) for name, shape, dtype, _, _ in self._core.arrays(step)}
        leaves, structure = jax.tree.flatten(tree)
        paths = [path for path, _ in jax.tree.leaves_with_path(tree)]
        if isinstance(shardings, jax.sharding.Sharding):
            shardings = [shardings] * len(leaves)
        else:
            shardings = jax.tree.leaves(shardings, is_leaf=lambda x: isinstance(x, jax.sharding.Sharding))
        if len(shardings) != len(leaves):
            raise ValueError(f"restore: {len(leaves)} arrays in like[{item!r}], {len(shardings)} shardings for them")
        results = []
        for path, leaf, sharding in zip(paths, leaves, shardings):
            name = item + "." + (".".join(_key_text(key) for key in path) or "value")
            if name not in saved:
                raise ValueError(f"checkpoint restore: step {step} holds no array {name} (argument 'like')")
            if saved[name] != (tuple(leaf.shape), leaf.dtype):
                raise ValueError(f"checkpoint restore: array {name}: expected {leaf.dtype}{list(leaf.shape)} (argument 'like'), got "
                                 f"{saved[name][1]}{list(saved[name][0])}")
            results.append(self._read_sharded(step, name, tuple(leaf.shape), sharding))
        return jax.tree.unflatten(structure, results)

    def _read_sharded(self, step, name, shape, sharding):
        def box(index):
            spans = [part.indices(size)[:2] for part, size in zip(index, shape)]
            return tuple(begin for begin, _ in spans), tuple(end - begin for begin, end in spans)

        boxes = sorted({box(index) for index in sharding.addressable_devices_indices_map(shape).values()})
        low = [min(start[i] for start, _ in boxes) for i in range(len(shape))]
        whole = [max(start[i] + size[i] for start, size in boxes) - low[i] for i in range(len(shape))]
        if sum(math.prod(size) for _, size in boxes) == math.prod(whole):  # the boxes fill a block: read it at once
            (block,) = self._core.read_parts(step, [(name, low, whole)])
            parts = {(start, size): block[tuple(slice(a - b, a - b + n) for a, b, n in zip(start, low, size))] for start, size in boxes}
        else:
            parts = dict(zip(boxes, self._core.read_parts(step, [(name, list(start), list(size)) for start, size in boxes])))
        return jax.make_array_from_callback(shape, sharding, lambda index: parts[box(index)])

    # ---- SIGTERM -------------------------------------------------------------------------------------------------------

    def maybe_save(self, step: int, *, metadata: Mapping[str, object] | None = None, **items: object) -> bool:
        """Saves every `save_interval_steps`-th step, and the first step after SIGTERM; returns True if it saved.

        Preempted machines send SIGTERM some seconds in advance. From the first call on, that signal does not end the
        process: the next call saves, waits until the step is committed, and then ends the process as the signal would have.
        """
        self._look_for_signals()
        self._terminated = any(_flags(self._signalled))
        if not self._terminated and step % self._interval != 0:
            return False
        if step not in self.all_steps():
            self.save(step, metadata=metadata, **items)
        if self._terminated:
            self.wait()
            self._end_as_signalled()
        return True

    @property
    def reached_preemption(self) -> bool:
        """True if SIGTERM has been received since the first `maybe_save`."""
        return self._signalled or self._terminated

    def _look_for_signals(self):
        if self._looks_for_signals or threading.current_thread() is not threading.main_thread():
            return
        self._looks_for_signals = True
        self._previous_handler = signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, number, frame):
        self._signalled = True

    def _end_as_signalled(self):
        signal.signal(signal.SIGTERM, self._previous_handler or signal.SIG_DFL)
        self._looks_for_signals = self._signalled = self._terminated = False
        os.kill(os.getpid(), signal.SIGTERM)

    def close(self) -> None:
        """Waits for saves and restores the previous SIGTERM handler."""
        self.wait()
        if self._looks_for_signals and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._previous_handler or signal.SIG_DFL)
            self._looks_for_signals = False

    def __enter__(self) -> "TPUCheckpointer":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _list_of(names):
    """The names as a list; [None], which is rejected later, if they are not a collection."""
    return list(names) if isinstance(names, (list, tuple, set, frozenset)) else [None]


def _whole(leaf):
    """The whole array, including the shards of other processes."""
    if getattr(leaf, "is_fully_addressable", True):
        return leaf
    return multihost_utils.process_allgather(leaf, tiled=True)


def _flags(flag):
    """The flags of all processes."""
    if jax.process_count() == 1:
        return [flag]
    return [bool(one) for one in multihost_utils.process_allgather(np.array(flag))]


def _spans_processes(shardings):
    leaves = jax.tree.leaves(shardings, is_leaf=lambda x: isinstance(x, jax.sharding.Sharding))
    return any(isinstance(one, jax.sharding.Sharding) and not one.is_fully_addressable for one in leaves)


def _key_text(key):
    return str(next(getattr(key, name) for name in ("idx", "name", "key") if hasattr(key, name)))


def _placed(items, shardings):
    if not isinstance(shardings, dict):
        if not isinstance(shardings, (jax.sharding.Sharding, jax.Device)):
            raise TypeError(f"restore: expected a sharding, or a dict of them by item (argument 'shardings'), got {shardings!r}")
        return jax.device_put(items, shardings)
    unknown = sorted(set(shardings) - set(items))
    if unknown:
        raise ValueError(f"restore: shardings names {unknown[0]!r}, which was not restored; there is {', '.join(map(repr, items))}")
    return {name: jax.device_put(tree, shardings[name]) if name in shardings else tree for name, tree in items.items()}


def read_checkpoint(folder: str | os.PathLike[str], only: Sequence[str] | None = None) -> dict[str, Any]:
    """The items of one step's folder, of capibara or of Orbax: read_checkpoint("run/1000")["params"]."""
    return _core.read_checkpoint(os.fspath(folder), list(only or []))[1]


# Background saves finish before the interpreter is finalized: releasing their arrays may need it.
_alive = weakref.WeakSet()


@atexit.register
def _finish_saves():
    for checkpointer in list(_alive):
        try:
            checkpointer._core.wait()
        except Exception as error:  # no caller is left to catch it
            print(f"capibara: a save at the end of the program failed: {error}", file=sys.stderr)
