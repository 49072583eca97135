"""Kernel density estimation with Gaussians: a pytree around the core's arithmetic."""
from capibara import _core
from capibara.jax.tree_util import register_pytree_node_class


@register_pytree_node_class
class gaussian_kde:
    """A kernel density estimate of a dataset: its dimensions in rows, its observations in columns."""

    __slots__ = ("neff", "dataset", "weights", "covariance", "inv_cov")

    def __init__(self, dataset, bw_method=None, weights=None):
        self._fill(_core.kde_fit(dataset, bw_method, weights, lambda leaves: self._fill(leaves)))

    def _fill(self, leaves):
        for name, leaf in zip(gaussian_kde.__slots__, leaves):
            object.__setattr__(self, name, leaf)
        return self

    def __setattr__(self, name, value):
        raise AttributeError(f"cannot assign to field {name!r}")

    def tree_flatten(self):
        return tuple(getattr(self, name) for name in gaussian_kde.__slots__), None

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        return cls.__new__(cls)._fill(children)

    def _leaves(self):
        return self.tree_flatten()[0]

    @property
    def d(self):
        return self.dataset.shape[0]

    @property
    def n(self):
        return self.dataset.shape[1]

    def evaluate(self, points):
        """The density at the given points."""
        return _core.kde_evaluate(self._leaves(), points)

    __call__ = pdf = evaluate

    def logpdf(self, x):
        """The logarithm of the density."""
        return _core.kde_logpdf(self._leaves(), x)

    def integrate_gaussian(self, mean, cov):
        """The integral of the density times a Gaussian."""
        return _core.kde_integrate_gaussian(self._leaves(), mean, cov)

    def integrate_box_1d(self, low, high):
        """The integral of a one-dimensional density between two limits."""
        return _core.kde_integrate_box_1d(self._leaves(), low, high)

    def integrate_kde(self, other):
        """The integral of the product of two densities."""
        return _core.kde_integrate_kde(self._leaves(), other._leaves())

    def resample(self, key, shape=()):
        """Draws from the density, of shape (d, *shape)."""
        return _core.kde_resample(self._leaves(), key, list(shape))

    def integrate_box(self, low_bounds, high_bounds, maxpts=None):
        """Not implemented, as in jax: boxes of several dimensions."""
        raise NotImplementedError("gaussian_kde.integrate_box: only 1D box integrations are supported; use `integrate_box_1d`")

    def set_bandwidth(self, bw_method=None):
        """Not supported, as in jax: estimates are immutable."""
        raise NotImplementedError("gaussian_kde.set_bandwidth: dynamically changing the bandwidth method is not supported")
