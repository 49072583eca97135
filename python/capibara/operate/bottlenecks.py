"""Finds what bounds the time of profiles, and estimates the gain of possible changes."""
import json

SHARES = ("compute_bound", "memory_bound", "communication_bound", "overhead_bound", "compilation", "host_bound")

_MIN_GAIN = 0.01  # smaller gains are noise


class Recommendation(str):
    """A recommendation, with the largest share of the time that it can save and the source line that it concerns."""

    expected_gain: float
    source: str

    def __new__(cls, text, gain, source=""):
        made = super().__new__(cls, f"{text} (up to {gain:.0%} of the time)")
        made.expected_gain, made.source = gain, source
        return made


def analyze(profiles):
    """The shares by name, and "recommendations"."""
    seconds, rows, compiled = dict.fromkeys(SHARES, 0.0), [], {}
    wall = 0
    for profile in profiles:
        wall += profile.duration
        collective = {slot["name"] for slot in profile.slots() if slot["collective"]}
        for row in json.loads(profile.summary_json())["rows"]:
            kind = "communication_bound" if row["what"] in collective else f"{row['bound']}_bound"
            seconds[kind] += row["nanoseconds"]
            rows.append((kind, row))
        for event in profile.events():
            if event["kind"] == "compile":
                seconds["compilation"] += event["duration"]
                compiled[event["name"]] = compiled.get(event["name"], 0) + event["duration"]
            elif event["kind"] == "transfer":
                seconds["communication_bound"] += event["duration"]
    # The summed time of parallel threads may exceed the wall time.
    total = max(wall, sum(seconds.values()), 1)
    seconds["host_bound"] = total - sum(seconds.values())
    shares = {name: value / total for name, value in seconds.items()}
    advice = [*_of_rows(rows, total), *_of_the_host(shares, compiled, total)]
    advice.sort(key=lambda item: -item.expected_gain)
    return {**shares, "recommendations": [item for item in advice if item.expected_gain >= _MIN_GAIN]}


def _of_rows(rows, total):
    for kind, row in rows:
        share = row["nanoseconds"] / total
        gain = share * max(0.0, 1 - row["roofline"])
        where = f"{row['what']}" + (f" at {row['source']}" if row["source"] else "")
        if kind == "communication_bound":
            yield Recommendation(f"{where}: {row['calls']} collectives; overlap them with computation, or shard so that fewer are "
                                 "needed", share, row["source"])
        elif kind == "overhead_bound":
            each = row["nanoseconds"] / max(1, row["calls"]) / 1000
            advice = "jit the function that it is in" if row["kind"] == "eager" else "work on larger arrays, or fuse it with its neighbours"
            yield Recommendation(f"{where}: {row['calls']} calls of {each:.3g} us at {row['roofline']:.0%} of the machine's limit; "
                                 f"{advice}", gain, row["source"])
        elif kind == "memory_bound" and row["roofline"] >= 0.7:
            yield Recommendation(f"{where}: at {row['roofline']:.0%} of the memory's rate; types of half the width move half the bytes",
                                 share / 2, row["source"])
        elif kind == "memory_bound":
            yield Recommendation(f"{where}: at {row['roofline']:.0%} of the memory's rate; look at strides and layout of its operands",
                                 gain, row["source"])
        else:
            yield Recommendation(f"{where}: at {row['roofline']:.0%} of the peak rate; larger or aligned shapes come nearer", gain,
                                 row["source"])


def _of_the_host(shares, compiled, total):
    if compiled:
        name = max(compiled, key=compiled.get)
        yield Recommendation(f"compilations take {shares['compilation']:.0%} of the time, most for {name or 'one program'}; keep shapes "
                             "and static arguments the same, or set jax_compilation_cache_dir", shares["compilation"])
    yield Recommendation(f"no program runs {shares['host_bound']:.0%} of the time; move Python's work into the jitted step, or prepare "
                         "batches ahead", shares["host_bound"])
