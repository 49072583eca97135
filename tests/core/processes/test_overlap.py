"""Exchanges that overlap with computation: the same values as without overlap, in shared memory and by messages, and after errors."""
import pytest
from launching import missing, python, run

pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))

# Gradients of layers, summed at the end of the function: each sum may start as soon as its layer's gradient is ready.
STEP = """
    import hashlib, os
    import numpy as np
    import capibara.jax as jax, capibara.jax.numpy as jnp
    from capibara.jax import lax
    from capibara.jax.sharding import NamedSharding, PartitionSpec as P
    jax.distributed.initialize()
    mesh = jax.make_mesh((4,), ("x",), (jax.sharding.AxisType.Auto,))
    random = np.random.default_rng(5)
    weights = {f"layer{i}": random.standard_normal((64, 64)).astype(np.float32) * 0.2 for i in range(4)}
    data = random.standard_normal((32, 64)).astype(np.float32)

    def spread(x, spec):
        return jax.make_array_from_callback(x.shape, NamedSharding(mesh, spec), lambda index: x[index])

    def loss(weights, x):
        for name in sorted(weights):
            x = jnp.tanh(x @ weights[name])
        return jnp.mean(x * x)

    def step(weights, x):
        value, gradients = jax.value_and_grad(loss)(weights, x)
        gathered = lax.all_gather(x, "x", tiled=True)
        gradients = jax.tree.map(lambda g: lax.pmean(g, "x"), gradients)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), lax.pmean(value, "x"), jnp.sum(gathered * 2)

    mapped = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P("x")), out_specs=P(), check_vma=False))
    state, x = jax.tree.map(lambda w: spread(w, P()), weights), spread(data, P("x"))
    for _ in range(3):
        state, value, total = mapped(state, x)
    plain = weights
    for _ in range(3):
        before, gradients = jax.value_and_grad(loss)(plain, data)
        plain = jax.tree.map(lambda w, g: w - 0.1 * g, plain, gradients)
    for name in weights:
        np.testing.assert_allclose(np.asarray(state[name].addressable_shards[0].data), np.asarray(plain[name]), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(float(np.asarray(total.addressable_shards[0].data)), 2 * data.sum(), rtol=1e-3)
    parts = [np.asarray(state[name].addressable_shards[0].data).tobytes() for name in sorted(state)]
    print("bits", hashlib.sha1(b"".join(parts)).hexdigest(), flush=True)
    """


def test_values_with_and_without_overlap():
    bits = set()
    for environment in ({}, {"CAPIBARA_OVERLAP": "0"}, {"CAPIBARA_MPI_WINDOWS": "0"}):
        code, launch = run(4, python(STEP), **environment)
        assert code == 0, launch.all
        bits |= {line for number in range(4) for line in launch.lines[number] if line.startswith("bits")}
    assert len(bits) == 1, bits


# Masks that only the backward pass reads: values cheap to recompute are still sent, and kept until then.
STAGES = """
    import numpy as np
    import capibara.jax as jax, capibara.jax.numpy as jnp
    from capibara.jax import lax
    from capibara.jax.experimental import multihost_utils
    from capibara.jax.sharding import PartitionSpec as P
    jax.distributed.initialize()
    mesh = jax.make_mesh((2,), ("stage",), (jax.sharding.AxisType.Auto,))
    random = np.random.default_rng(0)
    x, weights = random.standard_normal((4, 3)).astype(np.float32), random.standard_normal((2, 3, 3)).astype(np.float32) / 2

    def stages(x, weights):
        own = lax.axis_index("stage")

        def tick(arrived, number):
            y = jnp.tanh(lax.select(jnp.broadcast_to(own == 0, x.shape), lax.pcast(x, ("stage",), to="varying"), arrived) @ weights[0])
            return lax.ppermute(y, "stage", [(0, 1)]), y
        y = lax.scan(tick, lax.pcast(x, ("stage",), to="varying"), jnp.arange(2))[1][1]
        return lax.psum(lax.select(jnp.broadcast_to(own == 1, y.shape), y, jnp.zeros_like(y)), "stage")
    mapped = jax.shard_map(stages, mesh=mesh, in_specs=(P(), P("stage")), out_specs=P())
    gradient = jax.jit(jax.grad(lambda w: jnp.mean(jnp.square(mapped(x, w)))))(weights)
    plain = jax.grad(lambda w: jnp.mean(jnp.square(jnp.tanh(jnp.tanh(x @ w[0]) @ w[1]))))(weights)
    np.testing.assert_allclose(multihost_utils.process_allgather(gradient, tiled=True), plain, rtol=1e-5, atol=1e-7)
    """


@pytest.mark.parametrize("overlap", ["0", "1"])
def test_what_an_exchange_reads_lives_until_it_is_waited_for(overlap):
    code, launch = run(2, python(STAGES), CAPIBARA_OVERLAP=overlap)
    assert code == 0, launch.all


FAILING = """
    import numpy as np
    import capibara.jax as jax, capibara.jax.numpy as jnp
    from capibara.jax import lax
    from capibara.jax.sharding import NamedSharding, PartitionSpec as P
    jax.distributed.initialize()
    mesh = jax.make_mesh((2,), ("x",), (jax.sharding.AxisType.Auto,))
    x = jax.make_array_from_callback((2, 1000), NamedSharding(mesh, P("x")), lambda index: np.ones((1, 1000), np.float32))
    fails = [True]

    def look(value):
        if fails[0]:
            raise ValueError("a callback that fails between the start of a sum and its use")
        return value

    def body(x):
        total = lax.psum(x, "x")
        seen = jax.pure_callback(look, jax.ShapeDtypeStruct(x.shape, x.dtype), x * 3)
        return total + seen
    function = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
    for _ in range(2):
        try:
            jax.block_until_ready(function(x))
            print("no error", flush=True)
        except Exception as error:
            assert "between the start" in str(error), error
    fails[0] = False
    assert (np.asarray(function(x).addressable_shards[0].data) == 5).all()
    print("goes on", flush=True)
    """


def test_an_error_while_an_exchange_is_under_way():
    code, launch = run(2, python(FAILING))
    assert code == 0, launch.all
    assert [launch.lines[number][-1] for number in range(2)] == ["goes on", "goes on"], launch.all
