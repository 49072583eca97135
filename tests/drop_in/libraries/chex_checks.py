"""Assertions, dataclasses and variants of chex."""

import chex
import jax
import jax.numpy as jnp


@chex.dataclass
class State:
    position: chex.Array
    count: chex.Array


state = State(position=jnp.arange(3.0), count=jnp.int32(2))
moved = jax.jit(lambda s: s.replace(position=s.position * 2, count=s.count + 1))(state)
print("dataclass", moved.position, moved.count, len(jax.tree.leaves(moved)), jax.tree.structure(moved) == jax.tree.structure(state))
print("gradient", jax.grad(lambda s: jnp.sum(s.position**2), allow_int=True)(state).position)


@chex.chexify
@jax.jit
def logarithm(x):
    chex.assert_tree_all_finite(x)
    return jnp.log(x)


@jax.jit
@chex.assert_max_traces(n=1)
def traced_once(x):
    return x + 1


def fails(check):
    try:
        check()
    except (AssertionError, ValueError) as error:
        return type(error).__name__
    return "passes"


array = jnp.ones((2, 3))
print("shape", fails(lambda: chex.assert_shape(array, (2, 3))), fails(lambda: chex.assert_shape(array, (3, None))))
print("rank", fails(lambda: chex.assert_rank(array, 2)), fails(lambda: chex.assert_rank(array, {0, 1})))
print("type", fails(lambda: chex.assert_type(array, float)), fails(lambda: chex.assert_type(array, int)))
print("close", fails(lambda: chex.assert_trees_all_close({"a": array}, {"a": array + 1e-9})), fails(lambda: chex.assert_trees_all_close(array, array + 1)))
print("equal", fails(lambda: chex.assert_trees_all_equal(state, state)), fails(lambda: chex.assert_trees_all_equal(state, moved)))
print("shapes", fails(lambda: chex.assert_trees_all_equal_shapes_and_dtypes(state, moved)), fails(lambda: chex.assert_equal_shape([array, array.T])))
print("axes", fails(lambda: chex.assert_axis_dimension(array, 1, 3)), fails(lambda: chex.assert_tree_shape_prefix({"a": array}, (2, 4))))
print("finite", fails(lambda: chex.assert_tree_all_finite(array)), fails(lambda: chex.assert_tree_all_finite(array / 0)))
print("scalar", fails(lambda: chex.assert_scalar_in(0.5, 0, 1)), fails(lambda: chex.assert_scalar_positive(-1)))
print("gradients", fails(lambda: chex.assert_numerical_grads(lambda x: jnp.sum(jnp.sin(x)), (jnp.arange(3.0),), order=1)))
print("traces", fails(lambda: (traced_once(1.0), traced_once(2.0))), fails(lambda: traced_once(jnp.ones(4))))
print("chexify", logarithm(jnp.ones(2)), fails(lambda: (logarithm(jnp.array([1.0, jnp.nan])), logarithm.wait_checks())))
