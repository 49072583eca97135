"""Arguments that change the result are respected, or rejected with a reason."""
import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
import capibara.jax as jax
import capibara.jax.experimental.layout
import capibara.jax.numpy as jnp
from capibara.jax import lax


def test_arrays_without_bytes_are_converted():
  given = np.zeros((2, 5_000_000), jax.dtypes.float0)  # a large one: reading what numpy did not allocate would crash
  assert jnp.asarray(given).shape == given.shape and jax.jit(lambda x: x).lower(given).out_info.shape == given.shape


def test_from_dlpack_copies_when_told_to():
  source = np.arange(4.0, dtype=np.float32)
  shared, own = jax.dlpack.from_dlpack(source, copy=False), jnp.from_dlpack(source, copy=True)
  source[0] = 7
  assert float(shared[0]) == 7 and float(own[0]) == 0
  with pytest.raises(ValueError, match="row-major"):
    jax.dlpack.from_dlpack(np.ones((2, 3), np.float32).T, copy=False)
  assert jax.dlpack.from_dlpack(source, device=jax.devices()[0]).committed


def test_arrays_are_handed_over_as_the_consumer_asks():
  x = jnp.arange(3.0)
  assert np.from_dlpack(x).tolist() == [0, 1, 2]
  shared, own = np.from_dlpack(x), np.from_dlpack(_Asking(x, copy=True))
  assert np.shares_memory(shared, np.asarray(x)) and not np.shares_memory(own, np.asarray(x))
  with pytest.raises(BufferError, match="dl_device"):
    x.__dlpack__(dl_device=(2, 0))
  with pytest.raises(ValueError, match="stream"):
    x.__dlpack__(stream=1)
  assert x.__dlpack__(max_version=(1, 0)) is not None
  with pytest.raises(TypeError):
    x.__dlpack__(unknown=1)


class _Asking:
  """An array whose __dlpack__ is called with other arguments than NumPy passes."""

  def __init__(self, array, **arguments):
    self._array, self._arguments = array, arguments

  def __dlpack__(self, **_):
    return self._array.__dlpack__(**self._arguments)

  def __dlpack_device__(self):
    return self._array.__dlpack_device__()


def test_device_put_gives_memory_of_its_own_where_it_may_not_share():
  x = jnp.arange(3.0)
  shared, own = jax.device_put(x, jax.devices()[0]), jax.device_put(x, may_alias=False)
  assert shared.unsafe_buffer_pointer() == x.unsafe_buffer_pointer() != own.unsafe_buffer_pointer()
  both = jax.device_put({"a": x, "b": x}, may_alias={"a": False, "b": True})
  assert both["a"].unsafe_buffer_pointer() != both["b"].unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
  with pytest.raises(ValueError, match="donate"):
    jax.device_put(x, may_alias=True, donate=True)


def test_methods_refuse_shardings_of_results_as_their_functions_do():
  x = jnp.ones((2, 3))
  for call in (lambda s: x.reshape(6, out_sharding=s), lambda s: x.flatten(out_sharding=s)):
    with pytest.raises(TypeError, match="out_sharding"):
      call(jax.sharding.SingleDeviceSharding(jax.devices()[0]))
  assert x.astype(int, device=jax.devices()[0]).committed
  with pytest.raises(NotImplementedError, match="stream"):
    x.to_device(jax.devices()[0], stream=1)


def test_make_jaxpr_knows_the_axes_it_is_given():
  program = jax.make_jaxpr(lambda x: lax.psum(x, "i"), axis_env=[("i", 4)])(1.0)
  assert "psum" in str(program)
  assert "4.0" in str(jax.make_jaxpr(lambda x: lax.psum(1.0, "i") * x, axis_env=[("i", 4)])(1.0))
  with pytest.raises(NameError):
    jax.make_jaxpr(lambda x: lax.psum(x, "j"), axis_env=[("i", 4)])(1.0)


@pytest.mark.parametrize("call", [
  lambda: jax.vjp(jnp.sin, 1.0, reduce_axes=("i",)), lambda: jax.linear_transpose(lambda x: x, 1.0, reduce_axes=("i",)),
  lambda: jax.checkpoint(jnp.sin, concrete=True), lambda: jax.make_jaxpr(jnp.sin, abstracted_axes={})(1.0),
  lambda: jnp.add.accumulate(jnp.ones(3), out=jnp.ones(3)),
  lambda: jax.jit(jnp.sin).trace(1.0).lower(lowering_platforms=("tpu",)),
  lambda: jax.device_put(jnp.ones((2, 3)), jax.experimental.layout.Format(jax.experimental.layout.Layout((1, 0)), jax.sharding.SingleDeviceSharding(jax.devices()[0]))),
])
def test_what_is_not_supported_is_refused(call):
  with pytest.raises(NotImplementedError):
    call()


def test_row_major_formats_are_shardings():
  layout = jax.experimental.layout
  x = jax.device_put(jnp.ones((2, 3)), layout.Format(layout.Layout((0, 1)), jax.sharding.SingleDeviceSharding(jax.devices()[0])))
  assert x.committed and x.tolist() == [[1] * 3] * 2


def test_is_leaf_may_take_the_path():
  tree = {"a": {"b": 1}, "c": {"b": 2}}
  leaves = jax.tree_util.tree_leaves_with_path(tree, is_leaf=lambda path, node: path[:1] == (jax.tree_util.DictKey("a"),), is_leaf_takes_path=True)
  assert [leaf for _, leaf in leaves] == [{"b": 1}, 2]
  seen = jax.tree_util.tree_map_with_path(lambda path, leaf: len(path), tree, is_leaf=lambda path, node: len(path) == 1, is_leaf_takes_path=True)
  assert seen == {"a": 1, "c": 1}


def test_live_arrays_are_those_of_a_platform():
  x = jnp.arange(5.0)
  assert any(one is x for one in jax.live_arrays("cpu"))
  x.delete()
  assert not any(one is x for one in jax.live_arrays())
  with pytest.raises(RuntimeError):
    jax.live_arrays("no_such_platform")


def test_fwd_and_bwd_are_compiled_where_told_to():
  for jitted in (True, False):
    calls = []

    def f(x):
      calls.append(1)
      return jnp.sin(x) * x

    fwd, bwd = jax.fwd_and_bwd(f, argnums=0, jitted=jitted)
    for _ in range(3):
      value, pullback = fwd(2.0)
      assert np.allclose(bwd(pullback, 1.0), np.sin(2.0) + 2 * np.cos(2.0))
    assert len(calls) == (1 if jitted else 3)


def test_the_function_of_fromfunction_gets_its_keywords():
  assert jnp.fromfunction(lambda i, scale: i * scale, (3,), scale=2.0).tolist() == [0, 2, 4]


def test_compiler_options_reach_the_compiler():
  f = jax.jit(lambda x: x + 1, compiler_options={"xla_backend_optimization_level": 0})
  assert float(f(1.0)) == 2.0
  with pytest.raises(jax.errors.JaxRuntimeError, match="No such compile option: 'no_such_option'"):
    jax.jit(lambda x: x + 1, compiler_options={"no_such_option": True})(1.0)
  lowered = jax.jit(lambda x: x + 1).lower(1.0)
  assert float(lowered.compile({"xla_backend_optimization_level": 0})(1.0)) == 2.0
  with pytest.raises(jax.errors.JaxRuntimeError, match="No such compile option"):
    lowered.compile(compiler_options={"no_such_option": 1})
  with pytest.raises(jax.errors.JaxRuntimeError, match="is not a valid bool value"):
    lowered.compile(compiler_options={"xla_embed_ir_in_executable": "maybe"})
  hints = {"xla_embed_ir_in_executable": True, "exec_time_optimization_effort": 0.0, "optimization_level": 9, "memory_fitting_level": 19}
  assert float(jax.jit(lambda x: x + 1, compiler_options=hints)(1.0)) == 2.0
  assert float(lowered.compile()(1.0)) == 2.0


def test_a_dump_of_the_passes_goes_where_an_option_says(tmp_path):
  jax.jit(lambda x: jnp.sin(x) + 1, compiler_options={"xla_dump_to": str(tmp_path)})(jnp.ones(3))
  assert any(tmp_path.iterdir())


def test_the_text_of_a_compiled_program_is_what_was_compiled():
  lowered = jax.jit(lambda x: jnp.sin(x) + 1).lower(jnp.ones(8))
  compiled = lowered.compile().as_text()
  assert compiled and compiled != lowered.as_text() and "stablehlo" not in compiled and "sin" in compiled


def test_locations_are_written_where_asked_for():
  lowered = jax.jit(lambda x: jnp.sin(x) + 1).lower(1.0)
  assert "test_arguments.py" in lowered.as_text(debug_info=True) and "loc(" not in lowered.as_text()


def test_loops_unroll_and_keep_their_values():
  import capibara
  xs = jnp.arange(1.0, 8.0)
  for length in (1, 5, 6, 7):
    for reverse in (False, True):
      def loop(x, unroll):
        return lax.scan(lambda c, x: (c * 0.5 + x, c - x), 1.0, x[:length], reverse=reverse, unroll=unroll)
      expected = [np.asarray(v) for v in loop(xs, 1)]
      for unroll in (2, 3, 7, True):
        jitted = jax.jit(lambda x: loop(x, unroll))
        assert all(np.array_equal(a, b) for a, b in zip(jitted(xs), expected)), (length, reverse, unroll)
        text = jitted.lower(xs).as_text()
        assert ("stablehlo.while" in text) == (length == 1 if unroll is True else length // unroll > 1)
        assert all(np.array_equal(a, b) for a, b in zip(capibara.run_stablehlo(text, [xs]), expected)), (length, reverse, unroll)


def test_linear_call_has_both_derivatives():
  call = jax.custom_derivatives.linear_call
  f = lambda x: call(lambda r, v: r * v, lambda r, c: 3 * r * c, 2.0, x)
  assert float(f(5.0)) == 10
  assert [float(v) for v in jax.jvp(f, (5.0,), (1.0,))] == [10, 2]
  assert float(jax.grad(f)(5.0)) == 6
  assert float(jax.jit(jax.grad(f))(5.0)) == 6
  transposed = jax.linear_transpose(f, 1.0)
  assert float(transposed(1.0)[0]) == 6
  assert float(jax.linear_transpose(lambda c: transposed(c)[0], 1.0)(1.0)[0]) == 2


def test_lowerings_of_a_primitive_are_chosen_by_platform():
  from capibara.jax.core import Primitive
  from capibara.jax.interpreters import mlir
  primitive = Primitive("test_lowered_by_platform")
  primitive.def_abstract_eval(lambda x: x)
  mlir.register_lowering(primitive, mlir.lower_fun(lambda x: x + 1, multiple_results=False), platform="cpu")
  mlir.register_lowering(primitive, mlir.lower_fun(lambda x: x + 2, multiple_results=False), platform="tpu")
  mlir.register_lowering(primitive, mlir.lower_fun(lambda x: x + 3, multiple_results=False))
  assert float(jax.jit(primitive.bind)(0.0)) == 1
