"""Writes residuals.expected: what each checkpoint policy of the installed jax saves for the backward pass of four bodies.

    python make_residuals.py [OUTPUT]          (default: tests/data/residuals.expected.tar.xz)

A record BODY/POLICY has the fields
    saved DTYPE[SHAPE] ORIGIN    one a residual, in jax's order (jax.ad_checkpoint.saved_residuals): ORIGIN is
                                 'argument N', 'literal', 'constant', 'named NAME', 'output of PRIMITIVE'
of vjp through jax.checkpoint(BODY, policy=POLICY), or 'error CLASS: text'. The bodies (x, w, b of the shapes in ARGUMENTS) are
    mlp         h = checkpoint_name(sin(dot(x, w)), 'hidden'); o = sin(dot(h, w)) * exp(b); return reduce_sum(o, axes=(0, 1))
    attention   batched dot_general and a plain dot: scores = dot_general(x3, x3, batch 0, contract 2), p = exp(scores),
                named 'scores'; y = dot_general(p, x3); return reduce_sum(sin(dot(reshape(y, (4, 3)), w))) with x3 = x
                reshaped to (2, 2, 3)
    loop        scan over the rows of w with carry x: c = sin(c * row), named 'carry'; return reduce_sum of the carry
    nested      the same loop with its step checkpointed, which also stacks cos(c): sums sin of the carry and of the stack
The arguments of policies that take some are in policies() below; 'none' is jax.checkpoint without a policy.
"""
import os
import re
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax._src.ad_checkpoint import saved_residuals  # noqa: E402
from jax.ad_checkpoint import checkpoint_name  # noqa: E402

import expected  # noqa: E402
from expected import recordings  # noqa: E402

f32 = np.float32
ARGUMENTS = {
    "mlp": [(4, 3), (3, 3), (4, 3)], "attention": [(4, 3), (3, 3), (4, 3)], "loop": [(3,), (5, 3), (3,)],
    "nested": [(3,), (5, 3), (3,)],
}


def mlp(x, w, b):
  hidden = checkpoint_name(lax.sin(lax.dot(x, w)), "hidden")
  return lax.reduce_sum(lax.sin(lax.dot(hidden, w)) * lax.exp(b), axes=(0, 1))


def attention(x, w, b):
  x3 = lax.reshape(x, (2, 2, 3))
  scores = checkpoint_name(lax.dot_general(x3, x3, (((2,), (2,)), ((0,), (0,)))), "scores")
  y = lax.dot_general(lax.exp(scores), x3, (((2,), (1,)), ((0,), (0,))))
  return lax.reduce_sum(lax.sin(lax.dot(lax.reshape(y, (4, 3)), w)), axes=(0, 1))


def loop(x, w, b):
  def step(c, row):
    return checkpoint_name(lax.sin(c * row), "carry"), None
  return lax.reduce_sum(lax.scan(step, x, w)[0], axes=(0,))


def nested(x, w, b):
  @jax.checkpoint
  def step(c, row):
    return checkpoint_name(lax.sin(c * row), "carry"), lax.cos(c)
  carry, stacked = lax.scan(step, x, w)
  return lax.reduce_sum(lax.sin(carry), axes=(0,)) + lax.reduce_sum(lax.sin(stacked), axes=(0, 1))


def policies():
  p = jax.checkpoint_policies
  names = ("hidden", "scores", "carry")
  made = {
      "none": None,  # jax.checkpoint without a policy
      "everything_saveable": p.everything_saveable, "nothing_saveable": p.nothing_saveable,
      "dots_saveable": p.dots_saveable, "checkpoint_dots": p.checkpoint_dots,
      "dots_with_no_batch_dims_saveable": p.dots_with_no_batch_dims_saveable,
      "checkpoint_dots_with_no_batch_dims": p.checkpoint_dots_with_no_batch_dims,
      "save_anything_except_these_names": p.save_anything_except_these_names(*names),
      "save_any_names_but_these": p.save_any_names_but_these("hidden"),
      "save_only_these_names": p.save_only_these_names(*names),
      "save_from_both_policies": p.save_from_both_policies(
          p.dots_with_no_batch_dims_saveable, p.save_only_these_names("scores")),
      "offload_dot_with_no_batch_dims": p.offload_dot_with_no_batch_dims("device", "pinned_host"),
      "save_and_offload_only_these_names": p.save_and_offload_only_these_names(
          names_which_can_be_saved=["hidden"], names_which_can_be_offloaded=["scores", "carry"],
          offload_src="device", offload_dst="pinned_host"),
  }
  left = set(vars(p)) - set(made)
  assert not left, left
  return made


def origin(text):
  if match := re.match(r"from the argument (\w+)", text):
    return f"argument {'xwb'.index(match[1])}"
  if match := re.match(r"named '(\w+)'", text):
    return f"named {match[1]}"
  if match := re.match(r"output of (\w[\w-]*)", text):
    return f"output of {match[1]}"
  return {"from a literal": "literal", "from a constant": "constant"}[text]


def records():
  for body in (mlp, attention, loop, nested):
    arguments = [np.ones(shape, f32) for shape in ARGUMENTS[body.__name__]]
    for name, policy in policies().items():
      function = jax.checkpoint(body, policy=policy)
      lines = []
      try:
        for aval, source in saved_residuals(function, *arguments):
          lines.append(f"field saved {aval.dtype.name}[{','.join(map(str, aval.shape))}] {origin(source)}")
      except Exception as error:
        lines.append(f"field error {type(error).__name__}: " + str(error).split("\n")[0][:160])
      yield f"{body.__name__}/{name}", lines
    lines = [f"field saved {aval.dtype.name}[{','.join(map(str, aval.shape))}] {origin(source)}"
             for aval, source in saved_residuals(body, *arguments)]
    yield f"{body.__name__}/without_checkpoint", lines


def main():
  comment = f"Residuals by checkpoint policy, made by tests/oracle/make_residuals.py with jax {jax.__version__}; see there."
  expected.write(recordings.output("residuals.expected"), comment, records())


if __name__ == "__main__":
  main()
