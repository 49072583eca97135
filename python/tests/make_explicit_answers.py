"""Records what jax with eight host devices answers to explicit_programs.py.

    python make_explicit_answers.py [OUTPUT]          (default: explicit_answers.json beside this file)
"""
import re

from recording import HERE, record

if __name__ == "__main__":
  names = re.findall(r"^@program\ndef (\w+)\(\):", HERE.joinpath("explicit_programs.py").read_text(), re.MULTILINE)
  record("explicit_programs.py", names, "explicit_answers.json")
