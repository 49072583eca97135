"""Attention and matmuls over a mesh of eight CPU devices, against float64 definitions and the same on one device."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")

PROGRAM = Path(__file__).with_name("ring_programs.py")


@pytest.fixture(scope="module")
def answers():
  done = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, timeout=600,
                        env=dict(os.environ, JAX_NUM_CPU_DEVICES="8", JAX_PLATFORMS="cpu"))
  assert done.returncode == 0, done.stderr
  return json.loads(done.stdout)


def test_values_and_derivatives(answers):
  assert len(answers["results"]) > 60
  wrong = {name: error for name, error in answers["results"].items() if not error < 3e-6}
  assert not wrong


REFUSED = {
    "key not split": "flash_attention: sequence_parallel expects the sequence of the key to be split over 'ring' of the mesh of the query",
    "value on no mesh": "the sequence of the value to be split over 'ring' of the mesh of the query, got an array on no mesh",
    "head_dim": "expects the head_dim of the query whole on each device, got P(None, None, 'data', 'sequence')",
    "two axes": "expects the sequence of the query to be split over one mesh axis, got P(None, None, ('data', 'sequence'))",
    "other axis": "expects the sequence of the query to be split over 'data' alone, got P('data', None, 'sequence')",
    "no mesh named": "to be split over 'ring' (argument 'sequence_axis'), got an array on no mesh",
    "dropout": "over a split sequence expects no dropout, got dropout_rate=0.1",
    "offset": "over a split sequence expects query_offset=0, got 4",
    "trace": "inside of a traced function needs a mesh in context, since the function does not see how its arguments are placed, got none",
    "axis without flag": "sequence_axis is of sequence_parallel, which is off, got 'ring'",
    "unknown axis": "got 'rows' (argument 'sequence_axis'); the mesh in context is Mesh('data': 2",
    "length": "expects a length that 4 devices divide (argument 'query'), got float32[2,4,30,8]",
    "which axis": "needs the mesh axis that splits the sequence, got none (argument 'sequence_axis'); the mesh in context is Mesh('a': 2",
    "forward mode": "can't apply forward-mode autodiff (jvp) to a custom_vjp function",
    "product trace": "adaptive_matmul: tpu_strategy 'collective' inside of a traced function needs a mesh in context",
    "product size": "tpu_strategy 'collective' cuts the contracted axis into one part for each of 8 devices, got size 63",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(answers, name):
  assert REFUSED[name] in answers["refused"][name]


def test_nothing_else_is_refused(answers):
  assert set(answers["refused"]) == set(REFUSED)
