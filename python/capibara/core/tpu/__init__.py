"""Meshes, sharded models and jobs of several hosts, for TPU pods and for everything else that has several devices."""
from capibara._modules import explain_missing
from capibara.core.tpu._hosts import MultiHostConfig  # noqa: F401
from capibara.core.tpu._meshes import MeshConfig, create_mesh  # noqa: F401
from capibara.core.tpu._strategies import Rule, shard_model, sharding_table, strategies  # noqa: F401
from capibara.operate.checkpointer import TPUCheckpointer  # noqa: F401
from capibara.operate.monitor import TPUMonitor  # noqa: F401

explain_missing(__name__)
