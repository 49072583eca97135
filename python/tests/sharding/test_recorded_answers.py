"""Programs over eight devices give jax's recorded answers on its own eight: values, types, texts, shardings and errors."""
import os
import subprocess
import sys

import pytest
import recording
from recording import close

pytest.importorskip("capibara._core", reason="the Python extension is not built")
KINDS = ("explicit", "mesh_array", "mesh_check", "mesh_map", "mesh_placing", "output_sharding", "partial_sum", "sharding_interface")
RECORDED = {kind: recording.recorded(f"{kind}_answers.json") for kind in KINDS}
HINTED = {"partial_sum", "sharding_interface"}  # our message may add a hint after jax's sentence


def answers(kind, platform="cpu"):
  return recording.answers(f"{kind}_programs.py", platform)


@pytest.mark.parametrize("kind, name", [(kind, name) for kind, found in RECORDED.items() for name in found])
def test_answers_as_jax(kind, name):
  own, other = answers(kind)[name], RECORDED[kind][name]
  if kind in HINTED and isinstance(own, list) and isinstance(other, list) and len(other) == 2 and str(other[0]).endswith("Error"):
    assert own[0] == other[0] and own[1].startswith(other[1].removesuffix(".")), (own, other)
  else:
    assert close(own, other), (own, other)


def test_the_plain_loops_answer_the_same_under_explicit_axes():
  """The reference backend is the ground truth for compiled programs."""
  differing = [name for name in RECORDED["explicit"] if not close(answers("explicit", "reference")[name], answers("explicit")[name])]
  assert not differing


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


SENDS = """
import capibara.jax; capibara.jax.install()
import jax, jax.numpy as jnp, numpy as np
from functools import partial
from jax import lax
from jax.sharding import PartitionSpec as P
from jax._src.lax.parallel import pargmax, pargmin
mesh = jax.make_mesh((8,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
mapped = partial(jax.shard_map, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)
shift = [(i, i + 1) for i in range(7)]

@jax.jit
@mapped
def there_and_back(x):
  token = lax.psend(x, "i", shift)
  token, _ = lax.optimization_barrier((token, x))
  got = lax.precv(token, jax.ShapeDtypeStruct(x.shape, x.dtype), "i", shift)
  return got + lax.precv(lax.psend(2 * x, "i", [(7, 0)]), x, "i", [(7, 0)])

x = np.arange(1.0, 17.0, dtype=np.float32)
expected = np.concatenate([2 * x[14:], x[:14]])
assert np.array_equal(there_and_back(x), expected), there_and_back(x)

def refused(kind, receive):
  try:
    mapped(lambda a: receive(lax.psend(a, "i", shift), a))(x)
  except kind as error:
    return str(error)
  raise AssertionError("nothing was raised")

assert "must be those of the psend" in refused(ValueError, lambda token, a: lax.precv(token, a, "i", [(0, 1)]))
assert "what was sent" in refused(ValueError, lambda token, a: lax.precv(token, a[:1], "i", shift))
assert "must come from the psend" in refused(TypeError, lambda token, a: lax.precv(lax.create_token(), a, "i", shift))

values = np.array([[3, 1], [0, 5], [3, 5], [2, 1], [0, 0], [1, 1], [2, 2], [1, 4]], np.float32)
for function, of_numpy in ((pargmin, np.argmin), (pargmax, np.argmax)):
  found = jax.pmap(lambda a: function(a, "i"), axis_name="i", out_axes=None)(values)
  assert np.array_equal(found, of_numpy(values, axis=0)), found
print("done")
"""


def test_values_are_sent_in_two_steps():
  """jax does this only on GPUs: each device receives what the permutation specifies."""
  environment = dict(os.environ, JAX_NUM_CPU_DEVICES="8")
  done = subprocess.run([sys.executable, "-c", SENDS], capture_output=True, text=True, env=environment, timeout=300)
  assert done.stdout.endswith("done\n"), done.stdout + done.stderr[-3000:]


GATHERS = """
import capibara.jax; capibara.jax.install()
import jax, numpy as np
from jax.sharding import PartitionSpec as P
from jax._src.shard_map import top_level_all_gather
with jax.set_mesh(jax.make_mesh((2, 2, 2), ("x", "y", "z"))):
  for own, wanted, several in ((P("x", "y"), P(None, None, reduced={"x", "y"}), True),
                               (P(("x", "y"), None), P("x", None, reduced={"y"}), False),
                               (P(("x", "y"), "z"), P(None, "z", reduced={"x", "y"}), False)):
    x = jax.device_put(np.arange(16.0, dtype=np.float32).reshape(8, 2), own)
    gather = jax.jit(lambda a: top_level_all_gather(a, wanted, multi_dim=several))
    assert gather(x).sharding.spec == wanted and np.array_equal(gather(x), x)
    gradients = [jax.jit(jax.grad(lambda a: f(a).sum()))(x) for f in (gather, lambda a: jax.reshard(a, wanted))]
    assert gradients[0].sharding == x.sharding and np.array_equal(*gradients)
print("done")
"""


def test_gathers_outside_of_maps_are_reshards():
  environment = dict(os.environ, JAX_NUM_CPU_DEVICES="8")
  done = subprocess.run([sys.executable, "-c", GATHERS], capture_output=True, text=True, env=environment, timeout=300)
  assert done.stdout.endswith("done\n"), done.stdout + done.stderr[-3000:]
