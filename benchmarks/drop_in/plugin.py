"""Summary of a run of the benchmark with jax on the plugin: plugin.py [FILE], a table in Markdown.

    ./run bench --peers jax,jax.plugin --repeat 3 --json build/bench/plugin.json
    python3 benchmarks/drop_in/plugin.py build/bench/plugin.json

capibara.jax, jax on XLA:CPU and the same jax on capibara's plugin are interleaved. A family's figure is the median of its rows.
"""

import json
import statistics
import sys


def ratios(record):
    """(XLA:CPU's time over the plugin's, the plugin's over capibara.jax's) of a row, None if one of them failed."""
    value = record["value"]
    if not all(value.get(name) for name in ("jax.plugin", "jax", "capibara")) or record["unit"] != "s":
        return None
    return value["jax"] / value["jax.plugin"], value["jax.plugin"] / value["capibara"]


def main():
    with open(sys.argv[1] if len(sys.argv) > 1 else "build/bench/plugin.json") as file:
        rows = json.load(file)["rows"]
    families = {}
    for record in rows:
        found = ratios(record)
        if found:
            families.setdefault(record["family"], []).append((record["name"], record["value"]["jax.plugin"], *found))
    print("| rows | number | of XLA:CPU's time, median | fastest | slowest | beside capibara.jax, median |\n|---|---|---|---|---|---|")
    for family, found in families.items():
        found.sort(key=lambda row: row[2])
        print(f"| {family} | {len(found)} | {1 / statistics.median(row[2] for row in found):.2f} | {found[-1][0]} {1 / found[-1][2]:.2f} "
              f"| {found[0][0]} {1 / found[0][2]:.2f} | {statistics.median(row[3] for row in found):.2f} |")
    every = [row for found in families.values() for row in found]
    slower = [row for row in every if row[2] < 1]
    long = [row for row in every if row[1] > 1e-4]
    far = [row for row in long if row[3] > 1.1]
    print(f"\n{len(every)} rows; {len(slower)} slower than XLA:CPU: {', '.join(f'{row[0]} {1 / row[2]:.2f}' for row in slower) or '-'}")
    print(f"{len(long)} rows above 100 us; {len(far)} more than 10 % beyond capibara.jax: "
          f"{', '.join(f'{row[0]} {row[3]:.2f}' for row in far) or '-'}")
    failed = [f"{record['name']} ({record['failed']['jax.plugin']})" for record in rows if "jax.plugin" in record["failed"]]
    print(f"{len(failed)} failed on the plugin: {', '.join(failed) or '-'}")


main()
