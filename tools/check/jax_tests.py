"""Shares of JAX's own tests that pass on capibara, not counting a list of tests that are left out.

    tools/check/jax_tests.py RESULTS [RESULTS ...]

RESULTS are folders of FILE.jsonl with one line {"k": "end", "id": TEST, "out": OUTCOME} for each test of jax 0.10.2 that ran, which
`./run jaxtests` writes; later folders override earlier results of the same test. The list, tests/drop_in/jax_tests_left_out.tsv, names
tests with a reason each; it may hold at most 8 % of a group. A test on it that passes is an error.
"""
import collections
import json
import pathlib
import sys

LIST = pathlib.Path(__file__).resolve().parents[2] / "tests" / "drop_in" / "jax_tests_left_out.tsv"
LIMIT = 0.08
GROUPS = {
    "numbers": """lax_numpy_test lax_numpy_operators_test lax_numpy_reducers_test lax_numpy_indexing_test lax_numpy_einsum_test
        lax_numpy_ufuncs_test lax_numpy_vectorize_test lax_numpy_setops_test lax_test lax_vmap_test lax_vmap_op_test lax_autodiff_test
        lax_control_flow_test lax_scipy_test lax_scipy_special_functions_test scipy_stats_test scipy_signal_test scipy_ndimage_test
        scipy_fft_test fft_test linalg_test eigh_test cholesky_update_test nn_test random_lax_test image_test ann_test polynomial_test
        custom_linear_solve_test custom_root_test generated_fun_test array_extensibility_test""".split(),
    "the rest of the interface": """api_test api_util_test custom_api_test tree_util_test dtypes_test batching_test checkify_test debug_nans_test
        errors_test python_callback_test debugging_primitives_test mutable_array_test x64_context_test pickle_test transfer_guard_test
        random_test core_test array_api_test array_interoperability_test typing_test logging_test traceback_test debugger_test
        name_stack_test jaxpr_effects_test jax_jit_test aot_test source_info_test string_array_test device_test version_test""".split(),
    "several devices": """array_test pjit_test pmap_test multi_device_test multibackend_test linalg_sharding_test memories_test layout_test
        mesh_utils_test shard_alike_test shard_map_test custom_partitioning_test colocated_python_test ragged_collective_test""".split(),
    "modules": """sparse_test sparse_bcoo_bcsr_test sparsify_test lobpcg_test jet_test ode_test stax_test optimizers_test
        experimental_rnn_test scipy_optimize_test third_party/scipy/line_search_test scipy_spatial_test scipy_interpolate_test
        lax_scipy_sparse_test key_reuse_test hijax_test lax_numpy_hijax_test stateful_rng_test blocked_sampler_test roofline_test
        error_check_test jax_numpy_error_test buffer_callback_test control_deps_test fused_test xla_metadata_test metadata_test
        random_impl_test state_test extend_test ffi_test""".split(),
}


def left_out():
    """{(file, test): reason}."""
    rows = [line.split("\t") for line in LIST.read_text().splitlines()]
    return {(file, test): reason for file, test, reason in rows}


def outcomes(folders):
    """{(file, test): outcome} of the last result of each test; None for a test known only by name."""
    found = {}
    for folder in folders:
        for path in sorted(pathlib.Path(folder).glob("*_test.jsonl")):
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                if entry["k"] == "ids":
                    for test in entry["ids"]:
                        found.setdefault((path.stem, test), None)
                elif entry["k"] in ("end", "lost"):
                    found[path.stem, entry["id"]] = entry["out"]
    return found


def table(found, omitted, whole=True):
    """Lines of a table, and mistakes in the list; groups whose files did not all run are not checked against the list."""
    lines, wrong = ["| group | tests | passed | failed | hung or crashed | skipped | left out | passed of the rest, % |", "|" + "---|" * 8], []
    for group, files in GROUPS.items():
        files = [file.replace("/", "_") for file in files]
        tests = {key: out for key, out in found.items() if key[0] in files}
        if not tests and not whole:
            continue
        counted = collections.Counter("left out" if key in omitted else out for key, out in tests.items())
        failed = counted["failed"] + counted["error"]
        lost = counted["timeout"] + counted["crash"]
        share = 100 * counted["passed"] / max(1, counted["passed"] + failed + lost)
        lines.append(f"| {group} | {len(tests)} | {counted['passed']} | {failed} | {lost} | {counted['skipped']} | {counted['left out']} | {share:.1f} |")
        if whole and counted["left out"] > LIMIT * len(tests):
            wrong.append(f"{group}: {counted['left out']} tests are left out, more than {LIMIT:.0%} of {len(tests)}")
        if counted[None]:
            wrong.append(f"{group}: {counted[None]} tests did not run")
    passed = [" ".join(key) for key in omitted if found.get(key) == "passed"]
    return lines, wrong + [f"left out, but passes: {name}" for name in passed]


def main(folders):
    if not folders:
        raise SystemExit(__doc__)
    lines, wrong = table(outcomes(folders), left_out())
    print("\n".join(lines + wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
