"""checkify of functions that several devices run: each device reports errors of its own."""
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
from jax.experimental import checkify  # noqa: E402

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


def divide(x):
    return x / (x - 2)


def require_small(x):
    checkify.check(jnp.all(x < 3), "{m} is too large", m=jnp.max(x))
    return x


for check_vma in (True, False):
    mapped = jax.shard_map(divide, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"), check_vma=check_vma)
    checked = checkify.checkify(jax.jit(mapped), errors=checkify.float_checks)
    eagerly = checkify.checkify(mapped, errors=checkify.float_checks)
    for error, out in (eagerly(jnp.arange(8.)), checked(jnp.arange(8.)), checked(jnp.arange(8.) + 10)):
        print(error.get(), out)
    mapped = jax.shard_map(require_small, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"), check_vma=check_vma)
    error, _ = checkify.checkify(mapped)(jnp.arange(8.))
    print(error.get())
    try:
        error.throw()
    except checkify.JaxRuntimeError:
        print("thrown")

error, out = checkify.checkify(jax.pmap(divide), errors=checkify.float_checks)(jnp.arange(8.))
print(error.get(), out)
mapped = jax.shard_map(divide, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"))
print([equation.params["mesh"].shape for equation in jax.make_jaxpr(mapped)(jnp.arange(8.)).eqns])
with jax.checking_leaks():
    print(jax.jit(mapped)(jnp.arange(8.) + 1), mapped(jnp.arange(8.) + 1), jax.pmap(divide)(jnp.arange(8.) + 1))
