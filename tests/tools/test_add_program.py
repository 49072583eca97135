"""capibara_add_program in CMake projects: a program becomes a library with its header, and is recompiled when it changes."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = shutil.which(os.environ.get("CAPIBARA_COMMAND", "build/capibara"))
EXAMPLE = ROOT / "examples" / "cmake_project"

DOUBLED = """module @m {
  func.func public @main(%x: tensor<100xf32>) -> tensor<100xf32> {
    %c = stablehlo.constant dense<VALUES> : tensor<100xf32>
    %0 = stablehlo.multiply %x, %c : tensor<100xf32>
    return %0 : tensor<100xf32>
  }
}
"""
USES_WEIGHTS = """#include <stdio.h>
#include "scale.h"
static float weights[SCALE_WEIGHTS_BYTES / sizeof(float)] __attribute__((aligned(64)));
int main(void) {
  float x[100], y[100];
  const void *inputs[] = {x};
  void *outputs[] = {y};
  static unsigned char arena[SCALE_ARENA_BYTES + 1] __attribute__((aligned(64)));
  FILE *file = fopen("scale.bin", "rb");
  if (!file || fread(weights, 1, sizeof weights, file) != sizeof weights) return 1;
  for (int i = 0; i < 100; ++i) x[i] = (float)i;
  scale(inputs, outputs, arena, weights);
  printf("%g %g\\n", y[1], y[99]);
  return 0;
}
"""


def configure(folder, commands, *options):
    (folder / "CMakeLists.txt").write_text(
        f'cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES C)\ninclude("{ROOT}/cmake/capibara_add_program.cmake")\n{commands}')
    return subprocess.run(["cmake", "-S", str(folder), "-B", str(folder / "build"), f"-DCAPIBARA_COMMAND={COMMAND}", *options],
                          capture_output=True, text=True)


def build(folder):
    done = subprocess.run(["cmake", "--build", str(folder / "build")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_runs_and_follows_its_program(tmp_path):
    for name in ("decay.mlir", "decay.c"):
        shutil.copy(EXAMPLE / name, tmp_path)
    commands = (EXAMPLE / "CMakeLists.txt").read_text().split("capibara::capibara)\n")[1]
    configured = configure(tmp_path, commands)
    assert configured.returncode == 0, configured.stderr
    assert "Compiling decay.mlir for native" in build(tmp_path)
    printed = subprocess.run([tmp_path / "build" / "decay"], capture_output=True, text=True, check=True).stdout
    assert "of 1 is left 0.3677" in printed
    assert "Compiling" not in build(tmp_path)
    program = tmp_path / "decay.mlir"
    program.write_text(program.read_text().replace("dense<1000>", "dense<1>"))
    assert "Compiling decay.mlir" in build(tmp_path)
    changed = subprocess.run([tmp_path / "build" / "decay"], capture_output=True, text=True)
    assert changed.returncode == 1 and "of 1 is left 0.9990" in changed.stdout


def test_weights_are_written_where_they_are_wanted(tmp_path):
    values = "[" + ", ".join(f"{i}.5" for i in range(100)) + "]"
    (tmp_path / "scale.mlir").write_text(DOUBLED.replace("VALUES", values))
    (tmp_path / "main.c").write_text(USES_WEIGHTS)
    configured = configure(tmp_path, "capibara_add_program(scale_function scale.mlir WEIGHTS scale.bin TARGETS native)\n"
                                     "add_executable(main main.c)\ntarget_link_libraries(main PRIVATE scale_function)\n")
    assert configured.returncode == 0, configured.stderr
    build(tmp_path)
    assert (tmp_path / "build" / "scale.bin").stat().st_size == 400
    printed = subprocess.run([tmp_path / "build" / "main"], cwd=tmp_path / "build", capture_output=True, text=True, check=True).stdout
    assert printed == "1.5 9850.5\n"


@pytest.mark.parametrize("call, words", [
    ("f decay.mlir NAME 3x", ["'3x'", "NAME"]),
    ("f decay.mlir TARGET native", ["expected capibara_add_program", "TARGET"]),
    ("f decay.mlir NAME", ["expected capibara_add_program"]),
])
def test_wrong_calls_are_named(tmp_path, call, words):
    refused = configure(tmp_path, f"capibara_add_program({call})\n")
    assert refused.returncode != 0
    for word in words:
        assert word in refused.stderr


def test_another_machine_needs_targets(tmp_path):
    refused = configure(tmp_path, "capibara_add_program(f decay.mlir)\n", "-DCMAKE_SYSTEM_NAME=Linux")
    assert refused.returncode != 0 and "TARGETS is needed" in " ".join(refused.stderr.split())
