"""shard_map over a mesh of the only device, as rows of benchmarks/gpu/kernels.py: programs that XLA runs for both libraries."""

from kernel_row import Row, normal


def mapped(jax, function, *specs, out):
    spec = jax.sharding.PartitionSpec
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    return jax.shard_map(function, mesh=mesh, in_specs=tuple(spec(*given) for given in specs), out_specs=spec(*out))


def product(jax, size):
    """A matmul with a part of the inner dimension on each device, summed."""
    function = mapped(jax, lambda a, b: jax.lax.psum(a @ b, "x"), (None, "x"), ("x",), out=())
    return function, [normal(jax, 1, size, size), normal(jax, 2, size, size)]


def step(jax, width, batch):
    """A training step of two layers, data parallel: gradients are averaged."""
    jnp = jax.numpy

    def loss(parameters, x):
        up, down = parameters
        return jnp.mean(jnp.square((jax.nn.gelu(x @ up) @ down - x).astype(jnp.float32)))

    def local(up, down, x):
        value, gradients = jax.value_and_grad(loss)((up, down), x)
        gradients = [jax.lax.pmean(g, "x") for g in gradients]
        return jax.lax.pmean(value, "x"), up - 0.1 * gradients[0], down - 0.1 * gradients[1]
    function = mapped(jax, local, (), (), ("x",), out=())
    weights = [normal(jax, 4, width, 4 * width, scale=0.02), normal(jax, 5, 4 * width, width, scale=0.02)]
    return function, [*weights, normal(jax, 6, batch, width)]


def rows():
    same = (("jax", 0.97),)
    return [Row("shard_map of a product 8192x8192 bf16, summed", lambda jax: product(jax, 8192), "sharding", operations=2 * 8192**3,
                floors=same),
            Row("shard_map of a data-parallel step, 2 layers of 4096, bf16", lambda jax: step(jax, 4096, 8192), "sharding",
                operations=6 * 2 * 4 * 4096**2 * 8192, floors=same, compared=False)]


def small_rows():
    return [Row("shard_map of a product 64x64 bf16, summed", lambda jax: product(jax, 64), "sharding", operations=2 * 64**3),
            Row("shard_map of a data-parallel step, 2 layers of 32, bf16", lambda jax: step(jax, 32, 16), "sharding",
                operations=6 * 2 * 4 * 32**2 * 16, compared=False)]
