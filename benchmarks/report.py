"""Writes docs/performance.md and its plots from the figures of a run of the suite, and the saved figures of an accelerator."""

import json
import math
import sys
from pathlib import Path

import changes
from figures import text_of

ROOT = Path(__file__).resolve().parent.parent
PEERS = ("jax", "torch", "torch.compile", "mlx", "mlx.compile", "numpy", "scipy", "numba", "faiss")
COLOURS = {"jax": "#3b6fb5", "torch": "#d9622b", "torch.compile": "#a83f8e", "mlx": "#6b6b6b", "mlx.compile": "#3a3a3a", "numpy": "#3f9c5a",
           "scipy": "#7a5cc0", "numba": "#b59a1f", "faiss": "#2f8f8f"}
TITLES = {
    "contractions": "Matrix products", "einsum": "The planner of einsum", "convolutions": "Convolutions",
    "elementwise": "Elementwise, norms, losses, optimisers", "ordering": "Sorting, sums, scatter, gather, random bits",
    "fourier": "Fourier transforms", "linear_algebra": "Batches of small matrices", "special": "Gamma and beta families",
    "fused_norms": "Fused norms, losses, dropout and Adam (capibara.kernels)",
    "control_flow": "Control flow", "physics": "Ocean physics (float64)", "networks": "Perceptrons", "transformer": "GPT training",
    "language_model": "The demo's language model", "decoding": "Generation with a cache",
    "attention": "Attention", "experts": "Mixtures of experts", "quantization": "Vector quantization", "spiking": "Spiking neurons",
    "temporaries": "Temporaries of long sequences", "sharding": "Several devices of one process",
    "recurrences": "State space models and recurrences",
    "dispatch": "Cost of a call", "processes": "Import, compile time, memory",
}
MOST_LOAD = 0.5  # share of the processors when the run starts
MOST_OTHERS = 0.05  # share of the processors that other programs may take during a row
UNITS = ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def amount(value, unit):
    if value is None:
        return ""
    if unit != "s":
        return f"{value:.3g} {unit}" if unit == "x" else f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    scale, name = next(((scale, name) for scale, name in UNITS if value >= scale), UNITS[-1])
    return f"{value / scale:.3g} {name}"


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def plot(title, records):
    """An SVG with a line for each family and peer and a dot for each row, the peer's time over ours, on a logarithmic axis; right of the
    line at 1 we are ahead."""
    lines = []
    for family in dict.fromkeys(record["family"] for record in records):
        for peer in PEERS:
            found = [(record["name"], record["ratio"][peer]) for record in records
                     if record["family"] == family and record["ratio"].get(peer)]
            if found:
                lines.append((TITLES[family], peer, found))
    if not lines:
        return None
    every = [ratio for _, _, found in lines for _, ratio in found]
    low, high = max(0.05, min(0.5, min(every))), max(4.0, min(max(every), 200.0))
    left, width, height = 370, 520, 10

    def place(ratio):
        return left + width * (math.log(min(max(ratio, low), high)) - math.log(low)) / (math.log(high) - math.log(low))

    parts, y, last = [], 44, None
    for family, peer, found in lines:
        if family != last:
            y += 5
            parts.append(f'<text x="{left - 8}" y="{y + 8}" text-anchor="end">{escape(family)}</text>')
            last = family
        parts.append("".join(f'<circle cx="{place(ratio):.1f}" cy="{y + 4}" r="3.2" fill="{COLOURS[peer]}" fill-opacity="0.6"><title>'
                             f"{escape(name)}: {ratio:.2g}x {peer}</title></circle>" for name, ratio in found))
        y += height
    axis = []
    for tick in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200):
        if low <= tick <= high:
            colour = "#222" if tick == 1 else "#ddd"
            axis.append(f'<line x1="{place(tick):.1f}" y1="40" x2="{place(tick):.1f}" y2="{y + 4}" stroke="{colour}"/>'
                        f'<text x="{place(tick):.1f}" y="{y + 18}" text-anchor="middle">{tick:g}x</text>')
    present = [peer for peer in PEERS if any(peer == one for _, one, _ in lines)]
    legend = "".join(f'<rect x="{10 + 95 * i}" y="20" width="10" height="10" fill="{COLOURS[peer]}"/>'
                     f'<text x="{24 + 95 * i}" y="29">{peer}</text>' for i, peer in enumerate(present))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 30}" height="{y + 28}" '
            f'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n'
            f'<text x="10" y="13" font-weight="bold">{escape(title)}: time of a peer / time of capibara, a dot for each row</text>\n'
            + "\n".join([legend, *axis, *parts]) + "\n</svg>\n")


def cell(record, peer):
    value = record["value"].get(peer)
    if value is None:
        return "failed" if peer in record["failed"] else ""
    ratio = record["ratio"].get(peer)
    return f"{amount(value, record['unit'])} ({ratio:.2f}x)" if ratio else amount(value, record["unit"])


def temporaries(record):
    """Memory that a program needs besides operands and results, in MB, and its share of jax's."""
    held = record.get("memory", {})
    if "capibara" not in held or not held.get("jax"):
        return ""
    ours, theirs = held["capibara"], held["jax"]
    return f"{ours / 1e6:.3g} / {theirs / 1e6:.3g} MB ({ours / theirs:.1%})"


def table(records, mark=""):
    peers = [peer for peer in PEERS if any(peer in record["value"] or peer in record["failed"] for record in records)]
    shares = any("share" in record for record in records)
    errors = any("capibara" in record["error"] for record in records)
    memory = any("memory" in record for record in records)
    head = ["row", "threads", "capibara", *peers, *["share of limit"] * shares, *["temporaries: capibara / jax"] * memory]
    head += ["error"] * errors
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for record in records:
        cells = [f"**{record['name']}**{mark}: {record['what']}", str(record["threads"]), cell(record, "capibara")]
        cells += [cell(record, peer) for peer in peers]
        if shares:
            cells.append(f"{record['share']:.0%} of {record['limit'][0]}" if "share" in record else "")
        if memory:
            cells.append(temporaries(record))
        if errors:
            error = record["error"].get("capibara")
            cells.append("" if error is None else f"{error:.1e}")
        lines.append("| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |")
    return lines


def accelerator(path):
    """The section on an accelerator, from figures saved by benchmarks/gpu/compare.py."""
    kept = json.loads(path.read_text())
    lines = ["## Accelerators", "", f"`python3 benchmarks/gpu/compare.py --json docs/performance/{path.name}` on {kept['machine']}; "
             "both libraries in one run, each figure in fresh processes. capibara's figures are of a C++ program, JAX's of Python; where "
             "a column says so, capibara ran JAX's own Python program too. [accelerators.md](accelerators.md) explains the figures.", ""]
    twins = any(figure.get("capibara_python") is not None for figure in kept["figures"])
    columns = [("capibara", "capibara (C++)"), *[("capibara_python", "capibara (Python)")] * twins, ("jax", "JAX (Python)"),
               ("ratio", "C++ ratio (above 1: capibara is ahead)"), *[("ratio_python", "Python ratio")] * twins]
    lines += ["| figure | unit | " + " | ".join(head for _, head in columns) + " |", "|---|---|" + "---|" * len(columns)]
    for figure in kept["figures"]:
        digits = {"ratio": ".2f", "ratio_python": ".2f"}
        cells = ["" if figure.get(key) is None else format(figure[key], digits.get(key, ".5g")) for key, _ in columns]
        lines.append(f"| {figure['name'].replace('_', ' ')} | {figure['unit']} | " + " | ".join(cells) + " |")
    if "golden" in kept:
        lines += ["", f"Golden files of StableHLO (`capibara check --backend cuda`): {kept['golden']}."]
    return lines + [""]


def is_disturbed(record):
    """True if other programs ran during a row."""
    return record.get("others", 1) > MOST_OTHERS


def disturbed(results):
    """Why the figures cannot be kept: other programs ran at the same time. Empty if none did."""
    machine, rows = results["machine"], results["rows"]
    share = machine["load at start"] / machine["processors"]
    if share > MOST_LOAD:
        return (f"the load at the start was {machine['load at start']:.2f} on {machine['processors']} processors, "
                f"above {MOST_LOAD:.0%} of them")
    unknown = [row["name"] for row in rows if "others" not in row]
    if unknown:
        return f"the run does not say what other programs did during '{unknown[0]}'"
    busy = [row for row in rows if is_disturbed(row)]
    if len(busy) > len(rows) // 20:
        worst = max(busy, key=lambda row: row["others"])
        return (f"other programs took more than {MOST_OTHERS:.0%} of the processors during {len(busy)} of {len(rows)} rows "
                f"({worst['others']:.0%} during '{worst['name']}'); ./run bench --again measures those alone")
    return ""


def failures(results, record):
    """The failures of a row; not peers that are not installed, which the head of the page lists once."""
    return {name: why for name, why in record["failed"].items() if name not in results.get("missing", {})}


def ahead(records):
    """The number of rows in which we are ahead of each peer, as text."""
    ratios = {peer: [record["ratio"][peer] for record in records if peer in record["ratio"]] for peer in PEERS}
    return ", ".join(f"{peer} in {sum(ratio >= 1 for ratio in found)} of {len(found)} rows" for peer, found in ratios.items() if found)


def describe(results):
    """The machine and the peers of a run, as items of a list."""
    machine = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(results["versions"].items()) if name != "capibara")
    return [f"- machine: {machine['processor']}, {machine['processors']} processors, {machine['memory GiB']} GiB, {machine['system']}; "
            f"load at the start {machine['load at start']:.1f}; {machine['date']}",
            *[f"- capibara: commit {commit}" for commit in [machine.get("commit")] if commit], f"- peers: {versions}",
            *[f"- not there: {name} ({why})" for name, why in results.get("missing", {}).items()]]


def page(results, architecture, folder):
    """The page of one architecture and its plot."""
    records = [dict(record, failed=failures(results, record)) for record in results["rows"]]
    lines = [f"# Performance on {architecture}", "",
             f"Made by `./run bench --report` from [{architecture}.json]({architecture}.json), which holds every figure; do not edit. "
             "[performance.md](../performance.md) says how the figures are taken.", "", *describe(results), "",
             "| limit | 1 thread | 2 threads |", "|---|---|---|"]
    for name, found in results["limits"].items():
        unit = "GB/s" if name in ("copy", "read") else "Gop/s"
        lines.append(f"| {name} | " + " | ".join(f"{found[threads] / 1e9:.0f} {unit}" for threads in sorted(found)) + " |")
    lines += ["", "Copying counts bytes read and written. A program whose arrays stay in the caches can be above the limit of "
              "memory.", "", f"Ahead of: {ahead(records)}.", ""]
    families = list(dict.fromkeys(record["family"] for record in records))
    changed = changes.changed_families(results["machine"].get("commit"), families)
    drawing = plot(f"Performance on {architecture}", records)
    if drawing:
        (folder / f"{architecture}.svg").write_text(drawing)
        lines += [f"![Every row beside its peers]({architecture}.svg)", ""]
    if changed:
        lines += ["The code behind rows with a † has changed since they were measured.", ""]
    for family in families:
        chosen = [record for record in records if record["family"] == family]
        lines += [f"## {TITLES[family]}", ""]
        lines += table(chosen, " †" if family in changed else "") + [""]
    below = [record for record in records if record["missed"] or record["failed"]]
    if below:
        lines += ["## Below target", "", "| row | what |", "|---|---|"]
        for record in below:
            why = record["missed"] + [f"{name}: {text}" for name, text in record["failed"].items()]
            lines.append(f"| {record['name']} | {'; '.join(why)} |".replace("\n", " "))
        lines.append("")
    (folder / f"{architecture}.md").write_text("\n".join(lines))
    return records


def write(path):
    """Saves the figures of a run as those of its architecture, and regenerates all pages from the saved figures."""
    results = json.loads(path.read_text())
    why = disturbed(results)
    if why:
        print(f"bench: no report from {path}: {why}. Run ./run bench again on an idle machine.", file=sys.stderr)
        return 1
    folder = ROOT / "docs" / "performance"
    folder.mkdir(exist_ok=True)
    kept = results["machine"]["processor"].split(",")[0]
    (folder / f"{kept}.json").write_text(text_of(results))
    lines = [
        "# Performance", "",
        "Made by `./run bench` and `./run bench --report`, one run for each architecture; do not edit. Each library is a process of its "
        "own on the same processors with the same number of threads. Rounds are interleaved, one process runs at a time, and the best "
        "of all repetitions counts, as does the best of the peers'. A number in brackets is the peer's time over ours: above 1 we are "
        "ahead. `error` is the largest difference from float64 (0 where bits must be equal) as a share of the largest value; "
        "results of peers are compared with ours in the same run. capibara and jax run the same source. Rows called `backward` time "
        "the backward pass alone, torch's too.", ""]
    for raw in sorted(folder.glob("*.json")):
        if raw.stem == "accelerator":
            continue
        of_machine = json.loads(raw.read_text())
        records = page(of_machine, raw.stem, folder)
        lines += [f"## [{raw.stem}](performance/{raw.stem}.md)", "", *describe(of_machine), "", f"Ahead of: {ahead(records)}. "
                  f"{sum(bool(record['missed']) for record in records)} of {len(records)} rows are below target.", "",
                  f"![Every row beside its peers](performance/{raw.stem}.svg)", ""]
    if (folder / "accelerator.json").exists():
        lines += accelerator(folder / "accelerator.json")
    (ROOT / "docs" / "performance.md").write_text("\n".join(lines))
    print(f"wrote docs/performance.md and docs/performance/{kept}.md from {path}")
    return 0
