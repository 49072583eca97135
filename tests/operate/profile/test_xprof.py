"""xprof itself shows complete profiles of a native training run, with the numbers of our table, and captures them from our server."""

import collections
import json
import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BUILD = Path(os.environ["CAPIBARA_BUILD"])
PYTHON = Path(os.environ.get("CAPIBARA_XPROF_PYTHON") or HERE.parents[2] / "build" / "venv-xprof" / "bin" / "python")
TOOLS = ("overview_page", "input_pipeline_analyzer", "op_profile", "hlo_stats", "roofline_model", "memory_profile", "trace_viewer@")

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="xprof could not be installed: see build/logs/venv-xprof.log")


def run(*command, **options):
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([str(PYTHON), *map(str, command)], capture_output=True, text=True, env=environment, timeout=300, **options)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def judged(path, *names):
    return json.loads(run(HERE / "xprof_judge.py", "tools", path, *names).split("ANSWER")[1])


def table(answer):
    """An xprof table as dictionaries by column."""
    names = [column["id"] for column in answer["cols"]]
    return [dict(zip(names, (cell["v"] for cell in row["c"]))) for row in answer["rows"]]


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    answer = json.loads(run(HERE / "training_program.py", "profile", tmp_path_factory.mktemp("run")).splitlines()[-1])
    return {**answer, "tools": judged(answer["path"], *TOOLS)}


def by_name(rows, key, value):
    sums = collections.Counter()
    for row in rows:
        sums[row[key]] += row[value]
    return sums


def leaves(node):
    return [node] if not node.get("children") else [leaf for child in node["children"] for leaf in leaves(child)]


def assert_near(got, expected):
    """Within 1 %, for everything that takes at least a thousandth of the total."""
    least = max(expected.values()) / 1000
    for name, value in expected.items():
        if value > least:
            assert got[name] == pytest.approx(value, rel=0.01), name


def test_steps_have_our_times(profiled):
    pages = [page for page in profiled["tools"]["input_pipeline_analyzer"] if page["cols"][0]["id"] == "stepnum"]
    rows = table(pages[0])
    assert [row["stepnum"] for row in rows] == [str(100 + i) for i in range(10)]
    # The clock is read on both sides of the span's ends: preemption there makes one of the two readings longer.
    for row, (inside, outside) in zip(rows, profiled["times"]):
        shown = sum(value for name, value in row.items() if name.endswith("TimeMs"))
        assert inside / 1e6 * 0.99 <= shown <= outside / 1e6 * 1.01
    overview = next(page["p"] for page in profiled["tools"]["overview_page"] if "steptime_ms_average" in page.get("p", {}))
    inside, outside = (sum(times) / len(times) / 1e6 for times in zip(*profiled["times"]))
    assert inside * 0.99 - 0.05 <= float(overview["steptime_ms_average"]) <= outside * 1.01 + 0.05  # it shows one decimal


def test_operations_have_the_times_of_our_table(profiled):
    ours = by_name(profiled["summary"]["rows"], "what", "nanoseconds")
    assert len(ours) >= 3
    hlo = by_name(table(profiled["tools"]["hlo_stats"]), "hlo_op_name", "total_self_time")
    assert_near({name: 1000 * value for name, value in hlo.items()}, ours)
    nodes = leaves(profiled["tools"]["op_profile"]["byProgram"])
    assert_near(by_name([{"name": node["name"], **node["metrics"]} for node in nodes], "name", "rawTime"),
                {name: 1000 * value for name, value in ours.items()})
    # Each row occurs twice: with and without waiting for input.
    rows = [row for row in table(profiled["tools"]["roofline_model"][0]) if row["step"] == "Total" and row["include_infeed_outfeed"]]
    assert_near({name: 1000 * value for name, value in by_name(rows, "operation", "total_self_time").items()}, ours)


def test_operations_have_the_work_of_our_table(profiled):
    nodes = [{"name": node["name"], "bytes": node["metrics"]["rawBytesAccessedArray"][0], **node["metrics"]}
             for node in leaves(profiled["tools"]["op_profile"]["byProgram"]) if "rawBytesAccessedArray" in node["metrics"]]
    assert_near(by_name(nodes, "name", "rawFlops"), by_name(profiled["summary"]["rows"], "what", "flops"))
    assert_near(by_name(nodes, "name", "bytes"), by_name(profiled["summary"]["rows"], "what", "bytes"))
    assert max(by_name(nodes, "name", "rawFlops").values()) > 0


def test_lines_of_the_code_are_named(profiled):
    sources = " ".join(row["source_info"] for row in table(profiled["tools"]["hlo_stats"]))
    assert "training_program.py:" in sources


def test_memory_and_trace_are_shown(profiled):
    allocators = profiled["tools"]["memory_profile"]["memoryProfilePerAllocator"]
    summary = next(iter(allocators.values()))["profileSummary"]
    assert int(summary["peakStats"]["peakBytesInUse"]) == pytest.approx(profiled["summary"]["peak_bytes"], rel=0.01)
    events = profiled["tools"]["trace_viewer@"]["traceEvents"]
    shown = [event for event in events if event.get("ph") == "X"]
    host, = [event["pid"] for event in events if event["name"] == "process_name" and event["args"]["name"].endswith("/host:CPU")]
    steps = [event["name"] for event in shown if event["pid"] == host and event["name"].isdigit()]  # by number, on the stepping thread
    assert sorted(steps, key=int) == [str(100 + i) for i in range(10)]
    assert len(shown) > 30


def test_xprof_captures_from_our_server(tmp_path):
    # A port without a listener: xprof 2.24.2 reports it on x86_64, and dies on aarch64 before it contacts any server.
    command = [PYTHON, HERE / "xprof_judge.py", "capture", "1", tmp_path / "nothing", "100"]
    unasked = subprocess.run(command, capture_output=True, timeout=120)
    if unasked.returncode < 0:
        pytest.skip(f"xprof's own client dies with signal {-unasked.returncode} on this machine")
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
    with subprocess.Popen([PYTHON, HERE / "training_program.py", "serve", tmp_path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env=environment) as server:
        try:
            port = int(server.stdout.readline())
            run(HERE / "xprof_judge.py", "capture", port, tmp_path, 400)
        finally:
            (tmp_path / "stop").touch()
            _, said = server.communicate(timeout=60)
    assert server.returncode == 0, said
    path, = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    rows = table(judged(path, "hlo_stats")["hlo_stats"])
    assert len(rows) >= 3 and all(row["occurrences"] >= 1 for row in rows if row["hlo_op_name"] != "IDLE")


def test_the_server_refuses_what_it_should_and_takes_children_along(tmp_path):
    assert "all as it should be" in run(HERE / "server_program.py", tmp_path)
