"""The path of XLA:CPU's PJRT plugin (package xla-cpu-pjrt), and the mark of tests that need it."""
import os
import pathlib
import sys

import pytest


def plugin():
  if os.environ.get("CAPIBARA_PLUGIN"):
    return os.environ["CAPIBARA_PLUGIN"]
  found = [path for folder in sys.path for path in pathlib.Path(folder or ".").glob("xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so")]
  return str(found[0]) if found else None


needs_plugin = pytest.mark.skipif(plugin() is None, reason="no plugin of XLA:CPU (xla-cpu-pjrt)")
