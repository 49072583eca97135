"""TPUMonitor: steps, rates, memory and alerts of a running training."""
import atexit
import os
import weakref
from collections.abc import Callable, Iterable

from capibara import _core
from capibara._arguments import require_number, require_path, require_text


class _Metrics(dict):
    """Metrics by name; metrics without a value yet are absent, and the KeyError says why."""

    _WHY = {"utilization": "nothing was counted yet, or a type that the device multiplies at no known rate",
            "current_tflops": "nothing was counted yet", "loss": "none is ready", "steps": "no step was reported",
            "steps_per_second": "no step was reported", "tokens": "no tokens were reported", "tokens_per_second": "no tokens were reported"}

    def __missing__(self, name):
        raise KeyError(f"{name}: absent, {self._WHY[name]}" if name in self._WHY else name)


class TPUMonitor:
    """Monitors this process: `get_current_metrics`, alerts, a log, and a server for Prometheus and browsers.

    update_frequency_seconds: the time between samples, over which rates are computed and after which alerts are checked.
    enable_prometheus: serves /metrics for Prometheus, /metrics.json, and a page at / on `prometheus_port` (0: any free one).
    address: the address that the server listens on; by default only this machine can connect.
    log_file: gets one JSON object per sample and line.
    hosts: host names that the server accepts besides its address, localhost and those of CAPIBARA_MONITOR_HOSTS.
    """

    def __init__(self, update_frequency_seconds: float = 10, enable_prometheus: bool = False, prometheus_port: int = 9090, *,
                 address: str = "127.0.0.1", log_file: str | os.PathLike[str] | None = None, hosts: Iterable[str] = ()) -> None:
        require_number("TPUMonitor", "update_frequency_seconds", update_frequency_seconds, least=0.001, whole=False, most=1e6)
        require_number("TPUMonitor", "prometheus_port", prometheus_port, least=0, most=65535)
        require_text("TPUMonitor", "address", address)
        if log_file is not None:
            require_path("TPUMonitor", "log_file", log_file)
        hosts = hosts if isinstance(hosts, str) else list(hosts)
        if isinstance(hosts, str) or not all(isinstance(host, str) for host in hosts):
            raise TypeError(f"TPUMonitor: expected a list of names (argument 'hosts'), got {hosts!r}")
        self._core = _core.Monitor(float(update_frequency_seconds), int(prometheus_port) if enable_prometheus else None, address,
                                   "" if log_file is None else str(log_file), hosts)

    def start(self) -> "TPUMonitor":
        """Starts sampling and serving."""
        self._core.start()
        _running.add(self)
        return self

    def stop(self) -> None:
        """Stops both; logs a last sample."""
        self._core.stop()
        _running.discard(self)

    def step(self, loss: object = None, tokens: float | None = None) -> None:
        """Reports the end of a step. The loss is read when it is ready, without waiting for it."""
        if tokens is not None:
            require_number("TPUMonitor.step", "tokens", tokens, least=0, whole=False)
        if isinstance(loss, (str, bytes)):
            raise TypeError(f"TPUMonitor.step: expected a number or an array of one (argument 'loss'), got {loss!r}")
        self._core.step(loss, tokens)

    def get_current_metrics(self) -> dict[str, float]:
        """The current metrics by name; those without a value yet are absent, such as "loss" and "utilization" at first."""
        return _Metrics(self._core.metrics())

    def set_alert(self, metric: str, condition: str, threshold: float, action: Callable[[], object], for_seconds: float = 0) -> None:
        """Calls `action()` when the metric has been <, <=, >, >=, == or != the threshold for `for_seconds`, once each time
        the alert is raised."""
        require_text("set_alert", "metric", metric)
        require_text("set_alert", "condition", condition)
        require_number("set_alert", "threshold", threshold, whole=False)
        require_number("set_alert", "for_seconds", for_seconds, least=0, whole=False)
        if not callable(action):
            raise TypeError(f"set_alert: action is a function without arguments, got {action!r}")
        self._core.set_alert(metric, condition, float(threshold), action, float(for_seconds))

    @property
    def raised_alerts(self) -> list[str]:
        """The alerts that are currently raised, in words."""
        return self._core.raised_alerts()

    @property
    def port(self) -> int:
        """The port of the server; 0 if there is none."""
        return self._core.port()

    @property
    def link(self) -> str:
        """The URL of the page, with the token for its button after '#'. Anyone who knows it can take profiles."""
        return self._core.link()

    def __enter__(self) -> "TPUMonitor":
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()


def set_capture_hook(hook: Callable[[float], object] | None) -> None:
    """Sets what the page's button calls: hook(seconds) takes a profile and returns its location. None removes the button.

    By default, the button makes the profiler write for xprof into the folder CAPIBARA_PROFILE_FOLDER (capibara-profiles).
    """
    if hook is not None and not callable(hook):
        raise TypeError(f"set_capture_hook: hook is a function of seconds or None, got {type(hook).__name__}")
    _core.set_capture_hook(hook)


_running = weakref.WeakSet()


@atexit.register
def _stop_monitors():
    for monitor in list(_running):
        monitor.stop()
