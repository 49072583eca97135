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


def final(rate, **options):
    return diffrax.diffeqsolve(term, diffrax.Dopri5(), 0.0, 1.0, 0.1, jnp.array([2.0]), args=rate, **options).ys[-1, 0]


adjoints = (diffrax.RecursiveCheckpointAdjoint(), diffrax.DirectAdjoint(), diffrax.BacksolveAdjoint())
print("adjoints", [jax.grad(lambda rate: final(rate, adjoint=adjoint))(1.5).item() for adjoint in adjoints])
print("forward", jax.jvp(lambda rate: final(rate, adjoint=diffrax.ForwardMode()), (1.5,), (1.0,)))


def solved(a, b, solver=lineax.AutoLinearSolver(well_posed=None)):
    return jnp.sum(lineax.linear_solve(lineax.MatrixLinearOperator(a), b, solver).value ** 2)


print("gradients", jax.jit(jax.grad(solved, (0, 1)))(a, b), jax.jvp(solved, (a, b), (a, b)))
print("batched", jax.vmap(jax.grad(solved, 1), (None, 0))(a, jnp.stack([b, 2 * b])))
print("conjugate", jax.grad(lambda b: jnp.sum(lineax.linear_solve(operator, b, lineax.CG(1e-7, 1e-7)).value))(b))
print("least squares", jax.grad(lambda a: jnp.sum(lineax.linear_solve(lineax.MatrixLinearOperator(a), b, lineax.QR()).value))(a[:, :3]))
newton = optimistix.Newton(1e-6, 1e-6)
print("implicit", jax.grad(lambda c: optimistix.root_find(lambda y, c: jnp.tanh(y) - c, newton, jnp.array(0.1), args=c).value)(0.3))
