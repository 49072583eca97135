"""Operation of training runs on any device: Checkpointer, Monitor and Profiler.

They are the classes that capibara.core.tpu has as TPUCheckpointer, TPUMonitor and TPUProfiler.
"""
import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capibara.operate.checkpointer import TPUCheckpointer as Checkpointer
    from capibara.operate.monitor import TPUMonitor as Monitor
    from capibara.operate.profiler import TPUProfiler as Profiler

__all__ = ["Checkpointer", "Monitor", "Profiler"]


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module 'capibara.operate' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"capibara.operate.{name.lower()}"), "TPU" + name)


def __dir__():
    return list(__all__)
