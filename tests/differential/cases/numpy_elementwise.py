"""jax.numpy's functions of single elements."""

from makers import *

HARD_PAIRS = np.repeat(HARD32, len(HARD32)), np.tile(HARD32, len(HARD32))
SMALL = array([-3.5, -2.0, -0.5, -0.0, 0.0, 0.5, 2.0, 3.5])
DIVISORS = array([2, -2, 3, -3, 7, -1, 1, 5])

UNARY = """absolute arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil conjugate cos cosh deg2rad exp exp2 expm1 fabs
floor imag isfinite isinf isnan isreal iscomplex log log10 log1p log2 logical_not negative positive rad2deg real
reciprocal rint round sign signbit sin sinc sinh sqrt square tan tanh trunc""".split()
UNARY_ALIASES = "abs acos acosh asin asinh atan atanh conj degrees radians around".split()

BINARY = """add subtract multiply true_divide equal not_equal less less_equal greater greater_equal maximum minimum
logical_and logical_or logical_xor arctan2 floor_divide remainder fmod fmax fmin float_power power logaddexp logaddexp2
hypot copysign heaviside nextafter""".split()
BINARY_ALIASES = "divide atan2 mod pow".split()

BITS = "bitwise_and bitwise_or bitwise_xor".split()
SHIFTS = "left_shift right_shift bitwise_left_shift bitwise_right_shift".split()
NOT_REAL = {"fabs", "cbrt", "ceil", "floor", "trunc", "signbit"}

CASES = []

# --- one operand: hard points, integers, booleans, low precision, complex, weak numbers ------------------------------

LOOSE = {"sinc": 1e-5, "tan": 1e-5}
for name in UNARY:
    CASES.append(case(f"numpy.{name}", f32(3, 4, low=1.1) if name == "arccosh" else f32(3, 4, low=-0.9, high=0.9)))
    CASES.append(case(f"numpy.{name}", HARD32, tolerance=LOOSE.get(name)))
    CASES.append(case(f"numpy.{name}", i32(2, 3)))
for name in UNARY_ALIASES:
    CASES.append(case(f"numpy.{name}", f32(3, 4, low=1.1) if name == "acosh" else f32(3, 4, low=-0.9, high=0.9)))
    CASES.append(case(f"numpy.{name}", 1))
for name in "absolute exp log sin sqrt rint round signbit sign square reciprocal floor logical_not isnan isinf".split():
    CASES.append(case(f"numpy.{name}", HARDBF16))
    CASES.append(case(f"numpy.{name}", HARD16))
    CASES.append(case(f"numpy.{name}", b1(4)))
    CASES.append(case(f"numpy.{name}", 2.5))
for name in "log2 log10 exp2 tanh deg2rad reciprocal rint square angle isfinite positive negative imag".split():
    CASES.append(case(f"numpy.{name}", 3))
    CASES.append(case(f"numpy.{name}", 1.5))
for name in """absolute exp log log2 log10 log1p expm1 sin cos tan sqrt sinh cosh tanh arcsin arccos arctan arcsinh arccosh
arctanh square reciprocal sign conjugate real imag isfinite isinf isnan isreal iscomplex rint round negative angle logical_not
deg2rad exp2""".split():
    CASES.append(case(f"numpy.{name}", c64(2, 3), tolerance=1e-5))
for name in sorted(NOT_REAL):
    CASES.append(case(f"numpy.{name}", c64(2)))

CASES += [
    case("numpy.angle", f32(3)),
    case("numpy.angle", HARDC64, True),
    case("numpy.angle", bf16(3)),
    case("numpy.angle", 2.0),
    case("numpy.angle", i32(3), deg=True),
    case("numpy.arccosh", array([1.0, 1.5, 2.0, 10.0, 0.5])),
    case("numpy.bitwise_count", HARD_I32),
    case("numpy.bitwise_count", HARD_U8),
    case("numpy.bitwise_count", b1(4)),
    case("numpy.bitwise_not", HARD_I32),
    case("numpy.bitwise_not", b1(4)),
    case("numpy.bitwise_not", f32(2)),
    case("numpy.bitwise_invert", u8(3)),
    case("numpy.invert", i8(3)),
    case("numpy.invert", 5),
    case("numpy.round", f32(3, 4), 2),
    case("numpy.round", f32(3, 4, low=-200, high=200), -2),
    case("numpy.round", f16(3), 1),
    case("numpy.round", bf16(3), 1),
    case("numpy.round", c64(3), 1),
    case("numpy.round", i32(3), 2),
    case("numpy.round", i32(3), -1),
    case("numpy.round", b1(3)),
    case("numpy.round", f32(3), decimals=50),
    case("numpy.around", f32(3), decimals=1),
    case("numpy.round", f32(3), 1.5),
    case("numpy.i0", SMALL),
    case("numpy.i0", HARD32[:14]),
    case("numpy.i0", i32(3)),
    case("numpy.i0", c64(2)),
    case("numpy.sinc", array([0.0, 0.0, 1.0, 0.5])),
    check("second derivative of sinc at zero", lambda jax: jax.vmap(jax.grad(jax.grad(jax.numpy.sinc)))(jax.numpy.array([0.0, 0.3, 1.0])), tolerance=1e-4),
    check("derivative of i0 at zero", lambda jax: jax.vmap(jax.grad(jax.numpy.i0))(jax.numpy.array([0.0, -0.0, 1.5]))),
    case("numpy.frexp", f32(4)),
    case("numpy.frexp", HARD32[:17], transforms=False),
    case("numpy.frexp", HARD16[:18], transforms=False),
    case("numpy.frexp", HARDBF16),
    case("numpy.frexp", i32(4)),
    case("numpy.frexp", c64(2)),
    case("numpy.frexp", HARD64, x64=True),
    check("derivative of frexp", lambda jax: jax.jvp(lambda x: jax.numpy.frexp(x)[0], (jax.numpy.array([3.0, 0.3]),), (jax.numpy.array([1.0, 2.0]),))),
    case("numpy.ldexp", f32(4), i32(4)),
    case("numpy.ldexp", HARD32, array([3] * len(HARD32))),
    case("numpy.ldexp", array([1.0, 1.5, 2.0]), array([127, -126, 128])),
    case("numpy.ldexp", i32(3), 2),
    case("numpy.ldexp", f32(3), f32(3)),
    case("numpy.ldexp", bf16(3), i32(3)),
    case("numpy.modf", SMALL),
    case("numpy.modf", HARD32),
    case("numpy.modf", i32(3)),
    case("numpy.modf", c64(2)),
    case("numpy.modf", 2.5),
    case("numpy.spacing", HARD32),
    case("numpy.spacing", f16(3)),
    case("numpy.spacing", 1),
    case("numpy.spacing", c64(2)),
    case("numpy.isposinf", HARD32),
    case("numpy.isneginf", HARD32),
    case("numpy.isposinf", i32(2)),
    case("numpy.isneginf", c64(2)),
    case("numpy.isposinf", f32(2), 1),
    case("numpy.nan_to_num", HARD32),
    case("numpy.nan_to_num", HARDBF16),
    case("numpy.nan_to_num", HARDC64),
    case("numpy.nan_to_num", i32(3)),
    case("numpy.nan_to_num", HARD32, nan=1.5, posinf=7, neginf=f32(1)),
    case("numpy.nan_to_num", HARD32, False, 3),
    case("numpy.sin", f32()),
    case("numpy.sin", f32(0, 3)),
    case("numpy.sin", lib(lambda jax: [1.0, 2.0])),
    case("numpy.sin", None),
    case("numpy.sin", f32(2), f32(2)),
    case("numpy.negative", b1(2)),
    case("numpy.negative", u8(3)),
    case("numpy.negative", f32(3), where=True),
    case("numpy.sign", b1(2)),
    case("numpy.exp", f64(3), x64=True),
    case("numpy.exp", i32(3), x64=True),
    case("numpy.log2", i64(3), x64=True),
    case("numpy.sqrt", i8(3, low=0)),
    case("numpy.reciprocal", i32(3, low=1)),
]

# --- two operands ----------------------------------------------------------------------------------------------------

ORDERED_ONLY = {"arctan2", "floor_divide", "remainder", "fmod", "copysign", "heaviside", "nextafter", "hypot"}
for name in BINARY:
    positive = name in ("float_power", "power")
    CASES.append(case(f"numpy.{name}", f32(3, 4, low=0.5 if positive else None, high=None), f32(4), tolerance=1e-5 if positive else None))
    CASES.append(case(f"numpy.{name}", *HARD_PAIRS, tolerance=2e-5, transforms=False))
    CASES.append(case(f"numpy.{name}", i32(8, low=0), DIVISORS))
    CASES.append(case(f"numpy.{name}", i32(2, 3), 2.5))
    CASES.append(case(f"numpy.{name}", 3, 2))
    CASES.append(case(f"numpy.{name}", b1(4), b1(4)))
for name in BINARY_ALIASES:
    CASES.append(case(f"numpy.{name}", f32(3, 4, low=0.5), f32(4), tolerance=1e-5))
    CASES.append(case(f"numpy.{name}", 3, 2))
for name in sorted(ORDERED_ONLY):
    CASES.append(case(f"numpy.{name}", c64(2), c64(2)))
for name in "add multiply true_divide equal less greater maximum power logaddexp logical_and fmax".split():
    CASES.append(case(f"numpy.{name}", c64(3), c64(3), tolerance=1e-5))
    CASES.append(case(f"numpy.{name}", bf16(3, low=0.5), f16(3, low=0.5)))
for name in "add power floor_divide remainder logaddexp hypot fmod".split():
    CASES.append(case(f"numpy.{name}", bf16(5, low=0.5), bf16(5, low=0.5)))
    CASES.append(case(f"numpy.{name}", u8(4, low=1), u8(4, low=1)))
    CASES.append(case(f"numpy.{name}", f32(2, 1, 3, low=0.5), f32(4, 1, low=0.5), tolerance=1e-5))
for name in BITS:
    CASES += [
        case(f"numpy.{name}", HARD_I32, i32(11)),
        case(f"numpy.{name}", b1(3, 4), b1(4)),
        case(f"numpy.{name}", i8(3), u8(3)),
        case(f"numpy.{name}", f32(2), i32(2)),
    ]
for name in SHIFTS:
    CASES += [
        case(f"numpy.{name}", HARD_I32, i32(11, low=0, high=40)),
        case(f"numpy.{name}", HARD_U8, u8(7, low=0, high=8)),
        case(f"numpy.{name}", b1(3), b1(3)),
        case(f"numpy.{name}", f32(2), 1),
    ]

CASES += [
    case("numpy.add", f32(3), f32(4)),
    case("numpy.add", f32(2, 3), f32(4)),
    case("numpy.add", f32(3)),
    case("numpy.add", f32(3), f32(3), f32(3)),
    case("numpy.add", f32(3), 1, out=1),
    case("numpy.add", [1], 2),
    case("numpy.add", f32(0), f32(1)),
    case("numpy.add", i32(2), f32(2), config={"jax_numpy_dtype_promotion": "strict"}),
    case("numpy.add", f32(2, 3), f32(3), config={"jax_numpy_rank_promotion": "raise"}),
    case("numpy.subtract", b1(2), b1(2)),
    case("numpy.power", f32(4), 2),
    case("numpy.power", f32(4), 0),
    case("numpy.power", f32(4), -3, tolerance=1e-5),
    case("numpy.power", i32(4), 3),
    case("numpy.power", i32(4), -1),
    case("numpy.power", i32(4), True),
    case("numpy.power", b1(4), 2),
    case("numpy.power", f32(4, low=0.5), i32(4)),
    case("numpy.power", f32(4), raw(np.int32(2))),
    case("numpy.power", bf16(3, low=0.5), i32(3)),
    case("numpy.power", i32(4), 2.0),
    case("numpy.power", 2, f32(3)),
    case("numpy.power", i8(3), i8(3, low=0, high=3)),
    case("numpy.power", c64(3), 2),
    case("numpy.power", c64(3), 0.5, tolerance=1e-5),
    case("numpy.power", i32(3), i64(3), x64=True),
    check("power of a bool array", lambda jax: jax.numpy.power(2, jax.numpy.array(True))),
    case("numpy.divmod", f32(8), array([2.0, -2.0, 3.0, -0.5, 0.7, 0.0, np.inf, -np.inf])),
    case("numpy.divmod", i32(8), DIVISORS),
    case("numpy.divmod", HARD_I32[:8], 2),
    case("numpy.divmod", u8(4), u8(4, low=1)),
    case("numpy.divmod", b1(3), True),
    case("numpy.divmod", c64(2), c64(2)),
    check("floor division of weakly typed arrays", lambda jax: jax.numpy.divmod(jax.numpy.full((3,), -7), 2)),
    check("operators of booleans", lambda jax: (jax.numpy.array([True, False]) << 1, jax.numpy.array([True]) % True)),
    check("remainder by a float", lambda jax: jax.numpy.arange(5) % 2.5),
    case("numpy.remainder", i32(4), i32(4, low=1), x64=True),
    case("numpy.true_divide", i32(4), i32(4, low=1), x64=True),
    case("numpy.true_divide", i32(4), i64(4, low=1), x64=True),
    case("numpy.square", b1(3), x64=True),
    case("numpy.arctan2", i8(3), i32(3), x64=True),
    case("numpy.sinc", f64(4), x64=True),
    case("numpy.logaddexp", f64(4), f64(4), x64=True),
    case("numpy.nan_to_num", HARD64, x64=True),
    case("numpy.spacing", HARD64, x64=True),
    case("numpy.signbit", HARD64, x64=True),
    case("numpy.gcd", i64(4), i32(4), x64=True),
    case("numpy.where", b1(3), 1, f32(3), x64=True),
    case("numpy.floor_divide", i32(3), array([0, 2, 0])),
    case("numpy.remainder", i32(3), array([0, 2, 0])),
    case("numpy.fmod", i32(3), array([0, 2, 0])),
    case("numpy.fmod", array([-7, 7, -7]), array([3, -3, -3])),
    case("numpy.gcd", array([12, -18, 0, 0, 7]), array([18, 12, 5, 0, -21])),
    case("numpy.gcd", i32(3, 1, low=1), i32(4, low=1)),
    case("numpy.gcd", u8(3), u8(3)),
    case("numpy.gcd", 12, 18),
    check("gcd of weakly typed arrays", lambda jax: jax.numpy.gcd(jax.numpy.full((3,), 12), 8)),
    case("numpy.gcd", f32(2), 2),
    case("numpy.gcd", b1(2), b1(2)),
    case("numpy.lcm", array([12, -18, 0, 0, 7]), array([18, 12, 5, 0, -21])),
    case("numpy.lcm", i32(3), 4),
    case("numpy.lcm", f32(2), 2),
    case("numpy.heaviside", SMALL, 0.5),
    case("numpy.heaviside", i32(4), i32(4)),
    case("numpy.nextafter", f16(3), f16(3)),
    case("numpy.nextafter", bf16(3), bf16(3)),
    case("numpy.copysign", i32(3), -1),
    case("numpy.hypot", array([3e38, 1e-30, 0.0, 3.0]), array([1e38, 1e-30, 0.0, 4.0])),
    case("numpy.logaddexp", 1, 2),
    check("derivatives of logaddexp at infinities", lambda jax: jax.vmap(jax.grad(jax.numpy.logaddexp, (0, 1)))(
        jax.numpy.array([0.0, jax.numpy.inf, -jax.numpy.inf, -jax.numpy.inf, 3.0]), jax.numpy.array([0.0, 1.0, 1.0, -jax.numpy.inf, jax.numpy.inf]))),
    check("derivatives of logaddexp2", lambda jax: jax.vmap(jax.grad(jax.numpy.logaddexp2, (0, 1)))(
        jax.numpy.array([0.0, jax.numpy.inf, -jax.numpy.inf, 1.0]), jax.numpy.array([0.0, 1.0, 1.0, 3.0]))),
    check("derivatives of maximum at ties", lambda jax: jax.vmap(jax.grad(jax.numpy.maximum, (0, 1)))(
        jax.numpy.array([0.0, 1.0, 2.0]), jax.numpy.array([0.0, 2.0, 1.0]))),
]

# --- choices ---------------------------------------------------------------------------------------------------------

CASES += [
    case("numpy.clip", f32(3, 4), -0.5, 0.5),
    case("numpy.clip", f32(3, 4), f32(4), None),
    case("numpy.clip", i32(6), max=3),
    case("numpy.clip", i32(6), 1.5, 3),
    case("numpy.clip", i32(6), min=i32(6)),
    case("numpy.clip", HARD32, -1, 1),
    case("numpy.clip", f32(3)),
    case("numpy.clip"),
    case("numpy.clip", c64(2), 0),
    case("numpy.clip", u8(4), 1, 300.0),
    case("numpy.clip", f32(3), f32(4)),
    case("numpy.where", b1(3, 4), f32(4), f32(3, 1)),
    case("numpy.where", b1(3), 1, 2.5),
    case("numpy.where", i32(4), i8(4), u8(4)),
    case("numpy.where", f32(3), True, 0),
    case("numpy.where", True, f32(3), f32(2, 1)),
    case("numpy.where", b1(0), 1, 2.0),
    case("numpy.where", b1(3), f32(3), bf16(3)),
    case("numpy.where", b1(3), c64(3), f32(3)),
    case("numpy.where", b1(3), f32(2), f32(3)),
    case("numpy.where", b1(3), f32(3), None),
    case("numpy.where", b1(3), f32(3), 0, size=2),
    case("numpy.where", b1(3, 4), jit=False, vmap=False),
    case("numpy.where", i32(6), size=4, fill_value=-1),
    case("numpy.isclose", f32(3), f32(3, seed=1)),
    case("numpy.isclose", array([1.0, 1.0, np.nan, np.inf, np.inf, 1e-9]), array([1.00001, 1.1, np.nan, np.inf, -np.inf, 0.0])),
    case("numpy.isclose", HARD32, HARD32, equal_nan=True),
    case("numpy.isclose", i32(3), i32(3), 0.5, 1),
    case("numpy.isclose", c64(3), c64(3)),
    case("numpy.isclose", bf16(3), f32(3), rtol=0.1),
    case("numpy.isclose", 1, 1),
]
