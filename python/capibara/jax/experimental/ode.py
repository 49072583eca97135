"""jax.experimental.ode: ordinary differential equations, integrated with adaptive step size."""
import functools
import operator

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara._modules import explain_missing
from capibara.jax import lax
from capibara.jax.flatten_util import ravel_pytree

# The Dormand-Prince method: nodes and coefficients of the stages, and three weighted sums of the stage derivatives: the fifth-order
# result, its difference from the fourth-order one, and the value in the middle of the step.
_NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_RESULT = (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0)
_ERROR = tuple(map(operator.sub, _RESULT, (5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40)))
_MIDDLE = tuple(half / 2 for half in (
    6025192743 / 30085553152, 0, 51252292925 / 65400821598, -2691868925 / 45128329728, 187940372067 / 1594534317056,
    -1776094331 / 19743644256, 11237099 / 235043384))
_SAFETY, _SHRINK, _GROW, _ORDER = 0.9, 0.2, 10.0, 5


def odeint(func, y0, t, *args, rtol=1.4e-8, atol=1.4e-8, mxstep=jnp.inf, hmax=jnp.inf):
    """The solution of dy/dt = func(y, t, *args), y(t[0]) = y0, at the times t, which must be monotonic.

    `y0` and the arguments may be pytrees. `mxstep` bounds the number of steps between two times, `hmax` their length. Gradients are
    computed by integrating the adjoint equation backwards; forward mode is not defined.
    """
    t = jnp.asarray(t)
    if not jnp.issubdtype(t.dtype, jnp.floating):
        raise TypeError(f"t must be an array of floats, but got {t}.")
    y0 = jax.tree.map(jnp.asarray, y0)
    flat, unravel = ravel_pytree(y0)

    def derivative(y, time, *args):
        """func's result as a tree like y0: it may be another one with as many elements, such as an array for a list."""
        result = func(y, time, *args)
        same = jax.tree.structure(result) == jax.tree.structure(y0)
        return result if same else unravel(ravel_pytree(result)[0].astype(flat.dtype))

    converted, captured = jax.closure_convert(derivative, y0, t[0], *args)
    return _integrate(converted, rtol, atol, mxstep, hmax, y0, t, *args, *captured)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2, 3, 4))
def _integrate(func, rtol, atol, mxstep, hmax, y0, t, *args):
    flat, unravel = ravel_pytree(y0)

    def slope(y, time):
        return ravel_pytree(func(unravel(y), time, *args))[0].astype(flat.dtype)

    steps = _solve(slope, rtol, atol, mxstep, hmax, flat, t)
    return jax.vmap(unravel)(steps)


def _forward(func, rtol, atol, mxstep, hmax, y0, t, *args):
    ys = _integrate(func, rtol, atol, mxstep, hmax, y0, t, *args)
    return ys, (ys, t, args)


def _backward(func, rtol, atol, mxstep, hmax, saved, g):
    ys, t, args = saved

    def at(tree, i):
        return jax.tree.map(lambda x: x[i], tree)

    def adjoint(state, minus_time, *args):
        y, y_bar = state[:2]
        y_dot, pull = jax.vjp(func, y, -minus_time, *args)
        return jax.tree.map(jnp.negative, y_dot), *pull(y_bar)

    def interval(carry, i):
        y_bar, t0_bar, args_bar = carry
        # The derivative with respect to an interval's end is the solution's time derivative there.
        t_bar = _dot(func(at(ys, i), t[i], *args), at(g, i)).astype(t.dtype)
        state = (at(ys, i), y_bar, t0_bar - t_bar, *args_bar)
        times = jnp.stack([-t[i], -t[i - 1]])
        _, y_bar, t0_bar, *args_bar = jax.tree.map(lambda x: x[1], odeint(adjoint, state, times, *args, rtol=rtol, atol=atol, mxstep=mxstep, hmax=hmax))
        return (jax.tree.map(jnp.add, y_bar, at(g, i - 1)), t0_bar, tuple(args_bar)), t_bar

    start = (at(g, -1), jnp.zeros((), t.dtype), jax.tree.map(jnp.zeros_like, args))
    (y_bar, t0_bar, args_bar), later = lax.scan(interval, start, jnp.arange(t.shape[0] - 1, 0, -1))
    return y_bar, jnp.concatenate([t0_bar[None], later[::-1]]), *args_bar


_integrate.defvjp(_forward, _backward)


def _dot(a, b):
    return functools.reduce(operator.add, [jnp.sum(x * y).real for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b))])


def _combined(weights, slopes):
    return functools.reduce(operator.add, [w * k for w, k in zip(weights, slopes) if w])


def _step(slope, y, f, t, h):
    """(next value, its time derivative, error, value in the middle) of one step."""
    slopes = [f]
    for node, weights in zip(_NODES, _STAGES):
        slopes.append(slope(y + h * _combined(weights, slopes), t + node * h))
    return y + h * _combined(_RESULT, slopes), slopes[-1], h * _combined(_ERROR, slopes), y + h * _combined(_MIDDLE, slopes)


def _polynomial(y, y_next, middle, f, f_next, h):
    """The quartic through both ends, with their derivatives, and the middle, over [0, 1]; highest power first."""
    f, f_next = h * f, h * f_next
    return jnp.stack([2 * (f_next - f) - 8 * (y + y_next) + 16 * middle,
                      5 * f - 3 * f_next + 18 * y + 14 * y_next - 32 * middle,
                      f_next - 4 * f - 11 * y - 5 * y_next + 16 * middle, f, y])


def _size(error, rtol, atol, y, y_next):
    """The root mean square of the error relative to the tolerance: a step is accepted up to 1."""
    tolerated = atol + rtol * jnp.maximum(jnp.abs(y), jnp.abs(y_next))
    return jnp.sqrt(jnp.mean(jnp.square(jnp.abs(error) / tolerated)))


def _first_step(slope, y, f, t, direction, rtol, atol):
    """A length for the first step, from the norms of the value and its first and second derivative (Hairer, Norsett, Wanner, II.4)."""
    scale = atol + rtol * jnp.abs(y)
    d0, d1 = jnp.linalg.norm(y / scale), jnp.linalg.norm(f / scale)
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / jnp.where(d1 > 0, d1, 1))
    ahead = slope(y + direction * h0 * f, t + direction * h0)
    d2 = jnp.linalg.norm((ahead - f) / scale) / h0
    largest = jnp.maximum(d1, d2)
    h1 = jnp.where(largest <= 1e-15, jnp.maximum(1e-6, h0 * 1e-3), (0.01 / jnp.where(largest > 0, largest, 1)) ** (1 / _ORDER))
    return jnp.minimum(100 * h0, h1).astype(t.dtype)


def _solve(slope, rtol, atol, mxstep, hmax, y0, ts):
    f0 = slope(y0, ts[0])
    direction = jnp.where(ts[-1] < ts[0], -1, 1).astype(ts.dtype)
    h0 = jnp.clip(_first_step(slope, y0, f0, ts[0], direction, rtol, atol), 0, hmax)

    def advance(state, target):
        def unfinished(now):
            steps, (_, _, t, h, _, _) = now
            return (direction * t < direction * target) & (steps < mxstep) & (h > 0)

        def one(now):
            steps, (y, f, t, h, before, polynomial) = now
            y_next, f_next, error, middle = _step(slope, y, f, t, direction * h)
            size = _size(error, rtol, atol, y, y_next)
            good = size <= 1
            factor = jnp.clip(_SAFETY * jnp.where(size > 0, size, 1e-10) ** (-1 / _ORDER), _SHRINK, _GROW)
            factor = jnp.where(jnp.isfinite(size), jnp.where(good, jnp.maximum(factor, 1), factor), _SHRINK)
            taken = (y_next, f_next, t + direction * h, t, _polynomial(y, y_next, middle, f, f_next, direction * h))
            y, f, t_next, before, polynomial = (jnp.where(good, new, old) for new, old in zip(taken, (y, f, t, before, polynomial)))
            return steps + 1, (y, f, t_next, jnp.clip(h * factor, 0, hmax).astype(h.dtype), before, polynomial)

        _, state = lax.while_loop(unfinished, one, (0, state))
        _, _, t, _, before, polynomial = state
        share = (target - before) / jnp.where(t != before, t - before, 1)
        return state, jnp.polyval(polynomial, share.astype(y0.real.dtype))

    start = (y0, f0, ts[0], h0, ts[0], jnp.stack([jnp.zeros_like(y0)] * 4 + [y0]))
    _, ys = lax.scan(advance, start, ts[1:])
    return jnp.concatenate([y0[None], ys])


explain_missing(__name__)
