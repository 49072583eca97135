"""Tests of the counting in tools/run/suites.py and checks.py: the closing line must match the sums of the reports."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools" / "run"))
specification = importlib.util.spec_from_file_location("suites", ROOT / "tools" / "run" / "suites.py")
suites = importlib.util.module_from_spec(specification)
sys.modules["suites"] = suites
specification.loader.exec_module(suites)
import checks  # noqa: E402


def make_runner(tmp_path, monkeypatch):
    monkeypatch.setattr(suites, "RESULTS", tmp_path)
    return suites.Runner(SimpleNamespace(build=tmp_path, quick=False, jobs=1, sanitizer="", full=False, emulator="", golden=""))


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


def check(tmp_path, monkeypatch, body):
    runner = make_runner(tmp_path, monkeypatch)
    runner.environment.pop("CAPIBARA_PLUGIN", None)
    monkeypatch.setattr(checks, "check_folders", lambda runner: [tmp_path])
    write_program(tmp_path / "capibara", body)
    return checks.run_check(runner)


def test_a_checked_file_is_one_test_on_all_backends(tmp_path, monkeypatch):
    counts = check(tmp_path, monkeypatch, """
echo "PASS f/right.mlir"; echo "SKIP f/silent.mlir"; echo "     holds no expected values"
case "$*" in *reference*) echo "PASS f/wrong.mlir";; *) echo "FAIL f/wrong.mlir"; echo "     1 of 2 elements differ";; esac
echo "1 passed, 1 failed, 1 skipped"
""")
    assert (counts.passed, counts.failed, counts.skipped) == (1, 1, 1)
    assert counts.failures == [("wrong.mlir", "on cpu: 1 of 2 elements differ")]


def test_a_file_that_one_backend_is_excused_from_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "CPU_FILES", {"known.mlir": "the sum is 4 ULP off"})
    counts = check(tmp_path, monkeypatch, """
case "$*" in *reference*) echo "PASS f/known.mlir";; *) echo "FAIL f/known.mlir"; echo "     differs";; esac
echo "PASS f/right.mlir"; echo "1 passed, 1 failed, 0 skipped"
""")
    assert (counts.passed, counts.failed, counts.skipped) == (1, 0, 1)
    assert "known.mlir on cpu: the sum is 4 ULP off" in counts.note


def test_recorded_models_are_counted_case_by_case(tmp_path, monkeypatch):
    runner = make_runner(tmp_path, monkeypatch)
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "models_test.json").write_text("{}")
    runner.golden = tmp_path / "cases"
    known = next(iter(checks.MODEL_CASES))
    write_program(tmp_path / "tests" / "models_tests",
                  f'echo "models_test.json test_new: differs"; echo "models_test.json {known}: differs"; echo "all: 7 of 9"\n')
    counts = checks.run_golden_models(runner)
    assert (counts.passed, counts.failed, counts.skipped) == (7, 1, 1)
    assert counts.failures == [("models_test.json test_new", "differs")]


def test_what_a_golden_folder_has_decides_its_suites(tmp_path):
    (tmp_path / "a.mlir").write_text("")
    assert [suite.name for suite in checks.golden_suites(tmp_path)] == ["golden files"]
    (tmp_path / "a_test.json").write_text("")
    assert [suite.name for suite in checks.golden_suites(tmp_path)] == ["golden files", "golden models"]
    assert "golden" not in " ".join(suite.name for suite in suites.all_suites())


def test_the_share_of_the_properties_changes_with_each_commit(monkeypatch):
    def count(number, status=0):
        monkeypatch.setattr(suites.subprocess, "run", lambda *words, **options: SimpleNamespace(stdout=f"{number}\n", returncode=status))
        return suites.property_share()
    assert [count(number) for number in (6, 7, 11, 12)] == [0, 1, 5, 0]
    assert count("", status=128) == 0  # no repository
    monkeypatch.setattr(suites.shutil, "which", lambda name: None)
    assert count(7) == 0  # no git


def test_check_without_closing_line_fails_on_each_backend(tmp_path, monkeypatch):
    assert check(tmp_path, monkeypatch, "exit 0\n").failed == 2


def test_a_program_is_waited_for_while_it_works(tmp_path, monkeypatch):
    monkeypatch.setattr(suites.patience, "IDLE_SECONDS", 2)
    runner = make_runner(tmp_path, monkeypatch)
    busy = runner.start("busy", [sys.executable, "-c", "import time\nend = time.process_time() + 3\nwhile time.process_time() < end: pass"])
    idle = runner.start("idle", [sys.executable, "-c", "import time; time.sleep(60)"])
    assert (busy[0], idle[0]) == (0, None)


def test_suite_without_tests_is_a_failure(tmp_path, monkeypatch, capsys):
    runner = make_runner(tmp_path, monkeypatch)
    total = suites.run_suites([suites.Suite("empty", "", lambda runner: suites.Counts())], runner, [])
    assert total.failed == 1
    assert "ran no test" in capsys.readouterr().out


def test_list_holds_every_room():
    names = {suite.name for suite in suites.all_suites()}
    for path in (ROOT / "tests").rglob("*_test.cpp"):
        assert suites.room_of(path.relative_to(ROOT / "tests")) in names


def test_sanitizers_run_no_python():
    chosen = [suite.label for suite in suites.all_suites() if suites.may_sanitize(suite)]
    assert "examples" in chosen and "c++ transforms" in chosen
    assert all(label == "examples" or label.startswith("c++ ") for label in chosen)
