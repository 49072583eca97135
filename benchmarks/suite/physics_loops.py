"""The programs of physics.py as loops over points, for numba to compile."""

import math

import numpy


def density(numba):
    @numba.njit(fastmath=False)
    def run(salinity, temperature, pressure):
        result = numpy.empty_like(salinity)
        for i in range(salinity.size):
            s, t, p = salinity[i], temperature[i], pressure[i]
            root = s * math.sqrt(s)
            pure = 999.842594 + t * (6.793952e-2 + t * (-9.095290e-3 + t * (1.001685e-4 + t * (-1.120083e-6 + t * 6.536332e-9))))
            surface = (pure + s * (8.24493e-1 + t * (-4.0899e-3 + t * (7.6438e-5 + t * (-8.2467e-7 + t * 5.3875e-9))))
                       + root * (-5.72466e-3 + t * (1.0227e-4 - t * 1.6546e-6)) + s * s * 4.8314e-4)
            bulk = (19652.21 + t * (148.4206 + t * (-2.327105 + t * (1.360477e-2 - t * 5.155288e-5)))
                    + s * (54.6746 + t * (-0.603459 + t * (1.09987e-2 - t * 6.1670e-5)))
                    + root * (7.944e-2 + t * (1.6483e-2 - t * 5.3009e-4)))
            first = (3.239908 + t * (1.43713e-3 + t * (1.16092e-4 - t * 5.77905e-7))
                     + s * (2.2838e-3 + t * (-1.0981e-5 - t * 1.6078e-6)) + root * 1.91075e-4)
            second = 8.50935e-5 + t * (-6.12293e-6 + t * 5.2787e-8) + s * (-9.9348e-7 + t * (2.0816e-8 + t * 9.1697e-10))
            result[i] = surface / (1.0 - p / (bulk + p * (first + p * second)))
        return result
    return run


def mixing(numba):
    @numba.njit(fastmath=False)
    def faces(temperature, salinity, mask, heights, axis):
        steepest, width, diffusivity, small, spacing = 4e-3, 1e-3, 1000.0, 1e-20, 1e4
        nx, ny, nz = temperature.shape
        dx, dy = (1, 0) if axis == 0 else (0, 1)
        shape = (nx - dx, ny - dy, nz - 2)
        flow_t, flow_s, tensor = numpy.empty(shape), numpy.empty(shape), numpy.empty(shape)
        for i in range(shape[0]):
            for j in range(shape[1]):
                for k in range(1, nz - 1):
                    open_face = mask[i + dx, j + dy, k] * mask[i, j, k]
                    across_t = (temperature[i + dx, j + dy, k] - temperature[i, j, k]) / spacing * open_face
                    across_s = (salinity[i + dx, j + dy, k] - salinity[i, j, k]) / spacing * open_face
                    along = flux_t = flux_s = squares = 0.0
                    for side in range(2):
                        a, b = i + side * dx, j + side * dy
                        alpha = -0.2 * (1.0 + 0.02 * temperature[a, b, k])
                        beta = 0.78 * (1.0 - 0.001 * salinity[a, b, k])
                        level = alpha * across_t + beta * across_s
                        for up in range(2):
                            low = k - 1 + up
                            wet = mask[a, b, low + 1] * mask[a, b, low]
                            between = 0.5 * (heights[low + 1] + heights[low])
                            rise_t = (temperature[a, b, low + 1] - temperature[a, b, low]) / between * wet
                            rise_s = (salinity[a, b, low + 1] - salinity[a, b, low]) / between * wet
                            slope = -level / (min(alpha * rise_t + beta * rise_s, 0.0) - small)
                            kept = 0.5 * (1.0 + math.tanh((steepest - abs(slope)) / width)) * wet
                            along += 0.25 * diffusivity * kept
                            flux_t += 0.25 * diffusivity * kept * slope * rise_t
                            flux_s += 0.25 * diffusivity * kept * slope * rise_s
                            squares += 0.25 * diffusivity * kept * slope * slope
                    flow_t[i, j, k - 1] = along * across_t - flux_t
                    flow_s[i, j, k - 1] = along * across_s - flux_s
                    tensor[i, j, k - 1] = squares
        return flow_t, flow_s, tensor

    def run(temperature, salinity, mask, heights):
        return faces(temperature, salinity, mask, heights, 0) + faces(temperature, salinity, mask, heights, 1)
    return run


def turbulence(numba):
    @numba.njit(fastmath=False)
    def columns(energy, shear, stability, stress, heights):
        step_seconds, mixing_share, dissipation, least_length = 3600.0, 0.1, 0.7, 1e-8
        nx, ny, nz = energy.shape
        solved, viscosity = numpy.empty_like(energy), numpy.empty_like(energy)
        length, factors, values = numpy.empty(nz), numpy.empty(nz), numpy.empty(nz)
        for i in range(nx):
            for j in range(ny):
                held = 1e-3
                for k in range(nz):
                    root = math.sqrt(max(energy[i, j, k], 0.0))
                    free = 1.4142135623730951 * root / math.sqrt(max(stability[i, j, k], 1e-12))
                    held = min(held + heights[k], free)
                    length[k] = held
                held = 1e-3
                for k in range(nz - 1, -1, -1):
                    held = min(held + heights[k], length[k])
                    length[k] = max(held, least_length)
                    viscosity[i, j, k] = min(10.0, mixing_share * length[k] * math.sqrt(max(energy[i, j, k], 0.0)))
                factor = value = 0.0
                above = 0.0
                for k in range(nz):
                    thick, now = heights[k], viscosity[i, j, k]
                    face = 0.0
                    if k + 1 < nz:
                        face = 0.5 * (viscosity[i, j, k + 1] + now) * step_seconds / (0.5 * (heights[k + 1] + thick))
                    prandtl = min(max(6.6 * stability[i, j, k] / max(shear[i, j, k], 1e-12), 1.0), 10.0)
                    made = now * shear[i, j, k] - now / prandtl * stability[i, j, k]
                    root = math.sqrt(max(energy[i, j, k], 0.0))
                    lower, upper = above / thick, face / thick
                    main = 1.0 + lower + upper + step_seconds * dissipation * root / length[k]
                    right = energy[i, j, k] + step_seconds * made
                    if k == 0:
                        right += stress[i, j] ** 1.5 * step_seconds / thick
                    pivot = 1.0 / (main - lower * factor)
                    factor, value = upper * pivot, (right + lower * value) * pivot
                    factors[k], values[k] = factor, value
                    above = face
                held = 0.0
                for k in range(nz - 1, -1, -1):
                    held = values[k] + factors[k] * held
                    solved[i, j, k] = max(held, 0.0)
        return solved, viscosity

    @numba.njit(fastmath=False)
    def transport(solved, speed):
        step_seconds, spacing = 3600.0, 1e4
        nx, ny, nz = solved.shape
        flux = numpy.empty((nx - 3, ny, nz))
        for i in range(nx - 3):
            for j in range(ny):
                for k in range(nz):
                    wind = speed[i + 1, j, k]
                    middle = solved[i + 2, j, k] - solved[i + 1, j, k]
                    if wind > 0:
                        upstream = solved[i + 1, j, k] - solved[i, j, k]
                    else:
                        upstream = solved[i + 3, j, k] - solved[i + 2, j, k]
                    ratio = upstream / (1e-20 if abs(middle) < 1e-20 else middle)
                    limiter = max(0.0, max(min(1.0, 2.0 * ratio), min(2.0, ratio)))
                    courant = abs(wind) * step_seconds / spacing
                    flux[i, j, k] = (0.5 * wind * (solved[i + 2, j, k] + solved[i + 1, j, k])
                                     - 0.5 * abs(wind) * ((1 - limiter) + courant * limiter) * middle)
        result = solved.copy()
        for i in range(2, nx - 2):
            for j in range(ny):
                for k in range(nz):
                    result[i, j, k] = solved[i, j, k] - step_seconds / spacing * (flux[i - 1, j, k] - flux[i - 2, j, k])
        return result

    def run(energy, shear, stability, stress, heights, speed):
        solved, viscosity = columns(energy, shear, stability, stress, heights)
        return transport(solved, speed), viscosity
    return run
