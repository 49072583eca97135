"""Records what jax with eight host devices answers to mesh_array_programs.py and mesh_map_programs.py.

    python make_mesh_answers.py          writes mesh_array_answers.json and mesh_map_answers.json beside this file
"""
import re

from recording import HERE, record

if __name__ == "__main__":
  for kind in ("array", "map"):
    names = re.findall(r"^@program\ndef (\w+)\(\):", HERE.joinpath(f"mesh_{kind}_programs.py").read_text(), re.MULTILINE)
    record(f"mesh_{kind}_programs.py", names, f"mesh_{kind}_answers.json")
