"""Modules that define nothing themselves: jax's name of each, and the sources of its names. They are created on import."""
import importlib
import importlib.machinery
import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))

# Filled from the library's table: {module: (its documentation, names of other modules)}.
_FILLED = {
    "jax.custom_activations": ("Activations beyond those of jax.nn.", {}),
    "jax.image": ("jax.image: resizing of images.", {"capibara._types": "ResizeMethod"}),
    "jax.numpy.fft": ("jax.numpy.fft.", {}),
    "jax.numpy.linalg": ("jax.numpy.linalg.", {}),
    "jax.ops": ("jax.ops: reductions over segments.", {}),
    "jax.scipy.fft": ("jax.scipy.fft.", {}),
    "jax.scipy.linalg": ("jax.scipy.linalg.", {}),
    "jax.scipy.ndimage": ("jax.scipy.ndimage.", {}),
    "jax.scipy.signal": ("jax.scipy.signal.", {}),
    "jax.scipy.special": ("jax.scipy.special.", {}),
}

# Names of other modules: {module: (its documentation, {source module: names, `here=there` for renames, `*` for all})}.
_ALIASES = {
    "jax._src.ad_util": ("jax._src.ad_util: what derivative rules are written with.", {
        "capibara._types": "SymbolicZero Zero",
        "capibara.jax.extend.core.primitives": "stop_gradient_p",
        "capibara.jax.interpreters.ad": "add_jaxvals add_jaxvals_p add_any_p=add_jaxvals_p instantiate=instantiate_zeros zeros_like_aval"}),
    "jax._src.compiler": ("jax._src.compiler: where libraries look for functions of XLA, of which there are none here.", {}),
    "jax._src.core": ("jax._src.core: names of jax.core, and the errors of traced values.", {
        "capibara.jax.core": "* ShapedArray Tracer eval_jaxpr get_aval trace_state_clean",
        "capibara._errors": "ConcretizationTypeError ShardingTypeError TracerArrayConversionError TracerBoolConversionError "
                            "TracerIntegerConversionError UnexpectedTracerError",
        "capibara._symbolic_sizes": "is_constant_shape is_symbolic_dim",
        "capibara.jax._axes": "ManualAxisType",
        "capibara._lifting": "cur_qdd=current_state",
        "capibara.jax._explicit": "modify_spec_for_auto_manual=explicit_part",
        "capibara.jax._placing": "MemorySpace=Space"}),
    "jax._src.debugger": ("jax._src.debugger: jax.debug.breakpoint under its private name.", {
        "capibara.jax._debugger": "breakpoint"}),
    "jax._src.flatten_util": ("jax._src.flatten_util: names of jax.flatten_util.", {"capibara.jax.flatten_util": "ravel_pytree"}),
    "jax._src.interpreters": ("jax._src.interpreters: names of jax.interpreters.", {}),
    "jax._src.interpreters.ad": ("jax._src.interpreters.ad: names of jax.interpreters.ad.", {
        "capibara.jax.interpreters.ad": "*",
        "capibara._errors": "CustomVJPException=UnexpectedTracerError"}),  # for values closed over by a function with a custom rule
    "jax._src.interpreters.batching": ("jax._src.interpreters.batching: names of jax.interpreters.batching.", {
        "capibara.jax.interpreters.batching": "*"}),
    "jax._src.interpreters.partial_eval": ("jax._src.interpreters.partial_eval: names of jax.interpreters.partial_eval.", {
        "capibara.jax.interpreters.partial_eval": "*"}),
    "jax._src.lax": ("jax._src.lax: the modules of jax.lax under jax's private names.", {}),
    "jax._src.layout": ("jax._src.layout: the order of an array's dimensions in memory.", {"capibara.jax._sharding": "Format Layout"}),
    "jax.extend.mlir": ("jax.extend.mlir: what lowering rules are written with.", {}),
    "jax.extend.mlir.dialects": ("jax.extend.mlir.dialects: the operations that lowering rules build.", {}),
    "jax.extend.mlir.dialects.stablehlo": ("jax.extend.mlir.dialects.stablehlo: operations of StableHLO, on traced arrays.", {
        "capibara.jax._hlo_operations": "*"}),
    "jaxlib": ("jaxlib: the names that libraries take from it themselves, as capibara has them.", {
        "capibara.jax.version": "__version__"}),
    "jaxlib._jax": ("jaxlib._jax: classes of arrays, devices, jitted functions and trees.", {
        "capibara._core": "ArrayImpl PjitFunction=JitFunction PyTreeDef",
        "capibara._errors": "JaxRuntimeError XlaRuntimeError=JaxRuntimeError",
        "capibara.jax._devices": "Device",
        "capibara.jax._hlo_sharding": "HloSharding OpSharding"}),
    "jaxlib.version": ("jaxlib.version: the version of jax that this is.", {"capibara.jax.version": "__version__"}),
    "jaxlib.xla_client": ("jaxlib.xla_client: classes of arrays, devices and shardings.", {
        "capibara._core": "ArrayImpl",
        "capibara._errors": "JaxRuntimeError XlaRuntimeError=JaxRuntimeError",
        "capibara.jax._devices": "Device",
        "capibara.jax._hlo_sharding": "HloSharding OpSharding"}),
    "jaxlib.xla_extension": ("jaxlib.xla_extension: the same under their older name.", {
        "capibara._core": "ArrayImpl PjitFunction=JitFunction PyTreeDef",
        "capibara._errors": "XlaRuntimeError=JaxRuntimeError",
        "capibara.jax._devices": "Device"}),
    "jax._src.lib": ("jax._src.lib: the few names of jaxlib that mean something here.", {}),
    "jax._src.lib.lapack": ("jax._src.lib.lapack: LAPACK's handlers.", {"capibara.jax._src.lax.linalg": "_lapack"}),
    "jax._src.lib.xla_client": ("jax._src.lib.xla_client: shardings in XLA's form, and the classes of arrays and devices.", {
        "capibara._core": "ArrayImpl",
        "capibara.jax._devices": "Device",
        "capibara.jax._hlo_sharding": "HloSharding OpSharding"}),
    "jax._src.named_sharding": ("jax._src.named_sharding: shardings by the names of a mesh's axes.", {
        "capibara.jax._sdy_sharding": "SdyArray SdyDim",
        "capibara.jax._sharding": "DuplicateSpecError NamedSharding"}),
    "jax._src.partition_spec": ("jax._src.partition_spec: which axes of a mesh split which dimension.", {
        "capibara.jax._mesh": "P PartitionSpec"}),
    "jax._src.pjit": ("jax._src.pjit: jit under its older name, and constraints.", {
        "capibara.jax._explicit": "auto_axes explicit_axes reshard",
        "capibara.jax._partition": "pjit",
        "capibara.jax._placing": "with_sharding_constraint"}),
    "jax._src.random": ("jax._src.random: generators of random bits by their names.", {
        "capibara.jax.extend.core.primitives": "random_clone_p"}),
    "jax._src.scipy": ("jax._src.scipy: modules of jax.scipy under jax's private names.", {}),
    "jax._src.scipy.optimize": ("jax._src.scipy.optimize: the line search of jax.scipy.optimize.", {}),
    **{f"jax._src.random.{_name}": (f"jax._src.random.{_name}: a generator and its block function.", {
        "capibara.jax._random_blocks": f"{_name}_p",
        "capibara.jax._generators": f"{_name}_prng_impl"}) for _name in ("philox2x32", "philox4x32", "threefry4x32")},
    "jax._src.sharding": ("jax._src.sharding: what all shardings have.", {
        "capibara.jax._sharding": "IndivisibleError Sharding common_devices_indices_map"}),
    "jax._src.state": ("jax._src.state: the types of mutable arrays.", {}),
}

# Packages with submodules, which are imported on first use.
_PACKAGES = {
    "jax._src.interpreters": "ad batching partial_eval",
    "jax._src.lax": "lax linalg parallel windowed_reductions",
    "jax._src.lib": "lapack xla_client",
    "jax._src.scipy": "optimize",
    "jax._src.scipy.optimize": "line_search",
    "jax._src.random": "philox2x32 philox4x32 prng rbg threefry2x32 threefry4x32",
    "jax._src.state": "discharge primitives types",
    "jax.extend.mlir": "dialects",
    "jax.extend.mlir.dialects": "stablehlo",
    "jaxlib": "_jax version xla_client xla_extension",
}


class _Finder:
    """Finds and creates the modules of the tables above."""

    def find_spec(self, name, path=None, target=None):
        short = name.removeprefix("capibara.")
        if short == name or short not in _FILLED and short not in _ALIASES:
            return None
        spec = importlib.machinery.ModuleSpec(name, self, origin=__file__, is_package=short in _PACKAGES)
        if short in _PACKAGES:
            spec.submodule_search_locations = [os.path.join(_FOLDER, *short.split("."))]
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        modules = importlib.import_module("capibara._modules")
        name, short = module.__name__, module.__name__.removeprefix("capibara.")
        module.__doc__, sources = (_FILLED if short in _FILLED else _ALIASES)[short]
        for source, words in sources.items():
            other = importlib.import_module(source)
            for word in words.split():
                here, _, there = word.partition("=")
                if word == "*":
                    public = getattr(other, "__all__", None) or [key for key in vars(other) if not key.startswith("_")]
                    vars(module).update((key, getattr(other, key)) for key in public)
                else:
                    setattr(module, here, getattr(other, there or here))
        if short in _FILLED:
            modules.fill(name, short.removeprefix("jax."))
        else:
            modules.explain_missing(name, later=dict.fromkeys(_PACKAGES.get(short, "").split()))


def install():
    """Installs the finder, before that of folders: leftover folders without an __init__.py would become namespace packages."""
    sys.meta_path.insert(0, _Finder())
