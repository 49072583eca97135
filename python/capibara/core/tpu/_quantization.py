"""Matrices stored and multiplied as codes of 8 or 4 bits; the core rounds, packs and multiplies."""
import dataclasses

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import _core, _tracebacks
from capibara._errors import TPUError
from capibara._arguments import require_number, require_text
from capibara.model import Batches as _Batches
from capibara.model import Model, as_model


@jax.tree_util.register_pytree_with_keys_class
@dataclasses.dataclass
class QuantizedWeight:
    """A matrix [inputs, outputs] as codes, contiguous for each output.

    With 8 bits an element is code * scale; with 4 bits (two codes per byte, blocks of 32 inputs) it is (code - 8) * scale. With
    `input_scale`, of quantize_activations, `x @ weight` rounds x to int8 too.
    """

    codes: object  # int8 [outputs, inputs]; with 4 bits uint8 [outputs, 16 * blocks]
    scale: object  # float32 [outputs, blocks]; with 4 bits bfloat16
    codebook: object
    inputs: int
    input_scale: object = None  # float32 [1]: the scale of x; [0]: each row of x has its own

    def tree_flatten_with_keys(self):
        names = ("codes", "scale", "codebook", "input_scale")
        return tuple((jax.tree_util.GetAttrKey(name), getattr(self, name)) for name in names), self.inputs

    def tree_flatten(self):
        return (self.codes, self.scale, self.codebook, self.input_scale), self.inputs

    @classmethod
    def tree_unflatten(cls, inputs, leaves):
        codes, scale, codebook, input_scale = leaves
        return cls(codes, scale, codebook, inputs, input_scale)

    @property
    def shape(self):
        return (self.inputs, self.codes.shape[0])

    @property
    def nbytes(self):
        return sum(leaf.nbytes for leaf in jax.tree_util.tree_leaves(self))

    def array(self, dtype=jnp.float32):
        """The dequantized matrix."""
        return _core.tpu.dequantize(self.codes, self.scale, self.codebook, self.inputs).astype(dtype)

    def matmul(self, left, transposed=False):
        """left @ weight, or left @ weight.T, computed from the codes."""
        parts = (self.codes, self.scale, self.codebook, self.inputs, self.input_scale)
        return _core.tpu.quantized_matmul(jnp.asarray(left), *parts, transposed)

    def __rmatmul__(self, left):
        return self.matmul(left)


def quantize_weight(weight, bits=8):
    """A matrix as QuantizedWeight, with one scale per output, or with 4 bits per block of 32 inputs of an output."""
    _require_bits(bits)
    return QuantizedWeight(*_core.tpu.quantize_matrix(jnp.asarray(weight), bits))


def _as_vectors(weight):
    """A matrix as indices of vectors in codebooks; None if it cannot be split into vectors or has too few of them."""
    parts = _core.tpu.quantize_vectors(jnp.asarray(weight))
    return None if parts is None else QuantizedWeight(*parts)


def quantize_model(model: object, format: str = "int8") -> object:
    """Any model with its matrices as codes: "int8" (a scale per output), "int4" (per 32 inputs) or "vq" (two codebooks of 256 vectors).

    A tree of arrays returns a tree: `x @ weight` multiplies by the codes, `weight.array()` is the rounded matrix. For any other model that
    as_model takes and that has params, the result is a Model whose functions multiply by the codes wherever the model multiplies by a
    matrix or its transpose; other uses of a matrix get it dequantized. Norms, biases, embeddings, and with "vq" matrices too small for a
    codebook, stay unchanged. Raises ValueError if nothing is quantized, and for non-finite values. For the parameters of a
    LanguageModel use convert_weights.
    """
    formats = {"int8": lambda leaf: quantize_weight(leaf, 8), "int4": lambda leaf: quantize_weight(leaf, 4), "vq": _as_vectors}
    if not isinstance(format, str) or format not in formats:
        raise ValueError(f"quantize_model: expected 'int8', 'int4' or 'vq' (argument 'format'), got {format!r}")
    return _quantized("quantize_model", ValueError, model, formats[format])


def quantize_for_tpu(model, bits=8):
    """The parameters of a model with their matrices quantized to integers; norms, biases and embeddings stay unchanged.

    A tree of arrays returns a tree: `x @ weight` multiplies by the codes, `weight.array()` is the rounded matrix. For any other model that
    as_model takes and that has params, the result is a Model whose functions multiply by the codes wherever the model multiplies by a
    matrix or its transpose; other uses of a matrix get it dequantized. Raises TPUError if nothing is quantized, and for non-finite
    values.
    """
    _require_bits(bits)
    return _quantized("quantize_for_tpu", TPUError, model, lambda leaf: quantize_weight(leaf, bits))


def quantize_activations(model: object, loader: object = None, *, batches: int = 16, percentile: float = 100.0,
                         function: str | None = None) -> object:
    """A model of int8 codes whose matmuls round activations to int8 too and sum integers.

    `model` is a result of quantize_model(model, "int8"), or as_model(LanguageModel, convert_weights(params, "int8")). `loader`, an iterable
    of batches, makes the scales static: each matrix has one for all that it multiplies in the first `batches` of them, of the largest
    magnitude or, below 100, of a `percentile` of the magnitudes, beyond which they are clipped. A tuple holds the arguments after params of
    `function`, "loss" or "apply" (by default the loss if there is one). Without a loader each row of activations has a scale of its own.
    Gradients pass the rounding straight through. Raises ValueError if the loader ends early, an activation is not finite, or the model has
    no int8 codes.
    """
    operation = "quantize_activations"
    made = as_model(model, operation=operation)
    if made.params is None:
        raise TypeError(f"{operation}: {made.name} has no parameters yet (argument 'model'): as_model(model, params) takes them")
    if loader is not None and not hasattr(loader, "__iter__"):
        raise TypeError(f"{operation}: expected an iterable of batches (argument 'loader'), got {loader!r}")
    require_number(operation, "batches", batches)
    require_number(operation, "percentile", percentile, whole=False)
    if function is not None:
        require_text(operation, "function", function)
    shapes, source = _Batches(), iter(() if loader is None else loader)

    def following():
        batch = next(source, None)
        if batch is None:
            return None
        arrays = shapes.flat(batch if isinstance(batch, (tuple, list)) else (batch,), "a calibration batch")
        for array in arrays:
            if not hasattr(array, "shape") and not isinstance(array, (bool, int, float, complex)):
                raise TypeError(f"{operation}: expected a batch of arrays from the loader (argument 'loader'), got {array!r}")
        return arrays
    of_language = isinstance(made.source, _core.training.LanguageModel)
    if not of_language:  # without the scales of an earlier call
        made = made.with_params(_with_input_scales(made.params, lambda _: None))
    params = made.params if of_language else made.by_name(made.params)
    scales = _core.training.activation_scales(made.native(shapes), params, None if loader is None else following, int(batches),
                                              float(percentile), function or "")
    if of_language:
        return made.with_params({**params, **scales})
    found = _with_input_scales(made.params, lambda name: scales.get(name + ".input_scale"))
    return found if made.source is model and not (made.has_apply or made.has_loss) else made.with_params(found)


def _with_input_scales(params, scale_of):
    """The tree with the input scale that a function returns for the name of each QuantizedWeight."""
    def scaled(path, leaf):
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        return dataclasses.replace(leaf, input_scale=scale_of(name)) if _is_weight(leaf) else leaf
    return jax.tree_util.tree_map_with_path(scaled, params, is_leaf=_is_weight)


def _quantized(operation, error, model, convert):
    """The model with the matrices that `convert` does not return None for as codes."""
    made = as_model(model, operation=operation)
    if made.params is None:
        raise TypeError(f"{operation}: {made.name} has no parameters yet (argument 'model'): as_model(model, params), with params "
                        "made by its init(key)")
    count = 0

    def converted(path, leaf):
        nonlocal count
        codes = convert(leaf) if _core.tpu.is_quantized(jax.tree_util.keystr(path), leaf) else None
        count += codes is not None
        return leaf if codes is None else codes
    quantized = jax.tree_util.tree_map_with_path(converted, made.params)
    if not count:
        raise error(f"{operation}: {made.name} has no matrix to quantize (argument 'model'); only floating arrays of two "
                    "dimensions are, whose names say nothing of norm, bias, scale or embed")
    if made.source is model and not (made.has_apply or made.has_loss):
        return quantized
    return quantized_model(made, quantized)


def _require_bits(bits):
    if isinstance(bits, bool) or not isinstance(bits, int) or bits not in (4, 8):
        raise TPUError(f"quantize_for_tpu: bits is 4 or 8, got {bits!r}")


def quantized_model(made, params):
    """The model with params that contain QuantizedWeight, by which its functions multiply directly."""
    parts = {"params": params}
    dtypes = [leaf.dtype for leaf in jax.tree_util.tree_leaves(made.params)]
    for what in ("apply", "loss"):
        if getattr(made, "has_" + what):
            parts[what] = on_codes(getattr(made, what), dtypes)
    return Model(made.name, made.source, **parts)


def _is_weight(leaf):
    return isinstance(leaf, QuantizedWeight)


def on_codes(function, dtypes):
    """Wraps a function of (params, *batch) to take params with QuantizedWeight leaves; `dtypes` are the original ones."""

    @jax.jit
    def call(params, *batch):
        leaves, structure = jax.tree_util.tree_flatten(params, is_leaf=_is_weight)
        given, rest = jax.tree_util.tree_flatten(batch)
        whole = [jax.ShapeDtypeStruct(leaf.shape, dtype) for leaf, dtype in zip(leaves, dtypes)]
        results = None

        def flat(*arrays):
            nonlocal results
            out = function(structure.unflatten(arrays[:len(leaves)]), *rest.unflatten(arrays[len(leaves):]))
            out, results = jax.tree_util.tree_flatten(out)
            return out
        closed = jax.make_jaxpr(flat)(*whole, *given)
        values = [_Coded(leaf, dtype) if _is_weight(leaf) else leaf for leaf, dtype in zip(leaves, dtypes)]
        return results.unflatten([_array(one) for one in _evaluate(closed.jaxpr, closed.consts, values + given)])
    return call


@dataclasses.dataclass
class _Coded:
    """A QuantizedWeight as a value of a jaxpr, possibly transposed or converted to another dtype."""

    weight: QuantizedWeight
    dtype: object
    transposed: bool = False


def _array(value):
    if not isinstance(value, _Coded):
        return value
    whole = value.weight.array(value.dtype)
    return whole.T if value.transposed else whole


def _evaluate(jaxpr, consts, inputs):
    values = dict(zip(jaxpr.constvars, consts)) | dict(zip(jaxpr.invars, inputs))
    for equation in jaxpr.eqns:
        operands = [atom.val if isinstance(atom, jax.extend.core.Literal) else values[atom] for atom in equation.invars]
        results = _apply(equation, operands) if any(isinstance(one, _Coded) for one in operands) else None
        if results is None:
            found = equation.primitive.bind(*map(_array, operands), **equation.params)
            results = found if equation.primitive.multiple_results else [found]
        values.update(zip(equation.outvars, results))
    return [atom.val if isinstance(atom, jax.extend.core.Literal) else values[atom] for atom in jaxpr.outvars]


def _apply(equation, operands):
    """The results of an equation that can propagate codes or multiply by them; None for any other."""
    name, params, first = equation.primitive.name, equation.params, operands[0]
    if name in ("jit", "pjit"):
        return _evaluate(params["jaxpr"].jaxpr, params["jaxpr"].consts, operands)
    if name == "transpose":
        return [dataclasses.replace(first, transposed=first.transposed != (tuple(params["permutation"]) == (1, 0)))]
    dtype = equation.outvars[0].aval.dtype
    if name == "convert_element_type" and jnp.issubdtype(dtype, jnp.floating):
        return [dataclasses.replace(first, dtype=dtype)]
    if name == "dot_general":
        return _multiplied(params["dimension_numbers"], *operands, dtype)
    return None


def _multiplied(numbers, left, right, dtype):
    (contracting, batch), of_left = numbers, isinstance(left, _Coded)
    coded, other = (left, right) if of_left else (right, left)
    if isinstance(other, _Coded) or any(batch) or len(contracting[0]) != 1 or not jnp.issubdtype(other.dtype, jnp.floating):
        return None
    own, axis = (contracting[0][0], contracting[1][0]) if of_left else (contracting[1][0], contracting[0][0])
    over_inputs = (own == 0) != coded.transposed
    product = coded.weight.matmul(jnp.moveaxis(other, axis, -1).astype(dtype), transposed=not over_inputs)
    return [jnp.moveaxis(product, -1, 0) if of_left else product]


_tracebacks.guard(__name__)
