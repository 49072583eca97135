"""Records the bytes that collectives of XLA's result bring to each of jax's eight host devices, for partition_bytes_programs.py.

    python make_partition_bytes_answers.py [OUTPUT]          (default: partition_bytes_answers.json beside this file)
"""
import json
import pathlib
import sys

import make_shard_map_answers as answering

HERE = pathlib.Path(__file__).parent
NAMES = [f"{model}_{strategy}" for model in ("mlp", "gpt", "moe") for strategy in ("dp", "fsdp", "megatron", "two")]

if __name__ == "__main__":
  output = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "partition_bytes_answers.json"
  answering.PROGRAMS = HERE / "partition_bytes_programs.py"
  lines = ",\n".join(f"{json.dumps(name)}: {found}" for name, found in answering.answers(NAMES).items())
  output.write_text("{\n" + lines + "\n}\n")
