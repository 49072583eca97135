"""Figures of benchmarks/gpu/kernels.py as lines of a table: times, ratios, shares of the limit, temporaries, and floors reached."""

COLUMNS = ("capibara", "jax", "cudnn", "torch")
HEAD = ["| | capibara | jax | jax by cuDNN | torch | of the limit | backward alone | temporaries, of jax's | difference | target |",
        "|---|---|---|---|---|---|---|---|---|---|"]


def ratio(record, peer):
    ours, theirs = (record["seconds"].get(column) for column in ("capibara", peer))
    return theirs / ours if ours and theirs else None


def share_of_memory(record):
    ours, theirs = (record["temporaries"].get(column) for column in ("capibara", "jax"))
    return ours / theirs if ours is not None and theirs else None


def microseconds(record):
    return 1e6 * record["seconds"]["capibara"] if "capibara" in record["seconds"] else None


# The quantity of a floor: (value of a record, whether more is better, its text).
FLOORS = {
    "jax": (lambda record: ratio(record, "jax"), True, "{:.3g}x jax"),
    "cudnn": (lambda record: ratio(record, "cudnn"), True, "{:.3g}x cuDNN"),
    "limit": (lambda record: record["share"], True, "{:.0%} of the limit"),
    "backward": (lambda record: record["backward"], True, "backward {:.0%}"),
    "us": (microseconds, False, "{:.3g} us"),
    "memory": (share_of_memory, False, "{:.2%} of jax's temporaries"),
}


def judged(record, floor):
    """(its text, True if it is reached, None if nothing was measured)"""
    what, asked = floor
    value, more, text = FLOORS[what]
    found = value(record)
    words = (">= " if more else "<= ") + text.format(asked)
    return words, None if found is None else found >= asked if more else found <= asked


def verdict(record, floor):
    every = [judged(record, pair) for pair in ([floor] if isinstance(floor[0], str) else floor)]
    words, reached = " or ".join(words for words, _ in every), [reached for _, reached in every]
    return f"{words}: " + ("reached" if True in reached else "not measured" if None in reached else "**missed**")


def time_text(seconds):
    return "" if seconds is None else f"{seconds * 1e6:.3g} us" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"


def failure(record, column):
    why = record["failed"].get(column, "")
    return "out of memory" if "RESOURCE_EXHAUSTED" in why else why.split(":")[0]


def peer_text(record, peer):
    found = ratio(record, peer)
    if peer in record["failed"]:
        return failure(record, peer)
    return time_text(record["seconds"].get(peer)) + (f" ({found:.2f}x)" if found else "")


def memory_text(record):
    held = record["temporaries"]
    parts = [f"{held[column] / 1e6:,.1f}" for column in ("capibara", "jax") if column in held]
    found = share_of_memory(record)
    return " of ".join(parts) + (" MB" if parts else "") + (f" ({found:.1%})" if found is not None else "")


def percent(value):
    return "" if value is None else f"{value:.0%}"


def line(record):
    difference = record["difference"]
    ours = failure(record, "capibara") or time_text(record["seconds"].get("capibara"))
    cells = [record["name"], ours, *(peer_text(record, peer) for peer in COLUMNS[1:]),
             percent(record["share"]), percent(record["backward"]), memory_text(record),
             "" if difference is None else f"{difference:.1e}", "; ".join(verdict(record, floor) for floor in record["floors"])]
    return f"| {' | '.join(cells)} |"


def limits_text(limits):
    return f"Copy {limits['copy'] * 1e-12:.2f} TB/s, matmul {limits['matmul'] * 1e-12:.0f} TFLOP/s."
