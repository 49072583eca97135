"""Mutable arrays inside compiled functions, loops and branches, and derivatives through them."""
import jax
import jax.numpy as jnp
from jax import lax


def written(start):
    def f(x):
        r = jax.new_ref(start(x))
        r[...] = r[...] + x * x
        return r[...]
    return f


for start in (jnp.zeros_like, lambda x: 0.0 * x, lambda x: jnp.float32(2.0), lambda x: x):
    f = written(start)
    print([float(v) for v in (f(1.5), jax.jit(f)(1.5), jax.grad(f)(1.5), jax.grad(jax.jit(f))(1.5), jax.jit(jax.grad(f))(1.5))])


def captured(x):
    r = jax.new_ref(x)

    @jax.jit
    def g():
        r[...] = jnp.sin(r[...]) * 2

    g()
    return jax.freeze(r)


print(float(captured(2.0)), float(jax.grad(captured)(2.0)), float(jax.jit(jax.grad(captured))(2.0)))

counter = jax.new_ref(0)


def counted(x):
    def body(c, _):
        counter[...] += 1
        return c * 2.0, None
    return lax.scan(body, x, length=3)[0]


print(float(jax.grad(counted)(1.0)), int(counter[...]))
step = jax.jit(lambda x: counter.__setitem__(..., counter[...] + 1) or x + counter[...])
print(float(step(1.0)), float(step(1.0)), int(counter[...]))


def in_scan(x):
    r = jax.new_ref(jnp.zeros(3))

    def body(c, i):
        r[i] = jnp.sin(c)
        return c + r[i], r[i]

    c, ys = lax.scan(body, x, jnp.arange(3))
    return c + jnp.sum(r[...] * jnp.arange(3.0)) + ys.sum()


print(float(in_scan(1.0)), float(jax.grad(in_scan)(1.0)), float(jax.jit(jax.grad(in_scan))(1.0)), float(jax.jit(in_scan)(1.0)))


def in_cond(p, x):
    r = jax.new_ref(x)

    def double():
        r[...] = r[...] * 2

    lax.cond(p, double, lambda: None)
    return r[...] ** 2


print([float(f(p, 3.0)) for p in (True, False) for f in (in_cond, jax.jit(in_cond), jax.grad(in_cond, 1), jax.jit(jax.grad(in_cond, 1)))])


def in_while(n):
    r = jax.new_ref(jnp.float32(1.0))

    def body(i):
        r[...] = r[...] * 1.5
        return i + 1

    last = lax.while_loop(lambda i: i < n, body, 0)
    return last, r[...]


print([float(v) for v in (*in_while(9), *jax.jit(in_while)(9), *in_while(1), *jax.jit(in_while)(1))])


@jax.jit
def on_argument(r, x):
    r[1] = x
    r.addupdate(jnp.ones(3))
    return r[...].sum()


r = jax.new_ref(jnp.zeros(3))
print(float(on_argument(r, 5.0)), r[...].tolist(), float(on_argument(r, 7.0)), r[...].tolist())


def over_refs(rows):
    r = jax.new_ref(rows)

    def body(c, row):
        row[0] = row[0] * 2 + c
        return c + 1.0, row[...].sum()

    c, sums = lax.scan(body, 0.0, r)
    return c, sums, r[...]


print([v.tolist() for v in over_refs(jnp.arange(6.0).reshape(3, 2))], [v.tolist() for v in jax.jit(over_refs)(jnp.arange(6.0).reshape(3, 2))])
print(jax.vmap(jax.jit(written(jnp.zeros_like)))(jnp.arange(3.0)).tolist(), jax.vmap(jax.grad(jax.jit(written(jnp.zeros_like))))(jnp.arange(3.0)).tolist())
print(float(jax.jvp(jax.jit(written(jnp.zeros_like)), (1.5,), (1.0,))[1]))
