"""Types of capibara.jax. Made by tools/python/make_stubs.py."""
from capibara._core import Ref as Ref
from capibara._shape_struct import ShapeDtypeStruct as ShapeDtypeStruct
from capibara.jax import ad as ad
from capibara.jax import ad_checkpoint as ad_checkpoint
from capibara.jax import api_util as api_util
from capibara.jax import checkpoint_policies as checkpoint_policies
from capibara.jax import core as core
from capibara.jax import custom_batching as custom_batching
from capibara.jax import custom_derivatives as custom_derivatives
from capibara.jax import debug as debug
from capibara.jax import distributed as distributed
from capibara.jax import dlpack as dlpack
from capibara.jax import dtypes as dtypes
from capibara.jax import errors as errors
from capibara.jax import experimental as experimental
from capibara.jax import export as export
from capibara.jax import extend as extend
from capibara.jax import flatten_util as flatten_util
from capibara.jax import image as image
from capibara.jax import interpreters as interpreters
from capibara.jax import lax as lax
from capibara.jax import lib as lib
from capibara.jax import memory as memory
from capibara.jax import monitoring as monitoring
from capibara.jax import nn as nn
from capibara.jax import numpy as numpy
from capibara.jax import ops as ops
from capibara.jax import profiler as profiler
from capibara.jax import profiling as profiling
from capibara.jax import random as random
from capibara.jax import ref as ref
from capibara.jax import scipy as scipy
from capibara.jax import sharding as sharding
from capibara.jax import stages as stages
from capibara.jax import tpu_v4 as tpu_v4
from capibara.jax import tree as tree
from capibara.jax import tree_util as tree_util
from capibara.jax import typing as typing
from capibara.jax import version as version
from capibara.jax._api import block_until_ready as block_until_ready
from capibara.jax._api import checkpoint as checkpoint
from capibara.jax._api import clear_caches as clear_caches
from capibara.jax._api import copy_to_host_async as copy_to_host_async
from capibara.jax._api import device_get as device_get
from capibara.jax._api import device_put as device_put
from capibara.jax._api import ensure_compile_time_eval as ensure_compile_time_eval
from capibara.jax._api import eval_shape as eval_shape
from capibara.jax._api import grad as grad
from capibara.jax._api import hessian as hessian
from capibara.jax._api import jacfwd as jacfwd
from capibara.jax._api import jacobian as jacobian
from capibara.jax._api import jacrev as jacrev
from capibara.jax._api import jit as jit
from capibara.jax._api import jvp as jvp
from capibara.jax._api import linear_transpose as linear_transpose
from capibara.jax._api import linearize as linearize
from capibara.jax._api import make_jaxpr as make_jaxpr
from capibara.jax._api import named_call as named_call
from capibara.jax._api import named_scope as named_scope
from capibara.jax._api import pure_callback as pure_callback
from capibara.jax._api import remat as remat
from capibara.jax._api import typeof as typeof
from capibara.jax._api import value_and_grad as value_and_grad
from capibara.jax._api import vjp as vjp
from capibara.jax._api import vmap as vmap
from capibara.jax._config import config as config
from capibara.jax._config import default_device as default_device
from capibara.jax._devices import default_backend as default_backend
from capibara.jax._devices import device_count as device_count
from capibara.jax._devices import devices as devices
from capibara.jax._devices import local_device_count as local_device_count
from capibara.jax._devices import local_devices as local_devices
from capibara.jax._devices import process_count as process_count
from capibara.jax._devices import process_index as process_index
from capibara.jax._devices import process_indices as process_indices
from capibara.jax._explicit import reshard as reshard
from capibara.jax._install import check_compatibility as check_compatibility
from capibara.jax._install import install as install
from capibara.jax._joining import make_array_from_callback as make_array_from_callback
from capibara.jax._joining import make_array_from_process_local_data as make_array_from_process_local_data
from capibara.jax._joining import make_array_from_single_device_arrays as make_array_from_single_device_arrays
from capibara.jax._mesh import P as P
from capibara.jax._mesh import make_mesh as make_mesh
from capibara.jax._mesh import set_mesh as set_mesh
from capibara.jax._partition import pjit as pjit
from capibara.jax._pmap import pmap as pmap
from capibara.jax._shard_map import shard_map as shard_map
from capibara.jax._shard_map import smap as smap
from capibara.jax._sharding import NamedSharding as NamedSharding
from capibara.jax._sharding import Shard as Shard
from capibara.jax._transfer_guards import transfer_guard as transfer_guard
from capibara.jax._transfer_guards import transfer_guard_device_to_device as transfer_guard_device_to_device
from capibara.jax._transfer_guards import transfer_guard_device_to_host as transfer_guard_device_to_host
from capibara.jax._transfer_guards import transfer_guard_host_to_device as transfer_guard_host_to_device
from capibara.jax.custom_derivatives import closure_convert as closure_convert
from capibara.jax.custom_derivatives import custom_gradient as custom_gradient
from capibara.jax.custom_derivatives import custom_jvp as custom_jvp
from capibara.jax.custom_derivatives import custom_vjp as custom_vjp
from capibara.jax.ref import empty_ref as empty_ref
from capibara.jax.ref import free_ref as free_ref
from capibara.jax.ref import freeze as freeze
from capibara.jax.ref import new_ref as new_ref

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, overload

from capibara._core import Array as Array
from capibara._dtypes import float0 as float0
from capibara._types import Slice
from capibara.jax._config import Setting as _Setting
from capibara.jax._devices import Device as Device
from capibara.jax.typing import ArrayLike

def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]: ...
def debug_key_reuse(new_val: bool = True) -> AbstractContextManager[None]: ...
@overload
def print_environment_info(return_string: Literal[False] = False) -> None: ...
@overload
def print_environment_info(return_string: Literal[True]) -> str: ...
def ds(start: ArrayLike | None, size: ArrayLike | None = None, stride: int | None = None) -> Slice | slice: ...
def effects_barrier() -> None: ...
def live_arrays(platform: str | None = None) -> list[Array]: ...
def device_memory_allocated(device: Device | None = None) -> int: ...
def device_memory_peak(device: Device | None = None) -> int: ...
allow_f16_reductions: _Setting
array_garbage_collection_guard: _Setting
auto_pcast: _Setting
check_tracer_leaks: _Setting
checking_leaks: _Setting
debug_infs: _Setting
debug_nans: _Setting
default_matmul_precision: _Setting
default_prng_impl: _Setting
disable_jit: _Setting
enable_checks: _Setting
enable_custom_prng: _Setting
enable_x64: _Setting
explain_cache_misses: _Setting
legacy_prng_key: _Setting
log_compiles: _Setting
no_execution: _Setting
no_tracing: _Setting
numpy_dtype_promotion: _Setting
numpy_rank_promotion: _Setting
remove_size_one_mesh_axis_from_type: _Setting
softmax_custom_jvp: _Setting
thread_guard: _Setting
threefry_partitionable: _Setting
