"""jax.experimental.sparse.sparsify: functions of arrays applied to sparse ones, equation by equation of the program they trace to."""
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax.core import DropVar, Literal
from capibara.jax.experimental._sparse_creation import bcoo_concatenate
from capibara.jax.experimental._sparse_shapes import bcoo_broadcast_in_dim, bcoo_reshape, bcoo_rev, bcoo_slice, bcoo_squeeze
from capibara.jax.experimental.sparse import (
    BCOO,
    JAXSparse,
    bcoo_dot_general,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
    bcoo_reduce_sum,
    bcoo_transpose,
)

# Functions with f(0) = 0. Those that are linear besides need not add the values at one coordinate first.
_LINEAR = ("convert_element_type", "copy", "imag", "neg", "real", "reduce_precision", "stop_gradient")
_ZERO_AT_ZERO = ("abs", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "conj", "erf", "expm1", "floor", "integer_pow", "log1p", "round",
                 "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh")
_CALLS = {"jit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "remat2": "jaxpr"}


def _is_sparse(value):
    return isinstance(value, JAXSparse)


def _unary(equation, mat):
    name, params = equation.primitive.name, equation.params
    if name == "integer_pow" and params["y"] < 1:
        raise NotImplementedError(f"sparse rule for integer_pow with the power {params['y']}")
    if name not in _LINEAR and not mat.unique_indices:
        mat = mat.sum_duplicates(nse=mat.nse)
    return mat._of(equation.primitive.bind(mat.data, **params))


def _sum(equation, left, right):
    sign = -1 if equation.primitive.name == "sub" else 1
    if not (_is_sparse(left) and _is_sparse(right)):
        left, right = (side.todense() if _is_sparse(side) else side for side in (left, right))
        return left + sign * right
    if left.shape != right.shape:
        raise NotImplementedError("Addition between sparse matrices of different shapes.")
    if left.indices is right.indices:
        return left._of(left.data + sign * right.data)
    return left + right if sign == 1 else left - right


def _mul(equation, left, right):
    if _is_sparse(left) and _is_sparse(right):
        if left.indices is right.indices and left.unique_indices:
            return left._of(left.data * right.data)
        return bcoo_multiply_sparse(left, right)
    mat, dense = (left, right) if _is_sparse(left) else (right, left)
    return mat._of(mat.data * dense) if jnp.ndim(dense) == 0 else mat._of(bcoo_multiply_dense(mat, dense))


def _div(equation, left, right):
    if not _is_sparse(left) or _is_sparse(right):
        raise NotImplementedError("sparse rule for div: only a sparse array divided by a dense one has a sparse result")
    return _mul(equation, left, 1 / right)


def _dot_general(equation, left, right):
    params = equation.params
    if _is_sparse(left) and _is_sparse(right):
        dense = jax.lax.dot_general(left.todense(), right.todense(), params["dimension_numbers"])
        return BCOO.fromdense(dense, nse=min(left.nse * right.nse, dense.size))
    return bcoo_dot_general(left, right, dimension_numbers=params["dimension_numbers"],
                            preferred_element_type=params["preferred_element_type"])


def _reduce_sum(equation, mat):
    result = bcoo_reduce_sum(mat, axes=equation.params["axes"])
    return result if result.ndim else result.todense()


def _dynamic_slice(equation, mat, *starts):
    sizes = equation.params["slice_sizes"]
    if any(isinstance(start, jax.core.Tracer) for start in starts):
        return jax.lax.dynamic_slice(mat.todense(), starts, sizes)
    first = [int(np.clip(start, 0, size - window)) for start, size, window in zip(starts, mat.shape, sizes)]
    return bcoo_slice(mat, start_indices=first, limit_indices=[start + window for start, window in zip(first, sizes)])


_RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_LINEAR + _ZERO_AT_ZERO, _unary), **dict.fromkeys(("add", "add_any", "sub"), _sum), "mul": _mul, "div": _div,
    "dot_general": _dot_general, "reduce_sum": _reduce_sum, "dynamic_slice": _dynamic_slice,
    "broadcast_in_dim": lambda eqn, mat: bcoo_broadcast_in_dim(
        mat, shape=eqn.outvars[0].aval.shape, broadcast_dimensions=eqn.params["broadcast_dimensions"]),
    "concatenate": lambda eqn, *mats: bcoo_concatenate(mats, dimension=eqn.params["dimension"]),
    "reshape": lambda eqn, mat: bcoo_reshape(mat, new_sizes=eqn.outvars[0].aval.shape, dimensions=eqn.params.get("dimensions")),
    "rev": lambda eqn, mat: bcoo_rev(mat, eqn.params["dimensions"]),
    "slice": lambda eqn, mat: bcoo_slice(mat, start_indices=eqn.params["start_indices"], limit_indices=eqn.params["limit_indices"],
                                         strides=eqn.params["strides"]),
    "squeeze": lambda eqn, mat: bcoo_squeeze(mat, dimensions=eqn.params["dimensions"]),
    "transpose": lambda eqn, mat: bcoo_transpose(mat, permutation=eqn.params["permutation"]),
}


def _evaluate(jaxpr, consts, args):
    values = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def read(atom):
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        operands = list(map(read, equation.invars))
        name = equation.primitive.name
        if not any(map(_is_sparse, operands)):
            outputs = equation.primitive.bind(*operands, **equation.primitive.get_bind_params(equation.params))
        elif name in _CALLS:
            inner = equation.params[_CALLS[name]]
            outputs = _evaluate(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), operands)
        elif name in _RULES:
            outputs = _RULES[name](equation, *operands)
        else:
            raise NotImplementedError(f"sparse rule for {name} is not implemented.")
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        for var, value in zip(equation.outvars, outputs, strict=True):
            if not isinstance(var, DropVar):
                values[var] = value
    return [read(atom) for atom in jaxpr.outvars]


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """A function of arrays as one that takes sparse arrays for any of them; results are sparse where the operations keep them so."""
    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        leaves, structure = jax.tree_util.tree_flatten((args, kwargs), is_leaf=_is_sparse)
        leaves = [leaf if _is_sparse(leaf) else jnp.asarray(leaf) for leaf in leaves]

        def of_leaves(*leaves):
            args, kwargs = jax.tree_util.tree_unflatten(structure, leaves)
            return f(*args, **kwargs)

        types = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if _is_sparse(leaf) else leaf for leaf in leaves]
        program, shapes = jax.make_jaxpr(of_leaves, return_shape=True)(*types)
        results = _evaluate(program.jaxpr, program.consts, leaves)
        return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(shapes), results)
    return wrapped
