"""Finds unread parameters in Python signatures and in the library's table, and writes docs/ignored.md with them
and the list of fallbacks.

    build/venv/bin/python tests/repo/ignored.py > docs/ignored.md
"""
import ast
import functools
import pathlib
import re
import runpy
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "capibara"
TABLE = ROOT / "src" / "library" / "table"

# (function, parameter): why nothing reads it. The list is complete; a new entry needs its own reason.
HINTS = {
    "Hints that cannot change a result": {
        ("jax.lax.scan", "_split_transpose"): "how the loop of the derivative is divided",
        ("jax.vmap", "sum_match"): "how batched cotangents are summed, in a mode of jax that is not here",
        ("jax.pure_callback", "sharding"): "where the callback runs: there is one host",
        ("jax.io_callback", "sharding"): "where the callback runs: there is one host",
        ("jax.debug.callback", "partitioned"): "whether each shard calls: callbacks run on one device",
        ("jax.debug.print", "partitioned"): "whether each shard prints: callbacks run on one device",
        ("jax.lax.composite", "name"): "the name that a compiler may know; the decomposition is what runs",
        ("jax.lax.composite", "version"): "the version of that name",
        ("jax.interpreters.mlir.register_lowering", "inline"): "whether the rule's code becomes a function of its own",
        ("jax.interpreters.mlir.register_lowering", "cacheable"): "whether the rule's code is made once for all calls",
        ("jax.interpreters.mlir.emit_python_callback", "ctx"): "the program being lowered: callbacks go to the one being traced",
        ("jax.interpreters.mlir.emit_python_callback", "operand_avals"): "types of the operands, which these have themselves",
        ("jax.interpreters.mlir.emit_python_callback", "returns_token"): "whether a token comes back: effects keep their order",
        ("jax.interpreters.mlir.emit_python_callback", "partitioned"): "whether each shard calls: callbacks run on one device",
        ("jax.interpreters.mlir.emit_python_callback", "sharding"): "where the callback runs: there is one host",
        ("jax.core.eval_jaxpr", "propagate_source_info"): "whether equations keep their lines: they always do",
        ("jax.core.set_current_trace.__init__", "check_leaks"): "a debugging aid: leaked tracers raise when they are used",
        ("jax.extend.source_info_util.summarize", "num_frames"): "how many lines a summary shows: one is known",
        ("jax.core.new_jaxpr_eqn", "ctx"): "settings that an equation was traced under: they are those of its program",
        ("jax._abstract_mesh.TypeSharding.is_equivalent_to", "ndim"): "equal shardings are equivalent in every rank",
        ("jax.experimental.sparse._products.bcoo_conv_general_dilated", "precision"):
            "products are exact and summed in the type of the result",
        ("jax.experimental.sparse._shapes.bcoo_gather", "unique_indices"): "a hint for scatters in derivatives",
        ("jax.experimental.sparse._shapes.bcoo_gather", "indices_are_sorted"): "a hint for scatters in derivatives",
        ("jax.experimental.array_serialization.serialization.GlobalAsyncCheckpointManager.deserialize", "concurrent_gb"):
            "how much is read at once: arrays are read one after the other",
        ("jax.interpreters.batching.defreducer", "ident"): "the start of reductions over axes of ragged lengths, which are not here",
        ("jax._src.array._ArrayImplMeta.__call__", "committed"): "arrays of given parts stay where the parts are",
        ("jax.experimental.pallas._calls.pallas_call", "interpret"): "kernels are always interpreted",
        ("jax.experimental.pallas._calls.pallas_call", "compiler_params"): "hints for compilers of kernels, which are interpreted",
        ("jax.experimental.pallas._calls.pallas_call", "cost_estimate"): "a hint for compilers of kernels, which are interpreted",
        ("jax.experimental.pallas._calls.pallas_call", "backend"): "a choice between compilers of kernels, which are interpreted",
        ("jax.experimental.pallas._calls.pallas_call", "metadata"): "notes for compilers of kernels, which are interpreted",
        ("jax.experimental.pallas._kernels.debug_check", "*"): "a check of kernels that are compiled for debugging",
        ("jax.export.Exported.mlir_module", "serialized"): "the form of the module: it is text in both",
        ("jax.experimental.pallas._kernels.reciprocal", "approx"): "a less accurate evaluation: the most accurate one is always taken",
        ("jax.experimental.pallas._kernels.empty", "memory_space"): "where a kernel keeps an array: there is one memory",
        ("jax.experimental.pallas._kernels.empty", "out_sharding"): "where a kernel keeps an array: there is one memory",
        ("jax.experimental.pallas._kernels.run_scoped", "collective_axes"): "which threads share an allocation: there is one",
        ("jax.experimental.pallas.triton.dot", "allow_tf32"): "a less accurate product: the most accurate one is always taken",
        ("jax.experimental.pallas.triton.max_contiguous", "values"): "a hint for compilers of kernels, which are interpreted",
        ("jax.experimental.pallas._kernels.loop", "unroll"): "how a loop of a kernel is compiled: it is interpreted",
        ("jax.experimental.pallas._kernels.multiple_of", "values"): "a hint for compilers of kernels, which are interpreted",
        ("jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask.CausalMask.__init__", "shard_count"):
            "how a mask is divided between devices: it is computed where it is read",
        ("jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask.LocalMask.__init__", "shard_count"):
            "how a mask is divided between devices: it is computed where it is read",
        ("lax_linalg.qr", "use_magma"): "a choice between two libraries of GPUs",
        ("*", "accuracy"): "a tolerance of elementwise functions: the most accurate evaluation is always taken",
    },
    "Ignored by jax 0.10.2 too": {
        ("numpy_manipulation.reshape", "copy"): "arrays are immutable",
        ("numpy_elementwise.nan_to_num", "copy"): "arrays are immutable",
        ("numpy_sets.unique", "sorted"): "the result is always sorted",
        ("numpy_statistics.histogram_bin_edges", "weights"): "they matter to rules for `bins` that are refused",
        ("scipy_linalg.eigh", "turbo"): "a choice between two algorithms",
        ("scipy_linalg.expm_frechet", "method"): "a choice between two algorithms",
        ("scipy_linalg.qr", "lwork"): "the size of a work space",
        ("scipy_linalg.svd", "lapack_driver"): "a choice between two algorithms",
        ("*", "debug"): "deprecated by SciPy",
        ("*", "overwrite_a"): "arrays are immutable",
        ("*", "overwrite_b"): "arrays are immutable",
        ("*", "overwrite_c"): "arrays are immutable",
        ("*", "check_finite"): "values are not looked at while tracing",
        ("jax.numpy._NamespaceInfo.default_dtypes", "device"): "the same on every device",
        ("jax.numpy._NamespaceInfo.dtypes", "device"): "the same on every device",
        ("jax.nn.initializers.Initializer.__call__", "*"): "a protocol: its signature is all it is",
        ("jax.scipy.stats.gaussian_kde.set_bandwidth", "bw_method"): "refused whatever it is: arrays are immutable",
        ("jax.scipy.stats.gaussian_kde.integrate_box", "*"): "refused whatever it is, as in jax",
    },
    "Given by a protocol of Python or of jax": {
        ("jax.interpreters.batching.register_vmappable", "axis_size_type"): "the type of sizes: vmap passes the size it finds",
        ("jax.interpreters.batching.register_vmappable", "make_iota"): "jax reads it for batches of ragged sizes, which are not here",
        ("jax.scipy.spatial.transform.Rotation.random", "*"): "refused whatever it is, as in jax",
        ("jax.experimental.array_serialization.serialization.GlobalAsyncCheckpointManagerBase.serialize", "*"): "an abstract method",
        ("jax.experimental.array_serialization.serialization.GlobalAsyncCheckpointManagerBase.deserialize", "*"): "an abstract method",
        ("jax.interpreters.ad._Kind.__call__", "*"): "refused whatever it is: transforms make traces",
        ("_effects.AbstractToken.str_short", "*"): "tokens have one text",
        ("jax._src.array._ArrayImplMeta.__call__", "committed"): "an array of parts on devices is committed",
        ("jax._install._Finder.find_spec", "*"): "importlib's protocol",
        ("jax._install._Finder.exec_module", "*"): "importlib's protocol",
        ("_made_modules._Finder.find_spec", "*"): "importlib's protocol",
        ("_made_modules._Finder.create_module", "*"): "importlib's protocol",
        ("__main__._JaxWhenImported.find_spec", "*"): "importlib's protocol",
        ("__main__._Mithril.find_spec", "*"): "importlib's protocol",
        ("__main__._JaxWhenImported.create_module", "spec"): "importlib's protocol",
        ("jax._src.traceback_util.api_boundary", "*"): "names for jax's own reports",
        ("jax.debug._FieldCheck.format_field", "*"): "string.Formatter's protocol",
        ("jax.interpreters.partial_eval.trace_to_jaxpr_dynamic", "__"): "arguments of jax's tracer that have no counterpart",
        ("jax.scipy.stats.gaussian_kde.tree_unflatten", "aux_data"): "the protocol of pytrees: there is none",
    },
}


# (function, argument, why): read and checked, but without effect, always or in the named case; test_statements.py shows it.
READ = [
    ("kernels.flash_attention", "sequence_parallel=", "for arrays that are not split along their sequence, and where there is one device"),
    ("kernels.adaptive_matmul", "tpu_strategy='collective'", "on one device it is `'local'`"),
    ("jax.core.custom_jit", "", "another name of `jit`"),
]


# Primitives that programs compiled for the CPU run on reference kernels, always or for some types. The list may only shrink.
FALLBACKS = """
bitcast_convert_type cholesky cumlogsumexp empty igamma igamma_grad_a igammac iota_2x32_shape lu lu_pivots_to_permutation map
nextafter ragged_dot_general random_bits random_fold_in random_gamma random_gamma_grad random_seed random_split random_unwrap
random_wrap regularized_incomplete_beta rng_bit_generator rng_uniform select_and_gather_add triangular_solve
tridiagonal_solve
""".split()


def fallbacks():
    """The same list from docs/primitives.md, which is made from the catalog."""
    rows = [[cell.strip() for cell in line.split("|")] for line in (ROOT / "docs" / "primitives.md").read_text().splitlines()]
    column = next(row.index("cpu") for row in rows if "cpu" in row)
    return [row[1].strip("`") for row in rows if len(row) > column and "reference" in row[column] and row[1].startswith("`")]


def parameters(function):
    a = function.args
    named = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
    return [one.arg for one in named]


def is_public(name):
    return not name.startswith("_") or name in ("__init__", "__call__")


def unread_of_python(package=PACKAGE):
    """(function, parameter) of every public function and method of the package whose body never reads a parameter."""
    found = []
    for file in sorted(package.rglob("*.py")):
        module = file.relative_to(package).with_suffix("").as_posix().replace("/", ".")
        module = re.sub(r"\.(__init__|_api|_array|_control|_devices|_functions|_kde|_mesh|_placing|_pmap|_sharding)$", "", module)
        module = re.sub(r"\._programs$", ".core", module)  # the module that exports it
        found += _unread_in(ast.parse(file.read_text()), f"{module}.")
    return found


def _unread_in(node, prefix):
    found = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            found += _unread_in(child, f"{prefix}{child.name}.")
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            read = {name.id for part in child.body for name in ast.walk(part) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load)}
            overloaded = any(isinstance(one, ast.Name) and one.id == "overload" for one in child.decorator_list)  # for types only
            if is_public(child.name) and not overloaded:
                found += [(prefix + child.name, one) for one in parameters(child) if one not in read and one not in ("self", "cls", "_")]
        else:
            found += _unread_in(child, prefix)
    return found


def rows_of_table():
    """(function, parameters, text) of every row: its own text and the text of the helpers it calls."""
    sources = {"_".join(file.relative_to(TABLE).parts): file.read_text() for file in TABLE.rglob("*.cpp")}  # numpy_linalg.cpp
    helpers = {}
    for text in [*sources.values(), *(file.read_text() for file in sorted(TABLE.rglob("*.h")))]:
        for name, definition in _definitions(text):
            helpers[name] = helpers.get(name, "") + definition
    for file, text in sorted(sources.items()):
        starts = [match for match in re.finditer(r'^    \{"(\w+)",\s+("[^"]*"(?:\s+"[^"]*")*),', text, re.M)]
        for start, after in zip(starts, [*starts[1:], None]):
            row = text[start.end():after.start() if after else len(text)]
            signature = "".join(re.findall(r'"([^"]*)"', start[2]))
            yield f"{file.removesuffix('.cpp')}.{start[1]}", _names(signature), _with_helpers(row, helpers)


def _definitions(text):
    """(name, text) of definitions that start in the first column; rows of the table are not helpers."""
    lines = iter(text.splitlines())
    for line in lines:
        if not re.match(r"[A-Za-z]", line) or line.startswith(("namespace", "using", "template", "const Function ")):
            continue
        block, open_braces = line, line.count("{") - line.count("}")
        while open_braces or not block.endswith((";", "}")):
            line = next(lines, ";")
            block += "\n" + line
            open_braces += line.count("{") - line.count("}")
        for name in re.findall(r"(\w+)(?:\(|\[\] = | = | \{)", block.split("\n  ")[0]) + re.findall(r"(\w+)\[\] = ", block):
            yield name, block


def _names(signature):
    try:
        return parameters(ast.parse(f"def f({signature.partition('->')[0]}): pass").body[0])
    except SyntaxError:
        raise ValueError(f"not a signature: {signature}") from None


def _with_helpers(row, helpers):
    known, text, new = set(), row, [row]
    while new:
        words = {word for part in new for word in re.findall(r"\w+", part)}
        new = [helpers[word] for word in words if word in helpers and word not in known]
        known |= words
        text += "".join(new)
    return text


@functools.cache
def unread_of_table():
    """The same for the rows of the library's table, which read arguments by name."""
    for_all = (ROOT / "python" / "src" / "functions.cpp").read_text()  # read by the calls of all rows: device
    return [(name, one) for name, names, text in rows_of_table() for one in names if f'"{one}"' not in text and f'"{one}"' not in for_all]


def reason(function, parameter):
    """(section, why) of an entry of HINTS; None if there is none."""
    for section, entries in HINTS.items():
        for key in ((function, parameter), (function, "*"), ("*", parameter)):
            if key in entries:
                return section, entries[key]
    return None


@functools.cache
def settings_without_effect():
    return runpy.run_path(str(PACKAGE / "jax" / "_flags.py"))["WITHOUT_EFFECT"]


def compiler_hints():
    """(name, purpose) of each row in the CPU compiler's table of options."""
    text = (ROOT / "src" / "backends" / "cpu" / "execution" / "options.cpp").read_text()
    return re.findall(r'^    \{"(\w+)", \w+\},\s+// (.*)$', text, re.M)


def page():
    lines = ["# Accepted and without effect, and fallbacks", "",
             "Arguments and settings that capibara takes, as jax does, and that change nothing; then what the CPU compiler leaves to the",
             "reference backend. This page is written by `build/venv/bin/python tests/repo/ignored.py > docs/ignored.md`; `tests/repo` fails",
             "where a parameter that is never read is not on it, or where the lists grow.", ""]
    unread = [*unread_of_python(), *unread_of_table()]
    for section in HINTS:
        lines += [f"## {section}", "", "| argument | why |", "|---|---|"]
        for function, parameter in unread:
            known = reason(function, parameter)
            if known and known[0] == section:
                lines.append(f"| `{function.removeprefix('jax.')}({parameter}=)` | {known[1]} |")
        lines.append("")
    lines += ["## Read, and without effect", "", "| argument | why |", "|---|---|"]
    lines += [f"| `{function}({argument})` | {why} |" if argument else f"| `{function}` | {why} |" for function, argument, why in READ]
    lines += ["", "## Settings", "",
              "Known, readable and checked; another value than the default warns once. They steer XLA's pipeline, its GPU kernels, its cluster",
              "services, or parts of jax that are not here.", "", "| setting | default |", "|---|---|"]
    lines += [f"| `{name}` | `{default!r}` |" for name, (default, _) in settings_without_effect().items()]
    lines += ["", "## Compiler options", "", "Options of XLA that `compiler_options` may hold and that change nothing; their values are checked.", "",
              "| option | what it is for |", "|---|---|"]
    lines += [f"| `{name}` | {why} |" for name, why in compiler_hints()]
    lines += ["", "## Run by kernels of the reference backend", "",
              "A program compiled for the CPU calls these, for some types or always, as plain loops on one thread; [primitives.md](primitives.md)",
              "tells of every primitive how it runs.", "", textwrap.fill(", ".join(f"`{name}`" for name in fallbacks()) + ".", 130)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
