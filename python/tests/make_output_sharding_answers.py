"""Records the shardings that jax with eight host devices chooses for the results of output_sharding_programs.py.

    python make_output_sharding_answers.py [OUTPUT]          (default: output_sharding_answers.json beside this file)
"""
import json
import pathlib
import re
import sys

import make_shard_map_answers as answering

HERE = pathlib.Path(__file__).parent

if __name__ == "__main__":
  output = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "output_sharding_answers.json"
  answering.PROGRAMS = HERE / "output_sharding_programs.py"
  names = re.findall(r'^program\("(\w+)"', answering.PROGRAMS.read_text(), re.MULTILINE)
  lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found)}" for name, found in answering.answers(names).items())
  output.write_text("{\n" + lines + "\n}\n")
