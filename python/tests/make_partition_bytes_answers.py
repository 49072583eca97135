"""Records the bytes that collectives of XLA's result bring to each of jax's eight host devices, for partition_bytes_programs.py.

    python make_partition_bytes_answers.py [OUTPUT]          (default: partition_bytes_answers.json beside this file)
"""
from recording import record

NAMES = [f"{model}_{strategy}" for model in ("mlp", "gpt", "moe") for strategy in ("dp", "fsdp", "megatron", "two")]

if __name__ == "__main__":
  record("partition_bytes_programs.py", NAMES, "partition_bytes_answers.json")
