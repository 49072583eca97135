"""diffrax, lineax and optimistix: differential equations, linear solvers, roots and least squares."""

import diffrax
import jax
import jax.numpy as jnp
import lineax
import numpy as np
import optimistix


def decay(t, y, rate):
    return -y * rate


term, controller = diffrax.ODETerm(decay), diffrax.PIDController(rtol=1e-5, atol=1e-5)
saved = diffrax.SaveAt(ts=jnp.linspace(0, 3, 5))
print(np.asarray(diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 3.0, 0.1, jnp.array([2.0, 3.0]), args=1.5, saveat=saved,
                                     stepsize_controller=controller).ys))
stiff = diffrax.ODETerm(lambda t, y, args: -50 * (y - jnp.cos(t)))
print(np.asarray(diffrax.diffeqsolve(stiff, diffrax.Kvaerno5(), 0.0, 1.5, 0.01, jnp.array([0.0]), stepsize_controller=controller).ys))

a = jax.random.normal(jax.random.key(0), (5, 5))
a, b = a @ a.T + jnp.eye(5), jnp.arange(5.0)
operator = lineax.MatrixLinearOperator(a, lineax.positive_semidefinite_tag)
for solver in (lineax.AutoLinearSolver(well_posed=None), lineax.CG(1e-6, 1e-6), lineax.GMRES(1e-6, 1e-6), lineax.BiCGStab(1e-6, 1e-6),
               lineax.QR(), lineax.SVD(), lineax.LU(), lineax.Cholesky()):
    print(type(solver).__name__, np.asarray(lineax.linear_solve(operator, b, solver).value))
print(np.asarray(optimistix.root_find(lambda y, args: jnp.tanh(y) - 0.3, optimistix.Newton(1e-6, 1e-6), jnp.array([0.1, 0.2])).value))
print(np.asarray(optimistix.least_squares(lambda y, args: jnp.array([y[0] - 1, y[1] * 2 - 3, y[0] * y[1] - 1.5]),
                                          optimistix.LevenbergMarquardt(1e-6, 1e-6), jnp.array([0.0, 0.0])).value))
