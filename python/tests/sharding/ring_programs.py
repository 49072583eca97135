"""Ring attention and matmuls over a mesh of eight CPU devices, against float64 definitions; prints one JSON line."""

import json

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import kernels
from capibara.jax.sharding import AxisType, NamedSharding, PartitionSpec as P

AUTO = (AxisType.Auto,)
results, refused = {}, {}


def draw(seed, *shape):
  return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def definition(q, k, v, causal=False, mask=None, bias=None, window=None, sinks=0, segments=None, key_segments=None):
  q, k, v = (x.astype("float64") for x in (q, k, v))
  k, v = (np.repeat(x, q.shape[1] // k.shape[1], 1) for x in (k, v))
  logits = np.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1]) + (0 if bias is None else bias)
  i, j = np.arange(q.shape[2])[:, None], np.arange(k.shape[2])[None]
  seen = np.ones(logits.shape, bool)
  if causal: seen &= j <= i
  if window: seen &= ((j >= i - window[0]) | (j < sinks)) & (j <= i + window[1])
  if mask is not None: seen &= mask
  if segments is not None: seen &= (segments[:, :, None] == (segments if key_segments is None else key_segments)[:, None])[:, None]
  logits = np.where(seen, logits, -np.inf)
  top = np.where(seen.any(-1, keepdims=True), logits.max(-1, keepdims=True, initial=-1e300), 0)
  shares = np.exp(logits - top) * seen
  return shares / np.maximum(shares.sum(-1, keepdims=True), 1e-300) @ v


def error(got, want):
  got = np.asarray(got, "float64")
  return float(np.abs(got - want).max() / max(1e-30, np.abs(want).max()))


def record(name, *pairs):
  results[name] = max(error(got, want) for got, want in pairs)


def refuses(name, call):
  try:
    call()
    refused[name] = "computed"
  except (ValueError, TypeError) as caught:
    refused[name] = str(caught)


B, H, G, L, D = 2, 4, 2, 32, 8
q, k, v = draw(0, B, H, L, D), draw(1, B, G, L, D), draw(2, B, G, L, D)
ring = jax.make_mesh((8,), ("ring",), AUTO)
both = jax.make_mesh((2, 4), ("data", "sequence"), AUTO * 2)


def put(x, mesh, spec):
  return jax.device_put(jnp.asarray(x), NamedSharding(mesh, spec))


def gradients(call, *xs):
  return jax.grad(lambda *a: jnp.sum(jnp.sin(call(*a).astype("float32"))), tuple(range(len(xs))))(*xs)


mask = np.random.default_rng(5).random((B, 1, L, L)) < 0.7
segments = np.sort(np.random.default_rng(6).integers(0, 3, (B, L)), 1).astype("int32")
bias = draw(7, 1, H, L, L)
cases = {"plain": {}, "causal": {"causal": True}, "window": {"window": (5, 2), "sinks": 3},
         "causal window": {"causal": True, "window": (9, 0)}, "mask": {"attention_mask": mask, "causal": True},
         "key mask": {"attention_mask": mask[:, :, :1]},
         "segments": {"segment_ids": segments, "causal": True}, "bias": {"bias": bias}, "row bias": {"bias": bias[:, :, :1]},
         "key bias": {"bias": bias[..., :1]}}
names = {"attention_mask": "mask", "segment_ids": "segments"}
for name, options in cases.items():
  want = definition(q, k, v, **{names.get(key, key): value for key, value in options.items()})
  for mesh, spec in ((ring, P(None, None, "ring")), (both, P("data", None, "sequence"))):
    axis = spec[2]
    parts = [put(x, mesh, spec) for x in (q, k, v)]
    got = kernels.flash_attention(*parts, sequence_parallel=True, **options)
    record(f"{name} {axis}", (got, want))
    assert got.sharding == NamedSharding(mesh, P(*spec, None)) or got.sharding.is_equivalent_to(parts[0].sharding, 4), got.sharding
    assert {tuple(s.data.shape) for s in got.addressable_shards} == {tuple(s.data.shape) for s in parts[0].addressable_shards}
    with jax.set_mesh(mesh):
      ours = lambda *a: kernels.flash_attention(*a, sequence_parallel=True, **options)
      jitted = jax.jit(ours)
      inside = jitted(*parts)
      record(f"{name} {axis} jit", (inside, want))
      assert inside.addressable_shards[0].data.shape[2] == L // mesh.shape[axis], inside.sharding
      slopes, plain = jax.jit(lambda *a: gradients(ours, *a))(*parts), gradients(lambda *a: kernels.flash_attention(*a, **options), q, k, v)
      record(f"{name} {axis} gradient", *zip(slopes, (np.asarray(x, "float64") for x in plain)))
      text = str(jax.make_jaxpr(ours)(*parts))
      assert "ppermute" in text and "shard_map" in text, text

# The bias has a gradient, even if it is broadcast.
for name in ("bias", "row bias"):  # a bias that varies only along queries would change nothing
  with jax.set_mesh(ring):
    take = lambda b, **o: jnp.sum(jnp.sin(kernels.flash_attention(q, k, v, bias=b, **o)))
    b = jnp.asarray(cases[name]["bias"])
    record(f"{name} slope", (jax.jit(jax.grad(lambda b: take(b, sequence_parallel=True)))(b), np.asarray(jax.grad(take)(b), "float64")))

# Within a user's shard_map, and with Explicit axes.
for checked in (True, False):
  body = lambda q, k, v: kernels.flash_attention(q, k, v, causal=True, sequence_parallel=True, sequence_axis="ring")
  mapped = jax.shard_map(body, mesh=ring, in_specs=P(None, None, "ring"), out_specs=P(None, None, "ring"), check_vma=checked)
  record(f"shard_map {checked}", (mapped(q, k, v), definition(q, k, v, causal=True)))
  slopes, plain = gradients(mapped, q, k, v), gradients(lambda *a: kernels.flash_attention(*a, causal=True), q, k, v)
  record(f"shard_map {checked} gradient", *zip(slopes, (np.asarray(x, "float64") for x in plain)))
explicit = jax.make_mesh((2, 4), ("data", "sequence"))
with jax.set_mesh(explicit):
  parts = [jax.device_put(x, P("data", None, "sequence")) for x in (q, k, v)]
  got = jax.jit(lambda *a: kernels.flash_attention(*a, causal=True, sequence_parallel=True))(*parts)
  record("explicit", (got, definition(q, k, v, causal=True)))
  assert "data" in str(jax.typeof(got)) and "sequence" in str(jax.typeof(got)), jax.typeof(got)

# Different lengths of queries and keys, bfloat16, and operands that are not split.
long_k, long_v = draw(8, B, G, 2 * L, D), draw(9, B, G, 2 * L, D)
parts = [put(x, ring, P(None, None, "ring")) for x in (q, long_k, long_v)]
record("longer keys", (kernels.flash_attention(*parts, causal=True, sequence_parallel=True), definition(q, long_k, long_v, causal=True)))
low = [put(jnp.asarray(x, "bfloat16"), ring, P(None, None, "ring")) for x in (q, k, v)]
narrow = kernels.flash_attention(*low, causal=True, sequence_parallel=True)
assert narrow.dtype == "bfloat16"
results["bfloat16"] = error(narrow.astype("float32"), definition(*(np.asarray(x, "float32") for x in low), causal=True)) / 1e4
record("not split", (kernels.flash_attention(q, k, v, causal=True, sequence_parallel=True), definition(q, k, v, causal=True)))

r = P(None, None, "ring")
on = lambda x, spec=r, mesh=ring: put(x, mesh, spec)
flash = lambda *a, **o: kernels.flash_attention(*a, sequence_parallel=True, **o)
refuses("key not split", lambda: flash(on(q), on(k, P()), on(v)))
refuses("value on no mesh", lambda: flash(on(q), on(k), v))
refuses("head_dim", lambda: flash(on(q, P(None, None, "data", "sequence"), both), k, v))
refuses("two axes", lambda: flash(on(q, P(None, None, ("data", "sequence")), both), k, v))
refuses("other axis", lambda: flash(on(q, P("data", None, "sequence"), both), k, v, sequence_axis="data"))
refuses("no mesh named", lambda: flash(q, k, v, sequence_axis="ring"))
refuses("dropout", lambda: flash(on(q), on(k), on(v), dropout_rate=0.1, dropout_key=jax.random.key(0)))
refuses("offset", lambda: flash(on(q), on(k), on(v), query_offset=4))
refuses("trace", lambda: jax.jit(flash)(q, k, v))
refuses("axis without flag", lambda: kernels.flash_attention(q, k, v, sequence_axis="ring"))
with jax.set_mesh(both):
  refuses("unknown axis", lambda: jax.jit(lambda *a: flash(*a, sequence_axis="rows"))(q, k, v))
  refuses("length", lambda: jax.jit(flash)(q[:, :, :30], k, v))
with jax.set_mesh(jax.make_mesh((2, 4), ("a", "b"), AUTO * 2)):
  refuses("which axis", lambda: jax.jit(flash)(q, k, v))
with jax.set_mesh(ring):
  refuses("forward mode", lambda: jax.jvp(lambda q: flash(q, on(k), on(v)), (on(q),), (on(q),)))

# Matmuls: the contracted axis over the devices, eagerly, under jit, with a gradient.
a, b = draw(10, 6, 64), draw(11, 64, 5)
exact = a.astype("float64") @ b.astype("float64")
product = lambda a, b: kernels.adaptive_matmul(a, b, tpu_strategy="collective")
split = put(a, ring, P(None, "ring")), put(b, ring, P("ring"))
record("product", (product(*split), exact))
with jax.set_mesh(ring):
  record("product jit", (jax.jit(product)(a, b), exact))
  text = str(jax.make_jaxpr(product)(a, b))
  assert "shard_map" in text and "psum" in text, text
  slopes = jax.jit(jax.grad(lambda a, b: jnp.sum(product(a, b) ** 2), (0, 1)))(*split)
  record("product gradient", (slopes[0], 2 * exact @ b.T.astype("float64")), (slopes[1], 2 * a.T.astype("float64") @ exact))
  record("product of batches", (jax.jit(product)(draw(12, 3, 6, 64), b), draw(12, 3, 6, 64).astype("float64") @ b))
  record("product of vectors", (jax.jit(product)(a[0], b[:, 0]), np.asarray(exact[0, 0])))
with jax.set_mesh(explicit):
  typed = jax.device_put(a, P("data", "sequence")), jax.device_put(b, P("sequence"))
  record("product explicit", (jax.jit(product)(*typed), exact))
refuses("product trace", lambda: jax.jit(product)(a, b))
refuses("product size", lambda: product(put(a[:, :63], ring, P()), b[:63]))
print(json.dumps({"results": results, "refused": refused}))
