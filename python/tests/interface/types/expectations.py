"""What a type checker must infer about capibara.jax: test_types.py runs mypy over this file.

assert_type states a type; `type: ignore` marks a mistake that must be found, since an unused ignore is an error itself.
"""
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, assert_type

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import Array, lax, random
from capibara.jax.experimental import checkify
from capibara.jax.sharding import Mesh, NamedSharding, PartitionSpec
from capibara.jax.typing import ArrayLike
from capibara.mithril import models as named_models
from capibara.mithril.models import Linear, Relu

x = jnp.arange(6.0).reshape(2, 3)

# ---- arrays ----------------------------------------------------------------------------------------------------------
assert_type(x, Array)
assert_type(x.shape, tuple[int, ...])
assert_type(x.ndim, int)
assert_type(x.dtype, np.dtype[Any])
assert_type(x + 1, Array)
assert_type(2.0 / x, Array)
assert_type(x @ x.T, Array)
assert_type(x == 0, Array)
assert_type(x[0, 1:], Array)
assert_type(x[..., None, jnp.array([0, 1])], Array)
assert_type(x.at[0].set(1.0), Array)
assert_type(x.at[0, :].add(x[1], mode="drop"), Array)
assert_type(x.sum(axis=(0, 1), keepdims=True), Array)
assert_type(x.astype(jnp.bfloat16), Array)
assert_type(float(x[0, 0]), float)
assert_type(x.sharding.device_set, set[jax.Device])
x.shape = (3, 2)  # type: ignore[misc]
x["a"]  # type: ignore[index]
x + "a"  # type: ignore[operator]
x.nosuch  # type: ignore[attr-defined]

# ---- the library -----------------------------------------------------------------------------------------------------
assert_type(jnp.zeros((2, 3), jnp.float32), Array)
assert_type(jnp.zeros(3, "int32"), Array)
assert_type(jnp.float32(1), Array)
assert_type(jnp.sum(x, axis=0), Array)
assert_type(jnp.add(x, 1), Array)
assert_type(jnp.add.reduce(x, axis=1), Array)
assert_type(jnp.where(x > 0, x, 0.0), Array)
assert_type(jnp.where(x > 0), tuple[Array, ...])
assert_type(jnp.divmod(x, 2), tuple[Array, Array])
assert_type(jnp.linspace(0, 1), Array)
assert_type(jnp.linspace(0, 1, retstep=True), tuple[Array, Array])
assert_type(jnp.unique(x), Array)
assert_type(jnp.unique(x, return_counts=True), tuple[Array, ...])
assert_type(jnp.meshgrid(x[0], x[1]), list[Array])
assert_type(jnp.atleast_1d(3.0), Array)
assert_type(jnp.atleast_1d(3.0, x), list[Array])
assert_type(jnp.einsum("ij,kj->ik", x, x), Array)
assert_type(jnp.shape(x), tuple[int, ...])
assert_type(jnp.isscalar(x), bool)
assert_type(jnp.result_type(x, jnp.float16), np.dtype[Any])
assert_type(jnp.linalg.eigh(x @ x.T).eigenvalues, Array)
assert_type(jnp.linalg.svd(x, compute_uv=False), Array)
assert_type(jnp.linalg.svd(x).U, Array)
assert_type(jnp.linalg.qr(x, "r"), Array)
assert_type(jnp.linalg.qr(x).Q, Array)
assert_type(jnp.fft.fft(x), Array)
assert_type(lax.top_k(x, 2), list[Array])
assert_type(lax.sort(x), Array)
assert_type(lax.sort((x, x)), tuple[Array, ...])
assert_type(jax.nn.softmax(x, axis=-1), Array)
assert_type(jax.nn.logsumexp(x, return_sign=True), tuple[Array, Array])
assert_type(jax.nn.initializers.he_normal()(random.key(0), (2, 3)), Array)
assert_type(jax.scipy.stats.norm.logpdf(x, loc=1.0), Array)
assert_type(jax.scipy.linalg.lu(x @ x.T), tuple[Array, Array, Array])
assert_type(random.normal(random.key(0), (3,)), Array)
assert_type(random.split(random.key(0), 3), Array)
jnp.sum([1.0, 2.0])  # type: ignore[arg-type]
jnp.sum(x, axis="rows")  # type: ignore[arg-type]
jnp.sum(x, axes=0)  # type: ignore[call-arg]
jnp.zeros((2, 3), dtype=3.5)  # type: ignore[arg-type]
jnp.add(x)  # type: ignore[call-arg]
jnp.nosuch  # type: ignore[attr-defined]
jnp.linalg.svd(x).V  # type: ignore[attr-defined]
random.normal(random.key(0), "3")  # type: ignore[arg-type]
random.uniform(random.key(0), (3,), lower=0)  # type: ignore[call-arg]
lax.dot(x)  # type: ignore[call-arg]


# ---- transforms keep the types of parameters and results -------------------------------------------------------------
class Params(NamedTuple):
    w: Array
    b: Array


def loss(p: Params, x: Array, y: Array) -> Array:
    return jnp.mean((x @ p.w + p.b - y) ** 2)


def like(x: ArrayLike, scale: float = 1.0) -> Array:
    return jnp.sin(x) * scale


p = Params(x.T, x[0])
assert_type(jax.value_and_grad(loss)(p, x, x), tuple[Array, Any])
assert_type(jax.jit(loss)(p, x, y=x), Array)
assert_type(jax.jit(jax.vmap(jax.value_and_grad(loss), in_axes=(None, 0, 0)))(p, x, x), tuple[Array, Any])
assert_type(jax.jit(loss).lower(p, x, x).as_text(), str)
assert_type(jax.jit(loss).lower(p, x, x).compile().memory_analysis().peak_memory_in_bytes, int)
assert_type(jax.jit(loss).trace(p, x, x).jaxpr.eqns[0].params, dict[str, Any])
assert_type(jax.make_jaxpr(loss)(p, x, x).jaxpr.invars[0].aval.shape, tuple[int, ...])
assert_type(jax.jvp(like, (1.0,), (1.0,)), tuple[Array, Array])
assert_type(jax.vjp(like, 1.0)[1](x), tuple[Any, ...])
assert_type(jax.checkpoint(loss)(p, x, x), Array)
assert_type(jax.block_until_ready(p), Params)
assert_type(jax.device_put(1.0), Array)
assert_type(jax.devices()[0].platform, str)
jax.grad(loss)(p, x)  # type: ignore[call-arg]
jax.grad(like)(1.0, scale="big")  # type: ignore[arg-type]
jax.vmap(jax.grad(jax.grad(lambda x: jnp.sin(x) * x)))(x)
jax.jit(jax.grad(lambda p, x: jnp.sum(p["w"] * x)))({"w": x}, x)
jax.jit(loss)(p, x, 3, 4)  # type: ignore[call-arg, arg-type]
jax.jit(loss, static_argnum=1)  # type: ignore[call-overload]
jax.grad(3)  # type: ignore[arg-type]


@jax.jit
def decorated(x: Array, n: int) -> Array:
    return x * n


@partial(jax.jit, static_argnames="n")
def partially(x: Array, n: int) -> Array:
    return x * n


@jax.jit(static_argnames="n")
def with_options(x: Array, n: int) -> Array:
    return x * n


class Model:
    w: Array = x

    @jax.jit
    def apply(self, x: Array) -> Array:
        return x @ self.w


assert_type(decorated(x, 3), Array)
assert_type(with_options(x, n=3), Array)
assert_type(Model().apply(x), Array)
decorated.clear_cache()
decorated(x)  # type: ignore[call-arg]


@jax.custom_jvp
def rooted(x: Array) -> Array:
    return jnp.sqrt(x)


@rooted.defjvp
def rooted_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return rooted(primals[0]), tangents[0]


@jax.custom_vjp
def clipped(x: Array) -> Array:
    return x


clipped.defvjp(lambda x: (x, None), lambda _, cotangent: (jnp.clip(cotangent, -1.0, 1.0),))
assert_type(rooted(x), Array)
assert_type(clipped(x), Array)
clipped.defvp  # type: ignore[attr-defined]

# ---- control flow ----------------------------------------------------------------------------------------------------


def step(carry: tuple[Array, Array], x: Array) -> tuple[tuple[Array, Array], Array]:
    return (carry[0] + x, carry[1]), x


def add(i: Array, x: Array) -> Array:
    return x + i


def is_small(x: Array) -> Array:
    return x < 100


def double(x: Array) -> Array:
    return 2 * x


assert_type(lax.scan(step, (x, x), x), tuple[tuple[Array, Array], Array])
assert_type(lax.fori_loop(0, 3, add, x), Array)
assert_type(lax.while_loop(is_small, double, 3.0), Array)
assert_type(lax.cond(True, double, double, x), Array)
assert_type(lax.map(double, x), Array)
assert_type(lax.psum(p, "i"), Params)
lax.scan(3, x)  # type: ignore[call-overload]

# ---- devices, trees, checks ------------------------------------------------------------------------------------------
mesh = Mesh(jax.devices(), ("i",))
sharding = NamedSharding(mesh, PartitionSpec("i", None))
assert_type(jax.device_put(x, sharding).sharding.shard_shape((2, 3)), tuple[int, ...])
assert_type(jax.make_mesh((1,), ("i",)), Mesh)
assert_type(jax.tree.leaves(p), list[Any])
assert_type(jax.tree.structure(p).num_leaves, int)
assert_type(jax.ShapeDtypeStruct((2,), jnp.float32).dtype, np.dtype[Any])
assert_type(checkify.checkify(double)(x)[1], Array)
checked: Callable[[Array], tuple[checkify.Error, Array]] = checkify.checkify(double)
PartitionSpec(3)  # type: ignore[arg-type]

with jax.enable_x64(True), jax.default_device(jax.devices()[0]), jax.named_scope("block"), mesh:
    pass

# ---- named models ----------------------------------------------------------------------------------------------------
layer = Linear(dimension=64, use_bias=False)
assert_type(layer, named_models.Model)
named = named_models.Model()
named |= layer(input="x", output="h")
named += Relu()
named |= Relu()(input=layer.output + 1.0, output="y")
assert_type(layer.input_keys, list[str])
Linear(dimensoin=64)  # type: ignore[call-arg]
Relu().summary().nosuch  # type: ignore[attr-defined]
