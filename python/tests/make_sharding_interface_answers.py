"""Records what jax with eight host devices answers to sharding_interface_programs.py.

    python make_sharding_interface_answers.py [OUTPUT]          (default: sharding_interface_answers.json beside this file)
"""
import re

from recording import HERE, record

if __name__ == "__main__":
  text = HERE.joinpath("sharding_interface_programs.py").read_text()
  names = re.findall(r'^program\("(\w+)"', text, re.MULTILINE) + ["zeros_like", "ones_like", "empty_like"] + [
      f"context_{kind}_{name}" for kind in ("auto", "typed") for name in ("arange", "zeros", "number", "jit", "jit_of_nothing", "random")]
  record("sharding_interface_programs.py", names, "sharding_interface_answers.json")
