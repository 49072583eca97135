"""jax.experimental.jet: Taylor coefficients of a function along a curve.

jax propagates truncated polynomials through every operation; here the derivatives along the curve are taken one after another, so
every differentiable operation works. Each additional order about doubles the operations, many of which jit merges as duplicates.
"""
import functools
import math

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara._modules import explain_missing


class ZeroSeries:
    """The series of an argument that is constant along the curve."""


zero_series = ZeroSeries()


def fact(n):
    """The factorial of n."""
    return jax.lax.exp(jax.lax.lgamma(n + 1.))


def jet(fun, primals, series, factorial_scaled=True, **_):
    """fun(*primals), and the derivatives of fun along curves that start at the primals and have `series` as derivatives.

    The result is (value, series): for each array of the value a list with as many terms as those given. With
    `factorial_scaled=False` the terms are coefficients of polynomials rather than derivatives.
    """
    orders = {len(terms) for terms in series if terms is not zero_series}
    if len(orders) != 1:
        raise ValueError("jet terms have inconsistent lengths for different arguments")
    order, = orders
    series = [[jnp.zeros_like(primal)] * order if terms is zero_series else terms for primal, terms in zip(primals, series)]
    for i, (primal, terms) in enumerate(zip(primals, series)):
        if not jax.tree_util.all_leaves([primal]):
            raise ValueError(f"primal value at position {i} is not an array")
        for j, term in enumerate(terms):
            if not jax.tree_util.all_leaves([term]):
                raise ValueError(f"term {j} for argument {i} is not an array")

    def scale(k):
        return math.factorial(k) if factorial_scaled else 1

    def along(t):
        """[the leaves of fun's value at t], the start of the list of derivatives."""
        points = [primal + sum((term * (t ** k / scale(k)) for k, term in enumerate(terms, 1)), jnp.zeros_like(primal))
                  for primal, terms in zip(primals, series)]
        return [fun(*points)]

    def with_next(earlier, t):
        """The known derivatives at t, and the derivative of the last one."""
        known, tangents = jax.jvp(earlier, (t,), (1.,))
        return [*known, tangents[-1]]

    tower = along
    for _order in range(order):
        tower = functools.partial(with_next, tower)
    value, *derivatives = tower(0.)
    leaves, tree = jax.tree_util.tree_flatten(value)
    flat = [jax.tree_util.tree_leaves(derivative) for derivative in derivatives]
    terms = [[(jnp.zeros_like(leaf) if term.dtype == jax.dtypes.float0 else term) / (1 if factorial_scaled else math.factorial(k))
              for k, term in enumerate((row[i] for row in flat), 1)] for i, leaf in enumerate(leaves)]
    return value, jax.tree_util.tree_unflatten(tree, terms)


jet2 = functools.partial(jet, factorial_scaled=False)

explain_missing(__name__)
