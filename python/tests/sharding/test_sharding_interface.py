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


def test_formats_are_leaves_and_check_what_they_hold():
  import jax as oracle
  from jax.experimental.layout import Format as OracleFormat, Layout as OracleLayout

  import capibara.jax as jax
  from capibara.jax.experimental.layout import Format, Layout

  for module, format_type, layout_type in ((jax, Format, Layout), (oracle, OracleFormat, OracleLayout)):
    sharding = module.sharding.SingleDeviceSharding(module.devices()[0])
    made = format_type(layout_type((1, 0)), sharding)
    assert not isinstance(made, tuple) and module.tree.leaves([made]) == [made] and made == format_type(layout_type((1, 0)), sharding)
    assert hash(made) == hash(format_type(layout_type((1, 0)), sharding)) and made != format_type(None, sharding)
    for wrong, error, text in [((layout_type((0,)),), ValueError, "Sharding has to be concrete"),
                               (((1, 0), sharding), TypeError, "layout argument"), ((None, 3), TypeError, "sharding argument")]:
      with pytest.raises(error, match=text):
        format_type(*wrong)
