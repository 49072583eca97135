"""TPUProfiler: profiles of training steps, reports of them, and bottleneck analysis."""
import contextlib
import json
import os
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from capibara import _core, jax
from capibara._arguments import require_flag, require_path, require_text
from capibara.jax import profiler
from capibara.operate import bottlenecks


class TPUProfiler:
    """Takes profiles, writes them for TensorBoard, and reports what bounds the time.

    output_dir: where `generate_report` writes.
    capture_memory: records allocations, and the blocks in use at the peak.
    capture_compute: records the operations of programs.
    """

    def __init__(self, output_dir: str | os.PathLike[str] = "profiles/", capture_memory: bool = True, capture_compute: bool = True) -> None:
        require_path("TPUProfiler", "output_dir", output_dir)
        require_flag("TPUProfiler", "capture_memory", capture_memory)
        require_flag("TPUProfiler", "capture_compute", capture_compute)
        if not capture_memory and not capture_compute:
            raise ValueError("TPUProfiler: expected capture_memory or capture_compute, got both off, so that nothing would be recorded")
        self._folder = pathlib.Path(output_dir)
        self._memory, self._compute = bool(capture_memory), bool(capture_compute)
        self._taken: list[tuple[str, Any]] = []
        self._name: str | None = None
        self._span: Any = None

    def start(self, name: str = "profile") -> "TPUProfiler":
        """Starts a profile."""
        require_text("TPUProfiler.start", "name", name)
        if self._name is not None:
            raise RuntimeError(f"TPUProfiler: the profile {self._name!r} is being taken; call stop before the next start")
        _core.profile_start()
        self._name = name
        self._span = _core.ProfileSpan(self._name, [], None)
        self._span.enter()
        return self

    def stop(self) -> None:
        """Ends the profile once all running programs have finished."""
        if self._name is None:
            raise RuntimeError("TPUProfiler: no profile is being taken; call start before stop")
        self._span.exit()
        taken = _core.profile_stop(wait=True)
        taken.leave_out(not self._memory, not self._compute)
        self._taken.append((self._name, taken))
        self._name = self._span = None

    @contextlib.contextmanager
    def profile(self, name: str = "profile") -> Iterator["TPUProfiler"]:
        """Profiles the body of a with statement: with profiler.profile("train_step"): ..."""
        self.start(name)
        try:
            yield self
        finally:
            self.stop()

    def _all(self, who):
        if not self._taken:
            raise RuntimeError(f"{who}: no profile has been taken yet; use `with profiler.profile(name):` first")
        return self._taken

    def summary(self) -> str:
        """The tables of the profiles as text."""
        return "\n".join(f"{name}\n{taken.summary_text(20)}" for name, taken in self._all("summary"))

    def generate_report(self) -> str:
        """Writes the profiles for TensorBoard, and report.txt and report.json; returns the path of report.txt.

        View them with `tensorboard --logdir OUTPUT_DIR`, or `xprof OUTPUT_DIR`.
        """
        taken = self._all("generate_report")
        self._folder.mkdir(parents=True, exist_ok=True)
        analysis = self.analyze_bottlenecks() if self._compute else None
        text = [self.summary()]
        if analysis is not None:
            text += ["bound by: " + ", ".join(f"{name} {analysis[name]:.1%}" for name in bottlenecks.SHARES)]
            text += [f"- {advice}" for advice in analysis["recommendations"]]
        files = [_core.save_tensorboard(profile.xspace(), profile.host, str(self._folder), "") for _, profile in taken]
        text += ["", "files:", *files]
        (self._folder / "report.json").write_text(json.dumps({
            "profiles": [{"name": name, "file": file, **json.loads(profile.summary_json())} for (name, profile), file in zip(taken, files)],
            "bottlenecks": analysis}, indent=1) + "\n")
        report = self._folder / "report.txt"
        report.write_text("\n".join(text) + "\n")
        return str(report)

    def analyze_bottlenecks(self) -> dict[str, Any]:
        """Measured shares of the time, which sum to 1, and recommendations, largest expected gain first.

        compute_bound, memory_bound: operations at a tenth of a limit of the machine or more, by the nearer limit.
        communication_bound: collectives and transfers. overhead_bound: operations far from both limits.
        compilation: compile time. host_bound: neither a program nor the compiler was running.
        recommendations: texts with the attributes expected_gain (share of the time) and source ("file:line").
        """
        taken = self._all("analyze_bottlenecks")
        if not self._compute:
            raise RuntimeError("analyze_bottlenecks: needs a profile with capture_compute=True")
        return bottlenecks.analyze([profile for _, profile in taken])


def usage(trace_dir: str | os.PathLike[str], function: Callable[..., object] | None = None, *args: object) -> dict[str, object]:
    """Memory and utilization of the default device while function(*args) runs, and a trace of it in a folder.

    "device_utilization" is None if nothing was counted: without a function, or if it contains no matmuls.
    """
    with profiler.trace(trace_dir):
        before = _core.executed_flops()
        start = time.perf_counter()
        if function is not None:
            jax.block_until_ready(function(*args))
        elapsed, after = time.perf_counter() - start, _core.executed_flops()
        allocated, peak = jax.device_memory_allocated(), jax.device_memory_peak()
    counted = {dtype: flops - before.get(dtype, 0) for dtype, flops in after.items() if flops > before.get(dtype, 0)}
    peaks = {dtype: _core.peak_flops(dtype) for dtype in counted} if function is not None else {}
    return {"memory_allocated": allocated, "memory_peak": peak, "device_count": jax.device_count(),
            "device_utilization": sum(flops / elapsed / peaks[dtype] for dtype, flops in counted.items())
            if peaks and all(peaks.values()) else None}
