"""Two processes of one program: they connect to the coordinator, share its key-value store, and see the devices of both."""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import textwrap

import pytest
from xla_cpu_plugin import needs_plugin, plugin

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


@needs_plugin
def test_compute_beside_each_other():
  # xla-cpu-pjrt 0.0.1 does not accept a process id: each process sees its own devices.
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


@pytest.fixture(scope="module")
def described_plugin(tmp_path_factory):
  """A plugin that describes two GPUs per process; its clients connect through the key-value store."""
  source = pathlib.Path(__file__).parents[3] / "tests" / "backends" / "pjrt" / "described_plugin.c"
  made = tmp_path_factory.mktemp("plugin") / "described_cuda_plugin.so"
  compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
  if compiler is None:
    pytest.skip("no C compiler")
  subprocess.run([compiler, "-shared", "-fPIC", "-o", str(made), str(source)], check=True)
  return str(made)


def test_see_the_devices_of_both(described_plugin):
  out = run_both(MEET + """
    print(len(jax.devices()), len(jax.local_devices()), *(f"{d.id}@{d.process_index}" for d in jax.devices()), *(d.id for d in jax.local_devices()))
    print(jax.local_device_count(), [d.id for d in jax.local_devices(process_index=1)])
    """, CAPIBARA_PLUGIN=described_plugin, JAX_PLATFORMS="cuda")
  devices = ["0@0", "1@0", "2@1", "3@1"]
  assert out == [["4", "2", *devices, "0", "1", "2", "[2,", "3]"], ["4", "2", *devices, "2", "3", "2", "[2,", "3]"]]


def test_one_process_alone_sees_its_devices(described_plugin):
  program = """
    import capibara.jax as jax
    jax.distributed.initialize("127.0.0.1:%d", num_processes=1, process_id=0)
    print(len(jax.devices()))
    """ % free_port()
  done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60,
                        env=dict(os.environ, CAPIBARA_PLUGIN=described_plugin, JAX_PLATFORMS="cuda"))
  assert done.stdout.split() == ["2"], done.stdout + done.stderr


def test_compile_for_gpus_that_are_described(described_plugin, tmp_path):
  program = """
    import capibara.jax as jax
    import capibara.jax.numpy as jnp
    from capibara.jax.experimental import topologies
    from capibara.jax.sharding import NamedSharding, PartitionSpec as P
    topology = topologies.get_topology_desc("1x2x4")
    print(len(topology.devices), topology.devices[5].process_index, topology.devices[0].device_kind.replace(" ", "_"))
    lies = NamedSharding(topologies.make_mesh(topology, (8,), ("x",)), P("x"))
    lowered = jax.jit(lambda v: v * 2, in_shardings=lies, out_shardings=lies).lower(jax.ShapeDtypeStruct((16,), jnp.float32))
    compiled = lowered.compile()
    memory = compiled.memory_analysis()
    print(memory.argument_size_in_bytes, memory.temp_size_in_bytes, memory.peak_memory_in_bytes)
    print(compiled.serialize().startswith(lowered.as_text().encode()), "num_partitions=8" if "mhlo.num_partitions = 8" in compiled.as_text() else "")
    try:
        jax.jit(lambda refuse: refuse, in_shardings=lies).lower(jax.ShapeDtypeStruct((9,), jnp.float32))
    except ValueError as error:
        print("partitioned" in str(error))
    """
  done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60,
                        env=dict(os.environ, CAPIBARA_PLUGIN=described_plugin))
  assert done.stdout.split() == ["8", "1", "Described_GPU", "101", "104", "999", "True", "num_partitions=8", "True"], done.stdout + done.stderr


def test_a_process_with_another_secret_is_not_let_in():
  port = free_port()
  program = textwrap.dedent("""
    import os
    import capibara.jax as jax
    try:
        jax.distributed.initialize(os.environ["ADDRESS"], num_processes=2, process_id=int(os.environ["NUMBER"]), initialization_timeout=3)
    except RuntimeError as error:
        print(error)
    """)
  started = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=dict(os.environ, ADDRESS=f"127.0.0.1:{port}", NUMBER=str(number), CAPIBARA_JOB_SECRET=f"the secret of process {number}"))
             for number in range(2)]
  first, second = [process.communicate(timeout=120)[0] for process in started]
  assert "1 of 2 processes" in first
  assert "no key-value store" in second


def test_process_zero_listens_where_it_is_told():
  out = run_both(MEET.replace("process_id=number)", "process_id=number, coordinator_bind_address='0.0.0.0' + os.environ['ADDRESS'][9:])") + """
    print(jax.process_count())
    """)
  assert out == [["2"], ["2"]]
