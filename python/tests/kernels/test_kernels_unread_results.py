"""Results of capibara.kernels that nothing reads: compiled programs have no memory for them, and the others stay as they are."""

import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
pytest.importorskip("jax", reason="the peer is not installed")

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import kernels
from test_kernels_recurrence import ALL, close, scan_definition, scan_operands, ssd_definition, ssd_operands


@pytest.mark.parametrize("kind", ["selective_scan", "ssd"])
def test_states_that_only_the_gradient_reads_are_kept_for_it_alone(kind):
  """Compiled without a gradient, the states at the starts of chunks have no memory, and results are the same."""
  if kind == "ssd":
    args, static = ssd_operands((130, 3, 16), 1, 24, ALL)
    function = lambda given: kernels.ssd(**given, **static, chunk_size=2)
    want, starts = ssd_definition(**args, **static)[0], 65 * 3 * 16 * 24 * 4
  else:
    args, static = scan_operands((130, 17), 16, ALL)
    function = lambda given: kernels.selective_scan(**given, **static)
    want, starts = scan_definition(**args, **static)[0], 3 * 16 * 17 * 4
  given = {name: jnp.asarray(x) for name, x in args.items()}
  memory = lambda f: jax.jit(f).lower(given).compile().memory_analysis().temp_size_in_bytes
  close(jax.jit(function)(given), want, 2e-5)
  both = lambda given: getattr(kernels, kind)(**given, **static, return_last_state=True)
  close(jax.jit(lambda given: both(given)[1])(given), both(given)[1], 2e-5)
  real = {name: x for name, x in given.items() if str(x.dtype) == "float32"}
  pulled = lambda given: jax.vjp(lambda real: function({**given, **real}), {name: given[name] for name in real})
  close(jax.jit(lambda given: pulled(given)[0])(given), want, 2e-5)
  gradients = lambda given: (lambda y, pull: (y, pull(y)))(*pulled(given))
  close(jax.jit(gradients)(given)[0], want, 2e-5)
  assert memory(gradients) - memory(function) >= starts
