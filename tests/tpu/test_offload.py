"""Steps whose layers keep their residuals on the host: the text that `capibara plan` writes, and the values it computes."""
import os
import re
import subprocess

import numpy as np
from recorded_tables import ROOT

COMMAND = os.environ.get("CAPIBARA_COMMAND", str(ROOT / "build" / "capibara"))
SMALL = "layers=2,width=16,heads=2,kv_heads=1,head_size=8,hidden=32,vocab=24"


def written(folder, remat, model=SMALL, tpu="v5e-1", *words):
    path = folder / f"{remat}.mlir"
    subprocess.run([COMMAND, "plan", "--model", model, "--tpu", tpu, "--batch", "4", "--seq", "8", "--remat", remat, "--write", str(path),
                    *words], check=True, capture_output=True)
    return path


def moves(path, memory):
    return len(re.findall(rf'@annotate_device_placement.*_xla_buffer_placement = "{memory}"', path.read_text()))


def test_what_leaves_the_device_comes_back(tmp_path):
    """The layer's input, q, k, v and the output projection; for Mamba only the input; with other policies nothing."""
    path = written(tmp_path, "offload")
    assert moves(path, "pinned_host") == moves(path, "device") == 5
    path = written(tmp_path, "offload", "kind=mamba,layers=2,width=16,heads=2,hidden=32,vocab=24,head_size=16,state=8")
    assert moves(path, "pinned_host") == moves(path, "device") == 1
    path = written(tmp_path, "minimal", SMALL, "v5e-4", "--mesh", "fsdp=2,tensor=2")
    assert moves(path, "pinned_host") == moves(path, "device") == 0


def test_values_are_those_without_remat(tmp_path):
    inputs = []
    generator = np.random.default_rng(3)
    first = written(tmp_path, "none").read_text()
    main = re.search(r"func\.func public @main\((.*)", first).group(1)
    for i, (sizes, dtype) in enumerate(re.findall(r"%arg\d+: tensor<([\dx]+)x(f32|i32)>", main)):
        shape = [int(size) for size in sizes.split("x")]
        weights = np.abs(generator.normal(size=shape) / 4).astype(np.float32)  # the second moment is not negative
        values = generator.integers(0, 24, shape, np.int32) if dtype == "i32" else weights
        np.save(tmp_path / f"{i}.npy", values)
        inputs.append(str(tmp_path / f"{i}.npy"))
    results = {}
    for remat in ("none", "offload"):
        subprocess.run([COMMAND, "run", str(written(tmp_path, remat)), *inputs, "--output", str(tmp_path / remat)], check=True,
                       capture_output=True)
        results[remat] = [np.load(path) for path in sorted((tmp_path / remat).glob("*.npy"))]
    assert len(results["none"]) == len(inputs) - 1  # all except the tokens
    for kept, moved in zip(results["none"], results["offload"], strict=True):
        np.testing.assert_allclose(moved, kept, rtol=2e-2, atol=1e-4)  # bfloat16 inside
