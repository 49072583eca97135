"""The seeds' blocks about meshes and sharding, each as a test with as many CPU devices as it needs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = (os.environ.get("CAPIBARA_PYTHON_PATH")
           or str(Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release")) / "python"))
HEAD = "import numpy as np, capibara.jax as jax, capibara.jax.numpy as jnp\njax.install()\n"


def run(program, devices, **environment):
    """The lines that a program prints in a process with this many devices; `jax` is ours, also for `import jax`."""
    done = subprocess.run([sys.executable, "-c", HEAD + program], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": MODULES, "JAX_NUM_CPU_DEVICES": str(devices), "JAX_PLATFORMS": "cpu",
                               **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# --- seed 000, block 19 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("devices, grid, part", [(8, "(4, 2)", "(2, 3)"), (6, "(3, 2)", None), (1, "(1, 1)", "(8, 6)")])
def test_mesh_and_partition(devices, grid, part):
    lines = run("""
from capibara.jax import sharding
mesh = sharding.Mesh(devices=jax.devices(), axis_names=('data', 'model'))
print(mesh.devices.shape)
rows = 8 if mesh.size != 6 else 9
array = jnp.arange(float(rows * 6)).reshape(rows, 6)
partitioned = sharding.partition(array, spec=sharding.PartitionSpec('data', 'model'))
print(partitioned.addressable_shards[-1].data.shape)
print(partitioned.sharding == sharding.NamedSharding(mesh, sharding.PartitionSpec('data', 'model')))
print(np.array_equal(np.asarray(partitioned), np.asarray(array)), len(partitioned.addressable_shards) == mesh.size)
print(all(np.array_equal(np.asarray(shard.data), np.asarray(array)[shard.index]) for shard in partitioned.addressable_shards))
""", devices)
    assert lines == [grid, part or "(3, 3)", "True", "True True", "True"]


def test_partition_takes_a_mesh_and_the_one_in_context():
    assert run("""
from capibara.jax import sharding
mesh = sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ('a', 'b'))
x = jnp.ones((4, 8))
print(sharding.partition(x, ('a',), mesh).sharding.spec, sharding.partition(x, (None, 'b'), mesh=mesh).addressable_shards[0].data.shape)
with jax.set_mesh(mesh):
    print(sharding.partition(x, sharding.PartitionSpec('b')).addressable_shards[0].data.shape)
for call in (lambda: sharding.partition(x, ('c',), mesh), lambda: sharding.partition(jnp.ones(3), ('a',), mesh)):
    try:
        call()
    except ValueError as error:
        print(type(error).__name__)
""", 8) == ["P('a',) (4, 2)", "(1, 8)", "ValueError", "IndivisibleError"]


# --- seed 001: meshes, strategies, several hosts -----------------------------------------------------------------------


def test_create_mesh():
    assert run("""
from capibara.core.tpu import create_mesh, MeshConfig
mesh_config = MeshConfig(mesh_shape=(8, 8), axis_names=('data', 'model'), devices=jax.devices())
mesh = create_mesh(mesh_config)
print(dict(mesh.shape))
from jax.experimental import mesh_utils
from jax.sharding import PartitionSpec as P
x = jax.device_put(jnp.ones((16, 4)), jax.sharding.NamedSharding(mesh, P('data', None)))
w = jax.device_put(jnp.ones((4, 32)), jax.sharding.NamedSharding(mesh, P(None, 'model')))
print(x.addressable_shards[0].data.shape, w.addressable_shards[0].data.shape, float((x @ w).sum()))
print(dict(create_mesh(mesh_shape=(64, 1), axis_names=('data',)).shape))
print(dict(create_mesh(mesh_shape=(4, 4, 4), axis_names=('data', 'model', 'expert')).shape))
for arguments in (dict(mesh_shape=(8, 9), axis_names=('data', 'model')), dict(mesh_shape=(4, 2), axis_names=('data',)), {}):
    try:
        create_mesh(**arguments)
    except (ValueError, TypeError) as error:
        print(error)
""", 64) == [
        "{'data': 8, 'model': 8}", "(2, 4) (4, 4) 2048.0", "{'data': 64}", "{'data': 4, 'model': 4, 'expert': 4}",
        "create_mesh: a mesh of 8 x 9 needs 72 devices, got 64; on the CPU, JAX_NUM_CPU_DEVICES=72 makes as many",
        "create_mesh: every axis needs a name and a size, got mesh_shape=(4, 2) and axis_names=('data',); only trailing sizes of 1 may go "
        "without a name",
        "create_mesh: takes either a MeshConfig or mesh_shape= and axis_names="]


MODEL = """
from capibara.core.tpu import create_mesh, shard_model, sharding_table, strategies, Rule
key = jax.random.key(0)
def weight(*shape):
    global key
    key, own = jax.random.split(key)
    return jax.random.normal(own, shape) * 0.1
model = {"embed": weight(32, 16), "block": {"attention": {"query": {"kernel": weight(16, 16), "bias": weight(16)}, "out": weight(16, 16)},
         "mlp": {"up_proj": weight(16, 64), "down_proj": weight(64, 16)}, "norm": weight(16)},
         "experts": {"up": weight(4, 16, 8), "down": weight(4, 8, 16)}}
def forward(model, tokens):
    x = model["embed"][tokens]
    block = model["block"]
    q = block["attention"]["query"]
    x = x + (x @ q["kernel"] + q["bias"]) @ block["attention"]["out"]
    x = x + jnp.tanh(x @ block["mlp"]["up_proj"]) @ block["mlp"]["down_proj"] * block["norm"]
    hidden = jax.nn.relu(jnp.einsum("bsd,edf->besf", x, model["experts"]["up"]))
    return x + jnp.einsum("besf,efd->bsd", hidden, model["experts"]["down"])
def loss(model, tokens):
    return (forward(model, tokens) ** 2).mean()
tokens = jnp.arange(24).reshape(4, 6) % 32
"""


@pytest.mark.parametrize("strategy, split", [("fsdp", 9), ("megatron", 8), ("expert", 8)])
def test_shard_model(strategy, split):
    """Losses and gradients of the split model equal the unsplit model's; that many of its nine parameters are split."""
    assert run(MODEL + f"""
mesh = create_mesh(mesh_shape=(2, 2, 2), axis_names=('data', 'model', 'expert'))
sharded = shard_model(model, mesh=mesh, strategy="{strategy}")
leaves, parts = jax.tree.leaves(model), jax.tree.leaves(sharded)
print(all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(leaves, parts)))
print(sum(not leaf.sharding.is_fully_replicated for leaf in parts), len(parts))
want, got = jax.jit(jax.value_and_grad(loss))(model, tokens), jax.jit(jax.value_and_grad(loss))(sharded, tokens)
print(all(np.allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6) for a, b in zip(jax.tree.leaves(want), jax.tree.leaves(got))))
""", 8) == ["True", f"{split} 9", "True"]


def test_megatron_splits_columns_then_rows():
    assert run(MODEL + """
mesh = create_mesh(mesh_shape=(2, 4), axis_names=('data', 'model'))
sharded = shard_model(model, mesh, "megatron")
block = sharded["block"]
for leaf in (block["attention"]["query"]["kernel"], block["attention"]["query"]["bias"], block["attention"]["out"], block["mlp"]["up_proj"],
             block["mlp"]["down_proj"], block["norm"], sharded["embed"]):
    print(leaf.sharding.spec)
""", 8) == ["P(None, 'model')", "P('model',)", "P('model', None)", "P(None, 'model')", "P('model', None)", "P(None,)", "P('model', None)"]


def test_the_table_of_a_strategy_can_be_printed_and_replaced():
    lines = run(MODEL + """
mesh = create_mesh(mesh_shape=(2, 4), axis_names=('data', 'model'))
print(sharding_table(model, mesh, "megatron"))
print([name for name in strategies()])
own = shard_model(model, mesh, rules=[Rule("embed", (None, "model"))])
print(own["embed"].sharding.spec, own["block"]["norm"].sharding.spec)
try:
    shard_model(model, mesh, strategy="zero")
except ValueError as error:
    print(error)
""", 8)
    table = {line.split()[0]: line for line in lines[:11]}
    assert all(word in table["block/mlp/up_proj"] for word in ("16x64", "P(None, 'model')", "1,024"))
    assert "whole on every device" in table["block/norm"]
    assert lines[11:] == ["['fsdp', 'megatron', 'expert']", "P(None, 'model') P(None,)",
                          "shard_model: strategy must be one of fsdp, megatron, expert, got 'zero'; rules= takes a table of your own"]


def test_multi_host_config():
    assert run("""
from capibara.core.tpu import MultiHostConfig
print(MultiHostConfig(num_hosts=1, host_id=jax.process_index()).setup().num_hosts)
for arguments in ((8, 8, "10.0.0.1:1234"), (0, 0, None), (8, 0, None)):
    try:
        MultiHostConfig(*arguments)
    except ValueError as error:
        print(str(error).split(":")[1].split(",")[0].strip())
""", 1) == ["1", "host_id must be from 0 to 7", "num_hosts must be at least 1", "8 hosts need a coordinator_address"]


def test_multi_host_config_meets_the_other_host():
    """Two processes connect to the coordinator that both name."""
    import socket
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = HEAD + f"""
import sys
from capibara.core.tpu import MultiHostConfig
MultiHostConfig(num_hosts=2, host_id=int(sys.argv[1]), coordinator_address="127.0.0.1:{port}").setup()
print(jax.process_index(), jax.process_count())
"""
    environment = {**os.environ, "PYTHONPATH": MODULES, "JAX_PLATFORMS": "cpu", "CAPIBARA_JOB_SECRET": "the secret of this test"}
    hosts = [subprocess.Popen([sys.executable, "-c", program, str(host)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment) for host in range(2)]
    said = [host.communicate(timeout=120) for host in hosts]
    assert [host.returncode for host in hosts] == [0, 0], said
    assert [out for out, _ in said] == ["0 2\n", "1 2\n"]


# --- seed 003: a mesh of 4 x 8, pjit, specs by the names of dimensions ----------------------------------------------------


def test_device_mesh_and_pjit():
    assert run("""
from jax.experimental import mesh_utils
from jax.sharding import Mesh, PartitionSpec
devices = mesh_utils.create_device_mesh((4, 8))
mesh = Mesh(devices, axis_names=('data', 'model'))
policy = jax.pjit(in_axis_resources=PartitionSpec('data', 'model'), out_axis_resources=PartitionSpec('data', 'model'))
with mesh:
    y = policy(lambda x: 2 * x)(jnp.ones((8, 16)))
print(dict(mesh.shape), y.sharding.spec, y.addressable_shards[0].data.shape, float(y.sum()))
print(PartitionSpec(data=('data', 'model'), model=None) == PartitionSpec(('data', 'model'), None), PartitionSpec(data=None, model='model'))
for call in (lambda: PartitionSpec('x', model='y'), lambda: PartitionSpec(data=3),
             lambda: jax.pjit(in_axis_resources=PartitionSpec(), in_shardings=PartitionSpec('data'))):
    try:
        call()
    except (TypeError, ValueError) as error:
        print(type(error).__name__)
""", 32) == ["{'data': 4, 'model': 8} P('data', 'model') (2, 2) 256.0", "True P(None, 'model')", "TypeError", "ValueError", "ValueError"]
