"""How each library is set up in its own process: threads, conversion of inputs and outputs, waiting, compiling."""

import numpy


def environment_of(library, count):
    """Variables that set a library's number of threads, and the platform of jax; they are read when a library starts."""
    environment = {name: str(count) for name in (
        "CAPIBARA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")}
    environment["JAX_PLATFORMS"] = "capibara" if library == "jax.plugin" else "cpu"
    # XLA takes its thread count from the affinity mask; one thread also means none for Eigen's contractions.
    if count == 1:
        environment["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    return environment


def map_tree(function, tree):
    """Applies a function to the leaves of lists, tuples and dictionaries."""
    if isinstance(tree, dict):
        return {key: map_tree(function, value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return tuple(map_tree(function, value) for value in tree) if isinstance(tree, tuple) else [
            map_tree(function, value) for value in tree]
    return function(tree)


def leaves(tree):
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, (list, tuple)):
        return [leaf for value in tree for leaf in leaves(value)]
    return [] if tree is None else [tree]


def temporaries(jax, compiled, arrays):
    """Bytes that a compiled program needs besides operands and results: for jax XLA's plan, for capibara the counted peak,
    which leaves out blocks below 64 KiB and is taken as at least that."""
    if not jax.__name__.startswith("capibara"):
        return compiled.memory_analysis().temp_size_in_bytes
    from capibara import _core
    _core.host_memory(reset=True)
    outputs = jax.block_until_ready(compiled(*arrays))
    live, peak = _core.host_memory()
    del outputs
    return max(peak - live, 1 << 16)


class JaxLibrary:
    """capibara, jax, and jax on capibara's plugin: the same interface."""

    def __init__(self, name):
        self.name = name
        if name == "capibara":
            import capibara.jax as module
        else:
            import jax as module
        self.module = module
        self.version = module.__version__
        if name == "jax.plugin" and "Capibara" not in str(module.devices()[0]):
            raise ImportError(f"jax runs on {module.devices()[0]}, not on the plugin")

    def prepare(self, row, inputs):
        jax = self.module
        jax.config.update("jax_enable_x64", row.wide)
        arrays = map_tree(jax.numpy.asarray, inputs)
        function = row.program(jax)
        if not row.eager:
            function = jax.jit(function, donate_argnums=(0,) if row.state else ())
        return function, arrays

    def wait(self, outputs):
        self.module.block_until_ready(outputs)

    def to_numpy(self, value):
        return numpy.asarray(value)


class TorchLibrary:
    def __init__(self, name, threads):
        import torch
        self.name = name
        self.module = torch
        self.version = torch.__version__
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)  # programs that differentiate turn it on

    def array(self, value):
        value = numpy.ascontiguousarray(value)
        if value.dtype.name == "bfloat16":
            return self.module.from_numpy(value.view(numpy.int16)).view(self.module.bfloat16).clone()
        if value.dtype == numpy.uint32:
            value = value.astype(numpy.int64)
        return self.module.from_numpy(value).clone()

    def prepare(self, row, inputs):
        return self.compiled(row.torch) if self.name == "torch.compile" else row.torch(self.module), map_tree(self.array, inputs)

    def compiled(self, maker):
        if not getattr(maker, "compiles_inside", False):
            return self.module.compile(maker(self.module))
        import torch._functorch.config
        torch._functorch.config.donated_buffer = False  # the backward pass runs many times on one graph
        return maker(self.module, self.module.compile)

    def wait(self, outputs):
        pass

    def to_numpy(self, value):
        if not self.module.is_tensor(value):
            return numpy.asarray(value)
        value = value.detach()
        return value.float().numpy() if value.dtype == self.module.bfloat16 else value.numpy()


class MlxLibrary:
    def __init__(self, name):
        import mlx.core
        import importlib.metadata
        self.name = name
        self.module = mlx.core
        self.version = importlib.metadata.version("mlx")
        mlx.core.set_default_device(mlx.core.cpu)

    def array(self, value):
        if value.dtype.name == "bfloat16":
            return self.module.array(value.astype(numpy.float32)).astype(self.module.bfloat16)
        return self.module.array(value)

    def prepare(self, row, inputs):
        function = row.mlx(self.module)
        if self.name == "mlx.compile":
            function = self.module.compile(function)
        return function, map_tree(self.array, inputs)

    def wait(self, outputs):
        self.module.eval(outputs)

    def to_numpy(self, value):
        if value.dtype == self.module.bfloat16:
            value = value.astype(self.module.float32)
        return numpy.array(value)


class NumpyLibrary:
    """numpy, and scipy, numba and faiss on numpy's arrays."""

    def __init__(self, name, threads):
        self.name = name
        if name == "numba":
            import numba as module
        elif name == "scipy":
            import scipy.fft
            module = scipy
            scipy.fft.set_workers(threads).__enter__()  # for the lifetime of the process
        elif name == "faiss":
            import faiss as module
            module.omp_set_num_threads(threads)
        else:
            module = numpy
        self.module = module
        self.version = module.__version__

    def prepare(self, row, inputs):
        return getattr(row, self.name)(self.module), map_tree(numpy.array, inputs)

    def wait(self, outputs):
        pass

    def to_numpy(self, value):
        return numpy.asarray(value)


def load(name, threads):
    if name in ("capibara", "jax", "jax.plugin"):
        return JaxLibrary(name)
    if name in ("torch", "torch.compile"):
        return TorchLibrary(name, threads)
    if name in ("mlx", "mlx.compile"):
        return MlxLibrary(name)
    if name in ("numpy", "scipy", "numba", "faiss"):
        return NumpyLibrary(name, threads)
    raise ImportError(f"no library {name!r} in the suite")
