"""The gamma and beta families, and gamma variates."""

import numpy

from .row import Row

AHEAD = {"jax": 1.5, "torch": 1.0}
COUNT = 100000


def uniform(dtype, *ranges):
    """Arrays of the same length, each uniform between two numbers."""
    return lambda random: tuple(random.uniform(low, high, COUNT).astype(dtype) for low, high in ranges)


def rows():
    found = []
    for dtype, short in (("float32", "f32"), ("float64", "f64")):
        wide = dtype == "float64"
        tolerance = 1e-12 if wide else 1e-5
        what = f"{COUNT} {short}"
        positive, shape_and_point = uniform(dtype, (0.1, 30)), uniform(dtype, (0.2, 20), (0.1, 30))
        found += [
            Row(f"lgamma {short}", what, positive, lambda jax: jax.lax.lgamma, torch=lambda torch: torch.lgamma, wide=wide, least=AHEAD,
                tolerance=tolerance),
            Row(f"digamma {short}", what, positive, lambda jax: jax.lax.digamma, torch=lambda torch: torch.digamma, wide=wide, least=AHEAD,
                tolerance=tolerance),
            Row(f"zeta {short}", what, uniform(dtype, (1.2, 8), (0.2, 10)), lambda jax: jax.lax.zeta,
                torch=lambda torch: torch.special.zeta, wide=wide, least=AHEAD, tolerance=tolerance),
            Row(f"igamma {short}", what, shape_and_point, lambda jax: jax.lax.igamma, torch=lambda torch: torch.special.gammainc, wide=wide,
                least=AHEAD, tolerance=tolerance),
            Row(f"igammac {short}", what, shape_and_point, lambda jax: jax.lax.igammac, torch=lambda torch: torch.special.gammaincc,
                wide=wide, least=AHEAD, tolerance=tolerance),
            Row(f"igamma_grad_a {short}", what, shape_and_point, lambda jax: jax.lax.igamma_grad_a, wide=wide, least=AHEAD,
                tolerance=tolerance),
            Row(f"random_gamma_grad {short}", what, shape_and_point, lambda jax: jax.lax.random_gamma_grad, wide=wide, least=AHEAD,
                tolerance=tolerance),
            Row(f"betainc {short}", what, uniform(dtype, (0.2, 20), (0.2, 20), (0, 1)), lambda jax: jax.lax.betainc, wide=wide,
                least=AHEAD, tolerance=tolerance),
        ]
        for name, low, high in (("gamma variates", 1, 8), ("gamma variates below 1", 0.1, 1)):
            found.append(Row(
                f"{name} {short}", f"{COUNT} {short}, a in [{low}, {high}], threefry", uniform(dtype, (low, high)),
                lambda jax: lambda a: jax.random.gamma(jax.random.key(3), a, dtype=a.dtype),
                torch=lambda torch: lambda a: torch._standard_gamma(a),
                numpy=lambda numpy: lambda a: numpy.random.default_rng(7).standard_gamma(a).astype(a.dtype),
                wide=wide, least=dict(AHEAD, numpy=1.0), tolerance=tolerance, widen=False, unlike=("torch", "numpy")))
    return found
