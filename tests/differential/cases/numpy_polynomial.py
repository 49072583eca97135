"""Calls of jax.numpy's polynomials, convolutions, differences, integrals and interpolation."""

from makers import *

CUBIC = np.array([2.0, -3.0, 0.5, 1.0], np.float32)
LEADING = np.array([0.0, 0.0, 1.0, -3.0, 2.0], np.float32)
LINE = np.array([1.0, -2.0], np.float32)
XP = np.array([-1.5, -0.5, 0.0, 1.0, 1.75], np.float32)
STEPS = np.array([0.0, 1.0, 2.5, 3.0, 5.0], np.float32)
PHASES = np.array([0.0, 1.0, 6.0, 12.5, 3.0, -3.2, 3.1], np.float32)
SAMPLES = np.linspace(-1, 1, 8).astype(np.float32)
UNEVEN = np.array([0.0, 0.1, 0.4, 0.5, 0.9, 1.3, 1.4, 2.0], np.float32)


def by_size(label, function, **options):
    """Roots come in no certain order: they are compared sorted by real, then imaginary part."""
    return check(label, lambda jax: jax.numpy.sort(function(jax)), **options)


CASES = [
    case("numpy.poly", f32(4)), case("numpy.poly", i32(3)), case("numpy.poly", c64(3)), case("numpy.poly", positive_definite(3), tolerance=1e-4, grad=False),
    case("numpy.poly", f32(0)), case("numpy.poly", 2.0), case("numpy.poly", f32(2, 3)), case("numpy.poly", [1.0, 2.0]),
    case("numpy.polyadd", CUBIC, LINE), case("numpy.polyadd", LINE, CUBIC, transforms=True), case("numpy.polyadd", i32(3), CUBIC), case("numpy.polyadd", i32(2), i32(2)),
    case("numpy.polyadd", 1.0, CUBIC),
    case("numpy.polysub", CUBIC, LINE), case("numpy.polysub", LINE, CUBIC, transforms=True), case("numpy.polysub", i32(3), i32(2)), case("numpy.polysub", u8(2), u8(3)),
    case("numpy.polyder", CUBIC), case("numpy.polyder", CUBIC, 2, transforms=True), case("numpy.polyder", CUBIC, m=0), case("numpy.polyder", CUBIC, 4),
    case("numpy.polyder", CUBIC, 9), case("numpy.polyder", i32(4)), case("numpy.polyder", CUBIC, -1),
    case("numpy.polyint", CUBIC), case("numpy.polyint", CUBIC, 2, transforms=True), case("numpy.polyint", CUBIC, m=2, k=np.array([1.0, 2.0], np.float32)),
    case("numpy.polyint", CUBIC, k=3), case("numpy.polyint", CUBIC, m=0), case("numpy.polyint", i32(3), m=3, k=1.5), case("numpy.polyint", CUBIC, m=-1),
    case("numpy.polyint", CUBIC, m=2, k=f32(3)),
    case("numpy.polymul", CUBIC, LINE), case("numpy.polymul", i32(3), LINE, transforms=True), case("numpy.polymul", c64(2), CUBIC), case("numpy.polymul", f32(0), LINE),
    case("numpy.polymul", LEADING, LEADING, trim_leading_zeros=True), case("numpy.polymul", LEADING, LINE), case("numpy.polymul", zeros(3), LINE, trim_leading_zeros=True),
    case("numpy.polydiv", CUBIC, LINE), case("numpy.polydiv", LINE, CUBIC, transforms=True), case("numpy.polydiv", c64(4), c64(2), tolerance=1e-4), case("numpy.polydiv", i32(4), np.array([2, 1], np.int32)),
    case("numpy.polydiv", np.array([1.0, -3.0, 2.0], np.float32), np.array([1.0, -1.0], np.float32), trim_leading_zeros=True), case("numpy.polydiv", CUBIC, LINE, trim_leading_zeros=True),
    case("numpy.polyval", CUBIC, f32(3, 2)), case("numpy.polyval", f32(4, 3), f32(3), transforms=True), case("numpy.polyval", i32(3), 2), case("numpy.polyval", i32(3), 2.5),
    case("numpy.polyval", CUBIC, c64(3), unroll=1), case("numpy.polyval", f32(0), f32(2)), case("numpy.polyval", CUBIC, bf16(3)), case("numpy.polyval", f32(20), 0.5, unroll=3),
    case("numpy.polyfit", SAMPLES, f32(8), 2, tolerance=2e-4), case("numpy.polyfit", SAMPLES, f32(8, 2), 1, tolerance=2e-4), case("numpy.polyfit", SAMPLES, f32(8), 2, w=f32(8, low=0.5), tolerance=2e-4),
    case("numpy.polyfit", SAMPLES, f32(8), 3, full=True, tolerance=2e-4, grad=False), case("numpy.polyfit", SAMPLES, f32(8), 2, cov=True, tolerance=2e-4),
    case("numpy.polyfit", SAMPLES, f32(8, 2), 2, cov="unscaled", tolerance=2e-4), case("numpy.polyfit", SAMPLES, f32(8), 2, rcond=0.5, tolerance=2e-4), case("numpy.polyfit", SAMPLES, f32(8), -1),
    case("numpy.polyfit", SAMPLES, f32(7), 1), case("numpy.polyfit", f32(2, 4), f32(8), 1), case("numpy.polyfit", f32(0), f32(0), 1), case("numpy.polyfit", SAMPLES, f32(8), 1, w=f32(7)),
    case("numpy.polyfit", f32(3), f32(3), 2, cov=True), case("numpy.polyfit", SAMPLES, f32(8, 2, 2), 1),
    by_size("numpy.roots: cubic", lambda jax: jax.numpy.roots(jax.numpy.asarray(CUBIC)), tolerance=1e-4), by_size("numpy.roots: leading zeros", lambda jax: jax.numpy.roots(jax.numpy.asarray(LEADING)), tolerance=1e-4),
    by_size("numpy.roots: integers", lambda jax: jax.numpy.roots(jax.numpy.asarray([1, 0, -1])), tolerance=1e-4), by_size("numpy.roots: complex", lambda jax: jax.numpy.roots(jax.numpy.asarray([1, 2j, -1 + 1j])), tolerance=1e-3),
    by_size("numpy.roots: kept zeros", lambda jax: jax.jit(lambda p: jax.numpy.roots(p, strip_zeros=False))(jax.numpy.asarray(LEADING)), tolerance=1e-4),
    case("numpy.roots", f32(1)), case("numpy.roots", LINE), case("numpy.roots", zeros(3)), case("numpy.roots", f32(2, 2)), case("numpy.roots", 2.0), case("numpy.roots", LINE, strip_zeros=False),
    case("numpy.roots", LINE, grad=True), case("numpy.polyval", f64(3), f64(2), x64=True), case("numpy.poly", c64(3), transforms=True), case("numpy.polyval", i32(3), i32(2), jit=True, vmap=True),
    case("numpy.convolve", c64(4), c64(2), transforms=True), case("numpy.interp", f32(4), XP, f32(5), period=2.5, transforms=True), case("numpy.interp", f64(4), f64(3, low=0, high=1), f64(3), x64=True),
    case("numpy.trapezoid", f32(2, 4), dx=0.5, transforms=True), case("numpy.unwrap", PHASES, grad=True), case("numpy.vander", i32(3), 4, jit=True, vmap=True), case("numpy.gradient", f64(4), x64=True),
    case("numpy.polyfit", UNEVEN, f32(8, 2), 2, cov="unscaled", tolerance=2e-4, x64=True), case("numpy.polyfit", UNEVEN, f32(8), 1, cov=True, tolerance=5e-4, transforms=True), case("numpy.polyint", f32(3), 2, 1.0, transforms=True), case("numpy.diff", i32(4), x64=True, n=2),
    check("roots under jit", lambda jax: jax.jit(jax.numpy.roots)(jax.numpy.ones(3))),
    case("numpy.vander", f32(3)), case("numpy.vander", f32(3), 2, transforms=True), case("numpy.vander", i32(3), increasing=True), case("numpy.vander", f32(3), N=5, increasing=True),
    case("numpy.vander", f32(3), 0), case("numpy.vander", f32(3), -1), case("numpy.vander", f32(2, 2)), case("numpy.vander", np.array([0.0, 1.0], np.float32), grad=True), case("numpy.vander", c64(3)),
    case("numpy.convolve", f32(5), f32(3)), case("numpy.convolve", f32(3), f32(5), mode="same", transforms=True), case("numpy.convolve", f32(5), f32(3), mode="valid"), case("numpy.convolve", i32(5), i32(2)),
    case("numpy.convolve", c64(4), c64(3)), case("numpy.convolve", bf16(4), f32(2)), case("numpy.convolve", f32(5), f32(4), "same", precision="highest"), case("numpy.convolve", f32(5), f32(0)),
    case("numpy.convolve", f32(5), f32(2, 2)), case("numpy.convolve", f32(5), f32(2), mode="magic"), case("numpy.convolve", f32(5), 2.0), case("numpy.convolve", i32(4), i32(2), preferred_element_type=np.int32),
    case("numpy.correlate", f32(5), f32(3)), case("numpy.correlate", f32(3), f32(5), mode="full", transforms=True), case("numpy.correlate", f32(5), f32(4), mode="same"), case("numpy.correlate", c64(4), c64(3), "full"),
    case("numpy.correlate", c64(2), c64(3), "full"), case("numpy.correlate", i32(5), f32(2)), case("numpy.correlate", f32(0), f32(2)), case("numpy.correlate", f32(5), f32(2), preferred_element_type=np.float32),
    case("numpy.interp", f32(6), XP, f32(5)), case("numpy.interp", f32(2, 3, low=-3.0, high=3.0), XP, f32(5), transforms=True), case("numpy.interp", f32(6, low=-3.0), XP, f32(5), left=-1, right=9.5),
    case("numpy.interp", f32(6, low=-3.0, high=3.0), XP, f32(5), left="extrapolate", right="extrapolate", grad=True), case("numpy.interp", f32(6, low=-9.0, high=9.0), XP, f32(5), period=3.0),
    case("numpy.interp", XP, XP, f32(5), grad=True), case("numpy.interp", 0.3, XP, f32(5)), case("numpy.interp", i32(3), np.array([0, 2, 4], np.int32), i32(3)), case("numpy.interp", f32(3), XP, c64(5)),
    case("numpy.interp", f32(3), np.array([0.0, 1.0, 1.0, 2.0], np.float32), f32(4)), case("numpy.interp", f32(3), XP, f32(4)), case("numpy.interp", f32(3), f32(2, 2), f32(2, 2)), case("numpy.interp", c64(3), XP, f32(5)),
    case("numpy.interp", f32(3), XP, f32(5), left="nearest"), case("numpy.interp", f32(3), XP, f32(5), period=f32(2)), case("numpy.interp", HARD32, XP, f32(5)),
    case("numpy.trapezoid", f32(5)), case("numpy.trapezoid", f32(3, 5), x=STEPS, transforms=True), case("numpy.trapezoid", f32(3, 5), dx=0.5, axis=0), case("numpy.trapezoid", f32(3, 5), x=f32(3, 5)),
    case("numpy.trapezoid", f32(5, 3), x=f32(5, 3), axis=0), case("numpy.trapezoid", i32(5)), case("numpy.trapezoid", bf16(5)), case("numpy.trapezoid", f32(3, 5), dx=f32(4)), case("numpy.trapezoid", f32(1)), case("numpy.trapezoid", f32(5), axis=1),
    case("numpy.diff", f32(5)), case("numpy.diff", f32(3, 4), n=2, axis=0, transforms=True), case("numpy.diff", b1(5)), case("numpy.diff", u8(5)), case("numpy.diff", i32(5), prepend=0, append=i32(2)),
    case("numpy.diff", f32(3, 4), prepend=1.0, append=f32(3, 2)), case("numpy.diff", i32(5), append=1.5), case("numpy.diff", f32(3), n=0), case("numpy.diff", f32(3), n=5), case("numpy.diff", f32(3), n=-1),
    case("numpy.diff", 1.0), case("numpy.diff", f32(3), axis=1), case("numpy.diff", f32(0)), case("numpy.diff", [1, 2]),
    case("numpy.ediff1d", f32(5)), case("numpy.ediff1d", f32(2, 3), to_end=f32(2), to_begin=1.0, transforms=True), case("numpy.ediff1d", i32(4), to_end=2.7), case("numpy.ediff1d", f32(0)), case("numpy.ediff1d", b1(3)), case("numpy.ediff1d", 2.0),
    case("numpy.gradient", f32(5)), case("numpy.gradient", f32(4, 5), transforms=True), case("numpy.gradient", f32(4, 5), 0.5), case("numpy.gradient", f32(4, 5), 0.5, STEPS), case("numpy.gradient", f32(3, 5), STEPS, axis=1, transforms=True),
    case("numpy.gradient", f32(4, 5), axis=(1, 0)), case("numpy.gradient", f32(4, 5), axis=-1), case("numpy.gradient", i32(5)), case("numpy.gradient", f32(5), 2), case("numpy.gradient", f32(2)), case("numpy.gradient", f32(1)),
    case("numpy.gradient", f32(5), f32(4)), case("numpy.gradient", f32(4, 5), 1.0, 2.0, 3.0), case("numpy.gradient", f32(5), edge_order=2), case("numpy.gradient", f32(5), f32(2, 2)), case("numpy.gradient", f32()), case("numpy.gradient", bf16(5)),
    case("numpy.unwrap", PHASES), case("numpy.unwrap", f32(3, 4, low=-9.0, high=9.0), axis=0, transforms=True), case("numpy.unwrap", PHASES, discont=4.0), case("numpy.unwrap", i32(6, low=0, high=20), period=4),
    case("numpy.unwrap", i32(6, low=0, high=20)), case("numpy.unwrap", f32(6), period=1.0), case("numpy.unwrap", f32(0)), case("numpy.unwrap", c64(3)), case("numpy.unwrap", f32(3), axis=1), case("numpy.unwrap", i32(6, low=0, high=20), period=5),
]
