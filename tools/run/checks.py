"""Runs files that contain their own expected values: jax's texts for ./run test, those of other projects for ./run golden."""

import re
import sys
from pathlib import Path

from counts import SHARE, SUMMARY, Counts, Suite, ending, tail
from excused_files import CPU_FILES, MODEL_CASES, PLUGIN_FILES, UNREACHED_FILES

ROOT = Path(__file__).resolve().parents[2]


def check_folders(runner):
    """jax's own texts, which a clone can make without other files; for ./run golden, its folder argument."""
    if runner.golden:
        return [runner.golden]
    sys.path.append(str(ROOT / "tests" / "oracle"))
    import texts

    return [texts.folder(runner.build) / "check"]


def run_check(runner):
    """StableHLO files with expected values, on every backend. A file is one test: it passes if it passes on all backends, and
    counts as skipped if one of them skips it or is excused from it."""
    counts = Counts()
    program = runner.build / "capibara"
    if not program.exists():
        counts.fail("check", "the command line was not built")
        return counts
    folders = check_folders(runner)
    backends = {"reference": UNREACHED_FILES, "cpu": CPU_FILES}
    if not runner.quick and "CAPIBARA_PLUGIN" in runner.environment:
        backends["pjrt"] = PLUGIN_FILES
    tried, failed, skipped, notes = set(), {}, set(), []
    for backend, excuses in backends.items():
        sampled = backend == "pjrt" and runner.sample  # XLA takes long to compile each file
        chosen = [file for folder in folders for file in sorted(folder.rglob("*.mlir"))[::SHARE]] if sampled else folders
        command = [program, "check", *chosen, "--verbose", "--jobs", runner.jobs, "--backend", backend]
        status, log = runner.start(f"check-{backend}", command)
        lines = log.read_text(errors="replace").splitlines()
        if not lines or not SUMMARY.match(lines[-1]):
            counts.fail(f"check on {backend}", f"{ending(status)}, without its closing line\n{tail(log)}")
            continue
        for number, line in enumerate(lines):
            verdict, _, path = line.partition(" ")
            if verdict not in ("PASS", "FAIL", "SKIP") or not path.endswith(".mlir"):
                continue
            name = Path(path).name
            tried.add(path)
            if verdict == "SKIP" or (verdict == "FAIL" and name in excuses):
                skipped.add(path)
                if verdict == "FAIL":
                    notes.append(f"{name} on {backend}: {excuses[name]}")
            elif verdict == "FAIL":
                failed.setdefault(path, f"on {backend}: {lines[number + 1].strip() if number + 1 < len(lines) else ''}")
    for path, why in sorted(failed.items()):
        counts.fail(Path(path).name, why)
    counts.skipped = len(set(skipped) - set(failed))
    counts.passed = len(tried) - len(failed) - counts.skipped
    counts.note = "; ".join([" ".join(backends), *dict.fromkeys(notes)])
    return counts


def run_golden_models(runner):
    """Cases of named models as Mithril records them, in .json files: each is one test."""
    counts = Counts()
    for folder in sorted({path.parent for path in runner.golden.rglob("*_test.json")}):
        runner.environment["CAPIBARA_GOLDEN_MODELS"] = str(folder)
        status, log = runner.start("golden-models", [runner.build / "tests" / "models_tests", "--gtest_filter=Golden.*"])
        text = log.read_text(errors="replace")
        found = re.search(r"^all: (\d+) of (\d+)$", text, re.MULTILINE)
        if not found:
            counts.fail(folder.name, f"{ending(status)}\n{tail(log)}")
            continue
        counts.passed += int(found[1])
        for file, name, why in re.findall(r"^(\S+\.json) (\S+): (.*)$", text, re.MULTILINE):
            if name in MODEL_CASES:
                counts.skipped += 1
                counts.note += f"; {name}: {MODEL_CASES[name]}"
            else:
                counts.fail(f"{file} {name}", why)
        for name in re.findall(r"^\[  FAILED  \] (Golden\.\w+) \(", text, re.MULTILINE):
            counts.fail(name, f"see {log}")
    counts.note = counts.note.removeprefix("; ")
    return counts


def golden_suites(folder):
    """Runs a folder of other projects' recorded cases: StableHLO's files, Mithril's models. An optional suite, with its own verb."""
    suites = []
    if any(Path(folder).rglob("*.mlir")):
        suites.append(Suite("golden files", "", run_check, "capibara_command"))
    if any(Path(folder).rglob("*_test.json")):
        suites.append(Suite("golden models", "", run_golden_models, "models_tests"))
    if not suites:
        sys.exit(f"run: {folder} holds neither .mlir files nor *_test.json")
    return suites
