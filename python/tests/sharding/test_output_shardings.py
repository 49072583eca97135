"""Results of jitted programs are sharded as jax's compiler shards them with eight devices."""
import functools

import pytest
import recording

pytest.importorskip("capibara._core", reason="the Python extension is not built")
RECORDED = recording.recorded("output_sharding_answers.json")
answers = functools.partial(recording.answers, "output_sharding_programs.py")

# Programs whose results are sharded in another way, with the reason; at most one in twenty.
DIFFERENT = {}


@pytest.mark.parametrize("name", RECORDED)
def test_results_are_sharded_as_in_jax(name):
  if name in DIFFERENT:
    assert answers()[name] != RECORDED[name], f"{name} is sharded as in jax now: take it out of DIFFERENT"
  else:
    assert answers()[name] == RECORDED[name]


def test_nineteen_in_twenty_agree():
  assert set(DIFFERENT) <= set(RECORDED) and 20 * len(DIFFERENT) <= len(RECORDED)
