"""The settings of jax 0.10.2 that have no effect here: accepted and readable; changing one warns once.

Most of them control XLA's pipeline, its GPU kernels, its cluster services, or parts of jax that do not exist here.
"""

# name: (default, type or allowed texts). None is always allowed if it is the default.
WITHOUT_EFFECT = {
    "check_vma": (False, bool),
    "eager_constant_folding": (False, bool),
    "jax2tf_associative_scan_reductions": (False, bool),
    "jax2tf_default_native_serialization": (True, bool),
    "jax_allow_f16_reductions": (True, bool),
    "jax_array_garbage_collection_guard": (None, ('allow', 'log', 'fatal')),
    "jax_auto_pcast": (True, bool),
    "jax_backend_target": ('', str),
    "jax_bcoo_cusparse_lowering": (False, bool),
    "jax_captured_constants_report_frames": (0, int),
    "jax_check_proxy_envs": (True, bool),
    "jax_compilation_cache_check_contents": (False, bool),
    "jax_compilation_cache_expect_pgle": (False, bool),
    "jax_compilation_cache_include_metadata_in_key": (False, bool),
    "jax_compiler_detailed_logging_min_ops": (10, int),
    "jax_compiler_enable_remat_pass": (True, bool),
    "jax_cpu_collectives_implementation": ('gloo', ('gloo', 'mpi', 'megascale')),
    "jax_cpu_get_global_topology_timeout_minutes": (5, int),
    "jax_cpu_get_local_topology_timeout_minutes": (2, int),
    "jax_cross_host_transfer_socket_address": ('', str),
    "jax_cross_host_transfer_timeout_seconds": (None, int),
    "jax_cross_host_transfer_transfer_size": (None, int),
    "jax_cross_host_transport_addresses": ('', str),
    "jax_cuda_visible_devices": ('all', str),
    "jax_custom_vjp3": (False, bool),
    "jax_debug_leaked_clients_on_clear_backends": (False, bool),
    "jax_disable_vmap_shmap_error": (False, bool),
    "jax_disallow_mesh_context_manager": (False, bool),
    "jax_distributed_debug": (False, bool),
    "jax_dump_ir_modes": ('stablehlo', str),
    "jax_dump_ir_to": ('', str),
    "jax_embedded_constants_max_bytes": (32, int),
    "jax_enable_pgle": (False, bool),
    "jax_enable_preemption_service": (True, bool),
    "jax_enable_recoverability": (False, bool),
    "jax_exec_time_optimization_effort": (0.0, float),
    "jax_experimental_unsafe_xla_runtime_errors": (False, bool),
    "jax_export_ignore_forward_compatibility": (False, bool),
    "jax_force_dcn_cross_host_transfers": (False, bool),
    "jax_high_dynamic_range_gumbel": (False, bool),
    "jax_hlo_source_file_canonicalization_regex": (None, str),
    "jax_include_debug_info_in_dumps": (True, bool),
    "jax_include_full_tracebacks_in_locations": (True, bool),
    "jax_log_checkpoint_residuals": (False, bool),
    "jax_memory_fitting_effort": (0.0, float),
    "jax_memory_fitting_level": ('O2', ('UNKNOWN', 'O0', 'O1', 'O2', 'O3')),
    "jax_mock_gpu_topology": ('', str),
    "jax_mosaic_allow_hlo": (False, bool),
    "jax_mutable_array_checks": (True, bool),
    "jax_no_execution": (False, bool),
    "jax_oneapi_visible_devices": ('all', str),
    "jax_pallas_enable_debug_checks": (False, bool),
    "jax_pallas_poison_buffers": (False, bool),
    "jax_pallas_use_mosaic_gpu": (True, bool),
    "jax_pallas_verbose_errors": (False, bool),
    "jax_persistent_cache_enable_xla_caches": ('xla_gpu_per_fusion_autotune_cache_dir', str),
    "jax_persistent_cache_min_compile_time_secs": (1.0, float),
    "jax_persistent_cache_min_entry_size_bytes": (0, int),
    "jax_pgle_aggregation_percentile": (90, int),
    "jax_pgle_profiling_runs": (3, int),
    "jax_pjrt_client_create_options": (None, str),
    "jax_pprint_use_color": (True, bool),
    "jax_ragged_dot_use_gpu_pallas_triton_lowering": (False, bool),
    "jax_ragged_dot_use_ragged_dot_instruction": (True, bool),
    "jax_raise_persistent_cache_errors": (False, bool),
    "jax_random_seed_offset": (0, int),
    "jax_refs_to_pins": (False, bool),
    "jax_remat3": (False, bool),
    "jax_remove_custom_partitioning_ptr_from_cache_key": (False, bool),
    "jax_remove_size_one_mesh_axis_from_type": (False, bool),
    "jax_rocm_visible_devices": ('all', str),
    "jax_scan3": (False, bool),
    "jax_send_traceback_to_runtime": ('off', ('off', 'on', 'full')),
    "jax_serialization_version": (0, int),
    "jax_share_binary_between_hosts": (False, bool),
    "jax_share_binary_between_hosts_timeout_ms": (1200000, int),
    "jax_sort_devices_by_process_index": (True, bool),
    "jax_source_url_schema": (None, str),
    "jax_thread_guard": (False, bool),
    "jax_threefry_gpu_kernel_lowering": (False, bool),
    "jax_traceback_in_locations_limit": (100, int),
    "jax_tracer_error_num_traceback_frames": (5, int),
    "jax_use_direct_linearize": (True, bool),
    "jax_use_emit_pipeline_primitive": (False, bool),
    "jax_use_magma": ('auto', ('off', 'on', 'auto')),
    "jax_use_shardy_partitioner": (True, bool),
    "jax_use_simplified_jaxpr_constants": (False, bool),
    "jax_xla_backend": ('', str),
    "jax_xla_profile_version": (0, int),
    "mock_num_gpu_processes": (0, int),
}


def check(name, value):
    """The value in the form to store; raises if the setting does not allow it."""
    default, kind = WITHOUT_EFFECT[name]
    if value is None and default is None:
        return value
    if isinstance(kind, tuple):
        text = getattr(value, "value", value)
        text = text if isinstance(text, str) else getattr(value, "name", str(value)).lower()
        if text not in kind:
            raise ValueError(f"new enum value for {name} must be in {kind}, got {value!r}")
        return text
    if kind is bool:
        if value not in (True, False):
            raise ValueError(f"{name} must be True or False, got {value!r}")
        return bool(value)
    if kind is not str and not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be of type {kind.__name__}, got {value!r}")
    return value if kind is str else kind(value)
