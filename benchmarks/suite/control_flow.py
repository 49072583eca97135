"""Loops with small steps: scans, while loops, their gradients, a robot's mass matrix, and a regulariser's gradient."""

import numpy

from .contractions import normal
from .row import Row

STEPS = 100_000


# --- scans -------------------------------------------------------------------------------------------------------------


def many_carries(count, length):
    """The gradient of a scan whose carry has many scalars: a ring of coupled oscillators, one array element each."""
    def program(jax):
        jnp = jax.numpy

        def loss(start, coupling):
            def step(carry, drive):
                following = tuple(
                    value + 0.01 * (coupling * (carry[(i + 1) % count] - value) - jnp.sin(value) * drive)
                    for i, value in enumerate(carry))
                return following, None
            drives = jnp.linspace(0.0, 1.0, length, dtype=coupling.dtype)
            final, _ = jax.lax.scan(step, start, drives)
            return sum(value * value for value in final)
        return jax.grad(loss, argnums=(0, 1))
    return program


def carries_inputs(count, dtype):
    def inputs(random):
        return tuple(dtype(value) for value in random.standard_normal(count)), dtype(0.7)
    return inputs


def rotation_inputs(random):
    angle = 1e-3
    turn = numpy.array([[numpy.cos(angle), -numpy.sin(angle), 0], [numpy.sin(angle), numpy.cos(angle), 0], [0, 0, 1]])
    return random.standard_normal((3, 3)), turn


def scan_of(body):
    def program(jax):
        step = body(jax)

        def run(start, turn):
            final, _ = jax.lax.scan(lambda carry, _: (step(carry, turn), None), start, None, length=STEPS)
            return final
        return run
    return program


def scan_with_history(jax):
    def run(start, turn):
        def step(carry, _):
            carry = carry @ turn
            return carry, jax.numpy.trace(carry)
        return jax.lax.scan(step, start, None, length=STEPS)
    return run


def orthogonalise(jax):
    jnp = jax.numpy

    def step(carry, turn):
        moved = carry + 1e-3 * jnp.cross(carry, turn)
        first = moved[0] / jnp.sqrt(jnp.sum(moved[0] ** 2))
        second = moved[1] - jnp.dot(first, moved[1]) * first
        second = second / jnp.sqrt(jnp.sum(second**2))
        return jnp.stack([first, second, jnp.cross(first, second)])
    return step


def while_integer(jax):
    def run(seed):
        def step(state):
            i, value = state
            return i + 1, value * jax.numpy.uint32(1664525) + jax.numpy.uint32(1013904223)
        return jax.lax.while_loop(lambda state: state[0] < 4_000_000, step, (jax.numpy.int32(0), seed))[1]
    return run


def while_floating(jax):
    def run(start):
        def step(state):
            i, value = state
            return i + 1, value * 0.999999 + 1e-6
        return jax.lax.while_loop(lambda state: state[0] < 4_000_000, step, (jax.numpy.int32(0), start))[1]
    return run


def vmapped_while(jax):
    """The number of Newton steps to a cube root, different for each element."""
    def root(value):
        def going(state):
            guess, previous, count = state
            return (jax.numpy.abs(guess - previous) > 1e-5 * jax.numpy.abs(guess)) & (count < 200)

        def step(state):
            guess, _, count = state
            return (2.0 * guess + value / (guess * guess)) / 3.0, guess, count + 1
        return jax.lax.while_loop(going, step, (value, value * 2, jax.numpy.int32(0)))[0]
    return jax.vmap(root)


def nested_scans(jax):
    def run(start, weights):
        def inner(carry, weight):
            return carry * 0.99 + weight * jax.numpy.tanh(carry), None

        def outer(carry, _):
            carry, _ = jax.lax.scan(inner, carry, weights)
            return carry / (1.0 + jax.numpy.abs(carry).sum()), carry.sum()
        return jax.lax.scan(outer, start, None, length=200)
    return run


# --- a robot -----------------------------------------------------------------------------------------------------------

JOINTS = 35


def robot_inputs(random):
    """A tree of revolute joints: the parent, axis and position of each, and each link's mass, centre and inertia."""
    parents = numpy.array([max(0, i - 1 - (i % 5 == 0) * (i // 2)) for i in range(1, JOINTS + 1)], numpy.int32)
    axes = random.standard_normal((JOINTS, 3))
    axes /= numpy.linalg.norm(axes, axis=1, keepdims=True)
    places, centres = 0.3 * random.standard_normal((JOINTS, 3)), 0.1 * random.standard_normal((JOINTS, 3))
    masses = 1 + random.random(JOINTS)
    shapes = 0.1 * random.standard_normal((JOINTS, 3, 3))
    inertias = shapes @ shapes.transpose(0, 2, 1) + 0.01 * numpy.eye(3)
    return random.standard_normal(JOINTS), parents, axes, places, masses, centres, inertias


def skew(jnp, v):
    zero = jnp.zeros_like(v[0])
    return jnp.stack([jnp.stack([zero, -v[2], v[1]]), jnp.stack([v[2], zero, -v[0]]), jnp.stack([-v[1], v[0], zero])])


def mass_matrix(jax):
    """Poses of all links by one scan from the root, inertias of subtrees by one scan back, then the joint-space inertia."""
    jnp = jax.numpy

    def run(angles, parents, axes, places, masses, centres, inertias):
        dtype = angles.dtype
        identity = jnp.eye(3, dtype=dtype)

        def forward(poses, joint):
            turns, origins, lines = poses
            number, angle, parent, axis, place = joint
            cross = skew(jnp, axis)
            local = identity + jnp.sin(angle) * cross + (1 - jnp.cos(angle)) * (cross @ cross)
            turn = turns[parent]
            origin = origins[parent] + turn @ place
            turn = turn @ local
            line = jnp.zeros(JOINTS + 1, dtype).at[number + 1].set(1.0) + lines[parent]
            return (turns.at[number + 1].set(turn), origins.at[number + 1].set(origin), lines.at[number + 1].set(line)), None

        start = (jnp.broadcast_to(identity, (JOINTS + 1, 3, 3)), jnp.zeros((JOINTS + 1, 3), dtype),
                 jnp.zeros((JOINTS + 1, JOINTS + 1), dtype))
        numbers = jnp.arange(JOINTS, dtype=jnp.int32)
        (turns, origins, lines), _ = jax.lax.scan(forward, start, (numbers, angles, parents, axes, places))

        def spatial(turn, origin, mass, centre, inertia):
            # About the world's origin: angular part first.
            c = skew(jnp, origin + turn @ centre)
            upper = turn @ inertia @ turn.T - mass * (c @ c)
            return jnp.block([[upper, mass * c], [-mass * c, mass * identity]])
        own = jax.vmap(spatial)(turns[1:], origins[1:], masses, centres, inertias)

        def backward(sums, joint):
            number, parent = joint
            return sums.at[parent].add(sums[number + 1]), None
        sums = jnp.concatenate([jnp.zeros((1, 6, 6), dtype), own])
        sums, _ = jax.lax.scan(backward, sums, (numbers[::-1], parents[::-1]))

        world_axes = jnp.einsum("jab,jb->ja", turns[1:], axes)
        motions = jnp.concatenate([world_axes, jnp.cross(origins[1:], world_axes)], axis=1)
        forces = jnp.einsum("jab,jb->ja", sums[1:], motions)
        lower = (forces @ motions.T) * lines[1:, 1:]
        matrix = lower + jnp.tril(lower, -1).T
        return origins[1:], matrix
    return run


# --- a regulariser -----------------------------------------------------------------------------------------------------


def regulariser(library, sqrt):
    def loss(volume):
        x = volume[1:, :-1, :-1] - volume[:-1, :-1, :-1]
        y = volume[:-1, 1:, :-1] - volume[:-1, :-1, :-1]
        z = volume[:-1, :-1, 1:] - volume[:-1, :-1, :-1]
        return sqrt(x * x + y * y + z * z + 1e-6).mean()
    return loss


def regulariser_torch(torch):
    loss = regulariser(torch, torch.sqrt)

    def run(volume):
        with torch.enable_grad():
            volume = volume.detach().requires_grad_()
            return torch.autograd.grad(loss(volume), volume)[0]
    return run


def rows():
    wide = dict(wide=True, threads=1)
    rotate = lambda jax: lambda carry, turn: carry @ turn
    mixed = lambda jax: lambda carry, turn: carry * 0.999 + turn * jax.numpy.sin(carry) * 1e-3
    least = {"jax": 8, "most": STEPS * 60e-9}
    found = [
        Row("grad of scan 60 carries f32", "60 scalar carries, 614 steps f32", carries_inputs(60, numpy.float32),
            many_carries(60, 614), threads=1, least={"jax": 20, "most": 1e-3}),
        Row("grad of scan 60 carries f64", "60 scalar carries, 614 steps f64", carries_inputs(60, numpy.float64),
            many_carries(60, 614), least={"jax": 20, "most": 1e-3}, tolerance=1e-10, **wide),
        Row("grad of scan 12 carries f32", "12 scalar carries, 5000 steps f32", carries_inputs(12, numpy.float32),
            many_carries(12, 5000), threads=1, least={"jax": 20}, tolerance=1e-3),
        Row("scan 3x3 matmul f64", "carry (3,3) f64, carry @ turn, 1e5 steps", rotation_inputs, scan_of(rotate), least=least,
            tolerance=1e-10, **wide),
        Row("scan 3x3 elementwise f64", "carry (3,3) f64, with sin, 1e5 steps", rotation_inputs, scan_of(mixed), least=least,
            tolerance=1e-10, **wide),
        Row("scan 3x3 orthogonalise f64", "carry (3,3) f64, Gram-Schmidt, 1e5 steps", rotation_inputs, scan_of(orthogonalise),
            least={"jax": 8}, tolerance=1e-7, **wide),
        Row("scan 3x3 with outputs f64", "carry (3,3) f64, matmul, a trace kept each step, 1e5 steps", rotation_inputs,
            scan_with_history, least={"jax": 8}, tolerance=1e-10, **wide),
        Row("while_loop uint32 4 M", "a linear congruence, 4000000 steps", lambda random: (numpy.uint32(1),), while_integer,
            threads=1, least={"jax": 15, "most": 4e6 * 5e-9}, exact=True, tolerance=0, widen=False),
        Row("while_loop f32 4 M", "multiply and add, 4000000 steps", lambda random: (numpy.float32(3),), while_floating,
            threads=1, least={"jax": 15, "most": 4e6 * 5e-9}, tolerance=1e-2),
        Row("vmapped while", "100000 cube roots f32, each by its own count of Newton steps",
            lambda random: (numpy.exp(random.uniform(-3, 3, 100_000)).astype(numpy.float32),), vmapped_while, threads=1,
            least={"jax": 1.0}),
        Row("nested scans", "200 scans of 100 steps, carry (8,) f32", lambda random: (
            random.standard_normal(8).astype(numpy.float32), 0.1 * random.standard_normal((100, 8)).astype(numpy.float32)),
            nested_scans, threads=1, least={"jax": 8}, tolerance=1e-3),
        Row("robot 35 joints f64", "forward kinematics and mass matrix, 35 joints f64", robot_inputs, mass_matrix,
            least={"jax": 5}, tolerance=1e-11, **wide),
        Row("grad of regulariser 256^3", "finite differences, 256x256x256 f32", normal((256, 256, 256)),
            lambda jax: jax.grad(regulariser(jax, jax.numpy.sqrt)), torch=regulariser_torch,
            mlx=lambda mx: mx.grad(regulariser(mx, mx.sqrt)), threads=1, limit=("copy", 2 * 4 * 256**3), least={"jax": 1.7}),
        Row("grad of regulariser 256^3 (2 threads)", "finite differences, 256x256x256 f32", normal((256, 256, 256)),
            lambda jax: jax.grad(regulariser(jax, jax.numpy.sqrt)), torch=regulariser_torch, limit=("copy", 2 * 4 * 256**3),
            least={"jax": 1.7}),
    ]
    return found
