"""Slices are those available for rent, with libtpu's own device numbers and coordinates."""
import csv
import hashlib
from pathlib import Path

import pytest
from recorded_tables import table

tpu = pytest.importorskip("capibara._core", reason="the Python extension is not built").tpu
RECORDED = Path(__file__).with_name("libtpu_topologies.tsv")


def test_every_topology_has_its_name_counts_and_rings():
    for row in table("topologies.tsv"):
        found = tpu.slice(row["accelerator_type"])
        assert found["topology"].replace("v5p:", "v5:") == row["topology_name_for_get_topology_desc"], row
        assert (found["chips"], found["devices"], found["hosts"]) == (int(row["chips"]), int(row["jax_devices"]), int(row["hosts_4chipVM"]))
        wraps = [bool(int(ring)) for ring in row["wrap_xyz"].split(",")]
        assert found["wraps"] == wraps[:len(found["shape"])], row["accelerator_type"]


def test_devices_stand_where_libtpu_puts_them():
    with open(RECORDED) as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len(rows) == 223
    for row in rows:
        devices = tpu.slice_devices(row["accelerator_type"])
        assert len(devices) == int(row["devices"])
        text = "\n".join(",".join(map(str, device)) for device in devices)
        assert hashlib.sha256(text.encode()).hexdigest()[:16] == row["sha256_of_id_host_x_y_z_core"], row["accelerator_type"]


@pytest.mark.parametrize("name, says", [
    ("v4:4x8", "three dimensions"), ("v4:2x2x3", "v4-16 = 8 chips = 2x2x2"), ("v5e:32x32", "v5e-256 = 256 chips = 16x16"),
    ("v9-8", "there are v2, v3, v4, v5e, v5p, v6e, tpu7x"), ("v4", "v5e-16, v4-32"), ("v4-7", "cannot be rented"),
    ("v5e-", "names no slice")])
def test_what_cannot_be_rented_is_refused_with_the_choices(name, says):
    with pytest.raises(ValueError, match=says.replace("(", r"\(")):
        tpu.slice(name)


def test_the_vendors_figures_are_in_the_table():
    rows = {(row["gen"], row["key"]): row["value"] for row in table("tpu_specs.tsv")}
    for chip in tpu.chips():
        for key, ours in (("bf16_tflops_per_chip", chip["bf16_tflops"]), ("int8_tops_per_chip", chip["int8_tops"]),
                          ("hbm_bw", chip["hbm_gbps"]),
                          ("fp8_tflops_per_chip", chip["fp8_tflops"]), ("pod_chips", chip["pod_chips"]), ("hbm", chip["hbm_gb"]),
                          ("ici_oneway_per_link", chip["ici_link_gbps"]), ("tensorcores_per_chip", chip["cores"]),
                          ("mxu_dim", chip["mxu_size"]),
                          ("vmem_per_core", chip["vmem_mib"]), ("clock", chip["clock_ghz"])):
            if (chip["name"], key) in rows:
                assert float(rows[chip["name"], key]) == ours, (chip["name"], key)


def test_the_seeds_slice_is_sixteen_chips():
    found = tpu.slice("v4-32")
    assert (found["chips"], found["shape"], found["hosts"], found["topology"]) == (16, [2, 2, 4], 4, "v4:2x2x4")
    assert tpu.slice("2x v5e-256")["chips"] == 512
