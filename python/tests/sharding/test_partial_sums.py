"""Sums over devices that types leave to be taken: as in jax, in types, texts, values, gradients and errors."""
import functools

import pytest
import recording

pytest.importorskip("capibara._core", reason="the Python extension is not built")
RECORDED = recording.recorded("partial_sum_answers.json")
answers = functools.partial(recording.answers, "partial_sum_programs.py")


@pytest.mark.parametrize("name", RECORDED)
def test_answers_as_jax(name):
  own, other = answers()[name], RECORDED[name]
  if len(other) == 2 and str(other[0]).endswith("Error"):
    # Where jax's sentence ends, ours may give a hint.
    assert own[0] == other[0] and own[1].startswith(other[1].removesuffix(".")), (own, other)
  else:
    assert recording.close(own, other), (own, other)
