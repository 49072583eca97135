"""Records what jax with eight host devices answers to mesh_array_programs.py, mesh_check_programs.py and so on.

    python make_mesh_answers.py          writes mesh_array_answers.json and so on beside this file
"""
import re

from recording import HERE, record

if __name__ == "__main__":
  for kind in ("array", "check", "map", "placing"):
    names = re.findall(r"^@program\ndef (\w+)\(\):", HERE.joinpath(f"mesh_{kind}_programs.py").read_text(), re.MULTILINE)
    record(f"mesh_{kind}_programs.py", names, f"mesh_{kind}_answers.json")
