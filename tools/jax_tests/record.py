"""A pytest plugin: writes one line of JSON when a test begins and one when it ends; tests that already have a line are skipped.

{"k": "ids", "ids": [...]} names all tests of the file, {"k": "start", "id": ...}, {"k": "end", "id", "out", "d", "err"}, {"k": "finish"}.
"""
import json
import os
import sys
import time
import traceback
from pathlib import Path

import pytest

OUT = Path(os.environ["JAX_TESTS_OUT"])
SHARD, SHARDS = map(int, os.environ.get("JAX_TESTS_SHARD", "0/1").split("/"))
done = set()
if OUT.exists():
    for line in OUT.read_text().splitlines():
        entry = json.loads(line)
        if entry["k"] in ("end", "lost"):
            done.add(entry["id"])
file = open(OUT, "a", buffering=1)
state = {}


def put(**entry):
    file.write(json.dumps(entry) + "\n")


def name_of(nodeid):
    return nodeid.partition("::")[2]


def pytest_collection_modifyitems(session, config, items):
    put(k="ids", ids=[name_of(item.nodeid) for item in items])
    items[:] = [item for number, item in enumerate(items) if number % SHARDS == SHARD and name_of(item.nodeid) not in done]


def pytest_collectreport(report):
    if report.failed:
        put(k="collecterror", id=report.nodeid, text=str(report.longrepr)[-3000:])


def pytest_runtest_logstart(nodeid, location):
    state.clear()
    state["begun"] = time.time()
    put(k="start", id=name_of(nodeid))


def pytest_runtest_makereport(item, call):
    if call.excinfo is None or issubclass(call.excinfo.type, pytest.skip.Exception) or call.excinfo.typename == "SkipTest":
        return
    frames = traceback.extract_tb(call.excinfo.tb)
    last = [f"{Path(frame.filename).name}:{frame.lineno} {frame.line or ''}"[:200] for frame in frames[-3:]]
    state.setdefault("error", {"when": call.when, "type": call.excinfo.typename, "msg": str(call.excinfo.value)[:1500], "last": last})


def pytest_runtest_logreport(report):
    if report.skipped or hasattr(report, "wasxfail"):
        state["outcome"] = "skipped"
    elif report.failed:
        state["outcome"] = "failed" if report.when == "call" else "error"
    elif report.when == "call":
        state.setdefault("outcome", "passed")


def pytest_runtest_logfinish(nodeid, location):
    seconds = round(time.time() - state.get("begun", 0), 3)
    put(k="end", id=name_of(nodeid), out=state.get("outcome", "passed"), d=seconds, err=state.get("error"))


def pytest_sessionfinish(session, exitstatus):
    if "capibara.jax" in sys.modules:
        assert not any(name.split(".")[0] == "jaxlib" for name in sys.modules), "jaxlib was imported"
    put(k="finish", status=int(exitstatus))
