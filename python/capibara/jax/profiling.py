"""Profiles of parts of a program in three calls: `profile` around them, `print_summary`, `export_tensorboard`."""
import contextlib
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from capibara import _core
from capibara._modules import explain_missing

__all__ = ["clear", "export_tensorboard", "load", "print_summary", "profile", "profiles", "save", "summaries"]

_taken: list[tuple[str, Any]] = []  # names and profiles, in the order of their ends


@contextlib.contextmanager
def profile(name: str) -> Iterator[None]:
    """Profiles the body of a with statement, including the programs that it starts; inside another profile it is a span of that one.

    with profiling.profile("my_operation"): ...
    """
    span = _core.ProfileSpan(str(name), [], None)
    outermost = not _core.profile_active()
    if outermost:
        _core.profile_start()
    span.enter()
    try:
        yield
    finally:
        span.exit()
        if outermost:
            _taken.append((str(name), _core.profile_stop(wait=True)))


def profiles() -> list[tuple[str, Any]]:
    """The names and profiles recorded: profile.events(), profile.slots(), profile.summary_text(rows), profile.xspace()."""
    return list(_taken)


def save(file: str | os.PathLike[str]) -> None:
    """Writes the last profile as JSON, which `load` and `capibara profile FILE` read."""
    if not _taken:
        raise RuntimeError("save: nothing has been profiled yet; use `with profiling.profile(name):` first")
    _taken[-1][1].save(os.fspath(file))


def load(file: str | os.PathLike[str]) -> Any:
    """Loads a profile written by `save` or `capibara profile --out FILE`; the other functions list it under the file's name."""
    taken = _core.load_profile(os.fspath(file))
    _taken.append((os.path.basename(os.fspath(file)), taken))
    return taken


def summaries() -> list[tuple[str, dict[str, Any]]]:
    """The profiles as records: (name, {"rows": [{"what", "source", "calls", "nanoseconds", "share", ...}], "duration", ...})."""
    return [(name, json.loads(taken.summary_json())) for name, taken in _taken]


def print_summary(rows: int = 20, file: TextIO | None = None) -> None:
    """Prints a table of each profile: its time by operation, the fraction of the machine's limits reached, the largest memory blocks."""
    out = sys.stdout if file is None else file
    if not _taken:
        print("profiling: nothing has been profiled yet; use `with profiling.profile(name):`", file=out)
    for name, taken in _taken:
        print(f"{name}\n{taken.summary_text(rows)}", file=out)


def export_tensorboard(folder: str | os.PathLike[str]) -> list[str]:
    """Writes each profile for TensorBoard and xprof, as FOLDER/plugins/profile/TIME/HOST.xplane.pb; returns the paths."""
    if not _taken:
        raise RuntimeError("export_tensorboard: nothing has been profiled yet; use `with profiling.profile(name):` first")
    return [_core.save_tensorboard(taken.xspace(), taken.host, os.fspath(folder), "") for _, taken in _taken]


def clear() -> None:
    """Discards the profiles."""
    _taken.clear()


explain_missing(__name__)
