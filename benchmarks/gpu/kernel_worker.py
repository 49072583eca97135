"""One library's process of benchmarks/gpu/kernels.py: prepares, times and drops rows as requested by lines of JSON on its input.

    kernel_worker.py capibara|jax|torch [--small] [--quick]

Answers are lines of JSON on its output, one for each line of input; anything that libraries print goes to stderr.
"""

import gc
import json
import os
import sys
import time

from kernel_row import is_ours
from kernel_rows import rows

CHECKED, RESULTS = 1024, 8  # number of elements compared in each result, and of results
ROUND = 0.02  # approximate seconds of calls in flight


def some_elements(jax, row, result):
    """Elements of each of the first results, spread over the whole of it."""
    import numpy

    aligned = row.aligned if is_ours(jax) else lambda leaf: leaf

    def spread(leaf):
        flat = aligned(leaf).reshape(-1)
        return flat[:: flat.size // CHECKED | 1][:CHECKED].astype("float32")
    cut = jax.jit(lambda leaves: [spread(leaf) for leaf in leaves])
    return [numpy.asarray(leaf).tolist() for leaf in cut(jax.tree.leaves(result)[:RESULTS])]


class Arrays:
    """Programs of capibara, or of jax."""

    def __init__(self, library):
        if library == "capibara":
            import capibara.jax as jax
        else:
            import jax
        self.jax = jax

    def prepare(self, row, column):
        function, arguments = (row.cudnn if column == "cudnn" else row.make)(self.jax)
        compiled = self.jax.jit(function, donate_argnums=(0,) if row.carried else ()).lower(*arguments).compile()
        state, rest = [arguments[0]], arguments[1:]

        def call():
            result = compiled(state[0], *rest)
            if row.carried:
                state[0] = result
            return result
        first = call()
        found = some_elements(self.jax, row, first) if row.compared and column != "cudnn" else None
        return call, {"temporaries": compiled.memory_analysis().temp_size_in_bytes, "found": found}

    def wait(self, result):
        self.jax.block_until_ready(result)

    def release(self):
        pass


class Tensors:
    """Calls of PyTorch."""

    def __init__(self):
        import torch

        self.torch = torch

    def prepare(self, row, column):
        return row.torch(self.torch), {}

    def wait(self, result):
        self.torch.cuda.synchronize()

    def release(self):
        self.torch.cuda.empty_cache()


class Worker:
    def __init__(self, library, small, quick):
        self.library = Tensors() if library == "torch" else Arrays(library)
        self.rows, self.small, self.quick = {row.name: row for row in rows(small)}, small, quick
        self.calls = {}  # column -> (call, how many in flight)

    def limits(self):
        from torch_rows import limits

        copy, matmul = limits(self.library.torch)
        self.library.release()
        return {"copy": copy, "matmul": matmul}

    def prepare(self, row, column):
        start = time.perf_counter()
        call, answer = self.library.prepare(self.rows[row], column)
        self.library.wait(call())
        began = time.perf_counter()
        self.library.wait(call())
        one = time.perf_counter() - began
        self.calls[column] = call, 1 if self.quick else 2 if self.small else max(1, min(50, int(ROUND / one)))
        return {**answer, "prepared": began - start, "one": one}

    def time(self, row, column):
        """Seconds of one call, for each of several rounds of calls in flight."""
        call, count = self.calls[column]
        for _ in range(1 if self.quick else count):
            last = call()
        self.library.wait(last)
        found = []
        while len(found) < (1 if self.quick else 9) and sum(found) * count < 10 * ROUND:
            start = time.perf_counter()
            for _ in range(count):
                last = call()
            self.library.wait(last)
            found.append((time.perf_counter() - start) / count)
        return {"seconds": [seconds / self.rows[row].units for seconds in found]}

    def drop(self):
        self.calls.clear()
        gc.collect()
        self.library.release()
        return {}


def main():
    library, options = sys.argv[1], sys.argv[2:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(library, "--small" in options, "--quick" in options)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:  # out of memory, or missing in this version: the driver shows it, the row continues
            answer = {"error": f"{type(error).__name__}: {error}"[:400]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
