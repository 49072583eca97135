"""The extension in a process: what it loads and keeps in memory, threads, forks and Ctrl-C."""
import glob
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")


def run(program, **kwargs):
  result = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300, **kwargs)
  assert result.returncode == 0, result.stdout + result.stderr
  return result.stdout


def test_import_loads_neither_jax_nor_llvm_nor_lapack():
  out = run("""
      import sys
      import capibara.jax
      assert not [name for name in sys.modules if name.split(".")[0] in ("jax", "jaxlib")]
      mapped = [line.split()[-1] for line in open("/proc/self/maps") if "/" in line]
      ours = [path for path in mapped if "site-packages/numpy" not in path and "numpy.libs" not in path]
      assert not [path for path in ours if "LLVM" in path or "lapack" in path or "openblas" in path], ours
      print("ok")
      """)
  assert out == "ok\n"


def test_modules_show_only_their_entries():
  import capibara._core as core
  folder = os.path.dirname(core.__file__)
  modules = glob.glob(os.path.join(folder, "..", "..", "lib", "libcapibara_*.so"))
  for path in [core.__file__] + [path for path in modules if "_cuda" not in path]:
    shown = subprocess.run(["nm", "--dynamic", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1] for line in shown.splitlines()]
    assert 1 <= len(names) <= 2 and all(name.startswith(("PyInit_", "capibara_", "GetPjrtApi")) for name in names), (path, names[:10])


LEAKS = """
    import gc, resource
    import capibara.jax as jax
    import capibara.jax.numpy as jnp

    def resident():
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    x = jnp.arange(4.0)
    jitted = jax.jit(lambda a: a * 2 + 1)

    def calls(count):
        for _ in range(count):
            jitted(x)

    def functions(count):
        for i in range(count):
            jax.jit(lambda a: a * 2 + 1)(x)
            jax.grad(lambda a: (a * a).sum())(x)
            jax.make_jaxpr(lambda a: a + 1)(x)

    calls(2000), functions(200)
    before = resident()
    calls(CALLS)
    functions(FUNCTIONS)
    grown = resident() - before
    assert grown < 12 << 20, f"{grown} bytes kept after CALLS calls and FUNCTIONS traced functions"
    print("flat")
    """


def test_calls_and_traced_functions_leak_nothing():
  assert run(LEAKS.replace("CALLS", "20000").replace("FUNCTIONS", "2000")) == "flat\n"


@pytest.mark.slow
@pytest.mark.long
def test_many_calls_and_traced_functions_leak_nothing():
  assert run(LEAKS.replace("CALLS", "100000").replace("FUNCTIONS", "10000")) == "flat\n"


def test_threads_agree_with_one_thread():
  out = run("""
      import threading
      import capibara.jax as jax
      import capibara.jax.numpy as jnp

      shared = jax.jit(lambda a, n: jnp.sin(a) * n, static_argnums=1)

      def work(i):
          own = jax.jit(lambda a: jnp.cos(a) + i)
          total = 0.0
          for step in range(40):
              x = jnp.arange(5.0) + step
              total += float(own(x).sum()) + float(shared(x, i % 3).sum())
              total += float(jax.grad(lambda a: (a * own(a)).sum())(x).sum())
          return total

      expected = [work(i) for i in range(8)]
      got = [None] * 8
      threads = [threading.Thread(target=lambda i=i: got.__setitem__(i, work(i))) for i in range(8)]
      [t.start() for t in threads]
      [t.join() for t in threads]
      assert got == expected, (got, expected)
      print("ok")
      """)
  assert out == "ok\n"


def test_a_forked_child_computes():
  out = run("""
      import os, sys
      import capibara.jax as jax
      import capibara.jax.numpy as jnp
      double = jax.jit(lambda a: a * 2)
      double(jnp.arange(3.0))
      child = os.fork()
      if child == 0:
          ok = float(double(jnp.arange(3.0)).sum()) == 6.0 and float(jax.jit(lambda a: a + 1)(1.0)) == 2.0
          os._exit(0 if ok else 1)
      assert os.waitpid(child, 0)[1] == 0
      print("ok")
      """)
  assert out == "ok\n"


def test_ctrl_c_stops_a_long_program():
  program = textwrap.dedent("""
      import signal
      signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where tests run in the background
      import capibara.jax as jax
      import capibara.jax.numpy as jnp
      forever = jax.jit(lambda x: jax.lax.while_loop(lambda v: v[0] >= 0, lambda v: v * 1.0, x))
      print("running", flush=True)
      try:
          forever(jnp.ones(3)).block_until_ready()
      except KeyboardInterrupt:
          print("stopped", float(jnp.ones(3).sum()), flush=True)
      """)
  process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
  try:
    assert process.stdout.readline() == "running\n"
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "stopped 3.0\n"
  finally:
    process.kill()


def test_the_call_of_a_long_program_returns_at_once_and_its_error_comes_with_the_next_use():
  out = run("""
      import os, signal, threading, time
      import capibara.jax as jax
      import capibara.jax.numpy as jnp
      signal.signal(signal.SIGINT, signal.default_int_handler)
      forever = jax.jit(lambda x: jax.lax.while_loop(lambda v: v[0] >= 0, lambda v: v * 1.0, x))
      never = forever(jnp.ones(3))
      after = jax.jit(lambda x: x + 1)(never)
      assert not never.is_ready() and not after.is_ready() and after.shape == (3,)
      counted = []
      def count():
          for i in range(20):
              counted.append(i)
              time.sleep(0.01)
          os.kill(os.getpid(), signal.SIGINT)
      threading.Thread(target=count).start()
      try:
          after.block_until_ready()
      except KeyboardInterrupt:
          assert len(counted) == 20, "other threads run while one waits"
      for value in (never, after):
          try:
              value + 1
              print("no error")
          except jax.errors.JaxRuntimeError as error:
              assert "interrupted" in str(error), error
      print(float(jnp.ones(3).sum()))
      """)
  assert out == "3.0\n"


def test_a_process_ends_while_a_program_runs():
  assert run("""
      import capibara.jax as jax
      import capibara.jax.numpy as jnp
      forever = jax.jit(lambda x: jax.lax.while_loop(lambda v: v[0] >= 0, lambda v: v * 1.0, x))
      never = forever(jnp.ones(3))
      print("end")
      """) == "end\n"


def test_import_leaves_numpy_for_later():
  out = run("""
      import sys
      import capibara.jax as jax
      assert "numpy" not in sys.modules
      assert {"numpy", "lax", "float0", "jit"} <= set(dir(jax))
      from capibara.jax import numpy as jnp
      assert jax.numpy is jnp and isinstance(jax.jit(lambda x: x + 1)(1.0), jnp.ndarray)
      print("ok")
      """)
  assert out == "ok\n"


def test_a_call_like_the_last_one_is_told_from_others():
  out = run("""
      import collections, numpy as np
      import capibara.jax as jax
      import capibara.jax.numpy as jnp
      traced = []
      @jax.jit
      def f(tree, *, scale=1):
          traced.append(None)
          return jax.tree.map(lambda x: x * scale, tree)
      x = jnp.arange(3.0)
      Pair = collections.namedtuple("Pair", "a b")
      trees = [x, (x, x), [x, x], {"a": x, "b": x}, {"b": x, "a": (x, None)}, Pair(x, 2.0), {"a": x}, (), None, 2.0, 2,
               np.arange(3.0, dtype="float32"), jnp.arange(3), jnp.arange(4.0), (x, [x, {"k": 1}])]
      for repeat in range(3):
          for tree in trees:
              got = f(tree)
              assert jax.tree.structure(got) == jax.tree.structure(jax.tree.map(lambda v: v, tree)), (tree, got)
              for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(tree)):
                  assert a.dtype == jnp.asarray(b).dtype and a.weak_type == jnp.asarray(b).weak_type and np.array_equal(a, b)
      assert len(traced) == len(trees) - 1, len(traced)  # the NumPy array is like x
      assert f(x, scale=2)[1] == 2 and f(x, scale=2.0)[1] == 2 and f(scale=x, tree=x)[2] == 4
      h = jax.jit(lambda a, n: a * n, static_argnums=1)
      assert [h(x, n)[1] for n in (2, 3, 2, 3, 2.5)] == [2, 3, 2, 3, 2.5]
      with jax.enable_x64(True):
          assert f(2.0).dtype == "float64" and f(2.0).dtype == "float64"
      assert f(2.0).dtype == "float32"
      f.clear_cache()
      assert f._cache_size() == 0
      before = len(traced)
      f(x)
      assert len(traced) == before + 1 and f._cache_size() == 1
      donate = jax.jit(lambda a: a + 1, donate_argnums=0)
      y = x + 0
      for _ in range(4):
          old, y = y, donate(y)
          assert old.is_deleted()
      try:
          f(old)
          print("no error")
      except RuntimeError as error:
          assert "deleted" in str(error)
      print("ok")
      """)
  assert out == "ok\n"


def test_the_transform_programs_of_the_engine_evaluate_to_jaxs_values():
  here = os.path.dirname(os.path.abspath(__file__))
  oracle = os.path.join(here, "..", "..", "..", "tests", "oracle")
  result = subprocess.run([sys.executable, os.path.join(here, "transform_programs.py"), oracle], capture_output=True, text=True, timeout=600)
  assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
  passed, failed = (int(word) for word in result.stdout.splitlines()[-1].replace(" passed,", "").replace(" failed", "").split())
  assert passed > 900 and failed == 0


def test_a_script_that_imports_jax_runs_unchanged(tmp_path):
  script = tmp_path / "script.py"
  script.write_text("import sys\nimport jax\nimport jax.numpy as jnp\nfrom jax import lax, random\nfrom jax.tree_util import tree_map\n"
                    "assert jax.__version__ == '0.10.2'\nassert 'jaxlib' not in sys.modules\n"
                    "print(jax.jit(lambda x: lax.sin(x) + jnp.cos(x))(1.0), sys.argv[1:])\n")
  result = subprocess.run([sys.executable, "-m", "capibara", str(script), "a", "b"], capture_output=True, text=True, timeout=60)
  assert result.stdout == "1.3817732 ['a', 'b']\n", result.stdout + result.stderr
