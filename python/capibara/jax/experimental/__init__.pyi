"""Types of capibara.jax.experimental. Made by tools/python/make_stubs.py."""
from capibara.jax._api import io_callback as io_callback
from capibara.jax.experimental import array_serialization as array_serialization
from capibara.jax.experimental import colocated_python as colocated_python
from capibara.jax.experimental import compute_on as compute_on
from capibara.jax.experimental import hijax as hijax
from capibara.jax.experimental import jet as jet
from capibara.jax.experimental import key_reuse as key_reuse
from capibara.jax.experimental import layout as layout
from capibara.jax.experimental import mesh_utils as mesh_utils
from capibara.jax.experimental import multihost_utils as multihost_utils
from capibara.jax.experimental import ode as ode
from capibara.jax.experimental import pjit as pjit
from capibara.jax.experimental import rnn as rnn
from capibara.jax.experimental import serialize_executable as serialize_executable
from capibara.jax.experimental import shard_alike as shard_alike
from capibara.jax.experimental import shard_map as shard_map
from capibara.jax.experimental import sparse as sparse
from capibara.jax.experimental import topologies as topologies
from capibara.jax.experimental import xla_metadata as xla_metadata

from contextlib import AbstractContextManager

from capibara.jax._config import Setting as _Setting

def disable_x64() -> AbstractContextManager[None]: ...
enable_x64: _Setting
