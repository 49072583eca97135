"""shard_map and Explicit axes over eight devices, as in tutorials on sharding.

python mesh_map_programs.py jax|capibara [NAME...]      prints one JSON object {name: answer}

`make_answers.py mesh_map` records jax's answers.
"""
import functools

from mesh_telling import answer, auto_mesh, explicit_mesh, plain, program, raised, ramp, spec, told, types, values  # isort: skip

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P, auto_axes, explicit_axes, reshard


# ---- shard_map ------------------------------------------------------------------------------------------------------

@program
def a_product_by_parts():
  mesh = auto_mesh(4, 2)

  @jax.jit
  @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
  def matmul(a, b):
    return lax.psum(a @ b, "y")

  @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))
  def scattered(a, b):
    return lax.psum_scatter(a @ b, "y", scatter_dimension=1, tiled=True)
  a, b = ramp(8, 4), ramp(4, 6)
  return [told(matmul(a, b)), told(scattered(a, b)), values(a @ b)]


@program
def a_product_in_a_ring():
  mesh = auto_mesh(8)

  @jax.jit
  @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))
  def ring(a, b):
    size = lax.axis_size("x")
    index = lax.axis_index("x")
    columns = a.shape[1] // size
    total = lax.pcast(jnp.zeros((a.shape[0], b.shape[1])), "x", to="varying")

    def step(i, state):
      total, b = state
      at = (index + i) % size
      part = lax.dynamic_slice_in_dim(a, at * columns, columns, 1)
      return total + part @ b, lax.ppermute(b, "x", [((j + 1) % size, j) for j in range(size)])
    return lax.fori_loop(0, size, step, (total, b))[0]
  a, b = ramp(8, 16), ramp(16, 3)
  return told(ring(a, b))


@program
def all_collectives():
  mesh = auto_mesh(4)

  @jax.jit
  @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
  def f(a):
    turned = lax.all_to_all(lax.all_gather(a, "x"), "x", 0, 0)[0]
    return [lax.pmean(a, "x") + a, lax.pmax(a, "x") - a, lax.all_gather(a, "x", tiled=True) + a[:1], lax.ppermute(a, "x", [(0, 3), (2, 1)]),
            turned, lax.psum(1, "x") * a, lax.pshuffle(a, "x", [3, 2, 1, 0])]
  return told(f(ramp(8)))


@program
def a_pipeline():
  mesh = auto_mesh(4, names=("stage",))
  weights = jax.device_put(ramp(4, 3, 3) / 8, NamedSharding(mesh, P("stage")))

  @jax.jit
  @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P("stage"), check_vma=False)
  def pipeline(w, xs):
    stage, stages = lax.axis_index("stage"), lax.axis_size("stage")
    state, outputs = jnp.zeros(3), jnp.zeros((xs.shape[0], 3))
    for i in range(xs.shape[0] + stages - 1):
      state = jnp.where(stage == 0, xs[min(i, xs.shape[0] - 1)], state)
      state = jnp.tanh(state @ w[0])
      outputs = jnp.where((stage == stages - 1) & (i >= stages - 1), outputs.at[max(i - stages + 1, 0)].set(state), outputs)
      state = lax.ppermute(state, "stage", [(j, (j + 1) % stages) for j in range(stages)])
    return outputs[None]
  out = pipeline(weights, ramp(5, 3))
  expected = ramp(5, 3)
  for w in ramp(4, 3, 3) / 8:
    expected = np.tanh(expected @ w)
  return [values(out[3]), np.allclose(out[3], expected, atol=1e-5)]


@program
def gradients_through_shard_map():
  mesh = auto_mesh(4, 2)

  def loss(w, x):
    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P(None, "y"), P("x", None)), out_specs=P())
    def local(w, x):
      h = lax.all_gather(jnp.sin(x @ w), "y", axis=1, tiled=True)
      return lax.pmean(lax.pmean((h ** 2).sum(), "x"), "y")
    return local(w, x)
  w, x = ramp(4, 4), ramp(8, 4)
  value, slopes = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(w, x)
  return [values(value), values(slopes)]


@program
def fully_sharded_data_parallel():
  mesh = auto_mesh(8, names=("d",))
  params = [jax.device_put(ramp(8, 8) / 32, NamedSharding(mesh, P("d"))) for _ in range(2)]

  def loss(params, batch):
    @jax.checkpoint
    def predict(params, x):
      for w in params:
        x = jnp.tanh(x @ lax.all_gather(w, "d", tiled=True))
      return x

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("d"), P("d")), out_specs=P())
    def local(params, x):
      return lax.pmean(jnp.mean(predict(params, x) ** 2), "d")
    return local(params, batch)
  batch = jax.device_put(ramp(16, 8), NamedSharding(mesh, P("d")))
  value, slopes = jax.jit(jax.value_and_grad(loss))(params, batch)
  return [values(value), values(slopes), [spec(leaf) for leaf in slopes]]


@program
def partly_manual():
  mesh = auto_mesh(4, 2)

  @jax.jit
  @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
  def f(a):
    return lax.ppermute(jnp.sin(a), "x", [(i, (i + 1) % 4) for i in range(4)]) * lax.axis_index("x")
  return values(f(jax.device_put(ramp(8, 4), NamedSharding(mesh, P("x", "y")))))


@program
def maps_inside_of_maps():
  mesh = auto_mesh(4, 2)

  @jax.jit
  @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"), axis_names={"x"})
  def outer(a):
    inner = jax.shard_map(lambda b: b - lax.pmax(b, "y"), in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"})
    return inner(a) + lax.psum(a, "x")
  return raised(outer, ramp(8, 4))[:1]


@program
def a_map_of_vmap_and_vmap_of_a_map():
  mesh = auto_mesh(4)
  f = jax.shard_map(lambda a: jax.vmap(lambda row: lax.psum(row, "x") - row)(a), mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))
  g = jax.vmap(jax.shard_map(lambda a: lax.all_gather(a, "x", tiled=True).sum() + a, mesh=mesh, in_specs=P("x"), out_specs=P("x")))
  return told([f(ramp(3, 8)), jax.jit(g)(ramp(3, 8))])


@program
def host_functions_of_devices():
  mesh = auto_mesh(4)

  @jax.jit
  @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
  def f(a):
    shape = jax.ShapeDtypeStruct(a.shape, a.dtype)
    return jax.pure_callback(lambda v: np.asarray(v) * np.asarray(v).shape[0], shape, a)
  return told(f(ramp(8)))


@program
def numbers_of_devices():
  mesh = auto_mesh(4, 2)

  @functools.partial(jax.shard_map, mesh=mesh, in_specs=(), out_specs=P("x", "y"))
  def f():
    return (lax.axis_index("x") * 10 + lax.axis_index("y")).reshape(1, 1)

  @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P(("x", "y")))
  def g(a):
    return a * lax.axis_index(("x", "y"))
  return [told(f()), told(g(jnp.ones(4)))]


@program
def wrong_maps():
  mesh = auto_mesh(4, 2)

  def wrong(in_specs, out_specs, x=ramp(8), function=lambda a: a):
    return raised(jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs), x)
  return [wrong(P("x"), P("x"), ramp(6)), wrong(P("z"), P()), wrong(P("x"), P())[0], wrong(P(None, "x"), P("x")),
          wrong(P("x"), P("x"), function=lambda a: a.sum())]


# ---- Explicit axes --------------------------------------------------------------------------------------------------

@program
def types_of_operations():
  with jax.set_mesh(explicit_mesh(4, 2)):
    x, y = jax.device_put(ramp(8, 4), P("x", "y")), jax.device_put(ramp(8, 4), P("x", None))
    out = [x + 1, x * x, jnp.sin(y), x.sum(0), x.sum(), x.T, x[None], jnp.expand_dims(y, 1), jnp.where(y > 1, y, 0.0),
           y @ jnp.ones((4, 2)), jnp.argmax(x, axis=1), x.astype(jnp.int32), jnp.zeros_like(x), jnp.broadcast_to(y[:, None], (8, 3, 4)),
           jnp.stack([x, x]), jnp.maximum(x, 0.5), lax.rsqrt(x + 1), x.reshape(8, 2, 2), x.mean(1), jnp.clip(x, 0.5, 1.0)]
    return told(out)


@program
def ambiguous_types():
  with jax.set_mesh(explicit_mesh(4, 2)):
    x, y = jax.device_put(ramp(8, 4), P("x", "y")), jax.device_put(ramp(8, 4), P("y", "x"))
    z = jax.device_put(ramp(4, 8), P("y", "x"))
    return [raised(lambda: x + y), raised(lambda: x @ z), raised(lambda: jnp.sort(x, axis=0)), raised(lambda: jnp.cumsum(x, axis=1)),
            raised(lambda: x.reshape(32)), raised(lambda: x[jnp.array([1, 2])]), raised(lambda: jnp.concatenate([x, y])),
            told(jnp.matmul(x, z, out_sharding=P("x", None))), told(jnp.einsum("ij,jk->ik", x, z, out_sharding=P(None, "x"))),
            told(x.at[jnp.array([1, 2])].get(out_sharding=P(None, "y"))), told(lax.reshape(x, (32,), out_sharding=P("x")))]


@program
def reshards():
  with jax.set_mesh(explicit_mesh(4, 2)):
    x = jax.device_put(ramp(8, 4), P("x", "y"))
    f = jax.jit(lambda a: reshard(jnp.sin(a), P("y", None)))
    slope = jax.jit(jax.grad(lambda a: f(a).sum()))(x)
    return [told(reshard(x, P(None, "x"))), told(f(x)), told(slope), told(reshard({"a": x, "b": x.sum(0)}, P()))]


@program
def parts_left_to_the_compiler():
  with jax.set_mesh(explicit_mesh(4, 2)):
    x = jax.device_put(ramp(8, 4), P("x", "y"))

    @functools.partial(auto_axes, out_sharding=P("x", "y"))
    def f(a):
      return jnp.sort(a, axis=0) + jnp.cumsum(a, axis=1)

    @functools.partial(auto_axes, axes="y", out_sharding=P("x", None))
    def g(a):
      return jnp.cumsum(a, axis=1)
    return [told(f(x)), told(jax.jit(f)(x)), told(g(x)), told(jax.grad(lambda a: f(a).sum())(x))]


@program
def parts_with_explicit_types():
  with jax.set_mesh(auto_mesh(4, 2)):
    @functools.partial(explicit_axes, in_sharding=P("x", "y"))
    def f(a):
      return jnp.sin(a) * 2
    out = jax.jit(lambda a: f(a) + 1)(ramp(8, 4))
    return values(out)


@program
def explicit_training():
  with jax.set_mesh(explicit_mesh(4, 2)):
    params = {"in": jax.device_put(ramp(4, 8) / 8, P(None, "y")), "out": jax.device_put(ramp(8, 4) / 8, P("y", None))}
    x = jax.device_put(ramp(8, 4), P("x", None))

    def model(p, a):
      hidden = jax.nn.relu(a @ p["in"])
      return jnp.dot(hidden, p["out"], out_sharding=P("x", None))

    @jax.jit
    def step(p, a):
      value, slopes = jax.value_and_grad(lambda q: jnp.mean((model(q, a) - a) ** 2))(p)
      return value, jax.tree.map(lambda w, g: w - 0.1 * g, p, slopes)
    value, params = step(params, x)
    value, params = step(params, x)
    return [told(value), told(params)]


@program
def explicit_loops():
  with jax.set_mesh(explicit_mesh(4, 2)):
    x = jax.device_put(ramp(8, 4), P("x", "y"))
    carry, ys = jax.jit(lambda a: lax.scan(lambda c, _: (jnp.sin(c), c.sum(1)), a, None, length=3))(x)
    chosen = jax.jit(lambda a: lax.cond(a.sum() > 1, lambda v: v * 2, lambda v: v + 1, a))(x)
    looped = jax.jit(lambda a: lax.fori_loop(0, 3, lambda i, v: v * 0.5 + i, a))(x)
    return told([carry, ys, chosen, looped])


@program
def vmap_over_a_split_dimension():
  with jax.set_mesh(explicit_mesh(4, 2)):
    x, w = jax.device_put(ramp(8, 4), P("x", "y")), jax.device_put(ramp(4, 3), P(None, None))
    b = jax.device_put(ramp(8, 4) > 1, P("x", "y"))
    seen = []

    def one(row):
      seen.append(plain(jax.typeof(row)))
      return jnp.sin(row).sum()
    out = jax.vmap(one)(x), jax.vmap(lambda c, row: jnp.where(c, row, 0))(b, x), jax.vmap(lambda r: reshard(r, P()) @ w)(reshard(x, P("x")))
    return [told(out), seen]


@program
def branches_of_members():
  with jax.set_mesh(explicit_mesh(4)):
    index, x = jax.device_put(np.arange(8) % 3, P("x")), jax.device_put(ramp(8, 4), P("x"))

    def chosen(i, row):
      return lax.switch(i, [jnp.sin, jnp.cos, lambda r: r * 2], row)

    flipped = lambda i, row: lax.cond(i > 0, lambda r: r, lambda r: -r, row)  # noqa: E731
    return [told(jax.jit(jax.vmap(chosen))(index, x)), told(jax.vmap(flipped)(index, x))]


@program
def batches_of_systems():
  with jax.set_mesh(explicit_mesh(4)):
    matrices = ramp(8, 3, 3) % 5 + 4 * np.eye(3, dtype=np.float32)
    a = jax.device_put(matrices, P("x"))
    b, c = jax.device_put(ramp(8, 3), P("x")), jax.device_put(ramp(8, 3, 2), P("x"))
    symmetric = jax.device_put(matrices @ matrices.transpose(0, 2, 1), P("x"))
    slope = jax.grad(lambda m, v: (jax.vmap(jnp.linalg.solve)(m, v) ** 2).sum(), argnums=(0, 1))
    lu, pivots = jax.scipy.linalg.lu_factor(a)
    return told([jax.vmap(jnp.linalg.solve)(a, b), jnp.linalg.solve(a, c), jnp.linalg.det(a), jnp.linalg.slogdet(a)[1], slope(a, b),
                 jnp.linalg.eigvalsh(symmetric), jax.vmap(lambda *s: jax.scipy.linalg.lu_solve(s[:2], s[2]))(lu, pivots, b),
                 jnp.linalg.svd(a)[1]])


@program
def indices_of_split_arrays():
  with jax.set_mesh(explicit_mesh(4)):
    x, i = jax.device_put(ramp(8, 3), P("x")), jax.device_put(np.arange(8) % 3, P("x"))
    ids = jnp.array([0, 2])
    rows = jax.jit(jax.vmap(lambda row, j: row.at[j].get(out_sharding=P()) * 2))(x, i)
    written = jax.jit(jax.vmap(lambda row, j: row.at[j].set(0.0, out_sharding=jax.typeof(row).sharding)))(x, i)
    return told([rows, written, x.at[:, ids].add(5.0), x.at[:, 1].multiply(2.0), x[:, 1], x[:, 1:], x.at[:, ids].set(ramp(2))])


@program
def derivatives_of_explicit_operations():
  with jax.set_mesh(explicit_mesh(4, 2)):
    x = jax.device_put(ramp(8, 4), P("x", None))
    v, w = jax.device_put(ramp(4), P("y")), jax.device_put(ramp(3, 1, 4), P())
    inputs = jax.device_put(ramp(8, 6, 1), P("x"))
    number = lax.ConvDimensionNumbers((0, 2, 1), (2, 1, 0), (0, 2, 1))

    def conv(kernel, a):
      return lax.conv_general_dilated(a, kernel, (1,), "VALID", dimension_numbers=number)
    slopes = jax.jit(jax.grad(lambda k, a: (conv(k, a) ** 2).sum(), argnums=(0, 1)))(w, inputs)
    tiled = jax.jit(jax.grad(lambda a: (jnp.tile(a, (1, 2)) ** 2).sum()))(x)
    spread = lambda a: lax.broadcast(jnp.sin(a), (2,), out_sharding=P("x", "y"))  # noqa: E731
    mesh = jax.sharding.get_mesh()
    small = jax.make_mesh((2, 2), ("x", "y"), devices=mesh.devices.flat[:4])
    forward, backward = [], []
    with jax.set_mesh(small):
      u = jax.device_put(ramp(4), P("y"))
      forward, backward = jax.jit(jax.jacfwd(spread))(u), jax.jit(jax.jacrev(spread))(u)
    return [told(slopes), told(tiled), told([forward, backward]), told(jax.grad(lambda a: (a ** 2).sum())(v))]


@program
def weights_without_a_mesh():
  mesh = explicit_mesh(4)
  x, w = jax.device_put(ramp(8, 4), NamedSharding(mesh, P("x"))), jnp.asarray(ramp(4, 2))
  with jax.set_mesh(mesh):
    return told(jax.jit(jax.grad(lambda w, x: lax.dot(x, w).sum()))(w, x))


@program
def reduced_and_unreduced():
  with jax.set_mesh(explicit_mesh(4)):
    x, w = jax.device_put(ramp(8, 4), P("x")), jax.device_put(ramp(4, 6), P(reduced={"x"}))

    def f(x, w):
      left, _ = jnp.split(w, 2, axis=-1)
      return (x @ left).sum()
    slopes = jax.jit(jax.grad(f, argnums=(0, 1)))(x, w)
    partial = jnp.einsum("bi,bj->ij", x, x, out_sharding=P(unreduced={"x"}))
    return [types(slopes), values(slopes[0]), values(reshard(slopes[1], P())), types(partial), told(reshard(partial, P("x")))]


@program
def mixed_axes():
  mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
  with jax.set_mesh(mesh):
    x = jax.device_put(ramp(8, 4), NamedSharding(mesh, P("x", "y")))
    f = jax.jit(lambda a: lax.with_sharding_constraint(a * 2, NamedSharding(mesh, P(None, "y"))).sum(1))
    return [types(x), values(f(x)), types(f(x)), raised(lambda: reshard(x, P("y")))]


@program
def explicit_maps():
  with jax.set_mesh(explicit_mesh(4, 2)):
    x = jax.device_put(ramp(8, 4), P("x", "y"))
    f = jax.shard_map(lambda a: a * lax.axis_index("x"), out_specs=P("x", "y"))
    g = jax.shard_map(lambda a: lax.psum(a, "y"), in_specs=P("x", "y"), out_specs=P("x"))
    h = jax.smap(lambda a: lax.psum(a, "x"), in_axes=0, out_axes=None, axis_name="x")
    return [told(f(x)), told(jax.jit(g)(x)), told(jax.jit(h)(x)), raised(jax.shard_map(lambda a: a, in_specs=P("y"), out_specs=P("y")), x)]


if __name__ == "__main__":
  answer()
