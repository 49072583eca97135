"""Verdicts on flags equal those of libtpu 0.0.51."""
import os
import re

import pytest
from recorded_tables import table

tpu = pytest.importorskip("capibara._core", reason="the Python extension is not built").tpu
SEEDS = {"xla_tpu_enable_data_parallelism": False, "xla_tpu_enable_async_collective_fusion": True, "xla_tpu_enable_megacore_fusion": True,
         "xla_gpu_enable_triton_softmax_fusion": False, "xla_tpu_megacore_fusion_allow_ags": True,
         "xla_tpu_enable_ag_backward_pipelining": True}


@pytest.fixture
def init_args(monkeypatch):
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "")


def test_every_tried_flag_gets_the_compilers_verdict():
    rows = table("flags_checked.tsv")
    for row in rows:
        ours = tpu.check_flag(row["name"], "", True)
        assert ours["accepted"] == (row["per_compile_option (tried)"] == "accepted"), row["name"]
    assert len(rows) == 76


def test_every_listed_flag_is_known_with_its_default():
    for row in table("flags_all.tsv"):
        value = (row["default"] or "").strip().strip("'")
        ours = tpu.check_flag(row["name"], value)
        assert ours["accepted"] and ours["default"] == value, (row, ours)


def test_flags_of_the_collection():
    for row in table("flags.tsv"):
        for name in re.findall(r"xla_tpu_\w+", row["flag"]):
            assert tpu.check_flag(name)["accepted"] == row["exists"].startswith("yes"), name


@pytest.mark.parametrize("name, known", SEEDS.items())
def test_flags_of_the_seeds(name, known):
    verdict = tpu.check_flag(name, "true")
    assert verdict["accepted"] == known
    assert known or verdict["message"]


@pytest.mark.parametrize("name, value, says", [
    ("xla_tpu_scoped_vmem_limit_kib", "abc", "needs an integer, got 'abc'"),
    ("xla_tpu_enable_async_collective_fusion", "perhaps", "true or false"),
    ("xla_tpu_enable_megacore_fusion", "maybe", "auto, true, false, enabled or disabled"),
    ("xla_tpu_enable_latency_hiding_schedule", "true", "latency_hiding_scheduler'")])
def test_wrong_values_and_names_say_what_is_right(name, value, says):
    verdict = tpu.check_flag(name, value)
    assert not verdict["accepted"] and says in verdict["message"]


def test_set_xla_flags_refuses_before_anything_is_set(init_args):
    from capibara.core.tpu import TPUError, set_xla_flags
    with pytest.raises(TPUError, match="no compiler has it"):
        set_xla_flags({"xla_tpu_enable_async_collective_fusion": True, "xla_tpu_enable_data_parallelism": True})
    assert os.environ["LIBTPU_INIT_ARGS"] == ""
    done = set_xla_flags({"xla_tpu_scoped_vmem_limit_kib": 65536, "xla_tpu_enable_async_collective_fusion": True})
    assert os.environ["LIBTPU_INIT_ARGS"] == "--xla_tpu_enable_async_collective_fusion=true --xla_tpu_scoped_vmem_limit_kib=65536"
    assert done["defaults"] == ["xla_tpu_enable_async_collective_fusion"]
    set_xla_flags({"xla_tpu_scoped_vmem_limit_kib": 32768})
    assert "65536" not in os.environ["LIBTPU_INIT_ARGS"] and "async_collective" in os.environ["LIBTPU_INIT_ARGS"]


def test_levels_set_flags_that_libtpu_knows(init_args):
    from capibara.core.tpu import enable_xla_optimizations
    from capibara.jax.tpu_v4 import tpu_optimization
    for level in range(4):
        for megacore in (True, False):
            assert not enable_xla_optimizations(level, enable_megacore=megacore)["refused"]
    with pytest.raises(ValueError, match="from 0 to 3, got 7"):
        enable_xla_optimizations(7)
    tpu_optimization.enable_all_optimizations()
    with pytest.warns(RuntimeWarning, match="not loaded"):
        verified = tpu_optimization.verify_optimizations()
    assert not verified["active"] and not verified["loaded"] and verified["origin"].startswith("not loaded")
    assert all(row["requested"] is not None and row["value"] is None for row in verified["flags"].values())


def test_flags_are_compared_with_what_the_loaded_libtpu_read(init_args, monkeypatch):
    from capibara.core.tpu import _flags, set_xla_flags
    from capibara.jax.tpu_v4 import tpu_optimization
    read = {"xla_tpu_scoped_vmem_limit_kib": "65536"}
    for module in (_flags, tpu_optimization):
        monkeypatch.setattr(module, "libtpu_arguments", lambda: read)
    monkeypatch.setattr(tpu_optimization, "_enabled", [])
    assert set_xla_flags({"xla_tpu_scoped_vmem_limit_kib": 65536})["too_late"] == []
    verified = tpu_optimization.verify_optimizations()
    assert verified["active"] and verified["flags"]["xla_tpu_scoped_vmem_limit_kib"]["value"] == "65536"
    with pytest.warns(RuntimeWarning, match="libtpu is loaded and read its flags before.*xla_tpu_scoped_vmem_limit_kib"):
        done = set_xla_flags({"xla_tpu_scoped_vmem_limit_kib": 32768, "xla_tpu_enable_async_collective_fusion": True})
    assert done["too_late"] == ["xla_tpu_scoped_vmem_limit_kib"]  # the other one is the default
    with pytest.warns(RuntimeWarning, match="without effect"):
        verified = tpu_optimization.verify_optimizations()
    assert not verified["active"] and verified["loaded"] and verified["flags"]["xla_tpu_scoped_vmem_limit_kib"]["value"] == "65536"
