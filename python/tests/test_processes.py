"""Two processes of one program: they meet at the coordinator, share its key-value store, and see their devices."""
import os
import socket
import subprocess
import sys
import textwrap

import pytest

from test_sharding import plugin

pytest.importorskip("capibara._core", reason="the Python extension is not built")


def free_port():
  with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    return listener.getsockname()[1]


def run_both(program, **environment):
  """Starts the program as processes 0 and 1; returns what each printed."""
  port = free_port()
  started = [subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=dict(os.environ, ADDRESS=f"127.0.0.1:{port}", NUMBER=str(number), **environment)) for number in range(2)]
  printed = []
  for process in started:
    try:
      out, err = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
      for one in started:
        one.kill()
      raise
    assert process.returncode == 0, out + err
    printed.append(out.split())
  return printed


MEET = """
    import os
    import capibara.jax as jax
    number = int(os.environ["NUMBER"])
    assert not jax.distributed.is_initialized()
    jax.distributed.initialize(os.environ["ADDRESS"], num_processes=2, process_id=number)
    """


def test_meet_and_part():
  out = run_both(MEET + """
    assert jax.distributed.is_initialized()
    print(jax.process_index(), jax.process_count())
    try:
        jax.distributed.initialize(os.environ["ADDRESS"], num_processes=2, process_id=number)
    except RuntimeError as error:
        print("once" if "only be called once" in str(error) else error)
    jax.distributed.shutdown()
    print(jax.process_count())
    """)
  assert out == [["0", "2", "once", "1"], ["1", "2", "once", "1"]]


@pytest.mark.skipif(plugin() is None, reason="no plugin of XLA:CPU (xla-cpu-pjrt)")
def test_compute_beside_each_other():
  # xla-cpu-pjrt 0.0.1 takes no number of a process: each sees its own devices.
  out = run_both(MEET + """
    import capibara.jax.numpy as jnp
    print(len(jax.local_devices()), float(jax.jit(lambda x: (x * x).sum())(jnp.arange(4.0) + number)))
    """, CAPIBARA_PLUGIN=plugin() or "", JAX_PLATFORMS="xla_cpu", JAX_NUM_CPU_DEVICES="2")
  assert out == [["2", "14.0"], ["2", "30.0"]]


def test_one_that_is_alone_says_so():
  program = """
    import capibara.jax as jax
    try:
        jax.distributed.initialize("127.0.0.1:%d", num_processes=2, process_id=1, initialization_timeout=1)
    except RuntimeError as error:
        print("DEADLINE_EXCEEDED" in str(error), jax.distributed.is_initialized())
    """ % free_port()
  done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
  assert done.stdout.split() == ["True", "False"], done.stdout + done.stderr
