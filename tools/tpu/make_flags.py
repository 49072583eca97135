"""Writes src/tpu/flags.inc from a table of flags (name, tab, default) as libtpu's .flagfile lists them.

    python3 tools/tpu/make_flags.py ../shared/tpu/flags_all.tsv > src/tpu/flags.inc
"""
import sys
from pathlib import Path


def main():
    print("// Made by tools/tpu/make_flags.py of the flag dump of libtpu 0.0.51: name and default of every flag.")
    for line in Path(sys.argv[1]).read_text().splitlines()[1:]:
        name, _, default = line.partition("\t")
        escaped = default.strip().replace("\\", "\\\\").replace('"', '\\"')
        print(f'{{"{name}", "{escaped}"}},')


if __name__ == "__main__":
    main()
