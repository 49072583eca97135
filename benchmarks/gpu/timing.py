"""What the figures of an accelerator share: a line of JSON for each, and the time of a call."""

import json
import statistics
import time


def report(name, value, unit):
    print(json.dumps({"name": name, "value": value, "unit": unit}), flush=True)


def timed(jax, calls, call):
    """Seconds of one of many calls in flight: the median of nine rounds."""
    for _ in range(2):
        jax.block_until_ready(call())
    rounds = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(calls):
            last = call()
        jax.block_until_ready(last)
        rounds.append((time.perf_counter() - start) / calls)
    return statistics.median(rounds)
