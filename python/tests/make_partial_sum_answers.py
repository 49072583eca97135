"""Records what jax with eight host devices answers to partial_sum_programs.py.

    python make_partial_sum_answers.py [OUTPUT]          (default: partial_sum_answers.json beside this file)
"""
import re

from recording import HERE, record

if __name__ == "__main__":
  text = HERE.joinpath("partial_sum_programs.py").read_text()
  record("partial_sum_programs.py", re.findall(r'^(?:program|refused|gradient_text)\("(\w+)"', text, re.MULTILINE),
         "partial_sum_answers.json")
