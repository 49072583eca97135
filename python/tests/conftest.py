"""Selects a share of the cases of wide tests: with CAPIBARA_SHARE=N the first case of each function and one in N of the rest."""

import os
import zlib


def pytest_collection_modifyitems(config, items):
  share = int(os.environ.get("CAPIBARA_SHARE", 1))
  seen, kept, left = set(), [], []
  for item in items:
    function = item.nodeid.split("[")[0]
    first = function not in seen
    seen.add(function)
    chosen = first or not item.get_closest_marker("wide") or zlib.crc32(item.nodeid.encode()) % share == 0
    (kept if chosen else left).append(item)
  config.hook.pytest_deselected(items=left)
  items[:] = kept
