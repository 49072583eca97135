"""No call hangs, and Ctrl-C ends every wait: kernels of all families on all threads, signals, locks and process exit."""
import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")

PRELUDE = """
    import os, signal, subprocess, sys, threading, time
    import numpy as np
    import capibara.jax as jax
    import capibara.jax.numpy as jnp
    from capibara.jax import lax
    import capibara.jax.scipy  # an interrupt during an import stays with Python, which then ends with the status of the signal
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where tests run in the background
    """


def run(program, threads=None, timeout=300):
  environment = dict(os.environ, **({"CAPIBARA_NUM_THREADS": str(threads)} if threads else {}))
  result = subprocess.run([sys.executable, "-c", textwrap.dedent(PRELUDE) + textwrap.dedent(program)], capture_output=True, text=True,
                          timeout=timeout, env=environment)
  assert result.returncode == 0, f"status {result.returncode}\n{result.stdout}{result.stderr}"
  return result.stdout


# ---- threads ------------------------------------------------------------------------------------------------------

FAMILIES = {
    "matmul": "lambda: a[0] @ a[1]",
    "batched matmul": "lambda: a @ a",
    "einsum": "lambda: jnp.einsum('bij,bjk->bik', a, a)",
    "vmap": "lambda: jax.vmap(lambda v: v @ v)(a)",
    "convolution": "lambda: lax.conv(image, filters, (1, 1), 'SAME')",
    "sort": "lambda: (jnp.sort(long), jnp.argsort(a, axis=1), lax.top_k(long, 7))",
    "scatter": "lambda: (long.at[places].add(1.0), a.at[:, 3].max(0.5), long.at[places].mul(2.0))",
    "gather": "lambda: (long[places], a[:, ::-1], jnp.take(a, places % 64, axis=1))",
    "fft": "lambda: (jnp.fft.fft(a), jnp.fft.rfft2(a))",
    "reductions": "lambda: (a.sum(), a.max(axis=1), jnp.argmin(a, axis=2), jnp.linalg.norm(a, axis=0), a.std())",
    "windows": "lambda: (lax.reduce_window(a, -jnp.inf, lax.max, (1, 3, 3), (1, 2, 2), 'SAME'), jax.grad(lambda v: lax.reduce_window(v, -jnp.inf, lax.max, (1, 3, 3), (1, 1, 1), 'SAME').sum())(a))",
    "cumulative": "lambda: (jnp.cumsum(a, axis=1), lax.cummax(long), lax.cumlogsumexp(a, axis=2))",
    "random": "lambda: (jax.random.normal(key, (40000,)), jax.random.gamma(key, 2.0, (300,)), jax.random.permutation(key, 5000))",
    "linear algebra": "lambda: (jnp.linalg.inv(spd), jnp.linalg.cholesky(spd), jnp.linalg.eigh(spd), jnp.linalg.svd(a[:3]))",
    "attention": "lambda: jax.nn.dot_product_attention(heads, heads, heads)",
    "expm": "lambda: jax.scipy.linalg.expm(a[:4] / 64)",
    "elementwise": "lambda: jnp.tanh(a) * jnp.exp(-a) + jnp.where(a > 0, a, 0)",
    "loops": "lambda: lax.fori_loop(0, 3, lambda i, v: v @ v / 64, a)",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_run_eagerly_on_all_threads(family):
  # More threads than the machine has: a kernel that waited for the GIL would wait forever.
  out = run(f"""
      random = np.random.RandomState(0)
      a = jnp.asarray(random.randn(12, 64, 64), "float32")
      long = jnp.asarray(random.randn(50000), "float32")
      places = jnp.asarray(random.randint(0, 50000, 20000))
      image = jnp.asarray(random.randn(4, 3, 40, 40), "float32")
      filters = jnp.asarray(random.randn(8, 3, 3, 3), "float32")
      heads = jnp.asarray(random.randn(2, 64, 4, 16), "float32")
      spd = a[:6] @ a[:6].transpose(0, 2, 1) + 64 * jnp.eye(64)
      key = jax.random.key(0)
      call = {FAMILIES[family]}
      want = jax.tree.map(np.asarray, call())
      end = time.monotonic() + 0.4
      count = 0
      while count < 3 or time.monotonic() < end:
          got = call()
          count += 1
      jax.tree.map(lambda x, y: np.testing.assert_array_equal(np.asarray(x), y), got, want)
      print("ok")
      """, threads=max(2, os.cpu_count() or 2))
  assert out == "ok\n"


# Keys with equal numbers are equal, after a pause in which other threads run.
SLOW_KEY = """
      class Key:
          def __init__(self, n): self.n = n
          def __hash__(self): return 1
          def __eq__(self, other):
              time.sleep(0.0005)
              return isinstance(other, Key) and self.n == other.n
"""


def test_threads_that_compare_keys_in_python_do_not_wait_for_each_other():
  # __eq__ and __del__ let other threads run in the middle of a lookup in jit's cache and in the tables of derived programs.
  out = run(SLOW_KEY + """
          def __del__(self): time.sleep(0.0001)
      f = jax.jit(lambda k, x: x * k.n, static_argnums=0)
      x = jnp.arange(4.0)
      wrong = []
      def work(seed):
          for i in range(12):
              n = (seed + i) % 5
              if float(f(Key(n), x)[1]) != n or float(jax.grad(lambda v: f(Key(n), v).sum())(x)[0]) != n: wrong.append(n)
              if i % 5 == 4: f.clear_cache()
      threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
      [t.start() for t in threads]
      [t.join() for t in threads]
      assert not wrong
      print("ok")
      """)
  assert out == "ok\n"


def test_threads_that_compare_parameters_of_programs_do_not_wait_for_each_other():
  out = run(SLOW_KEY + """
      from capibara.jax.extend.core import Primitive
      from capibara.jax.interpreters import ad
      scale = Primitive("scale")
      scale.def_impl(lambda x, *, key: x * key.n)
      scale.def_abstract_eval(lambda x, *, key: x)
      ad.deflinear2(scale, lambda ct, x, *, key: [scale.bind(ct, key=key)])
      wrong = []
      def work(seed):
          for i in range(10):
              n = (seed + i) % 5 + 1
              f = jax.jit(lambda v: scale.bind(v * v, key=Key(n)).sum())
              if float(jax.grad(f)(jnp.ones(3))[0]) != 2.0 * n: wrong.append(n)
      threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
      [t.start() for t in threads]
      [t.join() for t in threads]
      assert not wrong
      print("ok")
      """)
  assert out == "ok\n"


def test_a_jitted_function_goes_after_the_comparison_of_its_static_arguments_failed():
  out = run("""
      import gc
      class Incomparable:
          def __hash__(self): return 1
          def __eq__(self, other): raise NotImplementedError("never equal")
      for f, call in ((jax.jit(lambda s, y: y, static_argnums=0), lambda f: f(Incomparable(), 1)),
                      (jax.jit(lambda y, s: y, static_argnames="s"), lambda f: f(1, s=Incomparable()))):
          call(f)
          try:
              call(f)
              print("no error")
          except ValueError as error:
              lines = str(error).splitlines()
              print(lines[0])
              print(lines[-1])
          f.clear_cache()
          assert call(f) == 1
      del f, call
      gc.collect()
      """)
  text = ("static arguments should be comparable using __eq__.The following error was raised when comparing two objects of types "
          "<class '__main__.Incomparable'> and <class '__main__.Incomparable'>. The error was:\nNotImplementedError: never equal\n")
  assert out == 2 * text  # the text of jax 0.10.2


# ---- process exit ---------------------------------------------------------------------------------------------------

def test_structures_kept_by_derived_programs_outlive_the_interpreter():
  out = run("""
      import collections
      Pair = collections.namedtuple("Pair", "first second")
      @jax.custom_vjp
      def f(p): return Pair({"a": p.first * 2}, (p.second,))
      f.defvjp(lambda p: (f(p), {"kept": Pair(p.first, ())}), lambda kept, g: (Pair(g.first["a"] * 3, g.second[0] + 2),))
      g = jax.grad(jax.jit(lambda p: f(p).first["a"] + f(p).second[0]))(Pair(jnp.array(1.0), jnp.array(2.0)))
      print(float(g.first), float(g.second))
      """)
  assert out == "3.0 5.0\n"


@pytest.mark.parametrize("running", ["jax.jit(lambda x: lax.while_loop(lambda v: v[0] >= 0, lambda v: v * 1.0, x))(jnp.ones(3))",
                                     "jnp.linalg.svd(jnp.asarray(np.random.RandomState(0).randn(1500, 1500), 'float32'))"],
                         ids=["endless loop", "LAPACK"])
def test_the_process_ends_with_its_status_while_work_runs(running):
  result = subprocess.run([sys.executable, "-c", textwrap.dedent(PRELUDE) + f"never = {running}\nprint('end')\nsys.exit(3)"],
                          capture_output=True, text=True, timeout=300)
  assert (result.returncode, result.stdout) == (3, "end\n"), result.stderr


# ---- Ctrl-C -------------------------------------------------------------------------------------------------------

LONG = {
    "elementwise": "lambda n: jax.jit(lambda x: lax.fori_loop(0, 200 * n, lambda i, v: jnp.sin(v) + 1, x))(jnp.ones(100000))",
    "matmul": "lambda n: jnp.ones((500 * n, 3000)) @ jnp.ones((3000, 3000))",
    "integer matmul": "lambda n: jnp.ones((200 * n, 1500), 'int16') @ jnp.ones((1500, 1500), 'int16')",
    "convolution": "lambda n: lax.conv(jnp.ones((n, 8, 256, 256)), jnp.ones((32, 8, 15, 15)), (1, 1), 'SAME')",
    "sort": "lambda n: jnp.sort(jnp.cos(jnp.arange(3000000.0 * n)))",
    "sort of pairs": "lambda n: lax.sort((jnp.cos(jnp.arange(1000000.0 * n)), jnp.arange(1000000 * n)), num_keys=1)",
    "top_k": "lambda n: lax.top_k(jnp.cos(jnp.arange(4000000.0 * n)).reshape(2000, -1), 50)",
    "scatter": "lambda n: jnp.zeros(1000003).at[jnp.arange(3000000 * n) * 7919 % 1000003].add(1.0)",
    "gather": "lambda n: jnp.take(jnp.zeros((100003, 16)), jnp.arange(1000000 * n) * 7919 % 100003, axis=0)",
    "fft": "lambda n: jnp.fft.fft(jnp.ones((20 * n, 1 << 15)))",
    "fft of a prime length": "lambda n: jnp.fft.fft(jnp.ones((10 * n, 32749)))",
    "cumulative": "lambda n: lax.cumlogsumexp(jnp.ones((3000000 * n,)))",
    "window": "lambda n: lax.reduce_window(jnp.ones((10 * n, 300, 300)), 0.0, lax.add, (1, 41, 41), (1, 1, 1), 'SAME')",
    "general reduction": "lambda n: lax.reduce((jnp.arange(1000000 * n), jnp.arange(1000000 * n)), (0, 0), lambda x, y: (x[0] + y[1], x[1] ^ y[0]), (0,))",
    "random gamma": "lambda n: jax.random.gamma(jax.random.key(0), 2.0, (200000 * n,))",
    "special functions": "lambda n: jax.scipy.special.gammainc(2.0, jnp.arange(300000.0 * n) / 1000)",
    "singular values": "lambda n: jnp.linalg.svd(jnp.cos(jnp.arange(90000.0 * n * n)).reshape(300 * n, -1))",
    "many small factorisations": "lambda n: jnp.linalg.qr(jnp.cos(jnp.arange(320000.0 * n)).reshape(-1, 8, 8))",
    "endless loop": "lambda n: jax.jit(lambda x: lax.while_loop(lambda v: v[0] >= 0, lambda v: v * 1.0, x))(jnp.ones(3))",
}


@pytest.mark.parametrize("kernel", LONG)
def test_ctrl_c_ends_the_wait_for_a_kernel_and_later_calls_run(kernel):
  # Each attempt takes longer than the one before it, until the signal finds the kernel running: either the call itself ends, or the
  # result reports the interruption, which shows that the wait was cut short.
  out = run(f"""
      start = {LONG[kernel]}
      for n in (2, 4, 8, 16, 32, 64):
          result = None
          signals = subprocess.Popen(["sh", "-c", "sleep 0.05; kill -INT %d" % os.getpid()])
          try:
              result = start(n)
              jax.block_until_ready(result)
              signals.wait()
              time.sleep(5)  # where a callback of Python's took the interruption, which it forgets, the next attempt follows
          except KeyboardInterrupt:
              pass
          signals.wait()
          if result is None:
              break
          try:
              jax.block_until_ready(result)
          except jax.errors.JaxRuntimeError as error:
              assert "interrupted" in str(error), error
              break
      else:
          sys.exit("never interrupted while it ran")
      x = jnp.arange(6.0).reshape(2, 3)
      print(float(x.sum()), float(jax.jit(lambda v: (v @ v.T).sum())(x)), float(jnp.sort(jnp.arange(30000)[::-1])[7]))
      """)
  assert out == "15.0 83.0 7.0\n"


def test_an_endless_callback_blocks_nobody():
  out = run("""
      release = threading.Event()
      entered = threading.Event()
      def wait(v):
          entered.set()
          release.wait()
          return v
      f = jax.jit(lambda x: jax.pure_callback(wait, x, lax.fori_loop(0, 1000, lambda i, v: jnp.sin(v), x)))
      def interrupt():
          entered.wait()
          os.kill(os.getpid(), signal.SIGINT)
      threading.Thread(target=interrupt, daemon=True).start()
      try:
          print("no interruption", jax.block_until_ready(f(jnp.ones(10000))))
      except KeyboardInterrupt:
          print("stopped", float(jax.jit(lambda v: v.sum())(jnp.ones(40000))))
      release.set()
      """)
  assert out == "stopped 40000.0\n"


def test_a_handler_that_does_not_raise_interrupts_nothing():
  out = run("""
      seen = []
      signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
      later = subprocess.Popen(["sh", "-c", "sleep 0.1; kill -USR1 %d" % os.getpid()])
      n = 0
      while not seen:
          n += 1
          result = jnp.sort(jnp.cos(jnp.arange(400000.0 * n))).block_until_ready()
      later.wait()
      print(bool(jnp.all(result[1:] >= result[:-1])))
      """)
  assert out == "True\n"
