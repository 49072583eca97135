"""Line search for the strong Wolfe conditions: brackets the step length by doubling, then narrows it by cubic interpolation."""
from typing import Any, NamedTuple

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import lax


class _Point(NamedTuple):
    a: Any       # the step length
    f: Any       # the value there
    slope: Any
    g: Any       # the gradient


class _Search(NamedTuple):
    low: _Point   # the best point so far, one end of the bracket
    high: _Point  # the other end
    trial: Any    # the next step length
    narrowing: Any
    done: Any
    evaluations: Any


class LineSearchResult(NamedTuple):
    a: Any
    f: Any
    g: Any
    failed: Any
    evaluations: Any
    wolfe: Any  # both conditions hold


def dot(a, b):
    """The inner product of vectors as those of real numbers: of both parts, if they are complex."""
    return jnp.real(jnp.vdot(a, b))


def value_and_ascent(fun):
    """A function's value and the direction in which it grows fastest: the gradient, which jax defines conjugated for complex vectors."""
    def evaluated(x):
        f, g = jax.value_and_grad(fun)(x)
        return f, jnp.conj(g)
    return evaluated


def line_search(value_and_gradient, direction, f, g, f_before, maxiter, c1=1e-4, c2=0.9, bracketing=None):
    """A step length a >= 0; `value_and_gradient(a)` is the value and gradient of the function at x + a * direction.

    c1 and c2: constants of the sufficient decrease and curvature conditions. Of at most 2 * maxiter evaluations, `bracketing` may be
    spent until a bracket is found.
    """
    slope = dot(g, direction)
    start = _Point(jnp.zeros_like(f), f, slope, g)
    guess = 1.01 * 2 * (f - f_before) / slope
    guess = jnp.where(jnp.isfinite(guess) & (guess > 0) & (guess < 1), guess, 1).astype(f.dtype)

    def step(search):
        trial_f, trial_g = value_and_gradient(search.trial)
        point = _Point(search.trial, trial_f, dot(trial_g, direction), trial_g)
        low, high = search.low, search.high
        too_high = ~(trial_f <= f + c1 * point.a * slope) | (trial_f >= low.f) & (search.narrowing | (search.evaluations > 0))
        flat = jnp.abs(point.slope) <= -c2 * slope
        done = ~too_high & flat
        # Past the minimum: the bracket's other end is the previous best point.
        past = jnp.where(search.narrowing, point.slope * (high.a - low.a) >= 0, point.slope >= 0)
        new_high = _choose(too_high, point, _choose(past, low, high))
        new_low = _choose(too_high, low, point)
        narrowing = search.narrowing | too_high | past
        trial = jnp.where(narrowing, _between(new_low, new_high), 2 * point.a)
        return _Search(new_low, new_high, trial, narrowing, done, search.evaluations + 1)

    def unfinished(search):
        in_bracket = search.narrowing if bracketing is not None else True
        return ~search.done & (search.evaluations < 2 * maxiter) & (in_bracket | (search.evaluations < (bracketing or 0)))

    first = _Search(start, start, guess, jnp.array(False), jnp.array(False), jnp.int32(0))
    end = lax.while_loop(unfinished, step, first)
    lowered = end.low.f < f  # fails the curvature condition, but is lower: better than failing
    return LineSearchResult(end.low.a, end.low.f, end.low.g, ~end.done & ~lowered, end.evaluations, end.done)


def _choose(condition, a, b):
    return _Point(*(jnp.where(condition, x, y) for x, y in zip(a, b)))


def _between(low, high):
    """The minimum of the cubic through both points with their derivatives; the middle if it is too close to an end."""
    width = high.a - low.a
    d = low.slope + high.slope - 3 * (high.f - low.f) / jnp.where(width != 0, width, 1)
    root = jnp.sqrt(jnp.maximum(d * d - low.slope * high.slope, 0)) * jnp.sign(width)
    denominator = high.slope - low.slope + 2 * root
    share = 1 - (high.slope + root - d) / jnp.where(denominator != 0, denominator, 1)
    good = jnp.isfinite(share) & (share > 0.1) & (share < 0.9)
    return low.a + width * jnp.where(good, share, 0.5)
