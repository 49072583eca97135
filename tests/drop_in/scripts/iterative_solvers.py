"""Linear systems solved by iteration, for matrices and functions on pytrees, and minima of functions."""
import jax
import jax.numpy as jnp
import jax.scipy.optimize
import numpy as np
from jax.scipy.sparse.linalg import bicgstab, cg, gmres

rng = np.random.RandomState(0)
square = rng.randn(6, 6).astype(np.float32)
positive = square @ square.T + np.eye(6, dtype=np.float32)
general = square + 4 * np.eye(6, dtype=np.float32)
rhs = rng.randn(6).astype(np.float32)
near = np.linalg.inv(general + 0.1 * np.eye(6, dtype=np.float32)).astype(np.float32)

print("cg", cg(positive, rhs)[0], jax.jit(cg)(positive, rhs)[0], cg(positive, rhs, maxiter=2)[0])
print("bicgstab", bicgstab(general, rhs, tol=1e-6)[0], bicgstab(general, rhs, M=near, maxiter=2)[0])
for method in ("batched", "incremental"):
    x, info = gmres(general, rhs, tol=1e-6, solve_method=method)
    print("gmres", method, x, int(info), gmres(general, rhs, restart=2, maxiter=1, solve_method=method)[0])
complex_matrix = (general + 1j * square.T).astype(np.complex64)
print("complex", bicgstab(complex_matrix, rhs.astype(np.complex64), tol=1e-6)[0], gmres(complex_matrix, rhs.astype(np.complex64), tol=1e-6)[0])
pair = lambda x: {"a": x["a"] + 0.5 * x["b"], "b": 0.5 * x["a"] + x["b"]}  # noqa: E731
for solve in (cg, bicgstab, gmres):
    found = solve(pair, {"a": 1.0, "b": -4.0})[0]
    print({name: round(float(value), 4) for name, value in found.items()})
    print(jax.grad(lambda b: solve(jnp.asarray(positive), b, tol=1e-6)[0].sum())(jnp.asarray(rhs)))
    print(jax.vmap(lambda b: solve(jnp.asarray(positive), b, tol=1e-6)[0])(jnp.stack([rhs, 2 * rhs])))


def rosenbrock(x):
    return jnp.sum(100.0 * jnp.diff(x) ** 2 + (1.0 - x[:-1]) ** 2)


def himmelblau(p):
    return (p[0] ** 2 + p[1] - 11.0) ** 2 + (p[0] + p[1] ** 2 - 7.0) ** 2


for function, start in ((rosenbrock, jnp.zeros(2)), (himmelblau, jnp.ones(2)), (himmelblau, jnp.array([92.0, 0.001]))):
    result = jax.scipy.optimize.minimize(function, start, method="BFGS")
    print(function.__name__, np.round(result.x, 3), bool(result.success) or float(jnp.abs(result.jac).max()) < 1e-2)
batch = jax.jit(jax.vmap(lambda x: jax.scipy.optimize.minimize(himmelblau, x, method="BFGS").x))
print(np.round(batch(jnp.array([[1.0, 1.0], [-3.0, 3.0]])), 3))
limited = "l-bfgs-experimental-do-not-rely-on-this"
chain = (lambda x: jnp.sum(jnp.cosh(x - jnp.arange(6.0))), jnp.ones(6))
for function, start in ((rosenbrock, jnp.zeros(2)), (himmelblau, jnp.ones(2)), chain):
    result = jax.scipy.optimize.minimize(function, start, method=limited, tol=1e-3, options=dict(maxcor=4))
    print((jnp.round(result.x, 2) + 0.0).tolist(), bool(result.success), int(result.status), result.hess_inv)
print(jnp.round(jax.jit(lambda x: jax.scipy.optimize.minimize(himmelblau, x, method=limited, tol=1e-3).x)(jnp.ones(2)), 2).tolist())
print(int(jax.scipy.optimize.minimize(rosenbrock, jnp.zeros(2), method=limited, options=dict(maxiter=0)).status))
