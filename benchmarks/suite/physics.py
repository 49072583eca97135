"""Programs of ocean models in float64 on one thread: equation of state, isoneutral mixing, turbulent kinetic energy.

Written from the physics: the 1980 international equation of state of sea water, slopes of neutral surfaces on a grid of
triads with tapering, and a turbulent kinetic energy closure with an implicit vertical solve.
"""

import numpy

from . import physics_loops
from .row import Row

SIZES = ((4096, "4 k"), (65536, "64 k"), (1 << 20, "1 M"), (1 << 22, "4 M"))


# --- equation of state -------------------------------------------------------------------------------------------------


def density(sqrt):
    """Density of sea water from salinity (psu), temperature (degrees Celsius) and pressure (bar)."""
    def run(s, t, p):
        root = s * sqrt(s)
        pure = 999.842594 + t * (6.793952e-2 + t * (-9.095290e-3 + t * (1.001685e-4 + t * (-1.120083e-6 + t * 6.536332e-9))))
        surface = (pure + s * (8.24493e-1 + t * (-4.0899e-3 + t * (7.6438e-5 + t * (-8.2467e-7 + t * 5.3875e-9))))
                   + root * (-5.72466e-3 + t * (1.0227e-4 - t * 1.6546e-6)) + s * s * 4.8314e-4)
        bulk = (19652.21 + t * (148.4206 + t * (-2.327105 + t * (1.360477e-2 - t * 5.155288e-5)))
                + s * (54.6746 + t * (-0.603459 + t * (1.09987e-2 - t * 6.1670e-5)))
                + root * (7.944e-2 + t * (1.6483e-2 - t * 5.3009e-4)))
        first = (3.239908 + t * (1.43713e-3 + t * (1.16092e-4 - t * 5.77905e-7))
                 + s * (2.2838e-3 + t * (-1.0981e-5 - t * 1.6078e-6)) + root * 1.91075e-4)
        second = 8.50935e-5 + t * (-6.12293e-6 + t * 5.2787e-8) + s * (-9.9348e-7 + t * (2.0816e-8 + t * 9.1697e-10))
        return surface / (1.0 - p / (bulk + p * (first + p * second)))
    return run


def water(size):
    return lambda random: (random.uniform(0.01, 40, size), random.uniform(-2, 30, size), random.uniform(0, 500, size))


# --- isoneutral mixing -------------------------------------------------------------------------------------------------


def grid(size):
    """A shape (x, y, z) of about `size` points, whose vertical size is an eighth of the horizontal."""
    depth = max(8, round((size / 64) ** (1 / 3)))
    side = max(8, round((size / depth) ** 0.5))
    return side, side, depth


def ocean(size):
    shape = grid(size)

    def inputs(random):
        depth = numpy.linspace(0, 1, shape[2])
        temperature = 20 * numpy.exp(-3 * depth) + random.standard_normal(shape)
        salinity = 35 + depth + 0.1 * random.standard_normal(shape)
        mask = (random.random(shape) > 0.1).astype(numpy.float64)
        return temperature, salinity, mask, numpy.linspace(50, 200, shape[2])
    return inputs


def mixing(xp):
    """The mixing tensor along neutral surfaces: slopes of four triads per face, tapered where they are steep."""
    steepest, width, diffusivity, small = 4e-3, 1e-3, 1000.0, 1e-20
    spacing = 1e4

    def horizontal(field, mask, axis):
        low = (slice(None, -1), slice(None)) if axis == 0 else (slice(None), slice(None, -1))
        high = (slice(1, None), slice(None)) if axis == 0 else (slice(None), slice(1, None))
        return (field[high] - field[low]) / spacing * mask[high] * mask[low]

    def taper(slope):
        return 0.5 * (1.0 + xp.tanh((steepest - xp.abs(slope)) / width))

    def run(temperature, salinity, mask, heights):
        by_temperature = -0.2 * (1.0 + 0.02 * temperature)
        by_salinity = 0.78 * (1.0 - 0.001 * salinity)
        between = 0.5 * (heights[1:] + heights[:-1])
        wet = mask[:, :, 1:] * mask[:, :, :-1]
        rise_t = (temperature[:, :, 1:] - temperature[:, :, :-1]) / between * wet
        rise_s = (salinity[:, :, 1:] - salinity[:, :, :-1]) / between * wet
        outputs = []
        for axis in (0, 1):
            across_t, across_s = horizontal(temperature, mask, axis), horizontal(salinity, mask, axis)
            along, flux_t, flux_s, squares = 0.0, 0.0, 0.0, 0.0
            for side in (0, 1):  # the column left or right of the face
                count = temperature.shape[axis] - 1
                column = (slice(side, side + count), slice(None)) if axis == 0 else (slice(None), slice(side, side + count))
                alpha, beta = by_temperature[column], by_salinity[column]
                for up in (0, 1):  # the interface above or below the point
                    inner = slice(1, -1)
                    steps = slice(1, None) if up else slice(None, -1)
                    vertical = alpha[:, :, inner] * rise_t[column][:, :, steps] + beta[:, :, inner] * rise_s[column][:, :, steps]
                    level = alpha[:, :, inner] * across_t[:, :, inner] + beta[:, :, inner] * across_s[:, :, inner]
                    slope = -level / (xp.minimum(vertical, 0.0) - small)
                    kept = taper(slope) * wet[column][:, :, steps]
                    along = along + 0.25 * diffusivity * kept
                    flux_t = flux_t + 0.25 * diffusivity * kept * slope * rise_t[column][:, :, steps]
                    flux_s = flux_s + 0.25 * diffusivity * kept * slope * rise_s[column][:, :, steps]
                    squares = squares + 0.25 * diffusivity * kept * slope * slope
            outputs += [along * across_t[:, :, 1:-1] - flux_t, along * across_s[:, :, 1:-1] - flux_s, squares]
        return tuple(outputs)
    return run


# --- turbulent kinetic energy ------------------------------------------------------------------------------------------


def turbulence_inputs(size):
    shape = grid(size)

    def inputs(random):
        energy = 1e-4 * random.random(shape) + 1e-6
        shear = 1e-4 * random.standard_normal(shape) ** 2
        stability = 1e-5 * random.standard_normal(shape) + 2e-5
        stress = 1e-4 * random.random(shape[:2])
        return energy, shear, stability, stress, numpy.linspace(5, 100, shape[2]), 1e-3 * random.standard_normal(shape)
    return inputs


def turbulence(xp, scan):
    """One step: length scale bounded by the walls, production, an implicit vertical solve, and limited transport in x.

    `scan(step, start, slices)` iterates along the vertical and returns the results of all steps, stacked along the last axis.
    """
    step_seconds, mixing_share, dissipation, least_length, spacing = 3600.0, 0.1, 0.7, 1e-8, 1e4

    def run(energy, shear, stability, stress, heights, speed):
        root = xp.sqrt(xp.maximum(energy, 0.0))
        free = 1.4142135623730951 * root / xp.sqrt(xp.maximum(stability, 1e-12))
        # A length must not grow faster than the distance from the surface or the bottom.
        down = scan(lambda held, now: (xp.minimum(held + now[1], now[0]),) * 2, free[:, :, 0] * 0 + 1e-3,
                    (free, heights + 0.0 * free))
        both = scan(lambda held, now: (xp.minimum(held + now[1], now[0]),) * 2, free[:, :, 0] * 0 + 1e-3,
                    (xp.flip(down, (2,)), xp.flip(heights + 0.0 * free, (2,))))
        length = xp.maximum(xp.flip(both, (2,)), least_length)
        viscosity = xp.minimum(10.0, mixing_share * length * root)
        prandtl = xp.clip(6.6 * stability / xp.maximum(shear, 1e-12), 1.0, 10.0)
        made = viscosity * shear - viscosity / prandtl * stability
        # Implicit diffusion: lower, main and upper diagonals of a system for each column.
        face = 0.5 * (viscosity[:, :, 1:] + viscosity[:, :, :-1]) * step_seconds / (0.5 * (heights[1:] + heights[:-1]))
        zero = xp.zeros_like(face[:, :, :1])
        above, below = xp.concatenate((zero, face), 2) / heights, xp.concatenate((face, zero), 2) / heights
        main = 1.0 + above + below + step_seconds * dissipation * root / length
        right = energy + step_seconds * made
        right = xp.concatenate((right[:, :, :1] + (stress**1.5)[:, :, None] * step_seconds / heights[0], right[:, :, 1:]), 2)

        def eliminate(held, now):
            factor, value = held
            lower, centre, upper, right = now
            pivot = 1.0 / (centre - lower * factor)
            following = (upper * pivot, (right + lower * value) * pivot)
            return following, following
        nothing = right[:, :, 0] * 0
        factors, values = scan(eliminate, (nothing, nothing), (above, main, below, right))
        solved = scan(lambda held, now: (now[1] + now[0] * held,) * 2, nothing, (xp.flip(factors, (2,)), xp.flip(values, (2,))))
        solved = xp.maximum(xp.flip(solved, (2,)), 0.0)
        # Transport in x by a flux between upwind and centred, limited by the ratio of neighbouring differences.
        change = solved[1:] - solved[:-1]
        wind = speed[1:-2]
        upstream = xp.where(wind > 0, change[:-2], change[2:])
        middle = change[1:-1]
        ratio = upstream / xp.where(xp.abs(middle) < 1e-20, 1e-20, middle)
        limiter = xp.maximum(0.0, xp.maximum(xp.minimum(1.0, 2.0 * ratio), xp.minimum(2.0, ratio)))
        courant = xp.abs(wind) * step_seconds / spacing
        flux = 0.5 * wind * (solved[2:-1] + solved[1:-2]) - 0.5 * xp.abs(wind) * ((1 - limiter) + courant * limiter) * middle
        inner = solved[2:-2] - step_seconds / spacing * (flux[1:] - flux[:-1])
        return xp.concatenate((solved[:2], inner, solved[-2:]), 0), viscosity
    return run


def jax_scan(jax):
    def scan(step, start, slices):
        moved = jax.tree_util.tree_map(lambda value: jax.numpy.moveaxis(value, 2, 0), slices)
        stacked = jax.lax.scan(step, start, moved)[1]
        return jax.tree_util.tree_map(lambda value: jax.numpy.moveaxis(value, 0, 2), stacked)
    return scan


def plain_scan(stack):
    def scan(step, start, slices):
        held, gathered = start, []
        for level in range(slices[0].shape[2]):
            held, given = step(held, tuple(value[:, :, level] for value in slices))
            gathered.append(given)
        if isinstance(gathered[0], tuple):
            return tuple(stack([given[part] for given in gathered], -1) for part in range(len(gathered[0])))
        return stack(gathered, -1)
    return scan


class TorchNames:
    """torch under the numpy names that the programs use."""

    def __init__(self, torch):
        self.torch = torch
        for name in ("sqrt", "tanh", "abs", "flip", "zeros_like", "where"):
            setattr(self, name, getattr(torch, name))
        self.concatenate = torch.cat
        self.clip = torch.clamp

    def maximum(self, a, b):
        if not self.torch.is_tensor(a):
            a, b = b, a
        return self.torch.maximum(a, b) if self.torch.is_tensor(b) else a.clamp(min=b)

    def minimum(self, a, b):
        if not self.torch.is_tensor(a):
            a, b = b, a
        return self.torch.minimum(a, b) if self.torch.is_tensor(b) else a.clamp(max=b)


def rows():
    found = []
    for size, label in SIZES:
        found.append(Row(
            f"equation of state {label}", f"{size} points f64", water(size), lambda jax: density(jax.numpy.sqrt),
            torch=lambda torch: density(torch.sqrt), numpy=lambda numpy: density(numpy.sqrt), numba=physics_loops.density,
            threads=1, wide=True, limit=("copy", 4 * 8 * size), least={"jax": 1.4, "numba": 1.0, "torch": 1.0}, tolerance=1e-12))
    for size, label in SIZES:
        found.append(Row(
            f"isoneutral mixing {label}", f"{'x'.join(map(str, grid(size)))} points f64", ocean(size),
            lambda jax: mixing(jax.numpy), torch=lambda torch: mixing(TorchNames(torch)), numpy=mixing,
            numba=physics_loops.mixing, threads=1, wide=True, least={"jax": 1.8, "numba": 1.0}, tolerance=1e-9))
    for size, label in SIZES:
        found.append(Row(
            f"turbulent energy {label}", f"{'x'.join(map(str, grid(size)))} points f64", turbulence_inputs(size),
            lambda jax: turbulence(jax.numpy, jax_scan(jax)),
            torch=lambda torch: turbulence(TorchNames(torch), plain_scan(torch.stack)),
            numpy=lambda numpy: turbulence(numpy, plain_scan(numpy.stack)), numba=physics_loops.turbulence, threads=1, wide=True,
            least={"jax": 1.3, "numba": 1.0}, tolerance=1e-9))
    return found
