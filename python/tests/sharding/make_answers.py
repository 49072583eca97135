"""Records the answers of jax with eight host devices to the programs of NAME_programs.py.

    python make_answers.py [NAME...]          writes tests/data/NAME_answers.json.tar.xz; all of them without NAMEs

A recording is one JSON object with a line for each program. partition_bytes has the bytes that the collectives in XLA's result bring to
each device, output_sharding the shardings that jax chooses for results.
"""
import re
import sys

from recording import HERE, record

FUNCTIONS = r"^@program\ndef (\w+)\(\):"
CALLS = r'^program\("(\w+)"'
# How programs are found: a pattern that matches the name, the files to search, more names.
FAMILIES = {
    "explicit": (FUNCTIONS, ["explicit"], []),
    "mesh_array": (FUNCTIONS, ["mesh_array"], []),
    "mesh_check": (FUNCTIONS, ["mesh_check"], []),
    "mesh_map": (FUNCTIONS, ["mesh_map"], []),
    "mesh_placing": (FUNCTIONS, ["mesh_placing"], []),
    "output_sharding": (CALLS, ["output_sharding"], []),
    "partial_sum": (r'^(?:program|refused|gradient_text)\("(\w+)"', ["partial_sum"], []),
    "partition_bytes": (None, [], [
        f"{model}_{strategy}" for model in ("mlp", "gpt", "moe") for strategy in ("dp", "fsdp", "megatron", "two")]),
    "shard_map": (FUNCTIONS, ["shard_map", "sharded_array"], []),
    "sharding_interface": (CALLS, ["sharding_interface"], ["zeros_like", "ones_like", "empty_like"] + [
        f"context_{kind}_{name}" for kind in ("auto", "typed")
        for name in ("arange", "zeros", "number", "jit", "jit_of_nothing", "random")]),
}


def names_of(family):
  pattern, files, more = FAMILIES[family]
  sources = "".join(HERE.joinpath(f"{file}_programs.py").read_text() for file in files)
  return (re.findall(pattern, sources, re.MULTILINE) if pattern else []) + more


if __name__ == "__main__":
  for family in sys.argv[1:] or FAMILIES:
    record(f"{family}_programs.py", names_of(family), f"{family}_answers.json")
