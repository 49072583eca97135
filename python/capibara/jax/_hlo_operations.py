"""Operations of StableHLO as functions of traced arrays, for lowering rules that build them; each adds the operation of jax.lax."""
from capibara._modules import explain_missing
from capibara.jax import lax


def round_nearest_even(operand):
    """The nearest integer; halves go to the even one."""
    return lax.round(operand, rounding_method=lax.RoundingMethod.TO_NEAREST_EVEN)


# Operations whose operands state all about them.
_OPERATIONS = {
    "abs": lax.abs, "add": lax.add, "and_": lax.bitwise_and, "atan2": lax.atan2, "cbrt": lax.cbrt, "ceil": lax.ceil, "clamp": lax.clamp,
    "complex": lax.complex, "cosine": lax.cos, "count_leading_zeros": lax.clz, "divide": lax.div, "exponential": lax.exp,
    "exponential_minus_one": lax.expm1, "floor": lax.floor, "imag": lax.imag, "is_finite": lax.is_finite, "log": lax.log,
    "log_plus_one": lax.log1p, "logistic": lax.logistic, "maximum": lax.max, "minimum": lax.min, "multiply": lax.mul,
    "negate": lax.neg, "not_": lax.bitwise_not, "optimization_barrier": lax.optimization_barrier, "or_": lax.bitwise_or,
    "popcnt": lax.population_count, "power": lax.pow, "real": lax.real, "remainder": lax.rem,
    "round_nearest_even": round_nearest_even, "rsqrt": lax.rsqrt,
    "select": lax.select, "shift_left": lax.shift_left, "shift_right_arithmetic": lax.shift_right_arithmetic,
    "shift_right_logical": lax.shift_right_logical, "sign": lax.sign, "sine": lax.sin, "sqrt": lax.sqrt, "subtract": lax.sub,
    "tan": lax.tan, "tanh": lax.tanh, "xor": lax.bitwise_xor,
}
__all__ = sorted(_OPERATIONS)
globals().update(_OPERATIONS)

explain_missing(__name__)
