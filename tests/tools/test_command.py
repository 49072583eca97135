"""Tests of the command line: what each command prints, and its exit codes."""

import json
import os
import pty
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release"))
COMMAND = Path(os.environ.get("CAPIBARA_COMMAND", BUILD / "capibara"))
pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason=f"{COMMAND} is not built")

ADD = """
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xi1>) {
  %0 = stablehlo.add %x, %y : tensor<2xf32>
  %1 = stablehlo.compare LT, %x, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return %0, %1 : tensor<2xf32>, tensor<2xi1>
}
"""


def capibara(*arguments, **environment):
    clean = {k: v for k, v in os.environ.items() if k != "CAPIBARA_GOLDEN"}
    return subprocess.run([str(COMMAND), *map(str, arguments)], capture_output=True, text=True, env=clean | environment)


def expecting(value, check="expect_eq"):
    return f"""
func.func @main() {{
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %1 = stablehlo.add %0, %0 : tensor<2xi32>
  %2 = stablehlo.constant dense<{value}> : tensor<2xi32>
  stablehlo.custom_call @check.{check}(%1, %2) {{has_side_effect = true}} : (tensor<2xi32>, tensor<2xi32>) -> ()
  return
}}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "right.mlir").write_text(expecting("[2, 4]"))
    (tmp_path / "wrong.mlir").write_text(expecting("[2, 5]"))
    (tmp_path / "silent.mlir").write_text("func.func @main() { return }")
    (tmp_path / "broken.mlir").write_text("func.func @main() { nonsense }")
    return tmp_path


def test_help_lists_the_commands():
    done = capibara("help")
    assert done.returncode == 0
    for name in ("show", "run", "check", "coverage"):
        assert f"  {name} " in done.stdout


def test_help_and_version_answer_the_usual_questions():
    assert capibara("help", "run").stdout == capibara("run", "--help").stdout != capibara("help").stdout
    assert capibara("help", "dance").returncode == 2
    done = capibara("--version")
    assert done.returncode == 0 and done.stdout.splitlines()[0] == capibara("doctor").stdout.splitlines()[0]


def test_errors_name_the_command_once(tmp_path):
    done = capibara("checkpoint", "list", tmp_path / "absent")
    assert (done.returncode, done.stderr.count("checkpoint:"), done.stderr.count("\n")) == (1, 1, 1)
    done = capibara("top", "here")
    assert done.returncode == 2 and "the port must be a number, got 'here'" in done.stderr
    assert capibara("doctor", "who").returncode == 2


@pytest.mark.parametrize("topology, plugin", [("v6e:8x8", "tpu"), ("v4:2x2x4", "tpu"), ("1x1x4", "cuda")])
def test_compile_says_which_plugin_a_topology_needs(tmp_path, topology, plugin):
    (tmp_path / "add.mlir").write_text(ADD)
    done = capibara("compile", tmp_path / "add.mlir", "--topology", topology)
    if done.returncode == 0:
        pytest.skip(f"this machine has a plugin for {plugin}")
    assert done.returncode == 1
    assert f"topology '{topology}'" in done.stderr and f"'{plugin}'" in done.stderr and "Looked at:" in done.stderr


def test_compile_refuses_what_is_no_topology(tmp_path):
    (tmp_path / "add.mlir").write_text(ADD)
    done = capibara("compile", tmp_path / "add.mlir", "--topology", "nowhere")
    assert done.returncode == 1 and "v5e:4x4" in done.stderr
    assert capibara("compile").returncode == 2


def test_unknown_commands_and_options_are_usage_errors():
    assert capibara().returncode == 2
    assert capibara("dance").returncode == 2
    done = capibara("check", "--loud")
    assert (done.returncode, "unknown option --loud" in done.stderr) == (2, True)
    assert capibara("check", "--jobs", "many").returncode == 2


@pytest.mark.skipif(not (BUILD / "lib" / "libcapibara_cpu.so").exists(), reason="the native compiler is not built")
def test_programs_are_compiled_where_there_is_a_compiler():
    assert "programs run on 'cpu' by default" in capibara("doctor", CAPIBARA_PLATFORM="").stdout
    for platforms, says in (("", "JAX_PLATFORMS not set: Python programs run on"), ("cpu", "'cpu': Python programs run on 'cpu'"),
                            ("magic", "there is no platform 'magic', so that every Python program raises")):
        assert says in " ".join(capibara("doctor", JAX_PLATFORMS=platforms).stdout.split())


def test_show_prints_the_program(tmp_path):
    (tmp_path / "add.mlir").write_text(ADD)
    done = capibara("show", tmp_path / "add.mlir")
    assert done.returncode == 0
    assert "{ lambda ; a:f32[2] b:f32[2]. let" in done.stdout
    assert "add a b" in done.stdout


def test_show_prints_the_program_after_a_pass(tmp_path):
    (tmp_path / "add.mlir").write_text(ADD)
    passes = capibara("show", "--passes").stdout
    assert [line.split()[0] for line in passes.splitlines()][-1] == "fuse"
    assert "add a b" in capibara("show", "--after", "dce", tmp_path / "add.mlir").stdout
    done = capibara("show", "--after", "polish", tmp_path / "add.mlir")
    assert (done.returncode, "there is no pass 'polish'" in done.stderr) == (1, True)


def test_run_takes_and_gives_npy_files(tmp_path):
    (tmp_path / "add.mlir").write_text(ADD)
    x, y = np.array([1, 5], np.float32), np.asfortranarray(np.array([3, 4], np.float32))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    done = capibara("run", tmp_path / "add.mlir", tmp_path / "x.npy", tmp_path / "y.npy", "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "out" / "out0.npy").tolist() == [4, 9]
    assert np.load(tmp_path / "out" / "out1.npy").tolist() == [True, False]


def test_run_names_what_does_not_fit(tmp_path):
    (tmp_path / "add.mlir").write_text(ADD)
    np.save(tmp_path / "x.npy", np.zeros(3, np.float32))
    assert capibara("run", tmp_path / "add.mlir").returncode == 2
    done = capibara("run", tmp_path / "add.mlir", tmp_path / "x.npy", tmp_path / "x.npy")
    assert done.returncode == 1
    assert "input 0: expected float32[2], got float32[3]" in done.stderr


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float64", "complex64"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_keeps_every_dtype_and_order(tmp_path, dtype, order):
    names = {"bool": "i1", "int8": "i8", "uint16": "ui16", "int64": "i64", "float16": "f16", "float64": "f64",
             "complex64": "complex<f32>"}
    (tmp_path / "same.mlir").write_text(
        "func.func @main(%x: tensor<2x3xT>) -> tensor<2x3xT> { return %x : tensor<2x3xT> }".replace("T", names[dtype]))
    x = np.array(np.arange(6).reshape(2, 3).astype(dtype), order=order)
    np.save(tmp_path / "x.npy", x)
    assert capibara("run", tmp_path / "same.mlir", tmp_path / "x.npy", "--output", tmp_path).returncode == 0
    got = np.load(tmp_path / "out0.npy")
    assert got.dtype == x.dtype and (got == x).all()


def test_check_counts_files_and_shows_failures(folder):
    done = capibara("check", folder)
    assert done.returncode == 1
    assert done.stdout.strip().splitlines()[-1] == "1 passed, 2 failed, 1 skipped"
    assert "check.expect_eq int32[2]: 1 of 2 elements differ, first at [1]: got 4, expected 5" in done.stdout
    assert "holds no expected values" in done.stdout
    assert capibara("check", folder / "right.mlir").returncode == 0


def test_check_skips_calls_that_no_native_backend_has(tmp_path):
    (tmp_path / "call.mlir").write_text(expecting("[2, 4]").replace("  return\n", "  %9 = stablehlo.custom_call @of_a_plugin(%1) : "
                                                                    "(tensor<2xi32>) -> tensor<2xi32>\n  return\n"))
    done = capibara("check", tmp_path)
    assert done.stdout.strip().splitlines()[-1] == "0 passed, 0 failed, 1 skipped"
    assert "calls 'of_a_plugin', which no native backend has" in done.stdout


def test_check_says_why_there_is_nothing_to_check(tmp_path, folder):
    done = capibara("check")
    assert done.returncode == 0
    assert len(done.stdout.strip().splitlines()) == 2
    done = capibara("check", CAPIBARA_GOLDEN=str(folder))
    assert done.stdout.strip().splitlines()[-1] == "1 passed, 2 failed, 1 skipped"
    assert capibara("check", tmp_path / "absent").returncode == 1


def test_self_test_fails_every_file(folder):
    done = capibara("check", folder / "right.mlir", "--self-test")
    assert done.returncode == 0
    assert done.stdout.strip().splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


def test_an_unknown_backend_is_refused(folder):
    done = capibara("check", folder, "--backend", "abacus")
    assert done.returncode == 1
    assert "abacus" in done.stderr


def test_coverage_has_a_row_for_each_primitive():
    done = capibara("coverage")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert any(line.startswith("dot_general ") for line in lines)
    assert int(lines[-1].split()[0]) == len(lines) - 2


def test_page_of_primitives_is_what_the_command_prints():
    done = capibara("coverage", "--markdown")
    assert done.stdout == (ROOT / "docs" / "primitives.md").read_text(), "run: build/capibara coverage --markdown > docs/primitives.md"


def test_coverage_tells_what_runs_a_primitive():
    rows = {line.split()[0]: line for line in capibara("coverage").stdout.splitlines()}
    assert " compiled " in rows["add"] and " kernel " in rows["sort"] and " lapack " in rows["eigh"] and " host " in rows["pure_callback"]


def test_check_computes_with_arguments_not_while_compiling(folder):
    # The optimiser folds constants with the reference backend: a program of arguments leaves nothing to fold.
    done = capibara("check", folder / "right.mlir", CAPIBARA_DUMP=str(folder / "dump"))
    assert done.returncode == 0
    last = sorted((folder / "dump").rglob("*"))[-1].read_text()
    assert "add" in last, last


def test_library_page_is_what_the_command_prints():
    done = capibara("library", "--markdown")
    page = ROOT / "docs" / "library.md"
    assert done.stdout == page.read_text(), "run: build/capibara library --markdown > docs/library.md"


def test_library_of_a_module_names_its_functions():
    done = capibara("library", "ops")
    assert "segment_sum(data, segment_ids" in done.stdout
    assert capibara("library", "no_such").returncode == 2


HOT = """
func.func @main(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %0 = stablehlo.add %x, %x : tensor<512x512xf32>
  %1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %2 = stablehlo.sine %1 : tensor<512x512xf32>
  return %2 : tensor<512x512xf32>
}
"""


def test_profile_blames_the_line_keeps_files_and_compares(tmp_path):
    (tmp_path / "hot.mlir").write_text(HOT)
    done = capibara("profile", tmp_path / "hot.mlir", "--calls", 3, "--out", tmp_path / "old.json")
    assert done.returncode == 0, done.stderr
    if "cpu" in capibara("doctor").stdout and "hot.mlir" in done.stdout:
        row = next(line for line in done.stdout.splitlines() if "dot_general" in line)
        assert "hot.mlir:4" in row and "%" in row
    again = capibara("profile", tmp_path / "old.json", "--json")
    rows = json.loads(again.stdout)["rows"]
    assert abs(sum(row["share"] for row in rows) - 1) < 1e-9 and max(row["calls"] for row in rows) >= 3
    against = capibara("profile", tmp_path / "hot.mlir", "--calls", 2, "--against", tmp_path / "old.json")
    assert against.returncode == 0 and "per execution" in against.stdout and "ratio" in against.stdout


def test_any_program_is_profiled_by_the_environment(tmp_path):
    (tmp_path / "hot.mlir").write_text(HOT)
    np.save(tmp_path / "x.npy", np.ones((512, 512), np.float32))
    done = capibara("run", tmp_path / "hot.mlir", tmp_path / "x.npy", CAPIBARA_PROFILE=str(tmp_path / "run.json"))
    assert done.returncode == 0, done.stderr
    taken = json.loads((tmp_path / "run.json").read_text())
    assert [program[0] for program in taken["programs"]] == ["main"] and taken["slots"]
    refused = capibara("run", tmp_path / "hot.mlir", tmp_path / "x.npy", CAPIBARA_PROFILE="/nowhere/run.json")
    assert refused.returncode == 0 and "/nowhere/run.json" in refused.stderr


def test_profile_says_what_is_wrong_with_its_arguments(tmp_path):
    (tmp_path / "bad.json").write_text('{"format": "something else"}')
    (tmp_path / "fails.py").write_text("raise SystemExit(3)")
    for words, code, text in (([], 2, "is needed"), (["none.mlir"], 1, "does not exist"), ([tmp_path / "bad.json"], 1, "not a profile"),
                              ([tmp_path / "fails.py"], 1, "wrote no profile"), (["x.mlir", "--against", "none.json"], 1, "none.json")):
        done = capibara("profile", *words)
        assert done.returncode == code and text in done.stderr + done.stdout, (words, done.stderr)


# ---- the table of options ----------------------------------------------------------------------------------------------------------

COMMANDS = [line.split()[0] for line in capibara("help").stdout.splitlines() if line.startswith("  ")] if COMMAND.exists() else []
SOURCES = {"bench": [], "checkpoint": ["checkpoint"], "chat": ["training/sample"], "coverage": ["coverage", "coverage_python"],
           "demo": ["training/train"], "launch": ["launch"], "plan": ["plan"], "sample": ["training/sample"], "train": ["training/train"]}


def documented(command):
    """{option: (placeholder of its value, what is said of it)} in the help of a command."""
    said, name = {}, None
    for line in capibara("help", command).stdout.partition("usage:")[2].partition("\n\n")[2].splitlines():
        option = re.match(r"  --?([\w-]+)(?: (\S+))?  +(.*)|  --?([\w-]+)(?: (\S+))?$", line)
        if option:
            name = option[1] or option[4]
            said[name] = [option[2] or option[5] or "", option[3] or ""]
        else:
            said[name][1] += " " + line.strip()
    return said


def read_by_the_sources(command):
    """The options that the sources of a command read."""
    files = SOURCES.get(command, [command])
    text = "".join((ROOT / "tools" / "capibara" / f"{file}.cpp").read_text() for file in files)
    names = set(re.findall(r'arguments\.(?:has|text|integer|number|named_values|named_numbers)\(\s*"([\w-]+)"', text))
    names |= set(re.findall(r'\b(?:integer|number)\("([\w-]+)", \w', text))  # of train, whose defaults are fields
    names |= set(re.findall(r'\w+_of\(arguments, "([\w-]+)"', text))
    return names | ({"sizes"} if "sizes_of(arguments)" in text else set())


@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_meaning_and_default_of_every_option(command):
    done = capibara("help", command)
    usage = done.stdout.partition("usage: ")[2].partition("\n\n")[0]
    assert usage.startswith(f"capibara {command}") and done.returncode == 0
    for name, (value, meaning) in documented(command).items():
        written = ("-" if len(name) == 1 else "--") + name
        assert len(meaning.split()) >= 2, (name, meaning)
        assert written in usage or "[options]" in usage or name == "member", (written, usage)
        required = re.search(rf"(?<!\[){re.escape(written)} ", usage) is not None
        assert not value or required or re.search(r"\(default: .+\)$", meaning), (name, meaning)
    assert all(len(line) <= 100 for line in done.stdout.splitlines() if "--" not in line.split()[:1])


@pytest.mark.parametrize("command", COMMANDS)
def test_the_options_that_are_read_are_those_of_help(command):
    read = read_by_the_sources(command)
    if command == "bench":  # which passes all to benchmarks/bench.py
        read = set(re.findall(r'add_argument\("--([\w-]+)"', (ROOT / "benchmarks" / "bench.py").read_text()))
    if command == "help":
        read = {"completion", "man"}
    read -= {"top": {"port"}, "chat": {"prompt"}}.get(command, set())  # a word; an option of sample, whose source chat shares
    assert read == set(documented(command))


@pytest.mark.parametrize("command", COMMANDS)
def test_options_are_parsed_as_help_writes_them(command):
    for name, (value, _) in documented(command).items():
        written = ("-" if len(name) == 1 else "--") + name
        if value:
            done = capibara(command, written)
            assert done.returncode == 2 and f"{written} needs a value" in done.stderr, done
        else:
            done = capibara(command, f"--{name}=yes")
            assert done.returncode == 2 and f"--{name} takes no value" in done.stderr, done


def test_defaults_of_help_are_those_that_act(tmp_path):
    (tmp_path / "add.mlir").write_text(ADD)
    said = documented("profile")
    by_default = json.loads(capibara("profile", tmp_path / "add.mlir", "--json").stdout)
    calls = int(re.search(r"default: (\d+)", said["calls"][1])[1])
    assert {row["calls"] for row in by_default["rows"]} == {calls}
    assert {row["calls"] for row in json.loads(capibara("profile", tmp_path / "add.mlir", "--json", "--calls", 3).stdout)["rows"]} == {3}


def test_named_values_are_written_alike_everywhere(tmp_path):
    (tmp_path / "add.mlir").write_text(ADD)
    for words in (("show", tmp_path / "add.mlir", "--sizes"), ("show", tmp_path / "add.mlir", "--sharded", "--mesh"),
                  ("compile", tmp_path / "add.mlir", "--topology", "v5e:2x2", "--options")):
        for wrong in ("x", "=3", "x=1,,y=2", ""):
            done = capibara(*words, wrong)
            assert done.returncode == 2 and f"{words[-1]} is written as " in done.stderr and f"got '{wrong}'" in done.stderr, (words, done)
        done = capibara(*words, "x=1,x=2")
        assert done.returncode == 2 and "gives 'x' twice" in done.stderr
    for wrong in ("x=many", "x=-1", "x=99999999999999999999", "x="):
        assert "is written as x=4,y=2" in capibara("show", tmp_path / "add.mlir", "--sharded", "--mesh", wrong).stderr


def test_bash_completes_commands_and_options(tmp_path):
    (tmp_path / "completion.sh").write_text(capibara("help", "--completion").stdout)

    def completed(*words):
        line = " ".join(f"'{word}'" for word in words)
        script = f"source completion.sh; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _capibara; echo ${{COMPREPLY[@]}}"
        return subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()

    assert completed("capibara", "ch") == ["check", "checkpoint", "chat"]
    assert completed("capibara", "help", "to") == ["top"]
    assert completed("capibara", "top", "--") == ["--once", "--link", "--capture"]
    assert completed("capibara", "top", "90") == []


def test_the_manual_page_names_every_option():
    page = capibara("help", "--man").stdout.replace("\\-", "-")
    for command in COMMANDS:
        part = page.partition(f".SS {command}\n")[2].partition(".SS ")[0]
        assert all(re.search(rf"^\.B --?{re.escape(name)}\b", part, re.MULTILINE) for name in documented(command)), command


@pytest.mark.slow
def test_a_long_compilation_shows_its_time_on_a_terminal(tmp_path):
    (tmp_path / "text.txt").write_text("Some words that are written again and again. " * 500)
    words = ["train", "text.txt", "--steps", "1", "--batch", "1", "--length", "16"]

    def shown_on(stderr, depth):
        layers = ",".join(["attention+mlp", "mamba+moe"] * depth)
        done = subprocess.run([str(COMMAND), *words, "--layers", layers, "--folder", f"run-{stderr}-{depth}"], cwd=tmp_path,
                              stdout=subprocess.PIPE, stderr=stderr, errors="replace", env=os.environ | {"CAPIBARA_CACHE": "off"})
        assert done.returncode == 0
        return float(re.search(r"compiled in ([\d.]+) s", done.stdout)[1]), done.stdout

    master, terminal = pty.openpty()
    depth = next(depth for depth in (5, 10, 20, 40, 80, 160) if shown_on(terminal, depth)[0] > 1.2)  # as fast as the machine is
    os.close(terminal)
    shown = os.read(master, 100_000).decode()
    assert "compiling: 1 s" in shown and shown.endswith("\r\x1b[K")
    assert "compiling" not in shown_on(subprocess.STDOUT, depth)[1]
