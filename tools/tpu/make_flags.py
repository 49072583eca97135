"""Writes src/tpu/flags.inc from the table of flags (name, tab, default) as libtpu's .flagfile lists them.

    python3 tools/tpu/make_flags.py > src/tpu/flags.inc
"""
import lzma
from pathlib import Path

TABLE = Path(__file__).resolve().parents[2] / "tests" / "tpu" / "tables" / "flags_all.tsv.xz"


def main():
    print("// Made by tools/tpu/make_flags.py of the flag dump of libtpu 0.0.51: name and default of every flag.")
    for line in lzma.decompress(TABLE.read_bytes()).decode().splitlines()[1:]:
        name, _, default = line.partition("\t")
        escaped = default.strip().replace("\\", "\\\\").replace('"', '\\"')
        print(f'{{"{name}", "{escaped}"}},')


if __name__ == "__main__":
    main()
