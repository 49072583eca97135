"""Writes transforms.expected: every body of transform_bodies.py under every stack of transforms, with the installed jax.

    python make_transforms.py [OUTPUT]          (default: tests/data/transforms.expected.tar.xz)

Each record BODY/STACK holds the inputs in call order (arrays 'input'), the results flattened (arrays 'output', with weak
flags) and the jaxpr of the whole (text 'jaxpr', as printed by jax.make_jaxpr at width 80; the host callback's Python object
is replaced by '...'). If jax itself raises, the record has a field 'error CLASS: first line' and no outputs ('limitation'
instead of 'error': jax fails because of its own limitation, any result or error is fine).
field jaxpr: 'compare', or 'values_only' where the text holds internals of jax (jacobians build their basis with
jax.numpy). The stacks below are the definition for the C++ side: s(f) is the scalar function reduce_sum(f(x, w)) over all
axes. Every function given to jit is named f.
"""
import os
import re
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax import grad, jit, jvp, linearize, vjp, vmap  # noqa: E402
from jax import checkpoint as remat  # noqa: E402

import expected  # noqa: E402
from expected import recordings  # noqa: E402
from transform_bodies import BODIES, numbers, total  # noqa: E402


def named(f):
  f.__name__ = f.__qualname__ = "f"
  return f


def s(f):
  """The scalar function of a body."""
  return named(lambda *args: total(f(*args)))


BOTH = (0, 1)

# name -> (inputs, definition). Inputs: x w; dx dw tangents; ct cotangent of f(x, w); xs ws stacks of 3 along axis 0;
# dxs tangents of xs; xe is xs with the batch axis last.
STACKS = {
    "call": ("x w", lambda f: lambda x, w: f(x, w)),
    "jit": ("x w", lambda f: lambda x, w: jit(f)(x, w)),
    "jvp": ("x w dx dw", lambda f: lambda x, w, dx, dw: jvp(f, (x, w), (dx, dw))),
    "jvp_x": ("x w dx", lambda f: lambda x, w, dx: jvp(lambda x: f(x, w), (x,), (dx,))),
    "grad": ("x w", lambda f: lambda x, w: grad(s(f), BOTH)(x, w)),
    "vjp": ("x w ct", lambda f: lambda x, w, ct: vjp(f, x, w)[1](ct)),
    "linearize": ("x w dx dw", lambda f: lambda x, w, dx, dw: pushforward(f, x, w, dx, dw)),
    "vmap": ("xs ws", lambda f: lambda xs, ws: vmap(f)(xs, ws)),
    "vmap_x": ("xs w", lambda f: lambda xs, w: vmap(f, in_axes=(0, None))(xs, w)),
    "vmap_last": ("xe w", lambda f: lambda xe, w: vmap(f, in_axes=(-1, None), out_axes=1)(xe, w)),
    "jit_grad": ("x w", lambda f: lambda x, w: jit(grad(s(f), BOTH))(x, w)),
    "grad_jit": ("x w", lambda f: lambda x, w: grad(s(jit(f)), BOTH)(x, w)),
    "vmap_grad": ("xs w", lambda f: lambda xs, w: vmap(grad(s(f), BOTH), in_axes=(0, None))(xs, w)),
    "grad_vmap": ("xs w", lambda f: lambda xs, w: grad(s(vmap(f, in_axes=(0, None))), BOTH)(xs, w)),
    "jvp_vmap": ("xs w dxs dw", lambda f: lambda xs, w, dxs, dw: jvp(vmap(f, in_axes=(0, None)), (xs, w), (dxs, dw))),
    "vmap_jvp": ("xs w dxs", lambda f: lambda xs, w, dxs: vmap(lambda x, d: jvp(lambda x: f(x, w), (x,), (d,)))(xs, dxs)),
    "vmap_vmap": ("xs ws", lambda f: lambda xs, ws: vmap(vmap(f, (None, 0)), (0, None))(xs, ws)),
    "jvp_grad": ("x w dx", lambda f: lambda x, w, dx: jvp(lambda x: grad(s(f))(x, w), (x,), (dx,))),
    "grad_grad": ("x w", lambda f: lambda x, w: grad(s(grad(s(f))), BOTH)(x, w)),
    "grad_jvp": ("x w dx", lambda f: lambda x, w, dx: grad(s(lambda x: jvp(lambda x: f(x, w), (x,), (dx,))[1]))(x)),
    "jvp_jvp": ("x w dx", lambda f: lambda x, w, dx: jvp(lambda x: jvp(lambda x: f(x, w), (x,), (dx,))[1], (x,), (dx,))),
    "jit_vmap_grad": ("xs w", lambda f: lambda xs, w: jit(vmap(grad(s(f), BOTH), in_axes=(0, None)))(xs, w)),
    "vmap_jit_grad": ("xs w", lambda f: lambda xs, w: vmap(jit(grad(s(f), BOTH)), in_axes=(0, None))(xs, w)),
    "grad_jit_vmap": ("xs w", lambda f: lambda xs, w: grad(s(jit(vmap(f, in_axes=(0, None)))), BOTH)(xs, w)),
    "jvp_jit_grad": ("x w dx", lambda f: lambda x, w, dx: jvp(lambda x: jit(grad(s(f)))(x, w), (x,), (dx,))),
    "grad_remat": ("x w", lambda f: lambda x, w: grad(s(remat(f)), BOTH)(x, w)),
    "remat_grad": ("x w", lambda f: lambda x, w: remat(grad(s(f), BOTH))(x, w)),
    "vmap_grad_remat": ("xs w", lambda f: lambda xs, w: vmap(grad(s(remat(f)), BOTH), in_axes=(0, None))(xs, w)),
    "jacfwd": ("x w", lambda f: lambda x, w: jax.jacfwd(f)(x, w)),
    "jacrev": ("x w", lambda f: lambda x, w: jax.jacrev(f)(x, w)),
    "hessian": ("x w", lambda f: lambda x, w: jax.hessian(s(f))(x, w)),
}
# Wrong results of jax: it writes a value with another batch axis position to a ref without moving the axis.
WRONG_IN_JAX = {"ref/vmap_last": "the batch axis of a value written to a ref is not moved to the ref's"}
VALUES_ONLY = {"jacfwd", "jacrev", "hessian"}


def pushforward(f, x, w, dx, dw):
  y, tangent = linearize(f, x, w)
  return y, tangent(dx, dw)


def make_inputs(f, x, w):
  """All inputs that a stack may need; batch members differ in signs and magnitudes, so that branches differ."""
  variants = [x, (x * x.dtype.type(-0.5)).astype(x.dtype), (x + x.dtype.type(1.25)).astype(x.dtype)]
  xs = np.stack(variants)
  ws = np.stack([w, (w * w.dtype.type(0.5)).astype(w.dtype), (w - w.dtype.type(0.125)).astype(w.dtype)])
  out = jax.eval_shape(f, x, w)
  return {
      "x": x, "w": w, "dx": numbers(x.shape, 3, x.dtype), "dw": numbers(w.shape, 4, w.dtype),
      "ct": numbers(out.shape, 5, out.dtype), "xs": xs, "ws": ws, "dxs": numbers(xs.shape, 6, x.dtype),
      "xe": np.ascontiguousarray(np.moveaxis(xs, 0, -1)),
  }


def clean(text):
  text = re.sub(r"callback=_FlatCallback\(.*", "callback=...", text)
  assert "0x" not in text.replace("0xX", ""), text
  return re.sub(r"0xX+", "0x", text)


def first_line(error):
  return f"{type(error).__name__}: " + (str(error).strip().split("\n") or [""])[0][:160]


def record(name, stack, f, inputs, flags):
  wanted, define = STACKS[stack]
  args = [inputs[k] for k in wanted.split()]
  lines = [f"field inputs {wanted}"]
  values_only = stack in VALUES_ONLY or "values_only" in flags
  lines.append("field jaxpr " + ("values_only" if values_only else "compare"))
  lines += [expected.array_line("input", a) for a in args]
  if f"{name}/{stack}" in WRONG_IN_JAX:
    return f"{name}/{stack}", lines + [f"field limitation {WRONG_IN_JAX[f'{name}/{stack}']}"]
  try:
    program = jax.make_jaxpr(define(f))(*args)
    outputs = jax.tree.leaves(jax.jit(define(f))(*args))
  except Exception as error:  # which errors jax raises is part of what is recorded
    # Bodies with refs hit limitations of jax itself: ours may raise or return the true value.
    kind = "limitation" if name == "ref" else "error"
    return f"{name}/{stack}", lines + [f"field {kind} {first_line(error)}"]
  for aval, out in zip(program.out_avals, outputs, strict=True):
    assert (aval.shape, aval.dtype) == (out.shape, out.dtype)
    lines.append(expected.array_line("output", out, weak=aval.weak_type))
  if not values_only:
    lines += expected.text_lines("jaxpr", clean(str(program)))
  return f"{name}/{stack}", lines


def records(chosen):
  for name, (function, x, w, flags) in BODIES.items():
    if chosen and name not in chosen:
      continue
    def f(x, w, function=function):
      return function(x, w)
    named(f)
    inputs = make_inputs(f, x, w)
    for stack in STACKS:
      jax.clear_caches()
      yield record(name, stack, f, inputs, flags)


def main():
  comment = (f"Transform programs, made by tests/oracle/make_transforms.py with jax {jax.__version__}; "
             "format: tests/oracle/expected.py.")
  expected.write(recordings.output("transforms.expected"), comment, records(sys.argv[2:]))


if __name__ == "__main__":
  main()
