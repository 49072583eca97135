"""Short programs of libraries whose loops use primitives of their own: (function, arguments) by name.

They `import jax`: under `python -m capibara` that is capibara, otherwise jax.
"""

import functools

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", False)


def programs(names=None):
    """{name: maker of (function, arguments)} for the libraries that are installed."""
    every = {name: maker for family in (equinox_loops, lineax_loops, diffrax_loops, optimistix_loops, dynamiqs_loops)
             for name, maker in _installed(family).items()}
    return {name: functools.partial(_on_leaves, maker) for name, maker in every.items() if not names or any(part in name for part in names)}


def _on_leaves(maker):
    """A program on arrays only: flattening a library's own trees would also run Python."""
    function, arguments = maker()
    leaves, tree = jax.tree.flatten(arguments)
    return lambda *leaves: jax.tree.leaves(function(*jax.tree.unflatten(tree, leaves))), tuple(leaves)


def _installed(family):
    try:
        return family()
    except ImportError:
        return {}


# ---- equinox ----------------------------------------------------------------------------------------------------------


def equinox_loops():
    def plain(kind):
        def loop(x):
            return eqxi.while_loop(lambda c: c[0] < 1000, lambda c: (c[0] + 1, c[1] * 1.001), (0, x), kind=kind, max_steps=4096)
        return loop, (jnp.ones(2),)

    def buffer(kind, size, steps):
        def loop(x):
            def body(carry):
                i, y, kept = carry
                return i + 1, jnp.sin(y), kept.at[i].set(y)
            start = 0, x, jnp.zeros((size,) + x.shape)
            return eqxi.while_loop(lambda c: c[0] < steps, body, start, buffers=lambda c: c[2], kind=kind, max_steps=size)
        return loop, (jnp.ones(4),)

    def gradient(kind):
        loop, arguments = buffer(kind, 256, 200)
        return jax.grad(lambda x: jnp.sum(loop(x)[2])), arguments

    def batched(kind):
        def loop(n, x):
            return eqxi.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.cos(c[1])), (0, x), kind=kind, max_steps=512)
        return jax.vmap(loop), (jnp.arange(64) * 4, jnp.ones((64, 8)))

    def checked():
        def step(i, x):
            return eqx.error_if(x * 1.001, x[0] < 0, "negative")
        return lambda x: jax.lax.fori_loop(0, 1000, step, x), (jnp.ones(2),)

    def markers():
        def step(i, x):
            return jnp.where(eqxi.unvmap_any(x > 0), eqxi.nonbatchable(x) * 1.001, x)
        return lambda x: jax.lax.fori_loop(0, 1000, step, x), (jnp.ones(2),)

    return {
        "equinox while lax": lambda: plain("lax"),
        "equinox while checkpointed": lambda: plain("checkpointed"),
        "equinox while bounded": lambda: plain("bounded"),
        "equinox buffer lax": lambda: buffer("lax", 4096, 1000),
        "equinox buffer checkpointed": lambda: buffer("checkpointed", 4096, 1000),
        "equinox large buffer lax": lambda: buffer("lax", 262144, 1000),
        "equinox gradient checkpointed": lambda: gradient("checkpointed"),
        "equinox gradient bounded": lambda: gradient("bounded"),
        "equinox batched lax": lambda: batched("lax"),
        "equinox batched checkpointed": lambda: batched("checkpointed"),
        "equinox error_if": checked,
        "equinox unvmap and nonbatchable": markers,
    }


# ---- lineax -----------------------------------------------------------------------------------------------------------


def lineax_loops():
    import lineax

    matrix = jax.random.normal(jax.random.key(0), (8, 8)) / 8 + jnp.eye(8) * 2
    matrix = matrix @ matrix.T
    vector = jnp.arange(8.0)

    def repeated(solver, tags=()):
        def loop(a, b):
            def step(i, x):
                return b + 0.1 * lineax.linear_solve(lineax.MatrixLinearOperator(a, tags), x, solver).value
            return jax.lax.fori_loop(0, 100, step, b)
        return loop, (matrix, vector)

    def gradient():
        loop, arguments = repeated(lineax.LU())

        def loss(a, b):
            def step(x, _):
                return b + 0.1 * lineax.linear_solve(lineax.MatrixLinearOperator(a), x, lineax.LU()).value, None
            return jnp.sum(jax.lax.scan(step, b, None, length=20)[0])
        return jax.grad(loss, (0, 1)), arguments

    def batched():
        def solve(a, b):
            return lineax.linear_solve(lineax.MatrixLinearOperator(a), b, lineax.LU()).value
        return jax.vmap(solve), (jnp.stack([matrix] * 32) + jnp.arange(32.0)[:, None, None] * jnp.eye(8), jnp.stack([vector] * 32))

    return {
        "lineax LU in a loop": lambda: repeated(lineax.LU()),
        "lineax Cholesky in a loop": lambda: repeated(lineax.Cholesky(), lineax.positive_semidefinite_tag),
        "lineax CG in a loop": lambda: repeated(lineax.CG(1e-6, 1e-6), lineax.positive_semidefinite_tag),
        "lineax GMRES in a loop": lambda: repeated(lineax.GMRES(1e-6, 1e-6)),
        "lineax gradient of LU": gradient,
        "lineax LU, 32 at once": batched,
    }


# ---- diffrax ----------------------------------------------------------------------------------------------------------


def diffrax_loops():
    import diffrax

    mlp = eqx.nn.MLP(2, 2, 64, 2, activation=jnp.tanh, key=jax.random.key(1))
    parameters, static = eqx.partition(mlp, eqx.is_inexact_array)
    times = jnp.linspace(0.0, 1.0, 16)

    def neural(parameters, y0):
        network = eqx.combine(parameters, static)
        return diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: network(y)), diffrax.Tsit5(), 0.0, 1.0, 0.05, y0,
            saveat=diffrax.SaveAt(ts=times), stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6)).ys

    def predators(t, y, args):
        return jnp.stack([y[0] * (1.1 - 0.4 * y[1]), y[1] * (0.1 * y[0] - 0.4)])

    def trajectory(y0):
        return diffrax.diffeqsolve(
            diffrax.ODETerm(predators), diffrax.Tsit5(), 0.0, 20.0, 0.1, y0, saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 20.0, 32)),
            stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6)).ys

    def robertson(t, y, args):
        a, b, c = 0.04 * y[0], 1e2 * y[1] * y[2], 3e3 * y[1] ** 2
        return jnp.stack([b - a, a - b - c, c])

    def stiff(y0):
        return diffrax.diffeqsolve(
            diffrax.ODETerm(robertson), diffrax.Kvaerno5(), 0.0, 20.0, 1e-3, y0, saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 20.0, 8)),
            stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6)).ys

    def noisy(key):
        motion = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(2,), key=key)
        terms = diffrax.MultiTerm(diffrax.ODETerm(lambda t, y, args: -y), diffrax.ControlTerm(lambda t, y, args: 0.1 * jnp.eye(2), motion))
        return diffrax.diffeqsolve(terms, diffrax.Euler(), 0.0, 1.0, 0.01, jnp.ones(2), saveat=diffrax.SaveAt(steps=True), max_steps=128).ys

    starts = jnp.stack([jnp.linspace(1.0, 4.0, 64), jnp.linspace(2.0, 1.0, 64)], 1)
    return {
        "diffrax neural ODE": lambda: (neural, (parameters, jnp.ones(2))),
        "diffrax gradient of the neural ODE": lambda: (jax.grad(lambda p, y: jnp.sum(neural(p, y) ** 2)), (parameters, jnp.ones(2))),
        "diffrax 64 trajectories": lambda: (jax.vmap(trajectory), (starts,)),
        "diffrax stiff, Kvaerno5": lambda: (stiff, (jnp.array([1.0, 0.0, 0.0]),)),
        "diffrax SDE, every step kept": lambda: (noisy, (jax.random.key(3),)),
    }


# ---- optimistix -------------------------------------------------------------------------------------------------------


def optimistix_loops():
    import optimistix

    x = jnp.linspace(0.0, 1.0, 64)
    y = 2.0 * jnp.exp(-1.5 * x) + 0.5

    def fit(start):
        def residuals(p, args):
            return p[0] * jnp.exp(-p[1] * x) + p[2] - y
        return optimistix.least_squares(residuals, optimistix.LevenbergMarquardt(1e-5, 1e-5), start).value

    def valley(start):
        def rosenbrock(p, args):
            return jnp.sum(100.0 * (p[1:] - p[:-1] ** 2) ** 2 + (1 - p[:-1]) ** 2)
        return optimistix.minimise(rosenbrock, optimistix.BFGS(1e-4, 1e-4), start, max_steps=512, throw=False).value

    def root(c):
        def equations(p, c):
            return jnp.stack([p[0] ** 2 + p[1] - c, jnp.tanh(p[0]) - p[1]])
        return optimistix.root_find(equations, optimistix.Newton(1e-5, 1e-5), jnp.array([1.0, 0.5]), args=c).value

    return {
        "optimistix Levenberg-Marquardt": lambda: (fit, (jnp.array([1.0, 1.0, 0.0]),)),
        "optimistix BFGS": lambda: (valley, (jnp.full(10, -0.5),)),
        "optimistix Newton, 32 at once": lambda: (jax.vmap(root), (jnp.linspace(0.5, 3.0, 32),)),
    }


# ---- dynamiqs ---------------------------------------------------------------------------------------------------------


def dynamiqs_loops():
    import dynamiqs

    dynamiqs.set_progress_meter(False)
    size = 16
    lowering = dynamiqs.destroy(size)
    number, times = lowering.dag() @ lowering, jnp.linspace(0.0, 1.0, 11)
    state = dynamiqs.coherent(size, 1.0)

    def schroedinger(strength):
        return dynamiqs.sesolve(number + strength * (lowering + lowering.dag()), state, times, exp_ops=[number]).expects

    def master(strength):
        jumps = [0.5 * lowering]
        return dynamiqs.mesolve(number + strength * (lowering + lowering.dag()), jumps, state, times, exp_ops=[number]).expects

    return {
        "dynamiqs sesolve": lambda: (schroedinger, (jnp.array(0.7),)),
        "dynamiqs mesolve": lambda: (master, (jnp.array(0.7),)),
        "dynamiqs gradient": lambda: (jax.grad(lambda s: jnp.real(schroedinger(s))[0, -1]), (jnp.array(0.7),)),
    }
