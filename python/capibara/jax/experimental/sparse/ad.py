"""jax.experimental.sparse.ad: derivatives with respect to sparse arrays, which are sparse arrays with the same coordinates."""
import functools
from collections.abc import Callable, Sequence
from typing import Any

import capibara.jax as jax
from capibara._modules import explain_missing
from capibara.jax.experimental.sparse._base import JAXSparse


def _is_sparse(value):
    return isinstance(value, JAXSparse)


class _Flat:
    """A function of the arrays with respect to which it is differentiated: for a sparse argument, its values."""

    def __init__(self, fun, argnums, args):
        self.fun, self.args = fun, args
        self.argnums = [number % len(args) for number in ([argnums] if isinstance(argnums, int) else argnums)]
        self.single = isinstance(argnums, int)
        self.leaves, self.tree = jax.tree_util.tree_flatten([args[number] for number in self.argnums], is_leaf=_is_sparse)
        self.variables = [leaf.data if _is_sparse(leaf) else leaf for leaf in self.leaves]

    def __call__(self, variables, **kwargs):
        parts = [_with_data(leaf, value) if _is_sparse(leaf) else value for leaf, value in zip(self.leaves, variables)]
        args = list(self.args)
        for number, part in zip(self.argnums, jax.tree_util.tree_unflatten(self.tree, parts)):
            args[number] = part
        return self.fun(*args, **kwargs)

    def collected(self, derivatives):
        """Rebuilds derivatives in the form of the arguments, one for each leaf of the output."""
        def of_one(derivatives):
            made = [_joined(leaf, one) if _is_sparse(leaf) else one for leaf, one in zip(self.leaves, derivatives)]
            found = jax.tree_util.tree_unflatten(self.tree, made)
            return found[0] if self.single else tuple(found)
        return of_one(derivatives)


def _with_data(mat, data):
    buffers, tree = jax.tree_util.tree_flatten(mat)
    return jax.tree_util.tree_unflatten(tree, [data, *buffers[1:]])


def _joined(mat, derivative):
    """A derivative with respect to the values as a sparse array; the leading output dimensions are batch dimensions."""
    make = functools.partial(_with_data, mat)
    for _ in range(derivative.ndim - mat.data.ndim):
        make = jax.vmap(make)
    return make(derivative)


def value_and_grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable[..., Any]:
    """jax.value_and_grad for functions of sparse arrays, whose gradients are sparse arrays with the same coordinates."""
    @functools.wraps(fun)
    def with_gradient(*args, **others):
        flat = _Flat(fun, argnums, args)
        value, derivatives = jax.value_and_grad(flat, has_aux=has_aux, **kwargs)(flat.variables, **others)
        return value, flat.collected(derivatives)
    return with_gradient


def grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable[..., Any]:
    """jax.grad for functions of sparse arrays, whose gradients are sparse arrays with the same coordinates."""
    @functools.wraps(fun)
    def gradient(*args, **others):
        value, derivatives = value_and_grad(fun, argnums, has_aux, **kwargs)(*args, **others)
        return (derivatives, value[1]) if has_aux else derivatives
    return gradient


def _jacobian(transform, fun, argnums, has_aux, options):
    @functools.wraps(fun)
    def jacobian_f(*args, **others):
        flat = _Flat(fun, argnums, args)
        seen = []

        def listed(variables, **others):
            result = flat(variables, **others)
            out, aux = result if has_aux else (result, None)
            leaves, tree = jax.tree_util.tree_flatten(out)
            seen[:] = [tree]
            return (leaves, aux) if has_aux else leaves
        result = transform(listed, has_aux=has_aux, **options)(flat.variables, **others)
        rows, aux = result if has_aux else (result, None)
        out = jax.tree_util.tree_unflatten(seen[0], [flat.collected(row) for row in rows])
        return (out, aux) if has_aux else out
    return jacobian_f


def jacfwd(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable[..., Any]:
    """jax.jacfwd for functions of sparse arrays, whose Jacobians are sparse arrays with the same coordinates."""
    return _jacobian(jax.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable[..., Any]:
    """jax.jacrev for functions of sparse arrays, whose Jacobians are sparse arrays with the same coordinates."""
    return _jacobian(jax.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev
explain_missing(__name__)
