"""The rules of operations on sparse arrays, for sparsify."""
from collections.abc import Callable
from typing import Any

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import lax
from capibara.jax.core import DropVar, Literal
from capibara.jax.experimental.sparse._base import JAXSparse
from capibara.jax.experimental.sparse._products import (
    bcoo_conv_general_dilated,
    bcoo_dot_general,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
)
from capibara.jax.experimental.sparse._shapes import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_gather,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
)
from capibara.jax.experimental.sparse.api import todense_p
from capibara.jax.experimental.sparse.bcoo import BCOO, bcoo_transpose
from capibara.jax.experimental.sparse.bcsr import BCSR, bcsr_broadcast_in_dim, bcsr_concatenate, bcsr_dot_general

# Functions with f(0) = 0. Linear ones need not sum duplicate coordinates first.
_LINEAR = ("conj", "copy", "imag", "neg", "real", "reduce_precision", "stop_gradient")
_ZERO_AT_ZERO = ("abs", "asin", "asinh", "atan", "atanh", "bessel_i1e", "cbrt", "ceil", "convert_element_type", "erf", "expm1", "floor",
                 "integer_pow", "log1p", "round", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh")
_DENSE = ("acos", "acosh", "bessel_i0e", "cos", "cosh", "eq", "exp", "ge", "gt", "le", "lt", "log", "ne", "xor")
_CALLS = {"jit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr",
          "custom_vjp_call": "call_jaxpr", "remat2": "jaxpr", "checkpoint": "jaxpr"}


def _is_sparse(value):
    return isinstance(value, JAXSparse)


def _unary(equation, mat):
    name, params = equation.primitive.name, equation.params
    if name == "integer_pow" and params["y"] <= 0:
        raise NotImplementedError(f"sparse rule for integer_pow with non-positive exponent {params['y']} is not implemented because it "
                                  "would result in dense output. If this is your intent, use sparse.todense() to convert your argument "
                                  "to a dense array.")
    if name not in _LINEAR and not mat.unique_indices:
        mat = mat.sum_duplicates(nse=mat.nse, remove_zeros=False)
    return mat._of(equation.primitive.bind(mat.data, **equation.primitive.get_bind_params(params)))


def _sum(equation, left, right):
    subtract = equation.primitive.name == "sub"
    if not (_is_sparse(left) and _is_sparse(right)):
        if subtract:
            raise NotImplementedError("Subtraction between sparse and dense array.")
        mat, dense = (left, right) if _is_sparse(left) else (right, left)
        if np.shape(dense) != np.broadcast_shapes(mat.shape, np.shape(dense)):
            raise NotImplementedError("Addition between a sparse array X and a dense array Y is not implemented when the output shape is "
                                      "larger than Y.shape. This is to prevent silent densification of a large sparse array. If this is "
                                      "your intent, you can explicitly cast the sparse array to a dense matrix.")
        return mat.todense() + dense
    if left.shape != right.shape:
        raise NotImplementedError("Addition between sparse matrices of different shapes.")
    if left.indices is right.indices:
        return left._of(left.data - right.data if subtract else left.data + right.data)
    if (left.n_batch, left.n_dense) != (right.n_batch, right.n_dense):
        raise NotImplementedError("Addition between sparse matrices with different batch/dense dimensions.")
    axis = left.n_batch
    batch = np.broadcast_shapes(*(part.shape[:axis] for mat in (left, right) for part in mat._bufs))

    def joined(one, other, place):
        return jnp.concatenate([jnp.broadcast_to(part, batch + part.shape[axis:]) for part in (one, other)], place)
    return BCOO((joined(left.data, -right.data if subtract else right.data, axis), joined(left.indices, right.indices, axis)),
                shape=left.shape)


def _mul(equation, left, right):
    dtype = equation.outvars[0].aval.dtype
    if _is_sparse(left) and _is_sparse(right):
        left, right = (mat if mat.dtype == dtype else mat._of(mat.data.astype(dtype)) for mat in (left, right))
        if left.indices is right.indices and left.unique_indices:
            return left._of(left.data * right.data)
        return bcoo_multiply_sparse(left, right)
    mat, dense = (left, right) if _is_sparse(left) else (right, left)
    return mat._of(bcoo_multiply_dense(mat, dense))


def _div(equation, left, right):
    if _is_sparse(right):
        raise NotImplementedError("Division by a sparse array is not implemented because it would result in dense output. If this is your "
                                  "intent, use sparse.todense() to convert your arguments to a dense array.")
    return left._of(bcoo_multiply_dense(left, 1.0 / right))


def _dot_general(multiply):
    return lambda equation, left, right: multiply(
        left, right, dimension_numbers=equation.params["dimension_numbers"], precision=equation.params["precision"],
        preferred_element_type=equation.params["preferred_element_type"])


def _reduce_sum(equation, mat):
    result = bcoo_reduce_sum(mat, axes=equation.params["axes"])
    return result if result.ndim else result.todense()


def _gather(equation, mat, indices):
    if _is_sparse(indices):
        raise NotImplementedError("sparse rule for gather with sparse indices")
    params = equation.params
    return bcoo_gather(mat, indices, params["dimension_numbers"], params["slice_sizes"], mode=params["mode"])


def _convolution(equation, left, right):
    names = ("window_strides padding lhs_dilation rhs_dilation dimension_numbers feature_group_count batch_group_count precision "
             "preferred_element_type")
    return bcoo_conv_general_dilated(left, right, **{name: equation.params[name] for name in names.split()})


def _stack(equation, *mats):
    axis, join = equation.params["axis"], _concatenate
    shape = mats[0].shape[:axis] + (1,) + mats[0].shape[axis:]
    places = [place + (place >= axis) for place in range(len(mats[0].shape))]
    grown = [_broadcast(mat, shape, places) for mat in mats]
    return join(grown, axis)


def _broadcast(mat, shape, places):
    return (bcsr_broadcast_in_dim if isinstance(mat, BCSR) else bcoo_broadcast_in_dim)(mat, shape=shape, broadcast_dimensions=places)


def _concatenate(mats, dimension):
    if not all(map(_is_sparse, mats)):
        raise NotImplementedError("sparse rule for concatenate of sparse and dense arrays")
    return (bcsr_concatenate if isinstance(mats[0], BCSR) else bcoo_concatenate)(mats, dimension=dimension)


def _plain(value):
    """A sparse array without its sorted and unique flags, as loop carries require; others unchanged."""
    if not _is_sparse(value):
        return value
    options = {"shape": value.shape}
    return type(value)(value._bufs, **options)


def _closed(program, *before):
    """A program as a function of its remaining arguments, which may be sparse."""
    return lambda *args: evaluate(program.jaxpr, program.consts, [*before, *args])


def _same_structure(name, expected, got):
    types, structure = jax.tree_util.tree_flatten(expected)
    others, other_structure = jax.tree_util.tree_flatten(got)
    if structure != other_structure or any((x.shape, x.dtype) != (y.shape, y.dtype) for x, y in zip(types, others)):
        raise TypeError(f"{name}: sparse arrays must keep their layout and number of elements, got {got} for {expected}")


def _while(equation, *operands):
    params = equation.params
    tests, steps = params["cond_nconsts"], params["body_nconsts"]
    test = _closed(params["cond_jaxpr"], *operands[:tests])
    step = _closed(params["body_jaxpr"], *operands[tests:tests + steps])
    carry = list(map(_plain, operands[tests + steps:]))

    def body(carry):
        results = list(map(_plain, step(*carry)))
        _same_structure("while_loop", carry, results)
        return results
    return lax.while_loop(lambda carry: test(*carry)[0], body, carry)


def _scan(equation, *operands):
    params = equation.params
    consts, carried = params["num_consts"], params["num_carry"]
    xs = operands[consts + carried:]
    if any(map(_is_sparse, xs)):
        raise NotImplementedError("sparse rule for scan with x values.")
    step = _closed(params["jaxpr"], *operands[:consts])

    def body(carry, xs):
        results = list(map(_plain, step(*carry, *xs)))
        if any(map(_is_sparse, results[carried:])):
            raise NotImplementedError("sparse rule for scan with sparse results of each step")
        _same_structure("scan", carry, results[:carried])
        return results[:carried], results[carried:]
    carry, ys = lax.scan(body, list(map(_plain, operands[consts:consts + carried])), list(xs), length=params["length"],
                         reverse=params["reverse"], unroll=params["unroll"])
    return [*carry, *ys]


def _cond(equation, index, *operands):
    branches = [_closed(branch) for branch in equation.params["branches"]]
    operands = list(map(_plain, operands))

    def run(branch):
        return lambda *operands: [_plain(value) for value in branch(*operands)]
    results = [jax.eval_shape(run(branch), *operands) for branch in branches]
    for result in results[1:]:
        first, other = map(jax.tree_util.tree_structure, (results[0], result))
        if first != other:
            raise TypeError("sparsified true_fun output must have same type structure as sparsified false_fun output, got "
                            f"{first} and {other}.")
    index = index.astype(np.int32) if index.dtype == bool else index
    return lax.switch(index, [run(branch) for branch in branches], *operands)


_BCOO_RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_LINEAR + _ZERO_AT_ZERO, _unary), **dict.fromkeys(("add", "add_any", "sub"), _sum), "mul": _mul, "div": _div,
    "dot_general": _dot_general(bcoo_dot_general), "reduce_sum": _reduce_sum, "gather": _gather, "conv_general_dilated": _convolution,
    "dynamic_slice": lambda eqn, mat, *starts: bcoo_dynamic_slice(mat, starts, eqn.params["slice_sizes"]),
    "broadcast_in_dim": lambda eqn, mat: bcoo_broadcast_in_dim(
        mat, shape=eqn.outvars[0].aval.shape, broadcast_dimensions=eqn.params["broadcast_dimensions"]),
    "concatenate": lambda eqn, *mats: _concatenate(mats, eqn.params["dimension"]), "stack": _stack,
    "reshape": lambda eqn, mat: bcoo_reshape(mat, new_sizes=eqn.outvars[0].aval.shape, dimensions=eqn.params.get("dimensions")),
    "rev": lambda eqn, mat: bcoo_rev(mat, eqn.params["dimensions"]),
    "slice": lambda eqn, mat: bcoo_slice(mat, start_indices=eqn.params["start_indices"], limit_indices=eqn.params["limit_indices"],
                                         strides=eqn.params["strides"]),
    "squeeze": lambda eqn, mat: bcoo_squeeze(mat, dimensions=eqn.params["dimensions"]),
    "transpose": lambda eqn, mat: bcoo_transpose(mat, permutation=eqn.params["permutation"]),
    todense_p.name: lambda eqn, mat: mat.todense(), "while": _while, "scan": _scan, "cond": _cond}
_BCSR_RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_LINEAR + _ZERO_AT_ZERO, _unary), "dot_general": _dot_general(bcsr_dot_general),
    **{name: _BCOO_RULES[name] for name in ("concatenate", "stack", todense_p.name, "while", "scan", "cond")},
    "broadcast_in_dim": lambda eqn, mat: bcsr_broadcast_in_dim(
        mat, shape=eqn.outvars[0].aval.shape, broadcast_dimensions=eqn.params["broadcast_dimensions"])}


def _apply(equation, operands):
    name = equation.primitive.name
    if not any(map(_is_sparse, operands)):
        return equation.primitive.bind(*operands, **equation.primitive.get_bind_params(equation.params))
    if name in _CALLS:
        inner = equation.params[_CALLS[name]]
        return evaluate(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), operands)
    rules = _BCSR_RULES if any(isinstance(operand, BCSR) for operand in operands) else _BCOO_RULES
    if name not in rules:
        why = " because it would result in dense output. If this is your intent, use sparse.todense() to convert your arguments to dense " \
              "matrices." if name in _DENSE else "."
        raise NotImplementedError(f"sparse rule for {name} is not implemented{why}")
    return rules[name](equation, *operands)


def evaluate(jaxpr: Any, consts: Any, args: Any) -> list[Any]:
    """The results of a program whose arguments may be sparse."""
    values = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def read(atom):
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        outputs = _apply(equation, list(map(read, equation.invars)))
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        for var, value in zip(equation.outvars, outputs, strict=True):
            if not isinstance(var, DropVar):
                values[var] = value
    return list(map(read, jaxpr.outvars))
