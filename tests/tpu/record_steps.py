"""Compiles training steps with libtpu ahead of time and prints the memory that its buffer assignment needs, one row for each.

    export TPU_LIBRARY_PATH=.../libtpu.so
    build/venv/bin/python tests/tpu/record_steps.py >> tests/tpu/more_steps.tsv

Needs jax 0.10.2 and libtpu 0.0.51 on x86_64. A child compiles and is killed once its memory is planned; nothing runs on a TPU. The step:
one scan over layers (RMS norm, rotary attention with jax's splash kernel, gated MLP), f32 parameters and Adam moments, bf16 compute,
donated state, unsplit logits.
"""
import functools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# name, topology, config, mesh, layers, width, heads, kv_heads, hidden, vocab, sequences per device, sequence length, remat
STEPS = [
    ("retaken_llama2_7b_full", "v5e:8x8", "default", "fsdp=64", 32, 4096, 32, 32, 11008, 32000, 2, 4096, "full"),
    ("retaken_llama3_8b_minimal", "v5e:16x16", "default", "fsdp=256", 32, 4096, 32, 8, 14336, 128256, 1, 2048, "minimal"),
    ("retaken_llama3_70b_tensor", "v5e:16x16", "default", "fsdp=32,tensor=8", 80, 8192, 64, 8, 28672, 128256, 0.5, 4096, "full"),
    ("new_3b_v6e_full", "v6e:4x4", "default", "fsdp=16", 28, 3072, 24, 8, 8192, 128256, 4, 4096, "full"),
    ("new_13b_v5p_minimal", "v5p:2x4x4", "megacore", "fsdp=32", 40, 5120, 40, 40, 13824, 32000, 1, 8192, "minimal"),
    ("new_34b_v6e_full", "v6e:8x16", "default", "fsdp=128", 48, 8192, 64, 8, 22016, 32000, 1, 8192, "full"),
    ("new_8b_v4_tensor_full", "v4:4x4x4", "megacore", "fsdp=16,tensor=4", 32, 4096, 32, 8, 14336, 128256, 1, 4096, "full"),
    ("new_1b_v5e_full", "v5e:4x4", "default", "fsdp=16", 16, 2048, 16, 16, 5632, 32000, 8, 2048, "full"),
]
NAMES = ("name", "topology", "config", "mesh", "layers", "d_model", "heads", "kv_heads", "d_ff", "vocab", "batch_per_device", "seq",
         "remat")


def lowered(step):
    """The training step, lowered by jax for the devices of its topology."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.ad_checkpoint import checkpoint_name
    from jax.experimental import topologies
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
    from jax.sharding import AxisType, Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P
    row = dict(zip(NAMES, step))
    options = {} if row["config"] == "default" else {"chip_config_name": row["config"]}
    devices = topologies.get_topology_desc(row["topology"], platform="tpu", **options).devices
    axes = {"fsdp": 1, "tensor": 1} | {name: int(size) for name, size in (word.split("=") for word in row["mesh"].split(","))}
    mesh = Mesh(np.array(devices).reshape(axes["fsdp"], axes["tensor"]), ("fsdp", "tensor"), axis_types=(AxisType.Auto,) * 2)
    width, heads, kv, hidden, vocab, length = (row[name] for name in ("d_model", "heads", "kv_heads", "d_ff", "vocab", "seq"))
    batch = round(row["batch_per_device"] * len(devices))
    layers = row["layers"]
    shapes = {"q": ((width, heads * 128), ("fsdp", "tensor")), "k": ((width, kv * 128), ("fsdp", "tensor")),
              "v": ((width, kv * 128), ("fsdp", "tensor")), "o": ((heads * 128, width), ("tensor", "fsdp")),
              "gate": ((width, hidden), ("fsdp", "tensor")), "up": ((width, hidden), ("fsdp", "tensor")),
              "down": ((hidden, width), ("tensor", "fsdp")), "norm1": ((width,), (None,)), "norm2": ((width,), (None,))}

    def array(shape, spec, dtype=jnp.float32):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))
    params = {"layers": {name: array((layers, *shape), (None, *spec)) for name, (shape, spec) in shapes.items()},
              "embed": array((vocab, width), ("tensor", "fsdp")), "out": array((width, vocab), ("fsdp", "tensor")),
              "norm": array((width,), (None,))}
    tokens = array((batch, length), ("fsdp", None), jnp.int32)

    def constrained(x, *spec):
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))

    def norm(x, scale):
        x32 = x.astype(jnp.float32)
        return (x32 * jax.lax.rsqrt(jnp.mean(x32 * x32, -1, keepdims=True) + 1e-5) * scale).astype(jnp.bfloat16)

    def rotary(x):  # [batch, length, heads, 128]
        angles = jnp.arange(length)[:, None] * 10000.0 ** (-jnp.arange(0, 128, 2) / 128)
        sin, cos = jnp.sin(angles)[:, None], jnp.cos(angles)[:, None]
        a, b = jnp.split(x.astype(jnp.float32), 2, -1)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype(jnp.bfloat16)

    split = P("fsdp", "tensor", None, None)

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(split, split, split), out_specs=split, check_vma=False)
    def attention(q, k, v):
        block = min(1024, length)
        sizes = splash.BlockSizes(block_q=block, block_kv=block, block_kv_compute=min(512, block), block_q_dkv=block, block_kv_dkv=block,
                                  block_kv_dkv_compute=min(512, block), use_fused_bwd_kernel=True)
        mask = masks.MultiHeadMask([masks.CausalMask((length, length)) for _ in range(q.shape[1])])
        make = splash.make_splash_mha if q.shape[1] == k.shape[1] else splash.make_splash_mqa
        if q.shape[1] == k.shape[1]:
            return jax.vmap(make(mask, block_sizes=sizes, head_shards=1, q_seq_shards=1))(q, k, v)
        group = q.shape[1] // k.shape[1]
        one = masks.MultiHeadMask([masks.CausalMask((length, length)) for _ in range(group)])
        kernel = make(one, block_sizes=sizes, head_shards=1, q_seq_shards=1)
        grouped = q.reshape(q.shape[0], k.shape[1], group, *q.shape[2:])
        return jax.vmap(jax.vmap(kernel))(grouped, k, v).reshape(q.shape)

    def layer(x, p):
        p = {name: value if value.ndim == 1 else value.astype(jnp.bfloat16) for name, value in p.items()}
        y = norm(x, p["norm1"])
        q, k, v = (checkpoint_name(y @ p[name], "kept") for name in "qkv")
        q, k, v = (part.reshape(batch, length, -1, 128) for part in (q, k, v))
        q, k, v = (jnp.moveaxis(part, 1, 2) for part in (rotary(q), rotary(k), v))
        mixed = jnp.moveaxis(attention(q * 128 ** -0.5, k, v), 1, 2).reshape(batch, length, -1)
        x = constrained(x + checkpoint_name(mixed @ p["o"], "kept"), "fsdp", None, "tensor")
        y = norm(x, p["norm2"])
        gate, up = checkpoint_name(y @ p["gate"], "kept"), checkpoint_name(y @ p["up"], "kept")
        return constrained(x + (jax.nn.silu(gate) * up) @ p["down"], "fsdp", None, "tensor"), None

    policies = jax.checkpoint_policies
    policy = policies.nothing_saveable if row["remat"] == "full" else policies.save_only_these_names("kept")
    body = layer if row["remat"] == "none" else jax.checkpoint(layer, policy=policy, prevent_cse=False)

    def loss(p, tokens):
        x = constrained(p["embed"].astype(jnp.bfloat16)[tokens], "fsdp", None, "tensor")
        x, _ = jax.lax.scan(body, x, p["layers"])
        logits = constrained(norm(x, p["norm"]) @ p["out"].astype(jnp.bfloat16), "fsdp", None, "tensor").astype(jnp.float32)
        expected = jnp.take_along_axis(logits, jnp.roll(tokens, -1, 1)[..., None], -1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - expected)

    def train(p, first, second, tokens):
        grads = jax.grad(loss)(p, tokens)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = jax.tree.map(lambda m, g: 0.95 * m + 0.05 * g * g, second, grads)
        return jax.tree.map(lambda w, m, v: w - 1e-3 * (m / (jnp.sqrt(v) + 1e-8) + 0.1 * w), p, first, second), first, second

    shardings = jax.tree.map(lambda leaf: leaf.sharding, params)
    return jax.jit(train, donate_argnums=(0, 1, 2), out_shardings=(shardings,) * 3).lower(params, params, params, tokens)


def assigned_gib(text):
    """Allocations of device memory, without thread-local ones."""
    total = 0
    for line in text.splitlines():
        size = re.match(r"allocation \d+: .*?size (\d+)", line)
        color = re.search(r"color (\d+)", line)
        if size and "thread-local" not in line and (color is None or color.group(1) == "0"):
            total += int(size.group(1))
    return total / 2**30


def record(step):
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.Popen([sys.executable, __file__, "--child", step[0], folder], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 start_new_session=True)
        start = time.time()
        while child.poll() is None and not list(Path(folder).glob("*after_optimizations_after_buffer_assignment.txt")):
            time.sleep(0.2)
            if time.time() - start > 1200:
                break
        time.sleep(0.5)
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        said = child.communicate()[1].decode(errors="replace")
        found = list(Path(folder).glob("*buffer-assignment.txt"))
        if not found:
            print(f"{step[0]}: {said[-600:]}", file=sys.stderr)
            return
        total = max(assigned_gib(path.read_text()) for path in found)
        print(*step, f"{total:.3f}", sep="\t", flush=True)


def main():
    if sys.argv[1:2] == ["--child"]:
        step = next(step for step in STEPS if step[0] == sys.argv[2])
        lowered(step).compile(compiler_options={"xla_dump_to": sys.argv[3], "xla_dump_hlo_as_text": True})
        return
    print(*NAMES, "total_gib", sep="\t")
    for step in STEPS:
        if not sys.argv[1:] or step[0] in sys.argv[1:]:
            record(step)


if __name__ == "__main__":
    os.environ.update(ALLOW_MULTIPLE_LIBTPU_LOAD="true", TPU_SKIP_MDS_QUERY="1", TPU_WORKER_HOSTNAMES="localhost",
                      TPU_ACCELERATOR_TYPE="v5litepod-4", JAX_PLATFORMS="cpu")
    main()
