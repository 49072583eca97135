"""The command `capibara plan`: tables, searches, reports and errors."""
import html.parser
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("CAPIBARA_COMMAND", str(ROOT / "build" / "capibara"))
PROGRAM = """module @p {
  func.func public @main(%0: tensor<512x256xf32>, %1: tensor<256x128xf32>) -> tensor<512x128xf32> {
    %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x128xf32>) -> tensor<512x128xf32>
    return %2 : tensor<512x128xf32>
  }
}
"""


def plan(*words, code=0):
    done = subprocess.run([COMMAND, "plan", *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_a_table_says_that_it_is_modelled():
    text = plan("--model", "llama3.1-8b", "--tpu", "v6e-64", "--batch", "64", "--seq", "8192")
    assert "modelled by capibara; nothing was run on a TPU" in text
    assert "64 chips" in text and "GiB of 31.24" in text


def test_the_search_of_70b_over_256_chips_has_hundreds_of_plans():
    text = plan("--model", "llama3.1-70b", "--tpu", "v6e-256", "--seq", "4096", "--search")
    count = int(text.split(" plans, best first")[0].rsplit("\n", 1)[1])
    assert count >= 200


def test_json_is_json():
    answer = json.loads(plan("--model", "mixtral-8x7b", "--tpu", "v5e-256", "--mesh", "fsdp=32,expert=8", "--batch", "256", "--json"))
    assert answer["origin"] == "modelled" and answer["mesh"] == "fsdp=32,expert=8"
    assert answer["memory_gib"] == pytest.approx(5.149, rel=0.1)  # compiled by libtpu, compiled_steps.tsv


@pytest.mark.parametrize("words, says", [
    (("--model", "llama3.1-8b", "--tpu", "v4-33"), "cannot be rented"),
    (("--model", "lama3.1-8b", "--tpu", "v4-32"), "did you mean 'llama3.1-8b'"),
    (("--model", "gpt2", "--tpu", "v4-32", "--mesh", "fsdp=3"), "is for 3 devices, but v4-32 has 16"),
    (("--model", "gpt2", "--tpu", "v4-32", "--mesh", "fdsp=16"), "did you mean 'fsdp'"),
    (("--model", "llama3-8b", "--tpu", "v4-32"), "did you mean 'llama3.1-8b'"),
    (("--model", "gpt2", "--tpu", "v4-32", "--mesh", "data=4,data=4"), "names the axis data twice"),
    (("--model", "gpt2", "--tpu", "v4-32", "--flags", "xla_tpu_enable_data_parallelism=true"),
     "did you mean 'xla_tpu_enable_data_parallel_all_reduce_opt'"),
    (("--model", "gpt2", "--tpu", "v4-32", "--remat", "ful"), "did you mean 'full'"),
    (("--model", "gpt2", "--tpu", "v4-32", "--flags", "--xla_tpu_enable_data_parallelism=true"), "no compiler has it")])
def test_wrong_requests_are_refused_in_one_line(words, says):
    text = plan(*words, code=1)
    assert says in text and len(text.strip().splitlines()) == 1


def test_parts_of_a_token_are_refused():
    assert "--seq needs a whole number, got '2.5'" in plan("--model", "gpt2", "--tpu", "v4-32", "--seq", "2.5", code=2)


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.links = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "xlink:href")]


def test_the_report_stands_alone(tmp_path):
    plan("--model", "llama3.1-8b", "--tpu", "v5p-128", "--seq", "4096", "--search", "--html", str(tmp_path / "plan.html"))
    text = (tmp_path / "plan.html").read_text()
    page = Page()
    page.feed(text)
    assert page.links == [] and "script" not in page.tags and page.tags.count("svg") == 5
    for title in ("Memory over the step", "Time by kind", "Roofline", "Scaling over chips", "Modelled and compiled", "Other plans"):
        assert title in text
    assert "nothing on this page was run on a TPU" in text and "nan" not in text.lower().replace("finance", "")


def test_a_program_is_planned(tmp_path):
    (tmp_path / "p.mlir").write_text(PROGRAM)
    text = plan("--program", str(tmp_path / "p.mlir"), "--tpu", "v5e-4")
    assert f"{(512 * 256 + 256 * 128) * 4 / 2**30:10.4f} GiB" in text
    assert f"{2 * 512 * 256 * 128 / 1e12:10.3f} TFLOP" in text


def test_without_libtpu_the_reason_is_one_line(tmp_path):
    (tmp_path / "p.mlir").write_text(PROGRAM)
    environment = {name: value for name, value in os.environ.items() if name != "TPU_LIBRARY_PATH"}
    words = ["--program", str(tmp_path / "p.mlir"), "--tpu", "v5e-4", "--compile"]
    done = subprocess.run([COMMAND, "plan", *words], capture_output=True, text=True, timeout=300,
                          env=environment | {"HOME": str(tmp_path), "PYTHONPATH": "", "VIRTUAL_ENV": ""})
    assert done.returncode == 4, done.stderr
    assert "libtpu" in done.stdout
