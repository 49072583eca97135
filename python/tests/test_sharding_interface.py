"""Meshes, specifications, shardings and shard_map answer as those of jax, in results and errors."""
import functools

import pytest
import recording

pytest.importorskip("capibara._core", reason="the Python extension is not built")
RECORDED = recording.recorded("sharding_interface_answers.json")
answers = functools.partial(recording.answers, "sharding_interface_programs.py")


@pytest.mark.parametrize("name", RECORDED)
def test_answers_as_jax(name):
  own, other = answers()[name], RECORDED[name]
  if isinstance(own, list) and isinstance(other, list) and len(other) == 2 and str(other[0]).endswith("Error"):
    # Where jax's sentence ends, ours may give a hint.
    assert own[0] == other[0] and own[1].startswith(other[1].removesuffix(".")), (own, other)
  else:
    assert recording.close(own, other), (own, other)
