"""Writes libtpu_topologies.tsv: libtpu's own device numbers and coordinates for every slice of topologies.tsv.

    export TPU_LIBRARY_PATH=.../libtpu.so
    build/venv/bin/python tests/tpu/record_topologies.py > tests/tpu/libtpu_topologies.tsv

Needs jax 0.10.2 and libtpu 0.0.51 on x86_64; takes about a minute. Nothing runs on a TPU.
"""
import hashlib
import os

from recorded_tables import table

os.environ.update(ALLOW_MULTIPLE_LIBTPU_LOAD="true", TPU_SKIP_MDS_QUERY="1", TPU_WORKER_HOSTNAMES="localhost",
                  TPU_ACCELERATOR_TYPE="v5litepod-4", JAX_PLATFORMS="cpu")


def digest(rows):
    return hashlib.sha256("\n".join(",".join(map(str, row)) for row in rows).encode()).hexdigest()[:16]


def main():
    from jax.experimental import topologies
    print("accelerator_type\ttopology\tdevices\tsha256_of_id_host_x_y_z_core")
    for row in table("topologies.tsv"):
        options = {"chips_per_host_bounds": tuple(map(int, row["chips_per_host_bounds"].split(",")))}
        if row["chip_config_name"] not in ("", "default"):
            options["chip_config_name"] = row["chip_config_name"]
        name = row["topology_name_for_get_topology_desc"]
        devices = topologies.get_topology_desc(name, platform="tpu", **options).devices
        rows = [(d.id, d.process_index, *d.coords, d.core_on_chip) for d in devices]
        print(row["accelerator_type"], name, len(rows), digest(rows), sep="\t")


if __name__ == "__main__":
    main()
