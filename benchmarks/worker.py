"""One library in its own process: reads commands from a pipe as lines of JSON, runs rows, answers in lines of JSON.

    worker.py LIBRARY THREADS

prepare: inputs, compilation and one call; writes the checked outputs. run: repetitions, each timed. drop: forgets the row.
measure: one figure of a row that needs a fresh process. truth: the row in float64 with jax. quit.
"""

import gc
import json
import math
import os
import resource
import sys
import time
import traceback

import numpy

import libraries

MOST_SAMPLES = 1 << 18  # values of each output that are compared


def sample(value):
    """Some values of an array, always at the same indices: all of a small array, otherwise a stride that hits every row and column."""
    flat = numpy.asarray(value).reshape(-1)
    if flat.size > MOST_SAMPLES:
        flat = flat[:: (flat.size // MOST_SAMPLES) | 1]
    if flat.dtype.name == "bfloat16":
        flat = flat.astype(numpy.float32)
    return flat


class Worker:
    def __init__(self, name, threads):
        started = time.perf_counter()
        self.library = libraries.load(name, threads)
        self.import_seconds = time.perf_counter() - started
        self.rows = None
        self.drop()

    def row(self, name):
        if self.rows is None:
            import suite
            self.rows = {row.name: row for _, row in suite.all_rows()}
        return self.rows[name]

    def drop(self):
        self.current = self.function = self.arguments = None
        gc.collect()

    def call(self):
        outputs = self.function(*self.arguments)
        if self.current.state:
            self.arguments = (outputs[0],) + self.arguments[1:]
        return outputs

    def save(self, outputs, path):
        chosen = self.current.checked(outputs) if self.current.checked else outputs
        values = [sample(self.library.to_numpy(leaf)) for leaf in libraries.leaves(chosen)]
        numpy.savez(path, *values)

    def prepare(self, name, path):
        row = self.current = self.row(name)
        inputs = row.inputs(numpy.random.default_rng(20240607))
        self.function, self.arguments = self.library.prepare(row, inputs)
        del inputs
        started = time.perf_counter()
        outputs = self.call()
        self.library.wait(outputs)
        first = time.perf_counter() - started
        if path:
            self.save(outputs, path)
        del outputs
        memory = self.temporaries()
        seconds = self.repetition(1)
        if seconds < 1:
            seconds = min(self.repetition(1), self.repetition(1))
        calls = max(1, min(20000, math.ceil(0.001 / max(seconds, 1e-7))))
        if calls > 1:
            seconds = self.repetition(calls)
        return {"first": first, "seconds": seconds, "calls": calls, "memory": memory}

    def temporaries(self):
        if not self.current.memory or self.library.name not in ("capibara", "jax"):
            return None
        return libraries.temporaries(self.library.module, self.function.lower(*self.arguments).compile(), self.arguments)

    def repetition(self, calls):
        """Seconds of one call, the mean of as many calls as fill a millisecond."""
        wait, blocking = self.library.wait, self.current.blocking
        outputs = None
        if calls == 1:
            started = time.perf_counter()
            outputs = self.call()
            wait(outputs)
            return time.perf_counter() - started
        if self.current.state:
            started = time.perf_counter()
            for _ in range(calls):
                outputs = None
                outputs = self.call()
                wait(outputs)
            return (time.perf_counter() - started) / calls
        function, arguments = self.function, self.arguments
        started = time.perf_counter()
        if blocking:
            for _ in range(calls):
                outputs = None
                outputs = function(*arguments)
                wait(outputs)
        else:
            for _ in range(calls):
                outputs = function(*arguments)
            wait(outputs)
        return (time.perf_counter() - started) / calls

    def run(self, repetitions, calls):
        return {"times": [self.repetition(calls) for _ in range(repetitions)]}

    def truth(self, name, path):
        """jax in float64 on the same inputs, or the row's own function of numpy."""
        row = self.current = self.row(name)
        inputs = row.inputs(numpy.random.default_rng(20240607))

        def widen(value):
            kind = numpy.asarray(value).dtype
            floating = row.widen and (kind.name == "bfloat16" or kind.kind == "f")
            return numpy.asarray(value).astype(numpy.float64) if floating else value

        if row.truth:
            outputs = row.truth(numpy)(*libraries.map_tree(widen, inputs))
        else:
            jax = self.library.module
            jax.config.update("jax_enable_x64", row.widen or row.wide)
            inputs = libraries.map_tree(lambda value: jax.numpy.asarray(widen(value)), inputs)
            outputs = jax.jit(row.program(jax))(*inputs)
        self.save(outputs, path)
        self.drop()
        return {}

    def measure(self, name):
        row = self.row(name)
        return {"value": row.measure(self.library.name, self.library.module)}

    def answer(self, message):
        kind = message["do"]
        if kind == "hello":
            return {"version": self.library.version, "import": self.import_seconds}
        if kind == "prepare":
            return self.prepare(message["row"], message["path"])
        if kind == "run":
            return self.run(message["repetitions"], message["calls"])
        if kind == "truth":
            return self.truth(message["row"], message["path"])
        if kind == "measure":
            return self.measure(message["row"])
        if kind == "drop":
            self.drop()
            return {"resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}
        raise ValueError(f"unknown command {kind}")


def main():
    # Output of libraries goes to stderr; the pipe carries only answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker = None
    for line in sys.stdin:
        message = json.loads(line)
        if message["do"] == "quit":
            break
        try:
            if worker is None:
                worker = Worker(sys.argv[1], int(sys.argv[2]))
            result = worker.answer(message)
        except BaseException as error:  # the row failed; the driver reports it and continues
            result = {"error": f"{type(error).__name__}: {error}", "missing": isinstance(error, ImportError),
                      "trace": traceback.format_exc()}
            if worker is not None:
                worker.drop()
        print(json.dumps(result), file=answers, flush=True)


main()
