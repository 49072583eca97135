"""jax.scipy.special: the gamma family, errors, entropies, integrals, series."""

from makers import *

def calls(names, *arguments, **options):
    return [case(f"scipy.special.{name}", *arguments, **options) for name in names]


POINTS = array([-5.5, -2.5, -1.25, -0.75, -0.1, 0.1, 0.25, 0.5, 0.9, 1.0, 1.5, 2.0, 3.7, 7.5, 12.0, 30.0])
POSITIVE = array([0.05, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.5, 9.0, 20.0])
one_argument = ["gammaln", "loggamma", "gamma", "digamma", "erf", "erfc", "erfcx", "dawsn", "ndtr", "log_ndtr",
                "expit", "entr", "i0", "i0e", "i1", "i1e", "factorial", "gammasgn", "expi", "exp1", "sici", "fresnel", "spence"]
CASES = []
for name in one_argument:
    # jax takes minutes for exp1 of tiny numbers.
    hard = HARD32[:15] if name == "exp1" else HARD32
    CASES += calls([name], POINTS) + calls([name], hard, grad=False) + calls([name], i32(4, low=1)) + calls([name], 0.75) + calls([name], bf16(3, low=0.5)) + calls([name], c64(3))
    CASES += calls([name], f64(4, low=0.3), x64=True, tolerance=1e-10) + calls([name], f32(2, 2, low=0.3))
CASES += calls(["erfinv"], array([-0.99, -0.5, 0.0, 0.3, 0.9])) + calls(["erfinv"], array([-1.0, 1.0, 2.0, np.nan])) + calls(["erfinv", "ndtri", "logit"], 0.3)
CASES += calls(["ndtri", "logit"], array([1e-6, 0.01, 0.2, 0.5, 0.8, 0.99, 0.999999])) + calls(["ndtri", "logit"], UNIT32) + calls(["ndtri", "logit"], i32(3)) + calls(["ndtri", "logit"], HARD32)
CASES += calls(["ndtri"], f64(5, low=0.01, high=0.99), x64=True) + calls(["logit"], bf16(3, low=0.1, high=0.9))
CASES += [
    case("scipy.special.log_ndtr", array([-30.0, -12.0, -9.0, -1.0, 0.0, 4.0, 6.0, 20.0]), transforms=True), case("scipy.special.log_ndtr", f32(3), 5), case("scipy.special.log_ndtr", f32(3), 0),
    case("scipy.special.log_ndtr", f32(3), 31), case("scipy.special.log_ndtr", f32(3), -1), case("scipy.special.log_ndtr", f32(3), 2.0),
    case("scipy.special.wofz", c64(5), tolerance=1e-4), case("scipy.special.wofz", f32(5), tolerance=1e-4), case("scipy.special.wofz", c64(5, low=-6, high=-1), tolerance=1e-4), case("scipy.special.wofz", 1.5),
    case("scipy.special.wofz", c128(4), x64=True, tolerance=1e-9),
    case("scipy.special.erfcx", array([-3.0, 0.0, 5.0, 9.0, 9.5, 30.0])), case("scipy.special.erfcx", c64(3), tolerance=1e-4),
    case("scipy.special.gamma", c64(5, low=-3, high=3), tolerance=1e-4), case("scipy.special.loggamma", c64(5, low=-3, high=3), tolerance=1e-4), case("scipy.special.gamma", HARDC64, tolerance=1e-4),
    case("scipy.special.loggamma", HARDC64, tolerance=1e-4),
    case("scipy.special.gammasgn", array([0.0, -0.0, -1.0, -0.5, -1.5, -2.5, 3.0])),
    case("scipy.special.polygamma", 1, POSITIVE), case("scipy.special.polygamma", i32(3, low=0, high=4), f32(3, low=0.5)), case("scipy.special.polygamma", 1.0, POSITIVE), case("scipy.special.polygamma", 0, f32(3, low=0.2)),
    case("scipy.special.polygamma", 2, c64(2)), case("scipy.special.polygamma", 3, POSITIVE),
    case("scipy.special.multigammaln", f32(3, low=5, high=9), 3), case("scipy.special.multigammaln", 5.0, 2), case("scipy.special.multigammaln", i32(2, low=4), 2), case("scipy.special.multigammaln", f32(2, 2, low=3, high=6), 1),
    case("scipy.special.factorial", array([-1, 0, 1, 5, 10])), case("scipy.special.factorial", 4, exact=True), case("scipy.special.factorial", 4),
    case("scipy.special.comb", array([5, 6, 3, -2]), array([2, 0, 4, 1])), case("scipy.special.comb", f32(3, low=4, high=9), f32(3, low=0, high=3), transforms=True), case("scipy.special.comb", 5, 2),
    case("scipy.special.comb", array([5, 0, 3]), array([2, 0, 4]), repetition=True), case("scipy.special.comb", 5.5, i32(3, low=0, high=4)),
    case("scipy.special.bernoulli", 0), case("scipy.special.bernoulli", 1), case("scipy.special.bernoulli", 2), case("scipy.special.bernoulli", 3), case("scipy.special.bernoulli", 12), case("scipy.special.bernoulli", 25), case("scipy.special.bernoulli", -1),
    case("scipy.special.bernoulli", 9, x64=True, tolerance=1e-9),
    case("scipy.special.zeta", array([1.5, 2.0, 3.0, 6.0]), array([1.0, 0.5, 2.0, 4.0])), case("scipy.special.zeta", 2.0), case("scipy.special.zeta", 2.0, 1.0), case("scipy.special.zeta", i32(3, low=2), 1), case("scipy.special.zeta", f32(2, 3, low=1.5, high=4), f32(3, low=0.5), transforms=True),
    case("scipy.special.zeta", 2.5, f64(3, low=0.5), x64=True, grad=True, tolerance=1e-10),
    case("scipy.special.bessel_jn", f32(4, low=0.5, high=6), v=3, tolerance=1e-4), case("scipy.special.bessel_jn", 2.5, v=2, tolerance=1e-4), case("scipy.special.bessel_jn", f32(2, 3, low=1), v=0, n_iter=30, tolerance=1e-4), case("scipy.special.bessel_jn", c64(2), v=1), case("scipy.special.bessel_jn", i32(3, low=1), v=2, tolerance=1e-4),
    case("scipy.special.sph_harm_y", array([0, 1, 2, 3]), array([0, -1, 2, 1]), f32(4, low=0.1, high=3), f32(4, low=0, high=6), n_max=3), case("scipy.special.sph_harm_y", raw(np.array([2, 1])), raw(np.array([1, -1])), f32(2, low=0.1, high=3), f32(2)),
    case("scipy.special.sph_harm_y", array([2]), array([-2]), 0.5, 1.0, n_max=2), case("scipy.special.sph_harm_y", array([2]), array([0]), f32(1), f32(1), diff_n=1),
    case("scipy.special.hyp1f1", f32(4, low=0.5), f32(4, low=1.5, high=4), f32(4, low=-3, high=3), tolerance=1e-4), case("scipy.special.hyp1f1", array([0.0, 1.0, 2.0, 1.5]), array([1.0, 1.0, 0.0, 2.5]), array([0.5, 2.0, 1.0, 120.0]), tolerance=1e-4),
    case("scipy.special.hyp1f1", 1, 2, 0.5, tolerance=1e-4), case("scipy.special.hyp1f1", 1.5, f32(2, 1, low=1), f32(3), tolerance=1e-4, transforms=True), case("scipy.special.hyp1f1", c64(2), 1.0, 2.0),
    case("scipy.special.hyp2f1", f32(4, low=0.5), f32(4, low=0.5), f32(4, low=2.5, high=4), f32(4, low=-0.9, high=0.8), tolerance=1e-4),
    case("scipy.special.hyp2f1", array([1.0, -2.0, 0.0, 1.0, 2.0, 1.5, 1.0]), array([2.0, 1.5, 1.0, 1.0, 1.5, 2.0, 1.0]), array([3.0, 2.5, 2.0, 2.0, 2.0, 2.0, 3.0]), array([0.5, 0.3, 0.7, 0.95, 1.0, 0.4, 0.95]), tolerance=1e-3, grad=False),
    case("scipy.special.hyp2f1", 1, 2, 3, 0.5, tolerance=1e-4), case("scipy.special.hyp2f1", 1.5, 0.5, f32(2, 1, low=2, high=4), f32(3, low=-0.5, high=0.5), tolerance=1e-4, transforms=True),
    case("scipy.special.expn", 2, POSITIVE), case("scipy.special.expn", array([0, 1, 2, 3, 5]), array([0.5, 0.0, 0.0, 1.5, 4.0])), case("scipy.special.expn", 3, array([-1.0, 0.5, 30.0, np.nan])), case("scipy.special.expn", 2, 0.5), case("scipy.special.expn", 1, c64(2)),
    case("scipy.special.expn", 2, f64(4, low=0.2, high=5), x64=True),
    case("scipy.special.expi", array([-20.0, -3.0, -0.5, 0.5, 1.9, 2.1, 5.0, 10.0, 20.0, 40.0, 70.0])), case("scipy.special.exp1", array([0.1, 0.5, 1.0, 3.0, 20.0])),
    case("scipy.special.sici", array([-20.0, -5.0, -1.0, 0.0, 0.5, 3.9, 4.1, 7.9, 8.1, 100.0, 1e10])), case("scipy.special.fresnel", array([-5.0, -1.5, 0.0, 0.5, 1.5, 1.7, 5.0, 4e4])), case("scipy.special.spence", array([0.0, 0.1, 0.5, 0.9, 1.0, 1.4, 1.6, 2.5, 9.0])),
    case("scipy.special.dawsn", array([-7.0, -4.0, 0.0, 1.0, 3.3, 6.3, 50.0])),
    case("scipy.special.owens_t", f32(6), f32(6, low=-3, high=3)), case("scipy.special.owens_t", array([0.0, 1.0, np.nan, 2.0]), array([0.5, 1.0, 1.0, -1.0])), case("scipy.special.owens_t", 0.5, 2), case("scipy.special.owens_t", f32(2, 1), f32(3), transforms=True),
    case("scipy.special.boxcox", POSITIVE, 0.5), case("scipy.special.boxcox", f32(3, low=0.1), array([0.0, 1.0, -2.0]), transforms=True), case("scipy.special.boxcox", 2, 0),
    case("scipy.special.boxcox1p", POSITIVE, 0.5), case("scipy.special.boxcox1p", f32(3, low=0.1), array([0.0, 1.0, -2.0]), transforms=True),
    case("scipy.special.logsumexp", f32(3, 4)), case("scipy.special.logsumexp", f32(3, 4), axis=0, b=f32(4), return_sign=True), case("scipy.special.softmax", f32(3, 4)), case("scipy.special.softmax", f32(3, 4), axis=1),
    case("scipy.special.log_softmax", f32(3, 4)), case("scipy.special.log_softmax", f32(3, 4), axis=(0, 1)),
]
for name in ["gammainc", "gammaincc", "beta", "betaln", "poch", "xlogy", "xlog1py", "kl_div", "rel_entr"]:
    CASES += [case(f"scipy.special.{name}", f32(5, low=0.2, high=5), f32(5, low=0.2, high=5)), case(f"scipy.special.{name}", array([0.0, 1.0, 0.0, np.nan, 2.0]), array([0.0, 0.0, 2.0, 1.0, np.inf]), grad=False),
              case(f"scipy.special.{name}", i32(3, low=1), f32(2, 3, low=0.5)), case(f"scipy.special.{name}", 1, 2), case(f"scipy.special.{name}", 2.0, bf16(3, low=0.5)), case(f"scipy.special.{name}", c64(2), 1.0),
              case(f"scipy.special.{name}", f64(3, low=0.3), 1.5, x64=True, tolerance=1e-9)]
CASES += [case("scipy.special.betaln", array([9.0, 20.0, 1e6]), array([1.0, 30.0, 2e6])), case("scipy.special.betainc", f32(4, low=0.5, high=4), f32(4, low=0.5, high=4), f32(4, low=0, high=1), tolerance=1e-4), case("scipy.special.betainc", 1, 2, 0.3), case("scipy.special.betainc", c64(1), 1.0, 0.5),
          case("scipy.special.xlogy", array([0.0, 1.0]), array([0.0, 2.0]), grad=True), case("scipy.special.entr", array([0.0, 0.5, 2.0]), grad=True), case("scipy.special.rel_entr", array([0.0, -1.0, 0.5]), array([0.0, 1.0, 0.5]), grad=True),
          case("scipy.special.gammainc", f32(3), [1.0, 2.0, 3.0])]
