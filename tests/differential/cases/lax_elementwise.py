"""Calls of jax.lax's elementwise functions."""

from makers import *

INEXACT = ["cos", "cosh", "exp", "exp2", "expm1", "log", "log1p", "logistic", "sin", "sinh", "sqrt", "rsqrt", "tan",
           "tanh", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt"]
SPECIAL = ["bessel_i0e", "bessel_i1e", "digamma", "erf", "erf_inv", "erfc", "lgamma"]
ROUNDING = ["ceil", "floor", "is_finite"]
NUMBERS = ["abs", "neg", "sign", "square"]
BITS = ["bitwise_not", "population_count", "clz"]
ARITHMETIC = ["add", "sub", "mul", "div", "rem", "max", "min"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
LOGICAL = ["bitwise_and", "bitwise_or", "bitwise_xor"]
SHIFTS = ["shift_left", "shift_right_arithmetic", "shift_right_logical"]
COMPLEX = [name for name in INEXACT if name != "cbrt"]

CASES = []
for name in INEXACT:
    low, high = {"acosh": (1.1, 3.0), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9), "log": (0.1, 3.0),
                 "log1p": (-0.5, 2.0), "sqrt": (0.1, 4.0), "rsqrt": (0.1, 4.0), "cbrt": (0.2, 3.0)}.get(name, (-2.0, 2.0))
    CASES += [
        case(f"lax.{name}", f32(3, 4, low=low, high=high)),
        case(f"lax.{name}", HARD32),
        case(f"lax.{name}", 0.5),
        case(f"lax.{name}", bf16(5, low=low, high=high)),
        case(f"lax.{name}", i32(3)),
        case(f"lax.{name}", f64(3, low=low, high=high), x64=True),
    ]
CASES += [case(f"lax.{name}", c64(4), tolerance=1e-4) for name in COMPLEX]
CASES += [case("lax.exp", f32(2), accuracy=None), case("lax.exp", 2), case("lax.exp", [1.0, 2.0]), case("lax.sin", f32(0, 3))]
for name in SPECIAL:
    CASES += [
        case(f"lax.{name}", f32(3, 4, low=-0.9, high=0.9) if name == "erf_inv" else f32(3, 4, low=0.2, high=3.0)),
        case(f"lax.{name}", array([0.5, 1.5, 2.5, -0.25, 3.75, np.nan, np.inf])),
        case(f"lax.{name}", i32(3)),
        case(f"lax.{name}", 0.25),
        case(f"lax.{name}", bf16(4, low=0.1, high=0.9)),
    ]
for name in ROUNDING:
    CASES += [case(f"lax.{name}", f32(3, 4)), case(f"lax.{name}", HARD32[:17].copy()), case(f"lax.{name}", f16(4)), case(f"lax.{name}", i32(3)), case(f"lax.{name}", 1.5)]
for name in NUMBERS:
    CASES += [case(f"lax.{name}", f32(3)), case(f"lax.{name}", HARD32), case(f"lax.{name}", HARD_I32), case(f"lax.{name}", c64(3)),
              case(f"lax.{name}", u8(3)), case(f"lax.{name}", b1(3)), case(f"lax.{name}", -3)]
for name in BITS:
    CASES += [case(f"lax.{name}", HARD_I32), case(f"lax.{name}", HARD_U8), case(f"lax.{name}", HARD_B1), case(f"lax.{name}", f32(3)),
              case(f"lax.{name}", 6)]
for name in ARITHMETIC:
    CASES += [
        case(f"lax.{name}", f32(3, 4), f32(3, 4)),
        case(f"lax.{name}", f32(3, 4), f32(1, 4)),
        case(f"lax.{name}", f32(3, 1), f32(1, 4)),
        case(f"lax.{name}", f32(3), 2.0),
        case(f"lax.{name}", 2.0, f32(3)),
        case(f"lax.{name}", f32(3), 2),
        case(f"lax.{name}", i32(3), 2),
        case(f"lax.{name}", 7, 2),
        case(f"lax.{name}", i32(3), f32(3)),
        case(f"lax.{name}", f32(2, 3), f32(3)),
        case(f"lax.{name}", f32(2), f32(3)),
        case(f"lax.{name}", b1(3), b1(3)),
        case(f"lax.{name}", HARD_I32, HARD_I32[::-1].copy()),
        case(f"lax.{name}", HARD32, HARD32[::-1].copy()),
        case(f"lax.{name}", bf16(3), bf16(3)),
        case(f"lax.{name}", c64(3), c64(3)),
        case(f"lax.{name}", u8(3), u8(3, low=1)),
        case(f"lax.{name}", f32(3), None),
    ]
for name in COMPARISONS:
    CASES += [case(f"lax.{name}", f32(3, 4), f32(3, 4)), case(f"lax.{name}", HARD32, HARD32[::-1].copy()), case(f"lax.{name}", i32(3), 2),
              case(f"lax.{name}", b1(3), b1(3)), case(f"lax.{name}", c64(3), c64(3)), case(f"lax.{name}", f32(3), 1)]
for name in LOGICAL:
    CASES += [case(f"lax.{name}", i32(3), i32(3)), case(f"lax.{name}", b1(3), b1(3)), case(f"lax.{name}", f32(3), f32(3)),
              case(f"lax.{name}", u8(3), u8(3)), case(f"lax.{name}", i32(3), 5), case(f"lax.{name}", b1(3), True)]
for name in SHIFTS:
    CASES += [case(f"lax.{name}", HARD_I32, full((11,), 3, np.int32)), case(f"lax.{name}", HARD_U8, u8(7, high=7)),
              case(f"lax.{name}", i32(3), array([40, 31, 32])), case(f"lax.{name}", i32(3), 1), case(f"lax.{name}", f32(3), f32(3)),
              case(f"lax.{name}", b1(3), b1(3))]
CASES += [
    case("lax.mul", f32(3), f32(3), out_dtype=np.float32),
    case("lax.mul", i32(3), i32(3), out_dtype=np.float32),
    case("lax.mul", bf16(3), f32(3), out_dtype=np.float32),
    case("lax.pow", f32(3, low=0.1), f32(3)),
    case("lax.pow", f32(3), i32(3, low=0, high=4)),
    case("lax.pow", f32(3), 2),
    case("lax.pow", f32(3, low=0.1), 0.5),
    case("lax.pow", 2.0, i32(3)),
    case("lax.pow", i32(3), 2),
    case("lax.pow", c64(3), c64(3), tolerance=1e-4),
    case("lax.pow", f32(3), True),
    case("lax.pow", HARD32, full((19,), 2.0)),
    case("lax.atan2", f32(3, 4), f32(3, 4)),
    case("lax.atan2", HARD32, HARD32[::-1].copy()),
    case("lax.atan2", 1.0, f32(3)),
    case("lax.atan2", i32(3), i32(3)),
    case("lax.nextafter", f32(3), f32(3)),
    case("lax.nextafter", HARD32, full((19,), 0.0)),
    case("lax.nextafter", f32(3), 1),
    case("lax.mulhi", HARD_I32, HARD_I32),
    case("lax.mulhi", u32(3, high=2**32 - 1), u32(3, high=2**32 - 1)),
    case("lax.mulhi", f32(3), f32(3)),
    case("lax.complex", f32(3), f32(3)),
    case("lax.complex", 1.0, 2.0),
    case("lax.complex", f16(3), f16(3)),
    case("lax.complex", f32(3), i32(3)),
    case("lax.conj", c64(3)),
    case("lax.conj", f32(3)),
    case("lax.conj", i32(3)),
    case("lax.real", c64(3)),
    case("lax.imag", c64(3)),
    case("lax.real", f32(3)),
    case("lax.imag", f32(3)),
    case("lax.real", 1 + 2j),
    case("lax.reciprocal", f32(3)),
    case("lax.reciprocal", i32(3)),
    case("lax.reciprocal", HARD32),
    case("lax.integer_pow", f32(3), 3),
    case("lax.integer_pow", f32(3), -2),
    case("lax.integer_pow", i32(3), 2),
    case("lax.integer_pow", i32(3), -1),
    case("lax.integer_pow", c64(3), 3),
    case("lax.integer_pow", 2.0, 3),
    case("lax.integer_pow", f32(3), 0),
    case("lax.round", HARD32),
    case("lax.round", HARD32, lib(lambda jax: jax.lax.RoundingMethod.TO_NEAREST_EVEN)),
    case("lax.round", HARD32, lib(lambda jax: jax.lax.RoundingMethod.AWAY_FROM_ZERO)),
    case("lax.round", f32(3), 1),
    case("lax.round", f32(3), 2),
    case("lax.round", i32(3)),
    case("lax.reduce_precision", f32(5), 5, 10),
    case("lax.reduce_precision", HARD32, exponent_bits=8, mantissa_bits=7),
    case("lax.reduce_precision", f32(3), 0, 3),
    case("lax.reduce_precision", i32(3), 5, 10),
    case("lax.reduce_precision", 1.3, 5, 4),
    case("lax.convert_element_type", f32(3), np.int32),
    case("lax.convert_element_type", HARD32, np.int32),
    case("lax.convert_element_type", i32(3), np.float32),
    case("lax.convert_element_type", i32(3), "bfloat16"),
    case("lax.convert_element_type", f32(3), float),
    case("lax.convert_element_type", f32(3), bool),
    case("lax.convert_element_type", f32(3), np.float64),
    case("lax.convert_element_type", 2, np.float32),
    case("lax.convert_element_type", 2.5, float),
    case("lax.convert_element_type", f32(3), np.complex64),
    case("lax.convert_element_type", HARD_I32, np.uint8),
    case("lax.convert_element_type", [1, 2], np.float32),
    case("lax.convert_element_type", f32(3), "nonsense"),
    case("lax.bitcast_convert_type", f32(3), np.int32),
    case("lax.bitcast_convert_type", f32(3), np.uint8),
    case("lax.bitcast_convert_type", u8(3, 4), np.float32),
    case("lax.bitcast_convert_type", bf16(3), np.uint16),
    case("lax.bitcast_convert_type", i32(3, 2), np.complex64),
    case("lax.bitcast_convert_type", u8(3), np.float32),
    case("lax.stage", f32(3)),
    case("lax.stage", 2.0),
    case("lax.stop_gradient", f32(3)),
    case("lax.stop_gradient", i32(3)),
    case("lax.stop_gradient", (f32(2), [i32(2)])),
    case("lax.stop_gradient", {"a": f32(2), "b": None}),
    case("lax.optimization_barrier", f32(3)),
    case("lax.optimization_barrier", (f32(3), [i32(2)])),
    case("lax.optimization_barrier", {"a": f32(2)}),
    case("lax.dtype", f32(3)),
    case("lax.dtype", 2),
    case("lax.dtype", 2.5),
    case("lax.dtype", True),
    case("lax.dtype", [1, 2]),
    case("lax.dtype", np.int32),
    case("lax.igamma", f32(4, low=0.3, high=4.0), f32(4, low=0.1, high=5.0)),
    case("lax.igamma", f32(4, low=0.3, high=4.0), 1.0),
    case("lax.igamma", f32(3), i32(3)),
    case("lax.igammac", f32(4, low=0.3, high=4.0), f32(4, low=0.1, high=5.0)),
    case("lax.igamma_grad_a", f32(4, low=0.3, high=4.0), f32(4, low=0.1, high=5.0), tolerance=1e-4, grad=False),
    case("lax.random_gamma_grad", f32(4, low=0.3, high=4.0), f32(4, low=0.1, high=5.0), tolerance=1e-4, grad=False),
    case("lax.betainc", f32(4, low=0.3, high=4.0), f32(4, low=0.3, high=4.0), f32(4, low=0.05, high=0.95), tolerance=1e-4),
    case("lax.betainc", f32(4, low=0.3), 1, f32(4, low=0.05)),
    case("lax.polygamma", array([1.0, 2.0, 3.0]), f32(3, low=0.5, high=3.0), tolerance=1e-4),
    case("lax.polygamma", 1.0, f32(3, low=0.5, high=3.0), tolerance=1e-4),
    case("lax.zeta", f32(3, low=1.5, high=4.0), f32(3, low=0.5, high=3.0), tolerance=1e-4),
    case("lax.clamp", f32(3, low=-1, high=0), f32(3), f32(3, low=0, high=1)),
    case("lax.clamp", -1.0, f32(3, 4), 1.0),
    case("lax.clamp", -1, i32(3), 1),
    case("lax.clamp", 0, f32(3), 1),
    case("lax.clamp", f32(3), f32(2, 3), f32(3)),
    case("lax.clamp", f32(), f32(2, 3), f32()),
    case("lax.clamp", 0.0, 2.5, 1.0),
    case("lax.select", b1(3), f32(3), f32(3)),
    case("lax.select", True, f32(3), f32(3)),
    case("lax.select", b1(3), i32(3), f32(3)),
    case("lax.select", b1(3), f32(3), 0.0),
    case("lax.select", f32(3), f32(3), f32(3)),
    case("lax.select", b1(), 1.0, 2.0),
    case("lax.select_n", i32(3, low=0, high=3), f32(3), f32(3), f32(3)),
    case("lax.select_n", b1(3), f32(3), f32(3)),
    case("lax.select_n", i32(low=0, high=2), f32(3), f32(3)),
    case("lax.select_n", b1(3), f32(3), f32(3), f32(3)),
    case("lax.select_n", i32(3, low=0, high=2), i32(3), f32(3)),
    case("lax.select_n", b1(3)),
    case("lax.select_n", b1(3), f32(3)),
    case("lax.add", f32(3), 2.0, x64=True),
    case("lax.add", f64(3), 2.0, x64=True),
    case("lax.add", i32(3), 2, x64=True),
    case("lax.add", 2, 3, x64=True),
    case("lax.convert_element_type", f32(3), float, x64=True),
    case("lax.convert_element_type", 2, np.int64, x64=True),
    case("lax.bitcast_convert_type", f64(2), np.uint32, x64=True),
    case("lax.mulhi", i64(3), i64(3), x64=True),
    case("lax.clz", i64(3), x64=True),
]
