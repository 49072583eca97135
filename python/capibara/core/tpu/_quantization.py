"""Weights in int8 or int4 with a scale for each output column, as real integers in memory; the core rounds, packs and multiplies."""
import dataclasses

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import _core, _tracebacks
from capibara._errors import TPUError
from capibara.model import Model, as_model


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass
class QuantizedWeight:
    """codes * scale: integers of 8 bits, or two of 4 bits in each byte, with a scale for each column."""

    codes: object  # int8 [rows, columns]; of 4 bits uint8 [(rows + 1) // 2, columns]
    scale: object  # float32 [columns]
    bits: int
    rows: int

    def tree_flatten(self):
        return (self.codes, self.scale), (self.bits, self.rows)

    @classmethod
    def tree_unflatten(cls, fixed, leaves):
        return cls(*leaves, *fixed)

    @property
    def shape(self):
        return (self.rows, self.codes.shape[1])

    @property
    def nbytes(self):
        return self.codes.size + 4 * self.scale.size

    def array(self, dtype=jnp.float32):
        """The weight that the codes stand for."""
        return _core.tpu.widen_codes(self.codes, self.scale, self.bits, self.rows).astype(dtype)

    def __rmatmul__(self, left):
        """left @ weight: the product with the codes, scaled once."""
        return _core.tpu.matmul_codes(jnp.asarray(left), self.codes, self.scale, self.bits, self.rows)

    def __jax_array__(self):
        return self.array()


def quantize_weight(weight, bits=8):
    """A matrix as QuantizedWeight: each column is divided by its largest magnitude and rounded."""
    _require_bits(bits)
    weight = jnp.asarray(weight)
    return QuantizedWeight(*_core.tpu.quantize_matrix(weight, bits), bits, weight.shape[0])


def quantize_for_tpu(model, bits=8):
    """The parameters of a model with their matrices as integers; norms, biases and embeddings stay as they are.

    A tree of arrays gives such a tree: `x @ weight` works with the result, `weight.array()` gives the rounded matrix. Of any other model
    that as_model takes and that has params, the result is a Model that applies the rounded matrices. TPUError where nothing is quantized
    and for values that are not finite.
    """
    _require_bits(bits)
    made = as_model(model, operation="quantize_for_tpu")
    if made.params is None:
        raise TypeError(f"quantize_for_tpu: {made.name} has no parameters yet (argument 'model'): as_model(model, params), with params "
                        "made by its init(key)")
    count = 0

    def convert(path, leaf):
        nonlocal count
        if not _core.tpu.is_quantized(jax.tree_util.keystr(path), leaf):
            return leaf
        count += 1
        return quantize_weight(leaf, bits)
    quantized = jax.tree_util.tree_map_with_path(convert, made.params)
    if not count:
        raise TPUError(f"quantize_for_tpu: {made.name} has no matrix to quantize (argument 'model'); only floating arrays of two "
                       "dimensions are, whose names say nothing of norm, bias, scale or embed")
    if made.source is model and not (made.has_apply or made.has_loss):
        return quantized
    return _QuantizedModel(made, quantized)


def _require_bits(bits):
    if isinstance(bits, bool) or not isinstance(bits, int) or bits not in (4, 8):
        raise TPUError(f"quantize_for_tpu: bits is 4 or 8, got {bits!r}")


class _QuantizedModel(Model):
    """A model whose params hold QuantizedWeight: they are widened where a function of the model reads them."""

    def __init__(self, made, params):
        parts = {"params": params}
        for what in ("apply", "loss"):
            if getattr(made, "has_" + what):
                parts[what] = lambda p, *batch, what=what: getattr(made, what)(_widened(p), *batch)
        super().__init__(made.name, made.source, **parts)


def _widened(params):
    return jax.tree_util.tree_map(lambda leaf: leaf.array() if isinstance(leaf, QuantizedWeight) else leaf, params,
                                  is_leaf=lambda leaf: isinstance(leaf, QuantizedWeight))


_tracebacks.guard(__name__)
