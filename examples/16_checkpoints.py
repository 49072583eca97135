"""A training run that is saved in the background, resumes after a crash, and detects a damaged file."""

import shutil
import tempfile

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara._errors import CorruptCheckpointError
from capibara.operate import Checkpointer

folder = tempfile.mkdtemp()

x = jnp.array([0.0, 1.0, 2.0, 3.0])
y = 2 * x + 1


def loss(p):
    return jnp.mean(jnp.square(p["w"] * x + p["b"] - y))


@jax.jit
def step(p):
    gradient = jax.grad(loss)(p)
    return jax.tree.map(lambda value, slope: value - 0.1 * slope, p, gradient)


# save returns at once: a thread keeps the arrays alive and writes them while training continues.
params = {"w": jnp.float32(0), "b": jnp.float32(0)}
like = params
with Checkpointer(folder, max_to_keep=2, async_checkpointing=True) as checkpointer:
    for i in range(1, 61):
        params = step(params)
        if i % 20 == 0:
            checkpointer.save(i, params=params, metadata={"optimizer": "sgd"})
# the process ends here

checkpointer = Checkpointer(folder)
print("saved:", *checkpointer.all_steps())
restored = checkpointer.restore(like={"params": like})["params"]
print("restored bit by bit:", bool(jnp.array_equal(restored["w"], params["w"])))

# Overwrite one byte of an array's file.
with open(f"{folder}/60/params/w/c", "r+b") as file:
    file.write(b"\x7f")
try:
    checkpointer.restore(like={"params": like})
except CorruptCheckpointError as error:
    print("refused:", str(error).split(", file")[0])

resumed = checkpointer.restore(40, like={"params": like})["params"]
for _ in range(41, 61):
    resumed = step(resumed)
print("the same after going on from step 40:", bool(jnp.array_equal(resumed["w"], params["w"])))
shutil.rmtree(folder)
