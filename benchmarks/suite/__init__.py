"""The rows of the benchmark suite, one file per family."""

import importlib

FAMILIES = (
    "contractions",
    "einsum",
    "convolutions",
    "elementwise",
    "fused_norms",
    "ordering",
    "fourier",
    "linear_algebra",
    "special",
    "control_flow",
    "recurrences",
    "physics",
    "networks",
    "transformer",
    "language_model",
    "decoding",
    "attention",
    "experts",
    "quantization",
    "spiking",
    "temporaries",
    "dispatch",
    "sharding",
    "processes",
)


def all_rows():
    """Every row with the name of its family, in the order of the report."""
    rows = []
    for family in FAMILIES:
        for row in importlib.import_module(f"suite.{family}").rows():
            rows.append((family, row))
    names = [row.name for _, row in rows]
    repeated = {name for name in names if names.count(name) > 1}
    assert not repeated, f"rows of the same name: {sorted(repeated)}"
    return rows
