"""jax.scipy.stats: densities and distribution functions over and beyond their supports; modes, ranks, errors."""

from makers import *

REAL = array([-3.0, -1.0, -0.25, 0.0, 0.3, 1.0, 2.5, 6.0])
UNIT = array([-0.5, 0.0, 0.01, 0.25, 0.5, 0.9, 1.0, 1.5, np.nan])
WHOLE = array([-1, 0, 1, 2, 5, 9])


def functions(distribution, names, variable, *parameters, scaled=True):
    """Calls of each function beyond its support and within it; other dtypes with the first function only."""
    made = []
    for name in names:
        full = f"scipy.stats.{distribution}.{name}"
        at = UNIT if name in ("ppf", "isf") else variable
        made += [case(full, array([0.1, 0.4, 0.8]) if at is UNIT else at[-3:], *parameters), case(full, at, *parameters), case(full, 0.5, *parameters)]
        if scaled:
            more = {"loc": 0.25} if scaled == "loc" else {"loc": 0.25, "scale": 2.0}
            made += [case(full, at, *parameters, **more, grad=True)]
        if name == names[0]:
            made += [case(full, HARD32, *parameters), case(full, i32(4), *parameters), case(full, bf16(4, low=0.1), *parameters)]
            made += [case(full, f64(4, low=0.1, high=0.9), *parameters, x64=True, tolerance=1e-9)]
    return made


densities = ["logpdf", "pdf"]
both = ["cdf", "logcdf", "sf", "logsf"]
CASES = [
    *functions("norm", [*densities, *both, "ppf", "isf"], REAL),
    *functions("cauchy", [*densities, *both, "ppf", "isf"], REAL),
    *functions("expon", [*densities, *both, "ppf"], REAL),
    *functions("gumbel_l", [*densities, *both, "ppf"], REAL),
    *functions("gumbel_r", [*densities, *both, "ppf"], REAL),
    *functions("laplace", [*densities, "cdf"], REAL),
    *functions("logistic", [*densities, "cdf", "sf", "ppf", "isf"], REAL),
    *functions("uniform", [*densities, "cdf", "ppf"], REAL),
    *functions("beta", [*densities, *both], UNIT[:-1], 1.5, 2.5),
    *functions("chi2", [*densities, *both], REAL, 3.0),
    *functions("gamma", [*densities, *both], REAL, 2.5),
    *functions("pareto", [*densities, *both, "ppf"], REAL, 2.5),
    *functions("t", densities, REAL, 3.5),
    *functions("truncnorm", [*densities, *both], REAL, -1.5, 2.0),
    *functions("gennorm", [*densities, "cdf"], REAL, 1.5, scaled=False),
    *functions("vonmises", densities, REAL, 1.5, scaled=False),
    *functions("wrapcauchy", densities, REAL, 0.5, scaled=False),
    *functions("bernoulli", ["logpmf", "pmf"], WHOLE, 0.3, scaled="loc"),
    *functions("bernoulli", ["cdf", "ppf"], REAL, 0.3, scaled=False),
    *functions("betabinom", ["logpmf", "pmf"], WHOLE, 5, 1.5, 2.5, scaled="loc"),
    *functions("binom", ["logpmf", "pmf"], WHOLE, 5, 0.3, scaled="loc"),
    *functions("geom", ["logpmf", "pmf"], WHOLE, 0.3, scaled="loc"),
    *functions("nbinom", ["logpmf", "pmf"], WHOLE, 5, 0.3, scaled="loc"),
    *functions("poisson", ["logpmf", "pmf", "cdf"], WHOLE, 2.5, scaled="loc"),
]
s = "scipy.stats."
CASES += [
    case(s + "norm.logpdf", f32(3, 1), f32(4), f32(4, low=0.5), transforms=True), case(s + "norm.cdf", c64(2)), case(s + "norm.ppf", 1), case(s + "norm.logpdf", f32(3), scale=0),
    case(s + "beta.logpdf", f32(3, low=0.1, high=0.9), f32(3, low=0.5), f32(3, low=0.5), transforms=True), case(s + "beta.logpdf", 0.5, -1.0, 1.0), case(s + "gamma.logpdf", f32(3, low=0.1), f32(3, low=0.5), transforms=True),
    case(s + "t.logpdf", f32(3), f32(3, low=1), f32(3), f32(3, low=0.5), transforms=True), case(s + "truncnorm.logpdf", f32(3), 2.0, 1.0), case(s + "truncnorm.cdf", f32(4), array([-2.0, 1.0, -9.0, 3.0]), array([2.0, 3.0, -6.0, 4.0]), transforms=True),
    case(s + "vonmises.logpdf", f32(3), array([0.0, -1.0, 2.0])), case(s + "wrapcauchy.logpdf", array([-1.0, 1.0, 7.0]), array([0.5, 1.5, 0.5])), case(s + "bernoulli.logpmf", array([0, 1, 1]), f32(3, low=0.1, high=0.9), transforms=True),
    case(s + "poisson.entropy", array([0.0, 0.5, 5.0, 20.0, 99.0, 200.0]), tolerance=1e-4), case(s + "poisson.entropy", 3.0, tolerance=1e-4), case(s + "poisson.entropy", f32(2, 2, low=1, high=30), f32(2, 2), tolerance=1e-4), case(s + "poisson.entropy", i32(2, low=1), tolerance=1e-4),
    case(s + "dirichlet.logpdf", array([0.2, 0.3, 0.5]), array([1.0, 2.0, 3.0])), case(s + "dirichlet.pdf", array([0.2, 0.3]), array([1.0, 2.0, 3.0])), case(s + "dirichlet.logpdf", array([[0.2, 0.5], [0.8, 0.5]]), f32(2, low=0.5), transforms=True),
    case(s + "dirichlet.logpdf", array([0.2, 0.9]), array([1.0, 1.0])), case(s + "dirichlet.logpdf", array([0.2, 0.3]), array([1.0])), case(s + "dirichlet.logpdf", array([0.2, 0.8]), f32(2, 2)),
    case(s + "multinomial.logpmf", array([1, 2, 3]), 6, array([0.2, 0.3, 0.5])), case(s + "multinomial.pmf", array([1, 2, 3]), 5, array([0.2, 0.3, 0.5])), case(s + "multinomial.logpmf", f32(3), 5, array([0.2, 0.3, 0.5])), case(s + "multinomial.pmf", array([0, 0, 4]), 4, array([0.0, 0.5, 0.5])),
    case(s + "multivariate_normal.logpdf", f32(3), f32(3), positive_definite(3)), case(s + "multivariate_normal.pdf", f32(5, 3), f32(3), positive_definite(3), transforms=True), case(s + "multivariate_normal.logpdf", f32(4), 0.5, 2.0), case(s + "multivariate_normal.logpdf", f32(2, 3), f32(3), 1.5),
    case(s + "multivariate_normal.logpdf", f32(2, 3), f32(2, 3), positive_definite(3, batch=(2,))), case(s + "multivariate_normal.logpdf", f32(3), f32(3), f32(2, 2)), case(s + "multivariate_normal.logpdf", f32(3), f32(3), f32(3)), case(s + "multivariate_normal.logpdf", 0.5, 0, 1), case(s + "multivariate_normal.logpdf", f32(3), f32(3), positive_definite(3), True),
    case(s + "mode", i32(5, 4, low=0, high=3)), case(s + "mode", i32(5, 4, low=0, high=3), axis=1, keepdims=True), case(s + "mode", i32(5, 4, low=0, high=3), axis=None), case(s + "mode", array([1.0, 2.0, 2.0, np.nan, np.nan]), grad=False), case(s + "mode", f32(3), axis=None, keepdims=True, grad=False),
    case(s + "mode", 3), case(s + "mode", b1(5)), case(s + "mode", zeros((0, 3))), case(s + "mode", f32(3), axis=2), case(s + "mode", f32(3), nan_policy="omit"), case(s + "mode", f32(3), nan_policy="other"), case(s + "mode", i32(2, 3, 4, low=0, high=2), axis=-1),
    *[case(s + "rankdata", i32(7, low=0, high=4), method) for method in ("average", "min", "max", "dense", "ordinal", "other")],
    case(s + "rankdata", f32(3, 4)), case(s + "rankdata", i32(3, 4, low=0, high=3), axis=1), case(s + "rankdata", i32(3, 4, low=0, high=3), "min", axis=0), case(s + "rankdata", array([1.0, np.nan, 2.0])), case(s + "rankdata", f32(3), nan_policy="raise"), case(s + "rankdata", array([[1.0, np.nan], [2.0, 1.0]]), axis=1),
    case(s + "rankdata", f32(4), axis=1),
    case(s + "sem", f32(5)), case(s + "sem", f32(3, 4), axis=1, ddof=0, transforms=True), case(s + "sem", f32(3, 4), axis=None), case(s + "sem", f32(3, 4), keepdims=True), case(s + "sem", array([1.0, np.nan, 2.0, 4.0]), nan_policy="omit"), case(s + "sem", array([1.0, np.nan]), nan_policy="other"), case(s + "sem", i32(4)), case(s + "sem", bf16(4)),
]
