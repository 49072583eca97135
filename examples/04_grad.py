"""Derivatives: gradients, forward and reverse mode, Jacobians, and Newton's method with a Hessian."""

import capibara.jax as jax
import capibara.jax.numpy as jnp


def valley(p):
    """The Rosenbrock function; its minimum is at (1, 1)."""
    x, y = p
    return jnp.square(1.0 - x) + 10.0 * jnp.square(y - jnp.square(x))


def polar(p):
    radius, angle = p[0], p[1:2]
    return jnp.concatenate([radius * jnp.cos(angle), radius * jnp.sin(angle)])


start = jnp.array([-1.0, 1.5])
print("value", valley(start), "gradient", jax.grad(valley)(start))


# One more grad for each order of derivative.
def cube(x):
    return x * x * x


print("x^3 at 2:", jax.grad(cube)(2.0), jax.grad(jax.grad(cube))(2.0), jax.grad(jax.grad(jax.grad(cube)))(2.0))


# Gradients with respect to two arguments at once, together with the value.
def area(width, height):
    return width * height + jnp.sin(width)


value, slopes = jax.value_and_grad(area, argnums=(0, 1))(2.0, 3.0)
print("area", value, "slopes", *slopes)

# Forward mode pushes a tangent forward, reverse mode pulls a cotangent back.
point = jnp.array([2.0, 0.5])
out, pushed = jax.jvp(polar, (point,), (jnp.array([1.0, 0.0]),))
print("polar", out, "along the radius", pushed)
same, pullback = jax.vjp(polar, point)
print("pulled back", pullback(jnp.array([1.0, 0.0]))[0])
print(f"Jacobian\n{jax.jacfwd(polar)(point)}")

print("Newton")
p = start
for step in range(6):
    p = p - jnp.linalg.solve(jax.hessian(valley)(p), jax.grad(valley)(p))
    print(" ", jnp.round(p, 3))
