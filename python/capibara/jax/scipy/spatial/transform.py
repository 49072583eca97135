"""jax.scipy.spatial.transform: rotations as unit quaternions (x, y, z, w), and interpolation between them."""
from typing import Any, NamedTuple

import numpy as np

import capibara.jax.numpy as jnp
from capibara._modules import explain_missing


def _axes_of(seq):
    """The axis numbers of a sequence, and whether it is intrinsic (about the axes of the rotated body)."""
    if not 1 <= len(seq) <= 3:
        raise ValueError(f"Expected axis specification to be a non-empty string of upto 3 characters, got {seq}")
    if not (set(seq) <= set("xyz") or set(seq) <= set("XYZ")):
        raise ValueError(f"Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], got {seq}")
    if any(first == second for first, second in zip(seq, seq[1:])):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return ["xyz".index(axis) for axis in seq.lower()], seq.isupper()


def _unit(quat):
    return quat / jnp.linalg.norm(quat, axis=-1, keepdims=True)


def _compose(p, q):
    """The quaternion of q's rotation followed by p's."""
    vector = p[..., 3:] * q[..., :3] + q[..., 3:] * p[..., :3] + jnp.cross(p[..., :3], q[..., :3])
    return jnp.concatenate([vector, p[..., 3:] * q[..., 3:] - jnp.sum(p[..., :3] * q[..., :3], -1, keepdims=True)], -1)


def _about(axis, angle):
    """The quaternion of a rotation about one axis of the coordinates."""
    parts = [jnp.zeros_like(angle)] * 3 + [jnp.cos(angle / 2)]
    parts[axis] = jnp.sin(angle / 2)
    return jnp.stack(parts, -1)


def _wrapped(angle):
    """An angle in [-pi, pi)."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


class Rotation(NamedTuple):
    """One rotation, or several along the first axis of `quat`."""
    quat: Any

    @classmethod
    def concatenate(cls, rotations):
        """Concatenates several sequences of rotations."""
        return cls(jnp.concatenate([rotation.quat for rotation in rotations]))

    @classmethod
    def from_euler(cls, seq, angles, degrees=False):
        """Successive rotations about one to three axes: fixed ones ('xyz') or those of the rotated body ('XYZ')."""
        axes, of_body = _axes_of(seq)
        angles = jnp.atleast_1d(angles)
        angles = jnp.deg2rad(angles) if degrees else angles * 1.
        total = _about(axes[0], angles[..., 0])
        for i, axis in enumerate(axes[1:], 1):
            turn = _about(axis, angles[..., i])
            total = _compose(total, turn) if of_body else _compose(turn, total)
        return cls(total)

    @classmethod
    def from_matrix(cls, matrix):
        """From rotation matrices [..., 3, 3]."""
        m = jnp.asarray(matrix)
        diagonal = jnp.diagonal(m, axis1=-2, axis2=-1)
        trace = diagonal.sum(-1)
        candidates = []  # one for each of x, y, z and w; the largest component loses the fewest digits
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            parts = [None] * 4
            parts[i] = 1 - trace + 2 * m[..., i, i]
            parts[j] = m[..., j, i] + m[..., i, j]
            parts[k] = m[..., k, i] + m[..., i, k]
            parts[3] = m[..., k, j] - m[..., j, k]
            candidates.append(jnp.stack(parts, -1))
        candidates.append(jnp.stack([m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1], 1 + trace], -1))
        choice = jnp.argmax(jnp.concatenate([diagonal, trace[..., None]], -1), -1)
        return cls(_unit(jnp.take_along_axis(jnp.stack(candidates, -2), choice[..., None, None], -2)[..., 0, :]))

    @classmethod
    def from_mrp(cls, mrp):
        """From modified Rodrigues parameters: the axis times the tangent of a quarter of the angle."""
        square = jnp.sum(mrp * mrp, -1, keepdims=True)
        return cls(jnp.concatenate([2 * mrp, 1 - square], -1) / (1 + square))

    @classmethod
    def from_quat(cls, quat):
        """From quaternions (x, y, z, w) of any norm."""
        return cls(_unit(quat))

    @classmethod
    def from_rotvec(cls, rotvec, degrees=False):
        """From rotation vectors: the axis times the angle."""
        rotvec = jnp.deg2rad(rotvec) if degrees else jnp.asarray(rotvec)
        angle = jnp.linalg.norm(rotvec, axis=-1, keepdims=True)
        square = angle * angle
        small = angle <= 1e-3
        series = 0.5 - square / 48 + square * square / 3840
        scale = jnp.where(small, series, jnp.sin(angle / 2) / jnp.where(small, 1, angle))
        return cls(jnp.concatenate([scale * rotvec, jnp.cos(angle / 2)], -1))

    @classmethod
    def identity(cls, num=None, dtype=float):
        """The identity rotation."""
        if num is not None:
            raise NotImplementedError("Rotation.identity: several rotations at once are not there, as in jax; stack the one")
        return cls(jnp.array([0., 0., 0., 1.], dtype=dtype))

    @classmethod
    def random(cls, random_key, num=None):
        """Not implemented, as in jax."""
        raise NotImplementedError("Rotation.random: make one with Rotation.from_quat(jax.random.normal(key, (4,)))")

    def __getitem__(self, indexer):
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])

    def __len__(self):
        if self.single:
            raise TypeError("Single rotation has no len().")
        return self.quat.shape[0]

    def __mul__(self, other):
        """The rotation of `other` followed by this one."""
        return Rotation.from_quat(_compose(self.quat, other.quat))

    def apply(self, vectors, inverse=False):
        """Rotates vectors [..., 3]."""
        matrix = self.as_matrix()
        matrix = jnp.where(inverse, jnp.swapaxes(matrix, -1, -2), matrix)
        return (matrix @ jnp.asarray(vectors)[..., None])[..., 0]

    def as_euler(self, seq, degrees=False):
        """The three angles about the axes of `seq` that compose this rotation."""
        if len(seq) != 3:
            raise ValueError(f"Expected 3 axes, got {seq}.")
        (i, j, k), of_body = _axes_of(seq)
        if of_body:
            i, k = k, i
        symmetric = i == k  # proper Euler angles, such as 'zxz'
        if symmetric:
            k = 3 - i - j
        sign = (i - j) * (j - k) * (k - i) // 2
        parts = [self.quat[..., n] for n in (0, 1, 2, 3)]
        if symmetric:
            a, b, c, d = parts[3], parts[i], parts[j], parts[k] * sign
        else:
            a, b = parts[3] - parts[j], parts[i] + parts[k] * sign
            c, d = parts[j] + parts[3], parts[k] * sign - parts[i]
        middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
        # If the first and third axis coincide, only the sum or difference of their angles is determined: the third is set to zero.
        at_zero, at_pi = jnp.abs(middle) <= 1e-7, jnp.abs(middle - np.pi) <= 1e-7
        half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
        regular = ~(at_zero | at_pi)
        outer, inner = (half_sum - half_difference, half_sum + half_difference)
        first, third = (inner, outer) if of_body else (outer, inner)
        alone = jnp.where(at_zero, 2 * half_sum, 2 * half_difference * (1 if of_body else -1))
        first = jnp.where(regular, first, alone)
        third = jnp.where(regular, third, jnp.zeros_like(third))
        if not symmetric:
            if of_body:
                first = first * sign
            else:
                third = third * sign
            middle = middle - np.pi / 2
        angles = jnp.stack([_wrapped(first), _wrapped(middle), _wrapped(third)], -1)
        return jnp.rad2deg(angles) if degrees else angles

    def as_matrix(self):
        """Rotation matrices [..., 3, 3]."""
        x, y, z, w = (self.quat[..., n] for n in range(4))
        rows = [[x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w]]
        return jnp.stack([jnp.stack(row, -1) for row in rows], -2)

    def as_mrp(self):
        """Modified Rodrigues parameters, of the quaternion with w >= 0."""
        sign = jnp.where(self.quat[..., 3:] < 0, -1., 1.)
        return sign * self.quat[..., :3] / (1 + sign * self.quat[..., 3:])

    def as_rotvec(self, degrees=False):
        """Rotation vectors: the axis times the angle, which is at most pi."""
        quat = jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        angle = 2 * jnp.arctan2(jnp.linalg.norm(quat[..., :3], axis=-1, keepdims=True), quat[..., 3:])
        square = angle * angle
        small = angle <= 1e-3
        scale = jnp.where(small, 2 + square / 12 + 7 * square * square / 2880, angle / jnp.sin(jnp.where(small, 1, angle) / 2))
        return (jnp.rad2deg(scale) if degrees else scale) * quat[..., :3]

    def as_quat(self, canonical=False, scalar_first=False):
        """Quaternions (x, y, z, w), or (w, x, y, z); canonical: of the two equivalent ones, the one with w >= 0."""
        quat = self.quat
        if canonical:
            x, y, z, w = (quat[..., n:n + 1] for n in range(4))
            turn = (w < 0) | ((w == 0) & ((x < 0) | ((x == 0) & ((y < 0) | ((y == 0) & (z < 0))))))
            quat = jnp.where(turn, -quat, quat)
        return jnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def inv(self):
        """The inverse rotation."""
        return Rotation(jnp.concatenate([-self.quat[..., :3], self.quat[..., 3:]], -1))

    def magnitude(self):
        """The angles, in [0, pi]."""
        return 2 * jnp.arctan2(jnp.linalg.norm(self.quat[..., :3], axis=-1), jnp.abs(self.quat[..., 3]))

    def mean(self, weights=None):
        """The mean rotation."""
        count = len(self)
        weights = jnp.ones(count, self.quat.dtype) if weights is None else jnp.asarray(weights, dtype=self.quat.dtype)
        if weights.ndim != 1:
            raise ValueError(f"Expected `weights` to be 1 dimensional, got shape {weights.shape}.")
        if weights.shape[0] != count:
            raise ValueError("Expected `weights` to have number of values equal to number of rotations, "
                             f"got {weights.shape[0]} values and {count} rotations.")
        return Rotation(jnp.linalg.eigh((weights[None] * self.quat.T) @ self.quat)[1][:, -1])

    @property
    def single(self):
        """True for one rotation, False for a sequence."""
        return self.quat.ndim == 1


class Slerp(NamedTuple):
    """Interpolation between rotations at given times: `Slerp.init(times, rotations)(t)`."""
    times: Any
    timedelta: Any
    rotations: Any
    rotvecs: Any

    @classmethod
    def init(cls, times, rotations):
        """From at least two rotations and as many increasing times."""
        if not isinstance(rotations, Rotation):
            raise TypeError("`rotations` must be a `Rotation` instance.")
        if rotations.single or len(rotations) == 1:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        times = jnp.asarray(times, dtype=rotations.quat.dtype)
        if times.ndim != 1:
            raise ValueError(f"Expected times to be specified in a 1 dimensional array, got {times.ndim} dimensions.")
        if times.shape[0] != len(rotations):
            raise ValueError("Expected number of rotations to be equal to number of timestamps given, "
                             f"got {len(rotations)} rotations and {times.shape[0]} timestamps.")
        before, after = rotations[:-1], rotations[1:]
        return cls(times, jnp.diff(times), before, (before.inv() * after).as_rotvec())

    def __call__(self, times):
        times = jnp.asarray(times, dtype=self.times.dtype)
        if times.ndim > 1:
            raise ValueError("`times` must be at most 1-dimensional.")
        moments = jnp.atleast_1d(times)
        interval = jnp.maximum(jnp.searchsorted(self.times, moments) - 1, 0)
        fraction = (moments - self.times[interval]) / self.timedelta[interval]
        result = self.rotations[interval] * Rotation.from_rotvec(self.rotvecs[interval] * fraction[:, None])
        return result if times.ndim else result[0]


explain_missing(__name__)
