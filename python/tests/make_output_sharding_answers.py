"""Records the shardings that jax with eight host devices chooses for the results of output_sharding_programs.py.

    python make_output_sharding_answers.py [OUTPUT]          (default: output_sharding_answers.json beside this file)
"""
import re

from recording import HERE, record

if __name__ == "__main__":
  names = re.findall(r'^program\("(\w+)"', HERE.joinpath("output_sharding_programs.py").read_text(), re.MULTILINE)
  record("output_sharding_programs.py", names, "output_sharding_answers.json")
