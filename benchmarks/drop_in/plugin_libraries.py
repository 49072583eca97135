"""Short programs of libraries on jax with capibara's plugin and on XLA:CPU: same values, and the times of both.

    PYTHONPATH=build/release/python build/venv-jax-plugin/bin/python benchmarks/drop_in/plugin_libraries.py [NAME...]

Each program runs in its own process on each platform, which reports its results, the time of the first call including compilation, and
the best time of ten more calls. Libraries that are not installed are named and left out.
"""

import json
import os
import subprocess
import sys
import time


def optax_adam():
    import jax
    import jax.numpy as jnp
    import optax

    def loss(parameters, x, y):
        for w, b in parameters[:-1]:
            x = jnp.tanh(x @ w + b)
        w, b = parameters[-1]
        return jnp.mean((x @ w + b - y) ** 2)

    keys = jax.random.split(jax.random.key(0), 4)
    sizes = [8, 64, 64, 1]
    parameters = [(jax.random.normal(key, (m, n)) / m**0.5, jnp.zeros(n)) for key, m, n in zip(keys, sizes, sizes[1:])]
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2))
    x = jax.random.normal(keys[3], (128, 8))
    y = jnp.sin(x.sum(1, keepdims=True))

    @jax.jit
    def train(parameters):
        def step(carry, _):
            parameters, state = carry
            value, grads = jax.value_and_grad(loss)(parameters, x, y)
            updates, state = optimizer.update(grads, state, parameters)
            return (optax.apply_updates(parameters, updates), state), value
        return jax.lax.scan(step, (parameters, optimizer.init(parameters)), None, 50)[1]
    return train, (parameters,)


def flax_linen():
    import flax.linen as nn
    import jax
    import jax.numpy as jnp

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.relu(nn.Conv(16, (3, 3))(x))
            x = nn.avg_pool(x, (2, 2), (2, 2)).reshape(x.shape[0], -1)
            return nn.Dense(10)(nn.LayerNorm()(nn.gelu(nn.Dense(64)(x))))

    net = Net()
    x = jax.random.normal(jax.random.key(1), (16, 16, 16, 1))
    variables = net.init(jax.random.key(0), x)
    labels = jnp.arange(16) % 10

    def loss(variables):
        return -jnp.mean(jax.nn.log_softmax(net.apply(variables, x))[jnp.arange(16), labels])
    return jax.jit(jax.value_and_grad(loss)), (variables,)


def flax_nnx():
    import jax
    import jax.numpy as jnp
    import optax
    from flax import nnx

    class Model(nnx.Module):
        def __init__(self, rngs):
            self.first, self.second = nnx.Linear(8, 64, rngs=rngs), nnx.Linear(64, 1, rngs=rngs)
            self.norm = nnx.BatchNorm(64, rngs=rngs)

        def __call__(self, x):
            return self.second(nnx.relu(self.norm(self.first(x))))

    x = jax.random.normal(jax.random.key(1), (64, 8))

    def run(x):
        model = Model(nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
        losses = []
        for _ in range(5):
            value, grads = nnx.value_and_grad(lambda model: jnp.mean((model(x) - x[:, :1]) ** 2))(model)
            optimizer.update(model, grads)
            losses.append(value)
        return jnp.stack(losses)
    return jax.jit(run), (x,)


def equinox_mlp():
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    model = eqx.nn.MLP(4, 1, 128, 3, key=jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (256, 4))

    def loss(model, x):
        return jnp.mean(jax.vmap(model)(x) ** 2)
    step = eqx.filter_jit(eqx.filter_value_and_grad(loss))
    return lambda x: [leaf for leaf in jax.tree.leaves(step(model, x)) if eqx.is_array(leaf)], (x,)


def diffrax_solve():
    import diffrax
    import jax
    import jax.numpy as jnp

    def field(t, y, args):
        a, b, c, d = args
        return jnp.stack([a * y[0] - b * y[0] * y[1], -c * y[1] + d * y[0] * y[1]])

    def end(y, args):
        return diffrax.diffeqsolve(diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, 8.0, 0.05, y, args=args,
                                   stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6), max_steps=512).ys[-1]
    return jax.jit(jax.value_and_grad(lambda y, args: jnp.sum(end(y, args)))), (jnp.array([10.0, 10.0]), jnp.array([0.1, 0.02, 0.4, 0.02]))


def numpyro_potential():
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import HMC
    from numpyro.infer.util import initialize_model

    x = jax.random.normal(jax.random.key(1), (100, 3))
    y = x @ jnp.array([1.0, -2.0, 0.5]) + 0.1 * jax.random.normal(jax.random.key(2), (100,))

    def model(x, y):
        w = numpyro.sample("w", dist.Normal(0, 1).expand([3]).to_event(1))
        s = numpyro.sample("s", dist.HalfNormal(1.0))
        numpyro.sample("y", dist.Normal(x @ w, s), obs=y)

    start = initialize_model(jax.random.key(0), model, model_args=(x, y))
    kernel = HMC(potential_fn=start.potential_fn, step_size=1e-3, num_steps=10, adapt_step_size=False, adapt_mass_matrix=False)
    state = kernel.init(jax.random.key(3), 0, start.param_info, (), {})

    @jax.jit
    def run(state):
        return jax.lax.scan(lambda state, _: (kernel.sample(state, (), {}), state.potential_energy), state, None, 20)[1]
    return run, (state,)


def brax_ant():
    import brax.envs
    import jax

    env = brax.envs.create("ant", backend="spring", auto_reset=False)
    state = jax.jit(env.reset)(jax.random.key(0))

    @jax.jit
    def run(state):
        return jax.lax.scan(lambda s, _: ((n := env.step(s, 0.1 * jax.numpy.ones(env.action_size))), n.obs), state, None, 5)[1]
    return run, (state,)


def mjx_pendulum():
    import jax
    import mujoco
    from mujoco import mjx

    model = mujoco.MjModel.from_xml_string("""<mujoco><worldbody><body pos="0 0 1"><joint name="a" type="hinge" axis="0 1 0"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.5"/><body pos="0 0 -0.5"><joint name="b" type="hinge" axis="0 1 0"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.5"/></body></body></worldbody></mujoco>""")
    device_model = mjx.put_model(model)
    data = mjx.make_data(model)
    data = data.replace(qpos=jax.numpy.array([0.5, 0.3]))

    @jax.jit
    def run(data):
        return jax.lax.scan(lambda d, _: ((n := mjx.step(device_model, d)), n.qpos), data, None, 20)[1]
    return run, (data,)


def jaxley_cell():
    import jax
    import jax.numpy as jnp
    import jaxley as jx
    from jaxley.channels import HH

    cell = jx.Cell(jx.Branch(jx.Compartment(), 4), parents=[-1, 0, 0])
    cell.insert(HH())
    cell.branch(0).comp(0).record(verbose=False)
    current = jx.step_current(1.0, 2.0, 0.1, 0.025, 5.0)
    cell.branch(0).comp(0).stimulate(current, verbose=False)
    cell.to_jax()
    return jax.jit(lambda scale: jx.integrate(cell, delta_t=0.025) * scale), (jnp.float32(1.0),)


def jaxsim_pendulum():
    import jax
    import jaxsim.api as js

    sdf = """<sdf version="1.10"><model name="p"><joint name="f" type="fixed"><parent>world</parent><child>base</child></joint>
        <link name="base"><inertial><mass>1</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial></link>
        <joint name="j" type="revolute"><parent>base</parent><child>rod</child><axis><xyz>0 1 0</xyz></axis></joint>
        <link name="rod"><inertial><pose>0 0 -0.5 0 0 0</pose><mass>1</mass>
        <inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial></link></model></sdf>"""
    model = js.model.JaxSimModel.build_from_model_description(sdf, is_urdf=False, time_step=0.001)
    data = js.data.JaxSimModelData.build(model, joint_positions=jax.numpy.array([0.5]))

    @jax.jit
    def run(data):
        return jax.lax.scan(lambda d, _: ((n := js.model.step(model, d)), n.joint_positions), data, None, 20)[1]
    return run, (data,)


PROGRAMS = [optax_adam, flax_linen, flax_nnx, equinox_mlp, diffrax_solve, numpyro_potential, brax_ant, mjx_pendulum, jaxley_cell,
            jaxsim_pendulum]


def work(name):
    """One program on the platform that JAX_PLATFORMS names."""
    import jax
    import numpy as np

    function, arguments = next(program for program in PROGRAMS if program.__name__ == name)()
    begin = time.perf_counter()
    results = jax.block_until_ready(function(*arguments))
    first, best = time.perf_counter() - begin, float("inf")
    for _ in range(10):
        begin = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        best = min(best, time.perf_counter() - begin)
    leaves = [np.asarray(leaf, np.float64).ravel().tolist() for leaf in jax.tree.leaves(results)]
    print(json.dumps({"first": first, "best": best, "leaves": leaves, "device": str(jax.devices()[0])}))


def run(name, platform):
    environment = dict(os.environ, JAX_PLATFORMS=platform)
    done = subprocess.run([sys.executable, __file__, "--work", name], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1][:300])
    return json.loads(done.stdout.splitlines()[-1])


def main(names):
    import numpy as np

    print("| program | largest difference, as a share | jax on the plugin | on XLA:CPU | share of its time | first call | on XLA:CPU |")
    print("|" + "---|" * 7)
    for name in names or [program.__name__ for program in PROGRAMS]:
        try:
            ours, theirs = run(name, "capibara"), run(name, "cpu")
        except RuntimeError as error:
            print(f"| {name} | {error} | | | | | |", flush=True)
            continue
        assert "Capibara" in ours["device"], ours["device"]
        pairs = zip(ours["leaves"], theirs["leaves"], strict=True)
        apart = max(np.max(np.abs(np.subtract(a, b))) / max(np.max(np.abs(b)), 1e-30) for a, b in pairs)
        print(f"| {name} | {apart:.1e} | {ours['best'] * 1e3:.3g} ms | {theirs['best'] * 1e3:.3g} ms | {ours['best'] / theirs['best']:.2f} "
              f"| {ours['first']:.2f} s | {theirs['first']:.2f} s |", flush=True)


if __name__ == "__main__":
    work(sys.argv[2]) if sys.argv[1:2] == ["--work"] else main(sys.argv[1:])
