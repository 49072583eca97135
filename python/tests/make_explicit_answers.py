"""Records what jax with eight host devices answers to explicit_programs.py.

    python make_explicit_answers.py [OUTPUT]          (default: explicit_answers.json beside this file)

A process answers for many programs; where it dies or takes too long, its programs are divided among two: jax's threads can end a
process with eight devices on few cores.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
PROGRAMS = HERE / "explicit_programs.py"
NAMES = re.findall(r"^@program\ndef (\w+)\(\):", PROGRAMS.read_text(), re.MULTILINE)


def answers(names, tries=3):
  environment = dict(os.environ, XLA_FLAGS="--xla_force_host_platform_device_count=8", JAX_PLATFORMS="cpu")
  for _ in range(tries if len(names) == 1 else 1):
    try:
      done = subprocess.run([sys.executable, str(PROGRAMS), "jax", *names], capture_output=True, text=True, env=environment,
                            timeout=60 + 10 * len(names))
    except subprocess.TimeoutExpired:
      continue
    if done.returncode == 0:
      return json.loads(done.stdout.splitlines()[-1])
  if len(names) == 1:
    raise SystemExit(f"jax does not answer to {names[0]}")
  half = len(names) // 2
  return answers(names[:half]) | answers(names[half:])


if __name__ == "__main__":
  output = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "explicit_answers.json"
  lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found)}" for name, found in answers(NAMES).items())
  output.write_text("{\n" + lines + "\n}\n")
