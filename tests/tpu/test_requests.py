"""Requests of `capibara plan` that are refused, its exit status, MaxText's files and serving plans."""
import json
import os
import subprocess

import pytest
from recorded_tables import ROOT, table

tpu = pytest.importorskip("capibara._core", reason="the Python extension is not built").tpu
COMMAND = os.environ.get("CAPIBARA_COMMAND", str(ROOT / "build" / "capibara"))
PROGRAM = """module @p {
  func.func public @main(%0: tensor<512x256xf32>, %1: tensor<256x128xf32>) -> tensor<512x128xf32> {
    %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x128xf32>) -> tensor<512x128xf32>
    return %2 : tensor<512x128xf32>
  }
}
"""
# Settings with the names of MaxText's configs/base.yml.
BASE = """# a comment
run_name: ""
model_name: "default"
debug:
  rl: False
weight_dtype: "float32" # of parameters
base_emb_dim: 2048
base_num_query_heads: 16
base_num_kv_heads: 16
base_mlp_dim: 7168
base_num_decoder_layers: 16
head_dim: 128
mlp_activations: ["silu", "linear"]
logits_via_embedding: false
num_experts: 1
num_experts_per_tok: 1
sparse_matmul: true
capacity_factor: -1.0
base_moe_mlp_dim: 7168
first_num_dense_layers: 0
shared_experts: 1
decoder_block: "llama2"
attention: 'autoselected'
attention_type: 'global'
sliding_window_size: 0
quantization: ""
remat_policy: 'full'
query_proj: 'remat'
key_proj: 'remat'
value_proj: 'remat'
out_proj: 'remat'
q_lora_rank: 0
kv_lora_rank: 512
qk_nope_head_dim: 128
qk_rope_head_dim: 64
v_head_dim: 128
dcn_data_parallelism: -1
dcn_fsdp_parallelism: 1
ici_data_parallelism: 1
ici_fsdp_parallelism: -1
ici_tensor_parallelism: 1
ici_expert_parallelism: 1
ici_pipeline_parallelism: 1
logical_axis_rules: [
                      ['mlp', ['fsdp', 'tensor']],
                    ]
vocab_size: 32_000 # powers of 2
per_device_batch_size: 12.0
max_target_length: 2048
gradient_accumulation_steps: 1
opt_type: "adamw"
compile_topology: ''
compile_topology_num_slices: -1
"""
MODELS = {
    "llama": "base_emb_dim: 8192\nbase_num_query_heads: 64\nbase_num_kv_heads: 8\nbase_num_decoder_layers: 80\nbase_mlp_dim: 28672\n"
             "vocab_size: 128256\n",
    "deepseek": "base_emb_dim: 2048\nbase_num_query_heads: 16\nbase_num_kv_heads: 16\nbase_mlp_dim: 10944\nbase_moe_mlp_dim: 1408\n"
                "base_num_decoder_layers: 27\nfirst_num_dense_layers: 1\nvocab_size: 102400\nnum_experts: 64\nnum_experts_per_tok: 6\n"
                "shared_experts: 2\ndecoder_block: \"deepseek\"\nattention_type: \"mla\"\n",
    "gemma": "base_num_decoder_layers: 48\nbase_emb_dim: 3840\nbase_num_query_heads: 16\nbase_num_kv_heads: 8\nbase_mlp_dim: 15360\n"
             "head_dim: 256\nmlp_activations: [\"gelu\",\"linear\"]\nvocab_size: 262_144\ndecoder_block: \"gemma3\"\n"
             "logits_via_embedding: True\nsliding_window_size: 1024\n",
}


def plan(*words, code=0, **environment):
    done = subprocess.run([COMMAND, "plan", *map(str, words)], capture_output=True, text=True, timeout=300, env=os.environ | environment)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


@pytest.fixture
def files(tmp_path):
    (tmp_path / "base.yml").write_text(BASE)
    for name, text in MODELS.items():
        (tmp_path / f"{name}.yml").write_text(text)
    (tmp_path / "p.mlir").write_text(PROGRAM)
    return tmp_path


SIZES = "layers=4,width=1024,heads=8,hidden=4096,vocab=32000"
V6E = ("--tpu", "v6e-16")
REFUSED = [
    # what, exit status, words of the message
    (("--model", "1.3b"), 2, "--tpu is needed"),
    (("--tpu", "v6e-16"), 2, "--model NAME or --program FILE"),
    (("--model", "1.3b", "--tpu", "v9-4"), 1, "v9"),
    (("--model", "1.3b", "--tpu", "v6e-17"), 1, "cannot be rented"),
    (("--model", "1.3b", "--tpu", "v6e"), 1, "names no slice"),
    (("--model", "1.3b", "--tpu", "0x v6e-16"), 1, ""),
    (("--model", "nothing", *V6E), 1, "no preset is called 'nothing'"),
    (("--model", "layers=4", *V6E), 1, "needs layers, width, heads"),
    (("--model", SIZES + ",colour=3", *V6E), 1, "fields are"),
    (("--model", SIZES + ",experts=4,active=5", *V6E), 1, "active=5 must be from 1 to the 4 experts"),
    (("--model", SIZES + ",active=2", *V6E), 1, "are of models with experts"),
    (("--model", SIZES + ",kind=moe", *V6E), 1, "has 0 experts"),
    (("--model", SIZES + ",shared=1", *V6E), 1, "are of models with experts"),
    (("--model", SIZES + ",experts=4,dense_layers=5,dense_hidden=64", *V6E), 1, "dense_layers must be at most layers"),
    (("--model", SIZES + ",experts=4,dense_layers=1", *V6E), 1, "needs dense_hidden"),
    (("--model", SIZES + ",global_every=2", *V6E), 1, "needs window"),
    (("--model", SIZES + ",kv_rank=64", *V6E), 1, "needs kv_rank and value_size"),
    (("--model", SIZES + ",q_rank=64", *V6E), 1, "needs kv_rank and value_size"),
    (("--model", SIZES + ",kv_heads=3", *V6E), 1, "must divide the 8 heads"),
    (("--model", "kind=mamba," + SIZES + ",window=8", *V6E), 1, "which a mamba has not"),
    (("--model", "1.3b", *V6E, "--batch", "10"), 1, "cannot be split over the 16 groups of devices of the mesh fsdp=16; give 16"),
    (("--model", "1.3b", *V6E, "--batch", "40"), 1, "give 32 or 48"),
    (("--model", "1.3b", *V6E, "--batch", "6", "--mesh", "fsdp=4,tensor=4"), 1, "give 4 or 8"),
    (("--model", "1.3b", *V6E, "--batch", "0"), 2, "needs a number above 0"),
    (("--model", "1.3b", *V6E, "--batch", "-4"), 2, "needs a number above 0"),
    (("--model", "1.3b", *V6E, "--batch", "many"), 2, "needs a number above 0"),
    (("--model", "1.3b", *V6E, "--batch", "nan"), 2, "needs a number above 0"),
    (("--model", "1.3b", *V6E, "--batch", "1e300"), 2, "at most 1e9"),
    (("--model", "1.3b", *V6E, "--seq", "0"), 2, "needs a number above 0"),
    (("--model", "1.3b", *V6E, "--mesh", "fsdp=8"), 1, "is for 8 devices, but v6e-16 has 16"),
    (("--model", "1.3b", *V6E, "--mesh", "fsdp=0"), 1, ""),
    (("--model", "1.3b", *V6E, "--mesh", "fsdp"), 1, "a mesh is written"),
    (("--model", "gpt2-xl", *V6E, "--mesh", "fsdp=4,tensor=4"), 1, "must divide 25 heads"),
    (("--model", "gpt2", *V6E, "--mesh", "fsdp=8,tensor=2"), 1, "must divide the vocabulary 50257"),
    (("--model", "gemma-2b", *V6E, "--mesh", "tensor=16"), 1, "must divide 8 heads"),
    (("--model", "layers=4,width=1000,heads=8,hidden=4096,vocab=32000", *V6E), 1, "must divide the width 1000"),
    (("--model", "1.3b", *V6E, "--mesh", "fsdp=4,expert=4"), 1, "must divide the 0 experts"),
    (("--model", "1.3b", *V6E, "--seq", "2050", "--mesh", "fsdp=4,context=4"), 1, "must divide the sequence"),
    (("--model", "1.3b", "--tpu", "2x v6e-16", "--mesh", "fsdp=32"), 1, "other axes do not cross them"),
    (("--model", "1.3b", *V6E, "--mesh", "dcn_data=2,fsdp=8"), 1, "has 1 slice"),
    (("--model", "1.3b", *V6E, "--remat", "ful"), 1, "did you mean 'full'"),
    (("--model", "1.3b", *V6E, "--remat", "save_qkv"), 1, "no remat policy"),
    (("--model", "1.3b", *V6E, "--precision", "int4"), 1, "bf16, int8 or fp8"),
    (("--model", "1.3b", "--tpu", "v4-32", "--precision", "fp8"), 1, "has no fp8 units"),
    (("--model", "1.3b", *V6E, "--flags", "xla_tpu_scoped_vmem_limit_kib=999999999"), 1, "must be from 1 to 131072"),
    (("--model", "1.3b", *V6E, "--flags", "xla_tpu_scoped_vmem_limit_kib=0"), 1, "must be from 1"),
    (("--model", "1.3b", *V6E, "--flags", "xla_tpu_scoped_vmem_limit_kib=-5"), 1, "must be from 1"),
    (("--model", "1.3b", *V6E, "--flags", "xla_tpu_scoped_vmem_limit_kib=lots"), 1, "needs an integer"),
    (("--model", "1.3b", *V6E, "--flags", "xla_tpu_use_bundle_aware_cost_model_for_fusions=MAYBE"), 1, "enabled or disabled"),
    (("--model", "1.3b", *V6E, "--program", "p.mlir"), 2, "--model has no effect beside --program"),
    (("--program", "p.mlir", *V6E, "--batch", "16"), 2, "--batch has no effect beside --program"),
    (("--program", "p.mlir", *V6E, "--json"), 2, "--json has no effect beside --program"),
    (("--program", "p.mlir", *V6E, "--search"), 2, "--search has no effect beside --program"),
    (("--program", "missing.mlir", *V6E), 1, "missing.mlir"),
    (("--model", "1.3b", *V6E, "--limit", "5"), 2, "--limit has no effect"),
    (("--model", "1.3b", *V6E, "--search", "--mesh", "fsdp=16"), 2, "--mesh has no effect beside --search"),
    (("--model", "gpt2", *V6E, "--search", "--batch", "7"), 1, "no mesh of v6e-16 splits"),
    (("--model", "1.3b", *V6E, "--cache", "int8"), 2, "--cache has no effect beside a plan without --serve"),
    (("--model", "1.3b", *V6E, "--serve", "--remat", "full"), 2, "--remat has no effect beside --serve"),
    (("--model", "1.3b", *V6E, "--serve", "--cache", "int4"), 1, "the type of the cache is bf16, int8"),
    (("--model", "1.3b", *V6E, "--serve", "--weights", "fp3"), 1, "the type of weights is bf16, int8 or int4"),
    (("--model", "1.3b", *V6E, "--serve", "--mesh", "tensor=3"), 1, "must divide the 16 devices"),
    (("--model", "gpt2-xl", *V6E, "--serve"), 1, "must divide 25 heads"),
    (("--model", "1.3b", *V6E, "--price", "free"), 2, "needs a number above 0"),
    (("--models", "--model", "1.3b"), 2, "--model has no effect beside --models"),
    (("extra", "--model", "1.3b", *V6E), 2, "unexpected 'extra'"),
]


@pytest.mark.parametrize("words, code, says", REFUSED, ids=[" ".join(words)[:70] for words, _, _ in REFUSED])
def test_a_wrong_request_is_refused_with_its_reason(files, monkeypatch, words, code, says):
    monkeypatch.chdir(files)
    out, error = plan(*words, code=code)
    assert says in error and not out and "terminate" not in error


def test_there_are_sixty():
    assert len(REFUSED) >= 60


def test_exit_status_tells_whether_a_plan_fits(tmp_path):
    plan("--model", "1.3b", *V6E)
    out, _ = plan("--model", "llama3.1-405b", *V6E, code=3)
    assert "does not fit" in out
    out, _ = plan("--model", "llama3.1-405b", *V6E, "--search", code=3)
    assert "* does not fit" in out
    environment = {"HOME": str(tmp_path), "PYTHONPATH": "", "VIRTUAL_ENV": "", "TPU_LIBRARY_PATH": ""}
    out, _ = plan("--model", "1.3b", *V6E, "--compile", code=4, **environment)
    assert "GiB of 31.24" in out and "libtpu" in out


def test_near_the_limit_only_the_compiler_can_tell():
    """Compiled by libtpu (drawn_steps.tsv): 94.07 of 95.73 GiB, with two copies of the logits, where other programs have one."""
    words = ("--model", "kind=mamba,layers=32,width=2560,heads=80,hidden=5120,vocab=151936,head_size=64,tied=0", "--tpu", "v5p-32",
             "--mesh", "fsdp=16", "--batch", 992, "--seq", 2048, "--remat", "full")
    out, _ = plan(*words)
    assert "cannot tell without the compiler" in out
    answer = json.loads(plan(*words, "--json")[0])
    assert answer["low_gib"] < 94.07 < answer["high_gib"] and answer["verdict"] == "cannot tell without the compiler"


def test_the_search_proposes_nothing_that_cannot_be_split():
    for model, batch in (("gpt2-medium", 128), ("1.3b", 96), ("mixtral-8x7b", 64)):
        request = {"model": model, "tpu": "v6e-64", "sequence": 1024}
        found = tpu.search(request, batch, 0)
        assert found
        for one in found:
            tpu.check_split(request | {"mesh": one["mesh"], "batch_per_device": one["batch_per_device"], "remat": one["remat"]})


def test_flags_in_the_publishers_spelling_are_taken():
    """Upper case too, as libtpu 0.0.51 takes it (tried)."""
    assert tpu.check_flag("xla_tpu_aggressive_opt_barrier_removal", "ENABLED")["accepted"]
    assert not tpu.check_flag("xla_tpu_aggressive_opt_barrier_removal", "abc")["accepted"]


@pytest.mark.parametrize("name, billions", [("llama", 70.55), ("deepseek", 15.7), ("gemma", 11.77)])
def test_parameters_of_maxtexts_models(files, name, billions):
    """Published: Llama 3.1 70.55, DeepSeek V2 Lite 15.7; Gemma 3 12B: 11.77 of its language model (10.76 and 1.01 of embeddings)."""
    words = ("per_device_batch_size=1", "--tpu", "v5p-256")
    out, _ = plan("--maxtext", files / "base.yml", files / f"{name}.yml", *words)
    assert float(out.split(", ")[1].split()[0]) == pytest.approx(billions, rel=0.005)


def test_maxtexts_settings_are_followed(files):
    words = ("--maxtext", files / "base.yml", files / "llama.yml", "--tpu", "v6e-256", "--json")
    answer = json.loads(plan(*words, "per_device_batch_size=1", "max_target_length=4096", "ici_tensor_parallelism=4",
                             "remat_policy=save_qkv_proj", code=0)[0])
    assert (answer["mesh"], answer["batch_per_device"], answer["sequence"], answer["remat"]) == ("fsdp=64,tensor=4", 1, 4096, "qkv")
    same = json.loads(plan("--model", "llama3.1-70b", "--tpu", "v6e-256", "--mesh", "fsdp=64,tensor=4", "--batch", 256, "--seq", 4096,
                           "--remat", "qkv", "--json")[0])
    assert same["memory_gib"] == answer["memory_gib"] and same["step_seconds"] == answer["step_seconds"]
    quantized = json.loads(plan(*words, "per_device_batch_size=2", "quantization=int8")[0])
    plain = json.loads(plan(*words, "per_device_batch_size=2")[0])
    assert quantized["step_seconds"] < 0.9 * plain["step_seconds"]
    narrow = json.loads(plan(*words, "per_device_batch_size=2", "weight_dtype=bfloat16")[0])
    assert narrow["memory_gib"] < plain["memory_gib"] - 12 * 70.5e9 / 256 / 2**30 * 0.45
    topology = json.loads(plan("--maxtext", files / "base.yml", files / "llama.yml", "--json", "compile_topology=v5e-256",
                               "compile_topology_num_slices=2", "per_device_batch_size=1")[0])
    assert topology["slice"] == "2x v5e-256" and topology["mesh"] == "dcn_data=2,fsdp=256"


@pytest.mark.parametrize("setting, says", [
    ("ici_pipeline_parallelism=2", "ici_pipeline_parallelism is planned only as 1"), ("remat_policy=unknown", "no remat policy"),
    ("gradient_accumulation_steps=4", "is planned only as 1"), ("quantization=nanoo", "is planned as int8 or fp8"),
    ("ici_fsdp_parallelism=3", "the product of the ici axes"), ("ici_data_parallelism=-1", "are both open"),
    ("attention_type=chunk", "is planned as global, local_sliding or mla"), ("attention_type=local_sliding", "sliding_window_size"),
    ("vocab_size=many", "vocab_size needs a number"), ("opt_type=muon", "is planned as adamw"), ("no_such_setting=1", "have no setting"),
    ("per_device_batch_size=0.3", "cannot be split"), ("weight_dtype=int4", "is planned as float32 or bfloat16"),
    ("model_name=llama3.1-8b", "give its file too")])
def test_settings_that_cannot_be_planned_are_refused(files, setting, says):
    out, error = plan("--maxtext", files / "base.yml", setting, "--tpu", "v6e-64", code=1)
    assert says in error and not out


def test_a_broken_file_is_refused(files):
    (files / "broken.yml").write_text("base_emb_dim 2048\n")
    assert "line 1 is not written name: value" in plan("--maxtext", files / "broken.yml", "--tpu", "v6e-64", code=1)[1]
    assert "missing.yml" in plan("--maxtext", files / "missing.yml", "--tpu", "v6e-64", code=1)[1]


def serving(*words, code=0):
    return json.loads(plan("--serve", "--json", *words, code=code)[0])


def test_serving_agrees_with_the_scaling_book():
    """Llama 3 70B: 160 KiB of cache per token in int8; a step of 32 sequences of 8192 tokens on v5e 4x2 reads for 17 ms."""
    answers = {row["case"]: float(row["answer"].split()[0]) for row in table("worked_tests.tsv") if "LLaMA3-70B" in row["case"]}
    found = serving("--model", "llama3.1-70b", "--tpu", "v5e-8", "--batch", 32, "--prompt", 8192, "--output", 1, "--weights", "int8",
                    "--cache", "int8")
    assert found["cache_bytes_per_token"] == answers["LLaMA3-70B KV int8 per token"]
    assert 1e3 * found["decode_hbm_seconds"] == pytest.approx(answers["LLaMA3-70B int8 bs32 ctx8192 on v5e 4x2 step"], rel=0.05)
    assert found["bound"] == "memory" and found["decode_seconds"] >= found["decode_hbm_seconds"]


def test_prefill_is_near_the_books_assumption():
    """The book: 8192 tokens of 70B on 16 v5e take 0.91 s at 40 % of the peak; no prompt is faster than the whole peak."""
    seconds = serving("--model", "llama3.1-70b", "--tpu", "v5e-16", "--prompt", 8192, "--weights", "int8")["prefill_seconds"]
    peak = 2 * 70e9 * 8192 / (16 * 197e12)
    assert peak < seconds < 2 * peak / 0.4


def test_what_serving_depends_on():
    words = ("--model", "llama3.1-8b", "--tpu", "v6e-8", "--batch", 64, "--prompt", 4096, "--output", 512)
    wide, narrow = serving(*words), serving(*words, "--cache", "int8")
    assert wide["cache_gib"] == pytest.approx(2 * narrow["cache_gib"]) and narrow["max_batch"] > 1.9 * wide["max_batch"]
    assert wide["cache_gib"] == pytest.approx(64 * 4608 * 2 * 2 * 32 * 8 * 128 / 8 / 2**30)
    assert narrow["tokens_per_second"] > wide["tokens_per_second"]
    two = serving(*words, "--mesh", "tensor=4")
    assert two["replicas"] == 2 and two["weights_gib"] == pytest.approx(2 * wide["weights_gib"])
    paged = serving(*words, "--page", 1000)
    assert paged["cache_gib"] == pytest.approx(wide["cache_gib"] * 5000 / 4608)
    priced = serving(*words, "--price", 2.7)
    assert priced["price_per_million"] == pytest.approx(2.7 / 3600 / priced["tokens_per_second_per_chip"] * 1e6, rel=1e-4)
    assert serving("--model", "llama3.1-405b", "--tpu", "v6e-8", code=3)["verdict"] == "does not fit"


def test_a_price_is_counted_for_training():
    words = ("--model", "llama3.1-8b", "--tpu", "v6e-64", "--json", "--price", 2)
    answer = json.loads(plan(*words)[0])
    assert answer["price_per_million"] == pytest.approx(2 * 64 / 3600 / answer["tokens_per_second"] * 1e6, rel=1e-4)


def test_local_attention_is_cheaper():
    model = {"name": "m", "layers": 4, "width": 1024, "heads": 8, "kv_heads": 8, "head_size": 128, "hidden": 4096, "vocab": 32000}
    whole = tpu.training_flops_per_token(model, 8192, False)
    local = tpu.training_flops_per_token(model | {"window": 1024}, 8192, False)
    pairs = 3 * 4 * 4 * 8192 * 1024
    share = sum(min(position + 1, 1024) for position in range(8192)) / (8192 * 8193 / 2)
    assert whole - local == pytest.approx(pairs * (1 - share), rel=1e-3)
