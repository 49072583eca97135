"""Shared by the figures of an accelerator: a line of JSON for each, and the time of a call."""

import json
import statistics
import time


def report(name, value, unit):
    print(json.dumps({"name": name, "value": value, "unit": unit}), flush=True)


def timed(jax, calls, call, rounds=9):
    """Seconds of one of many calls in flight: the median of several rounds."""
    for _ in range(2):
        jax.block_until_ready(call())
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            last = call()
        jax.block_until_ready(last)
        seconds.append((time.perf_counter() - start) / calls)
    return statistics.median(seconds)
