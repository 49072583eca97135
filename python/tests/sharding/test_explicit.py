"""Programs under Explicit axes: values, types, texts and errors as jax has them with its own eight devices."""
import functools

import pytest
import recording
from recording import close

pytest.importorskip("capibara._core", reason="the Python extension is not built")
RECORDED = recording.recorded("explicit_answers.json")
answers = functools.partial(recording.answers, "explicit_programs.py")


@pytest.mark.parametrize("name", RECORDED)
def test_answers_as_jax(name):
  assert close(answers()[name], RECORDED[name])


def test_the_plain_loops_answer_the_same():
  """The reference backend is the truth of the compiled programs."""
  differing = [name for name in RECORDED if not close(answers("reference")[name], answers()[name])]
  assert not differing
