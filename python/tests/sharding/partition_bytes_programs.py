"""Training steps of an MLP, a GPT block and a mixture of experts under usual shardings; each returns the bytes that its
collectives bring to each device.

python partition_bytes_programs.py jax|capibara [NAME...]      prints one JSON object {name: bytes}

For jax the collectives in XLA's result are counted, for capibara those that the partitioner inserts: an all-reduce of b bytes among n
devices as 2 b (n-1)/n, an all-gather and an all-to-all with a result of b bytes as b (n-1)/n, a reduce-scatter as b (n-1), a permute as b.
"""
import json
import re
import sys

if sys.argv[1] == "capibara":
  import capibara.jax
  capibara.jax.install()

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

CAPIBARA = sys.argv[1] == "capibara"
MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
LINE = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
BYTES = {"f64": 8, "s64": 8, "u64": 8, "f32": 4, "s32": 4, "u32": 4, "bf16": 2, "f16": 2, "pred": 1, "s8": 1, "u8": 1}
KINDS = {"all-reduce": lambda b, n: 2 * b * (n - 1) / n,
         "all-gather": lambda b, n: b * (n - 1) / n, "all-to-all": lambda b, n: b * (n - 1) / n,
         "reduce-scatter": lambda b, n: b * (n - 1), "collective-permute": lambda b, n: b}


def counted(text):
  total = 0
  operation = r"= (\(.*?\)|\S+) " + "(" + "|".join(KINDS) + r")(?:-start)?\((.*)"
  for result, kind, rest in re.findall(operation, text):
    size = sum(BYTES[dtype] * eval("*".join(dims.split(",")) or "1") for dtype, dims in re.findall(r"(\w+)\[([\d,]*)\]", result))
    groups = re.search(r"replica_groups=(?:\{\{([\d,]*)\}|\[\d+,(\d+)\])", rest)
    members = 8 if not groups else int(groups[2]) if groups[2] else len(groups[1].split(","))
    total += KINDS[kind](size, members)
  return total


def moved(step, mesh, shapes, specs, batch, batch_specs):
  def described(shape, spec, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))
  params = {name: described(shape, specs.get(name, P())) for name, shape in shapes.items()}
  inputs = [described(shape, spec, dtype) for (shape, dtype), spec in zip(batch, batch_specs)]
  fixed = {name: NamedSharding(mesh, specs.get(name, P())) for name in shapes}
  lowered = jax.jit(step, out_shardings=(NamedSharding(mesh, P()), fixed)).lower(params, *inputs)
  if CAPIBARA:
    return sum(bytes * times for _, _, bytes, times, _, _ in lowered._inserted_collectives())
  return counted(lowered.compile().as_text())


def trained(loss):
  def step(params, *batch):
    value, gradients = jax.value_and_grad(loss)(params, *batch)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
  return step


# ---- the models ----
def mlp(p, x, y):
  for layer in range(3):
    x = jnp.tanh(x @ p[f"up{layer}"]) @ p[f"down{layer}"]
  return jnp.mean((x - y) ** 2)


MLP = {f"{kind}{layer}": shape for layer in range(3) for kind, shape in (("up", (64, 256)), ("down", (256, 64)))}
MLP_BATCH = [((128, 64), jnp.float32), ((128, 64), jnp.float32)]


def norm(x, scale):
  return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale


def gpt(p, tokens, targets):
  x = p["embed"][tokens] + p["place"]
  for layer in range(2):
    h = norm(x, p[f"scale{layer}"])
    q, k, v = (jnp.einsum("btd,dhe->bthe", h, p[f"{name}{layer}"]) for name in "qkv")
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 4
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    x = x + jnp.einsum("bqhd,hde->bqe", jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v), p[f"out{layer}"])
    x = x + jax.nn.gelu(norm(x, p[f"scale{layer}"]) @ p[f"up{layer}"]) @ p[f"down{layer}"]
  logits = jax.nn.log_softmax(x @ p["head"])
  return -jnp.take_along_axis(logits, targets[..., None], -1).mean()


GPT = {"embed": (256, 64), "place": (32, 64), "head": (64, 256)}
for layer in range(2):
  GPT |= {f"{name}{layer}": (64, 8, 8) for name in "qkv"}
  GPT |= {f"out{layer}": (8, 8, 64), f"up{layer}": (64, 256), f"down{layer}": (256, 64), f"scale{layer}": (64,)}
GPT_BATCH = [((16, 32), jnp.int32), ((16, 32), jnp.int32)]


def moe(p, x, y):
  gates = jax.nn.softmax(x @ p["router"])
  hidden = jnp.tanh(jnp.einsum("bd,edf->bef", x, p["up"]))
  mixed = jnp.einsum("bef,efd->bed", hidden, p["down"])
  return jnp.mean((jnp.einsum("bed,be->bd", mixed, gates) - y) ** 2)


MOE = {"router": (64, 8), "up": (8, 64, 128), "down": (8, 128, 64)}
MOE_BATCH = MLP_BATCH

# ---- how they are split ----
MODELS = {"mlp": (mlp, MLP, MLP_BATCH), "gpt": (gpt, GPT, GPT_BATCH), "moe": (moe, MOE, MOE_BATCH)}


def first(axes):
  return lambda name, shape: P(axes) if shape[0] % 8 == 0 else P()


def megatron(name, shape, data=None):
  if name.startswith("up") and len(shape) == 3 or name.startswith("down") and len(shape) == 3:
    return P("model", data)
  if name[0] in "qkv" and len(shape) == 3 or name.startswith("up") or name == "head":
    return P(data, "model")
  if name.startswith(("down", "out")):
    return P("model", *([None] * (len(shape) - 2)), data) if data else P("model")
  return P("model", data) if name == "embed" else P()


STRATEGIES = {
    "dp": (LINE, lambda name, shape: P(), P("data")),
    "fsdp": (LINE, first("data"), P("data")),
    "megatron": (MESH, megatron, P("data")),
    "two": (MESH, lambda name, shape: megatron(name, shape, "data"), P("data")),
}
PROGRAMS = {}
for model, (loss, shapes, batch) in MODELS.items():
  for strategy, (mesh, rule, batch_spec) in STRATEGIES.items():
    specs = {name: rule(name, shape) for name, shape in shapes.items()}
    PROGRAMS[f"{model}_{strategy}"] = (trained(loss), mesh, shapes, specs, batch, [batch_spec] * len(batch))

if __name__ == "__main__":
  chosen = sys.argv[2:] or list(PROGRAMS)
  print(json.dumps({name: round(moved(*PROGRAMS[name])) for name in chosen}))
