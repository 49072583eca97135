"""Writes docs/kernels-measured.md and its plots: claimed and measured speed-ups and memory savings of the kernels.

    python3 benchmarks/claims.py [RESULTS.json...]

Claims are in docs/kernels-measured/claims.json, which also names the files next to it that benchmarks/gpu/kernels.py --json wrote on
accelerators. CPU figures are taken from runs of the suite, by default the one kept for x86_64, which has every row; for a row in
several runs, the last counts. ./run bench --report writes the page, too.
"""

import json
import math
import sys
from pathlib import Path

from gpu.kernel_table import HEAD, limits_text, line, ratio, share_of_memory
from report import COLOURS, amount, escape

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
CLAIMED, CPU, ACCELERATOR = "#9a9a9a", COLOURS["jax"], COLOURS["torch"]


def joined(paths):
    """The runs merged: rows by name, machines, and versions."""
    rows, machines, versions = {}, [], {}
    for path in paths:
        results = json.loads(path.read_text())
        rows.update({record["name"]: record for record in results["rows"]})
        machines.append(results["machine"])
        versions.update(results["versions"])
    return rows, machines, versions


def share_of_peer(record):
    """The share of the processor's limit that jax reaches in a row; None if the row has no limit."""
    return record["share"] / record["ratio"]["jax"] if record and "share" in record and record["ratio"].get("jax") else None


def shares(record):
    """(ours, jax's) in bytes: temporaries, or the figures of a row that measures memory."""
    held = record.get("memory") or {name: 1e6 * value for name, value in record["value"].items() if record["unit"] == "MB"}
    return (held["capibara"], held["jax"]) if held.get("jax") and "capibara" in held else None


# --- bars --------------------------------------------------------------------------------------------------------------


def speed_bars(kept, records):
    """Groups (title, bars), where a bar is (label, ratio, colour)."""
    groups = []
    for claim in kept["speed"]:
        bars = [("claimed", claim["claim"], CLAIMED)]
        bars += [(f"CPU: {name}", records[name]["ratio"]["jax"], CPU) for name in claim["rows"]
                 if name in records and records[name]["ratio"].get("jax")]
        groups.append((claim["operation"], bars))
    known = {title: bars for title, bars in groups}
    for label, record in accelerator_rows(kept):
        if not ratio(record, "jax"):
            continue
        if record["subject"] not in known:
            known[record["subject"]] = []
            groups.append((record["subject"], known[record["subject"]]))
        known[record["subject"]].append((label, ratio(record, "jax"), ACCELERATOR))
    return groups


def accelerator_rows(kept):
    """(label, record) of each row."""
    return [(f"{machine['name']}: {record['name']}", record) for machine in kept["accelerators"] for record in machine["figures"]["rows"]]


def is_asked(record):
    """True if a row has a floor for its memory."""
    return any(what == "memory" for what, _ in record["floors"])


def memory_bars(kept, records):
    groups = []
    for claim in kept["memory"]:
        bars = [("claimed", claim["claim"], CLAIMED)]
        for name in claim["rows"]:
            found = shares(records[name]) if name in records else None
            if found:
                bars.append((f"CPU: {name}", found[0] / found[1], CPU))
        bars += [(label, share_of_memory(record), ACCELERATOR) for label, record in accelerator_rows(kept)
                 if record["subject"] in claim["subjects"] and is_asked(record) and share_of_memory(record)]
        groups.append((claim["operation"], bars))
    return groups


def plot(title, groups, low, high, ticks, text):
    """Horizontal bars on a logarithmic axis, as SVG."""
    left, width, bar = 500, 380, 15

    def place(value):
        share = (math.log(min(max(value, low), high)) - math.log(low)) / (math.log(high) - math.log(low))
        return left + width * share

    parts, y = [], 40
    for name, bars in groups:
        parts.append(f'<text x="8" y="{y + 11}" font-weight="bold">{escape(name)}</text>')
        for label, value, colour in bars:
            parts.append(f'<text x="{left - 8}" y="{y + 11}" text-anchor="end">{escape(label)}</text>'
                         f'<rect x="{left}" y="{y}" width="{max(place(value) - left, 1):.1f}" height="{bar - 3}" fill="{colour}"/>'
                         f'<text x="{place(value) + 4:.1f}" y="{y + 10}">{text(value)}</text>')
            y += bar
        y += 8
    axis = "".join(f'<line x1="{place(tick):.1f}" y1="32" x2="{place(tick):.1f}" y2="{y}" stroke="{"#222" if tick == 1 else "#ddd"}"/>'
                   f'<text x="{place(tick):.1f}" y="{y + 14}" text-anchor="middle">{text(tick)}</text>' for tick in ticks)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 60}" height="{y + 24}" font-family="sans-serif" '
            f'font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n<text x="8" y="16" font-weight="bold">{escape(title)}'
            f'</text>\n{axis}\n' + "\n".join(parts) + "\n</svg>\n")


# --- the page ----------------------------------------------------------------------------------------------------------


def speed_table(kept, records):
    lines = ["| operation | claimed | measured on the CPU | shape | capibara | jax | measured | load |",
             "|---|---|---|---|---|---|---|---|"]
    for claim in kept["speed"]:
        for name in claim["rows"]:
            record = records.get(name)
            if not record or not record["ratio"].get("jax"):
                lines.append(f"| {claim['operation']} | {claim['claim']}x | {name} | | | | not run | |")
                continue
            ours, theirs = (amount(record["value"][library], record["unit"]) for library in ("capibara", "jax"))
            lines.append(f"| {claim['operation']} | {claim['claim']}x | {name} | {record['what']} | {ours} | {theirs} | "
                         f"{record['ratio']['jax']:.2f}x | {record['load']:.1f} |")
    return lines


def bound_of_products(kept, records):
    """Explains why a large matmul cannot reach the claimed speed-up."""
    share = share_of_peer(records.get(kept["speed"][0]["rows"][0]))
    return [] if share is None else [
        f"In the first row JAX reaches {share:.0%} of what the processor can do, so that nothing can be more than {1 / share:.2f} times "
        "as fast.", ""]


def memory_table(kept, records):
    lines = ["| operation | claimed | measured on the CPU | shape | capibara | jax | of jax's |", "|---|---|---|---|---|---|---|"]
    for claim in kept["memory"]:
        for name in claim["rows"]:
            found = shares(records[name]) if name in records else None
            figures = (f"{records[name]['what']} | {found[0] / 1e6:.3g} MB | {found[1] / 1e6:.3g} MB | {found[0] / found[1]:.2%}"
                       if found else " | | | not run")
            lines.append(f"| {claim['operation']} | {claim['claim']:.1%} at {claim['of']} | {name} | {figures} |")
    return lines


def accelerator_lines(kept):
    lines = []
    for machine in kept["accelerators"]:
        figures = machine["figures"]
        head = (f"By `{machine['command']}` at commit {machine['commit']}, {machine['date']}: {figures['machine']}. All libraries "
                "in one run, each row timed alternately; a figure is the median of all rounds of calls in flight. "
                f"{limits_text(figures['limits'])} *Of the limit* is the share of the time that these allow for the bytes moved at least, "
                "or for the operations of matmuls; *backward alone* is that of the difference to the row without gradient. Times of "
                "others are followed by how many times ours they are.")
        lines += [f"### {machine['name']}", "", head, "", *machine["notes"], "", *HEAD, *map(line, figures["rows"]), ""]
        if figures["missing"]:
            lines += [f"Not reached: {'; '.join(figures['missing'])}.", ""]
    return lines


def page(kept, records, machines, versions):
    machine, dates = machines[0], sorted({one["date"] for one in machines})
    _, _, how = machine["system"].partition(", ")  # how the suite was run, if noted
    how = f" ({how})" if how else ""
    return "\n".join([
        "# Fused kernels: claimed and measured", "",
        "Made by `python3 benchmarks/claims.py` from [claims.json](kernels-measured/claims.json) and figures of `./run bench`; do not "
        "edit. The original proposal of these kernels claims one speed-up over JAX for each of five operations and three savings of "
        "memory, on TPU v6e-64 and without shapes. No such TPU was measured here: the figures below are those of other machines, on "
        "stated shapes, beside the JAX that is installed there. [kernels.md](kernels.md) says what the kernels do.", "",
        f"CPU: {machine['processor']}, {machine['processors']} processors{how}, {', '.join(dates)}, commit {machine['commit']}, "
        f"jax {versions.get('jax', '')}. The column "
        f"`load` is the load average when a row was measured: where it is above {machine['processors']} other programs ran "
        "meanwhile, times are too long, and ratios are rough.", "",
        "## Speed", "", "![Speed-ups claimed and measured](kernels-measured/speed.svg)", "", *speed_table(kept, records), "",
        *bound_of_products(kept, records),
        "The other operations differ from what JAX compiles by what is never stored or computed: states of all steps, distances to all "
        "codes, blocks that a pattern leaves out, products with experts that a token did not choose.", "",
        *accelerator_lines(kept),
        "## Memory", "", "Temporaries: what a program needs besides operands and results. Of JAX what XLA plans "
        "(`memory_analysis().temp_size_in_bytes`), of capibara the counted peak of a call. They do not depend on the load.", "",
        "![Memory claimed and measured](kernels-measured/memory.svg)", "", *memory_table(kept, records), ""])


def write(*paths):
    paths = paths or (DOCS / "performance" / "x86_64.json",)
    folder = DOCS / "kernels-measured"
    kept, (records, machines, versions) = json.loads((folder / "claims.json").read_text()), joined(paths)
    for machine in kept["accelerators"]:
        machine["figures"] = json.loads((folder / machine["figures"]).read_text())
    (folder / "speed.svg").write_text(plot("Speed-up over JAX", speed_bars(kept, records), 0.8, 200, (1, 2, 5, 10, 20, 50, 100),
                                           lambda value: f"{value:.3g}x"))
    (folder / "memory.svg").write_text(plot("Memory, as a share of JAX's (claims: of all memory)", memory_bars(kept, records), 0.0002, 1,
                                            (0.001, 0.01, 0.1, 1), lambda value: f"{value:.2g}".replace("1e-03", "0.001")))
    (DOCS / "kernels-measured.md").write_text(page(kept, records, machines, versions))
    print(f"wrote docs/kernels-measured.md from {', '.join(map(str, paths))}")
    return 0


if __name__ == "__main__":
    sys.exit(write(*map(Path, sys.argv[1:])))
