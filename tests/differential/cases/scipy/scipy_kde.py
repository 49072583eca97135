"""Calls of jax.scipy.stats.gaussian_kde."""

import importlib

from makers import *

LINE = np.array([0.1, -0.7, 1.3, 0.4, 2.2, -1.1], np.float32)
PLANE = np.array([[0.1, -0.7, 1.3, 0.4, 2.2, -1.1], [1.0, 0.3, -0.2, 0.8, 0.5, -0.4]], np.float32)
WEIGHTS = np.array([0.5, 1.0, 0.25, 2.0, 1.0, 0.75], np.float32)
POINTS = np.array([-1.0, 0.0, 0.5, 3.0], np.float32)
PLACES = np.array([[-1.0, 0.0, 0.5], [0.2, 0.4, 3.0]], np.float32)


def kde(jax, data, *args, **kwargs):
    return importlib.import_module(f"{jax.__name__}.scipy.stats").gaussian_kde(data, *args, **kwargs)


def one(label, f, tolerance=1e-4):
    return check(f"scipy.stats.gaussian_kde: {label}", f, tolerance=tolerance)


CASES = [
    one("attributes", lambda jax: (lambda k: [k.d, k.n, k.neff, k.dataset, k.weights, k.covariance, k.inv_cov])(kde(jax, LINE))),
    one("attributes of a weighted one", lambda jax: (lambda k: [k.d, k.n, k.neff, k.weights, k.covariance, k.inv_cov])(kde(jax, PLANE, weights=WEIGHTS))),
    one("integers", lambda jax: (lambda k: [k.dataset, k.covariance, k(np.array([1, 2]))])(kde(jax, np.array([1, 2, 5, 3])))),
    one("densities", lambda jax: (lambda k: [k(POINTS), k.pdf(POINTS), k.evaluate(POINTS), k.logpdf(POINTS), k(0.5)])(kde(jax, LINE))),
    one("densities of a plane", lambda jax: (lambda k: [k(PLACES), k.logpdf(PLACES), k(np.array([0.5, 0.2], np.float32))])(kde(jax, PLANE, weights=WEIGHTS))),
    one("bandwidths", lambda jax: [kde(jax, LINE, b)(POINTS) for b in (None, "scott", "silverman", 0.3, lambda k: k.neff ** -0.5)]),
    one("integrals", lambda jax: (lambda k: [k.integrate_box_1d(-1.0, 0.7), k.integrate_gaussian(0.3, 0.5), k.integrate_kde(kde(jax, LINE[:4]))])(kde(jax, LINE))),
    one("integrals of a plane", lambda jax: (lambda k: [k.integrate_gaussian(np.zeros(2, np.float32), np.eye(2, dtype=np.float32)), k.integrate_kde(kde(jax, PLANE[:, :4]))])(kde(jax, PLANE, weights=WEIGHTS))),
    one("draws", lambda jax: (lambda k: [k.resample(jax.random.key(0)), k.resample(jax.random.key(1), (3,)), k.resample(jax.random.PRNGKey(2), shape=(2, 2))])(kde(jax, LINE)), 1e-3),
    one("draws of a plane", lambda jax: (lambda k: [k.resample(jax.random.key(0), (4,))])(kde(jax, PLANE)), 1e-3),
    one("a pytree", lambda jax: (lambda k: [len(jax.tree.leaves(k)), jax.tree.map(lambda v: v, k)(POINTS), jax.jit(lambda k, x: k(x))(k, POINTS)])(kde(jax, LINE))),
    one("made in jit and differentiated", lambda jax: [jax.jit(lambda d: kde(jax, d)(POINTS))(LINE), jax.grad(lambda d: kde(jax, d).logpdf(POINTS).sum())(jax.numpy.asarray(LINE)), jax.grad(lambda x: kde(jax, LINE)(x).sum())(jax.numpy.asarray(POINTS))], 1e-3),
    one("mapped", lambda jax: jax.vmap(lambda d: kde(jax, d)(POINTS))(np.stack([LINE, LINE[::-1] * 2]))),
    one("a list", lambda jax: kde(jax, [1.0, 2.0])), one("one element", lambda jax: kde(jax, np.float32(1))), one("complex data", lambda jax: kde(jax, LINE * 1j)), one("an unknown bandwidth", lambda jax: kde(jax, LINE, "guess")),
    one("weights of another length", lambda jax: kde(jax, LINE, weights=WEIGHTS[:3])), one("weights of two dimensions", lambda jax: kde(jax, LINE, weights=WEIGHTS[None])),
    one("points of another dimension", lambda jax: kde(jax, PLANE)(POINTS)), one("complex points", lambda jax: kde(jax, LINE)(POINTS * 1j)), one("a box of a plane", lambda jax: kde(jax, PLANE).integrate_box_1d(0.0, 1.0)),
    one("limits that are no scalars", lambda jax: kde(jax, LINE).integrate_box_1d(POINTS, 1.0)), one("a mean of another dimension", lambda jax: kde(jax, PLANE).integrate_gaussian(0.0, 1.0)),
    one("two dimensionalities", lambda jax: kde(jax, PLANE).integrate_kde(kde(jax, LINE))), one("boxes", lambda jax: kde(jax, PLANE).integrate_box([0, 0], [1, 1])), one("another bandwidth", lambda jax: kde(jax, LINE).set_bandwidth(0.1)),
    one("assigned to", lambda jax: setattr(kde(jax, LINE), "neff", 1)),
]
