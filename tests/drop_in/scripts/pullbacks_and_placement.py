"""Pullbacks that add to refs, parts of refs, and where device_put leaves an array as it is."""
import jax
import jax.numpy as jnp
import numpy as np


def told(words, function, *args):
    try:
        function(*args)
    except Exception as error:
        print(type(error).__name__, words in str(error))
    else:
        print("nothing was raised")


x = y = jnp.arange(3.0)
_, pull_back = jax.vjp(lambda x, y: x * y, x, y)
print([part.tolist() for part in pull_back(jnp.ones(3))])
total = jax.new_ref(jnp.zeros(3))
for _ in range(2):
    print(*pull_back.with_refs(total, jax.ad.DontWant())(jnp.ones(3)), total[...].tolist())
print(*pull_back.with_refs(jax.ad.DontWant(), jax.ad.GradValue())(jnp.ones(3)))
print(jax.jit(lambda: pull_back.with_refs(jax.ad.DontWant(), jax.ad.GradValue())(jnp.ones(3)))())
print(float(jax.jit(lambda x: jax.vjp(jnp.sin, x)[1])(1.0)(1.0)[0]))


def accumulated(rows):
    total = jax.new_ref(jnp.zeros(2))

    def step(_, row):
        value, pull_back = jax.vjp(lambda w: (w * row).sum(), jnp.ones(2))
        pull_back.with_refs(total)(jnp.ones_like(value))
        return (), value

    jax.lax.scan(step, (), rows)
    return jax.freeze(total)


print(accumulated(jnp.arange(6.0).reshape(3, 2)).tolist())


@jax.jit
def written(x):
    ref = jax.new_ref(jnp.ones(5))
    ref.at[1:4][...] += x
    other = jax.new_ref(x)
    jax.free_ref(other)
    return ref[...].sum()


print(jax.grad(written)(jnp.arange(3.0)).tolist(), float(written(jnp.arange(3.0))))

a = jax.device_put(np.arange(8), jax.devices()[0])
here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
print([jax.device_put(a, *args, may_alias=flag) is a for args in ((), (here,)) for flag in (True, False, None)], jax.device_put(a) is a)
pair = {"a": jnp.arange(2), "b": jnp.arange(3)}
told("device_put device specification must be a tree prefix", lambda: jax.device_put(pair, device={"a": None, "b": (None, None)}))
told("Mismatch details (2 found)", lambda: jax.device_put(pair, device={"a": [None, None], "b": (None, None)}))
told("Received invalid value", lambda: jax.device_put(a, "cpu"))
told("got (3,) and (4,)", lambda: jnp.dot(np.zeros(3), np.zeros(4)))
nothing = jax.grad(lambda x: x + 0.0, allow_int=True)(1)
told("float0s do not support any operations by design", lambda: nothing + jnp.zeros(()))
told("float0s do not support any operations by design", lambda: jax.lax.add(nothing, jnp.zeros(())))
told("No such compile option: 'no_such'", lambda: jax.jit(lambda x: x, compiler_options={"no_such": 1})(1.0))
print(float(jax.jit(lambda x: x + 1, compiler_options={"exec_time_optimization_effort": 0.0, "xla_embed_ir_in_executable": True})(1.0)))
jax.config.update("jax_explicit_x64_dtypes", "allow")
print(jax.random.bits(jax.random.key(0), (3,), "uint64").tolist())
