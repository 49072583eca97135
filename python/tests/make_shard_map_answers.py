"""Records what jax with eight host devices answers to shard_map_programs.py.

    python make_shard_map_answers.py [OUTPUT]          (default: shard_map_answers.json beside this file)
"""
import re

from recording import HERE, record

if __name__ == "__main__":
  sources = HERE.joinpath("shard_map_programs.py").read_text() + HERE.joinpath("sharded_array_programs.py").read_text()
  record("shard_map_programs.py", re.findall(r"^@program\ndef (\w+)\(\):", sources, re.MULTILINE), "shard_map_answers.json")
