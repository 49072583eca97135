"""Tests of the counting in tools/run/suites.py: what the closing line sums must be what the reports hold."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]
specification = importlib.util.spec_from_file_location("suites", ROOT / "tools" / "run" / "suites.py")
suites = importlib.util.module_from_spec(specification)
sys.modules["suites"] = suites
specification.loader.exec_module(suites)


def make_runner(tmp_path, monkeypatch):
    monkeypatch.setattr(suites, "RESULTS", tmp_path)
    return suites.Runner(SimpleNamespace(build=tmp_path, quick=False, jobs=1, sanitizer=""))


def write_program(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def test_junit_report_is_counted(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text('<testsuites><testsuite><testcase classname="a" name="one"/>'
                      '<testcase name="two"><failure message="1 != 2"/></testcase>'
                      '<testcase name="three"><skipped/></testcase></testsuite></testsuites>')
    counts = suites.Counts()
    suites.read_junit(report, counts)
    assert (counts.passed, counts.failed, counts.skipped) == (1, 1, 1)
    assert counts.failures == [("two", "1 != 2")]


def test_googletest_report_is_counted(tmp_path, monkeypatch):
    runner = make_runner(tmp_path, monkeypatch)
    write_program(tmp_path / "tests" / "room_tests", """
cat > "${1#--gtest_output=json:}" <<END
{"testsuites": [{"name": "Room", "testsuite": [
  {"name": "A", "status": "RUN", "result": "COMPLETED"},
  {"name": "B", "status": "RUN", "result": "COMPLETED", "failures": [{"failure": "wrong"}]},
  {"name": "C", "status": "RUN", "result": "SKIPPED"},
  {"name": "D", "status": "NOTRUN", "result": "SUPPRESSED"}]}]}
END
exit 1
""")
    counts = suites.run_googletest(runner, "room")
    assert (counts.passed, counts.failed, counts.skipped) == (1, 1, 1)
    assert counts.failures == [("Room.B", "wrong")]


def test_crash_is_a_failure_of_the_running_test(tmp_path, monkeypatch):
    runner = make_runner(tmp_path, monkeypatch)
    write_program(tmp_path / "tests" / "room_tests",
                  'echo "[       OK ] Room.A"; echo "[ RUN      ] Room.B"; kill -SEGV $$\n')
    counts = suites.run_googletest(runner, "room")
    assert (counts.passed, counts.failed) == (1, 1)
    assert counts.failures[0][0] == "Room.B"
    assert "SIGSEGV" in counts.failures[0][1]


def test_program_that_was_not_built_is_a_failure(tmp_path, monkeypatch):
    assert suites.run_googletest(make_runner(tmp_path, monkeypatch), "room").failed == 1


def test_check_line_is_counted(tmp_path, monkeypatch):
    monkeypatch.setenv("CAPIBARA_GOLDEN", str(tmp_path))
    runner = make_runner(tmp_path, monkeypatch)
    write_program(tmp_path / "capibara", 'echo "7 passed, 2 failed, 1 skipped"; exit 1\n')
    counts = suites.run_check(runner)
    assert (counts.passed, counts.failed, counts.skipped) == (7, 2, 1)


def test_check_without_closing_line_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("CAPIBARA_GOLDEN", str(tmp_path))
    runner = make_runner(tmp_path, monkeypatch)
    write_program(tmp_path / "capibara", "exit 0\n")
    assert suites.run_check(runner).failed == 1


def test_absent_golden_folder_is_one_skip(tmp_path, monkeypatch):
    monkeypatch.setenv("CAPIBARA_GOLDEN", str(tmp_path / "absent"))
    counts = suites.run_check(make_runner(tmp_path, monkeypatch))
    assert (counts.failed, counts.skipped) == (0, 1)


def test_suite_without_tests_is_a_failure(tmp_path, monkeypatch, capsys):
    runner = make_runner(tmp_path, monkeypatch)
    total = suites.run_suites([suites.Suite("empty", "", lambda runner: suites.Counts())], runner, [])
    assert total.failed == 1
    assert "ran no test" in capsys.readouterr().out


def test_list_holds_every_room():
    names = {suite.name for suite in suites.all_suites()}
    for path in (ROOT / "tests").rglob("*_test.cpp"):
        assert path.parent.name in names


def test_sanitizers_run_no_python():
    chosen = [suite.label for suite in suites.all_suites() if suites.may_sanitize(suite)]
    assert "examples" in chosen and "c++ transforms" in chosen
    assert all(label == "examples" or label.startswith("c++ ") for label in chosen)
