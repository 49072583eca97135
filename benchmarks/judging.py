"""Evaluates the figures of a row: ratios, the share of the limit, the targets missed; and its line of text."""

import sys


def judge(record, limits, others=()):
    """Adds ratios, the share of the limit, and the targets that were missed.

    `least` requires a ratio to a peer ("jax") or to the best of them ("best"), a share of the limit ("limit"), a maximum
    figure ("most"), a maximum multiple of our own figure of another row ("of NAME"), or a maximum share of jax's
    temporaries ("memory").
    """
    ours = record["value"].get("capibara")
    record["ratio"] = {name: value / ours for name, value in record["value"].items() if name != "capibara" and ours}
    if "limit" in record and ours:
        kind, amount = record["limit"]
        peak = limits.get(kind, {}).get(str(record["threads"]))
        if peak:
            record["share"] = amount / (peak * ours)
    missed = []
    if ours is None:
        missed.append("no figure of ours")
    best = min((value for name, value in record["value"].items() if name != "capibara"), default=None)
    for what, least in record["least"].items():
        if ours is None:
            break
        if what == "limit":
            if "share" in record and record["share"] < least:
                missed.append(f"{record['share']:.0%} of the limit, not {least:.0%}")
        elif what == "memory":
            held = record.get("memory", {})
            if held.get("jax") and held["capibara"] > least * held["jax"]:
                missed.append(f"{held['capibara'] / held['jax']:.1%} of jax's temporaries, not {least:.0%}")
        elif what == "best":
            if best is not None and best / ours < least:
                missed.append(f"{best / ours:.2f}x the best peer, not {least}x")
        elif what == "most":
            if ours > least:
                missed.append(f"{show_value(ours, record['unit'])}, not {show_value(least, record['unit'])}")
        elif what.startswith("of "):
            known = [other["value"].get("capibara") for other in others if "of " + other["name"] == what]
            if known and known[0] and ours > least * known[0]:
                missed.append(f"{ours / known[0]:.2f} times {what[3:]}, not {least}")
        elif what in record["ratio"]:
            if record["ratio"][what] < least:
                missed.append(f"{record['ratio'][what]:.2f}x {what}, not {least}x")
    record["missed"] = missed


def show_value(value, unit):
    if value is None:
        return "-"
    if unit != "s":
        return f"{value:.4g} {unit}"
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= scale:
            break
    return f"{value / scale:.3g} {name}"


def show(record):
    peers = "  ".join(f"{name} {show_value(value, record['unit'])} {record['ratio'].get(name, 0):.2f}x"
                      for name, value in record["value"].items() if name != "capibara")
    share = f"  {record['share']:.0%} of {record['limit'][0]}" if "share" in record else ""
    error = record["error"].get("capibara")
    error = f"  error {error:.1e}" if error is not None else ""
    if "memory" in record:
        error += "  temporaries " + " / ".join(f"{bytes / 1e6:.3g} MB of {name}" for name, bytes in record["memory"].items())
    print(f"{record['name']:34} {show_value(record['value'].get('capibara'), record['unit']):>9}{share}  | {peers}{error}")
    for name, why in record["failed"].items():
        print(f"    {'MISSING' if 'No module' in why else 'FAILED'} {name}: {why}")
    for what in record["missed"]:
        print(f"    below what was asked: {what}")
    sys.stdout.flush()
