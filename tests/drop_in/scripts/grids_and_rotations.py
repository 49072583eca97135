"""Interpolation on grids, rotations of space as quaternions, and Taylor coefficients along curves."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.jet import jet
from jax.scipy.interpolate import RegularGridInterpolator
from jax.scipy.spatial.transform import Rotation, Slerp


def refusal(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "none"


key = jax.random.key(0)
grid = (jnp.array([0.0, 1, 3]), jnp.arange(4.0), jnp.array([-1.0, 0, 2]))
values = jax.random.normal(key, (3, 4, 3, 2))
points = jax.random.uniform(key, (5, 3), minval=-1, maxval=3)
for method in ("linear", "nearest"):
    for fill in (np.nan, None, 7.0):
        print(method, fill, RegularGridInterpolator(grid, values, method, fill_value=fill)(points).tolist())
at = RegularGridInterpolator(grid, values)
print(jax.jit(lambda at, points: at(points))(at, points).tolist())
print(jax.grad(lambda points: jnp.nansum(at(points)))(points).tolist())
print(at(tuple(points.T)).tolist(), at(jnp.array([0.5, 0.5, 0.5])).tolist(), at(points[:, None]).shape, at(points, method="nearest").shape)
print(RegularGridInterpolator((jnp.arange(3),), jnp.arange(3))(jnp.array([[0.5]])))
print([refusal(call) for call in (
    lambda: RegularGridInterpolator(grid, values, "spline"), lambda: RegularGridInterpolator(grid, values, bounds_error=True),
    lambda: RegularGridInterpolator(grid, jnp.ones(3)), lambda: RegularGridInterpolator(grid, values, fill_value=1j),
    lambda: at(jnp.ones((2, 2))))])

angles = jnp.array([[0.3, 0.2, -0.5], [1.0, -2.0, 0.4], [3.0, 0.1, 0.0]])
for axes in ("xyz", "XYZ", "zxz", "ZXZ", "zyx", "YXZ", "xy", "Z"):
    turn = Rotation.from_euler(axes, angles[:, :len(axes)])
    print(axes, turn.as_quat().tolist(), turn.as_matrix().tolist(), turn.as_rotvec().tolist(), turn.as_mrp().tolist())
    print(turn.inv().as_quat(canonical=True).tolist(), turn.magnitude().tolist(), turn.apply(angles).tolist(), len(turn))
    print(turn.apply(angles, inverse=True).tolist(), turn[0].apply(angles[0]).tolist(), turn[1].single)
    if len(axes) == 3:
        print(turn.as_euler(axes).tolist())
turn = Rotation.from_euler("xyz", angles * 40, degrees=True)
for other in ((turn * turn), Rotation.from_matrix(turn.as_matrix()), Rotation.from_rotvec(turn.as_rotvec()),
              Rotation.from_mrp(turn.as_mrp()), Rotation.concatenate([turn, turn]), Rotation.identity()):
    print(other.as_quat(scalar_first=True).tolist())
print(turn.as_euler("zyx", degrees=True).tolist(), Rotation.from_rotvec(angles, degrees=True).as_rotvec(degrees=True).tolist())
print(jnp.abs(turn.mean().as_quat()).tolist(), jnp.abs(turn.mean(jnp.arange(3.0)).as_quat()).tolist())
between = Slerp.init([0, 1, 2], turn)
print(between([0, 0.5, 1.0, 1.7]).as_euler("xyz").tolist(), between(0.3).as_quat().tolist())
print(jax.jit(lambda turn: turn.apply(angles))(turn).tolist())
print([refusal(call) for call in (
    lambda: Rotation.from_euler("xq", angles), lambda: Rotation.from_euler("xx", angles), lambda: Rotation.from_euler("", angles),
    lambda: Rotation.from_euler("xY", angles), lambda: turn.as_euler("xy"), lambda: len(turn[0]), lambda: turn[0][0],
    lambda: turn.mean(jnp.ones(2)), lambda: Slerp.init([0], turn), lambda: between(jnp.ones((2, 2))))])

print(jet(jnp.sin, (0.125,), ((0.75, 3.0),)))
print(jet(lambda x, y: {"product": x * y, "sum": jnp.exp(x) @ y}, (jnp.ones(3), jnp.arange(3.0)),
          ((jnp.ones(3), jnp.ones(3) * 2, jnp.zeros(3)), (jnp.ones(3), jnp.zeros(3), jnp.ones(3)))))
print(jet(jnp.tanh, (0.3,), ((1.0, 0.0, 0.0, 0.0, 0.0),), factorial_scaled=False))
print(jax.jit(lambda x: jet(lambda x: jnp.log(x) ** 2 / x, (x,), ([1.0, 0.0, 0.0],)))(2.0))
print(refusal(lambda: jet(jnp.sin, (1.0, 2.0), ((1.0,), (1.0, 2.0)))), refusal(lambda: jet(jnp.sin, ([1.0],), ((1.0,),))))
