"""Tokenizers of published models beside the library that wrote their files."""

import json
import os
import random
import re
import subprocess
import unicodedata
import urllib.request

import pytest

from capibara import training

tokenizers = pytest.importorskip("tokenizers", reason="Hugging Face's tokenizers, the truth here, is not installed")
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEXT = ["The heron's 12 apples aren't 1234567 pears; they've eaten 3.14 of them, I'd say!", "def f(x):\n    return x  # twice\n\n\n",
        "Größe, naïve café, Ελληνικά, русский, 日本語テスト, 한국어, عربى, हिन्दी, 😀👩‍🚀",
        "   spaces   and\ttabs\r\n  and lines  \n"]
HARD = ["", " ", "  ", "   x", "x   ", "\n", "\n\n x", " \n \n x", "\r\n\r\n", "a\u00a0b\u3000c", "I'LL He'S 'tis ''s",
        "12345 1 22 333 4444", "x²³½ ⅷ",
        "...!!!\n\n..", "\t\tx\t y", " 'd", "é\u0301", "<|end|>", "a<|end|>b <|end|>", "<s>", "▁x", "\x00\x7f", "١٢٣٤",
        "🇩🇪🏳️‍🌈", "'", "ſ's", "_a_b__",
        "word" * 300, "ab" * 2000]


def byte_level(pattern, **model):
    made = tokenizers.Tokenizer(models.BPE(**model))
    if pattern == GPT2:
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                                      pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=["<|end|>", "<|begin|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator(TEXT * 3, trainer)
    return made


def llama3():
    made = byte_level(LLAMA3, ignore_merges=True)
    begin = [("<|begin|>", made.token_to_id("<|begin|>"))]
    made.post_processor = processors.TemplateProcessing(single="<|begin|> $A", special_tokens=begin)
    return made


def prefixed():
    made = byte_level(GPT2)
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return made


def characters(normalizer, pre_tokenizer, decoder):
    made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer, made.decoder = normalizer, decoder
    if pre_tokenizer:
        made.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(vocab_size=700, show_progress=False,
                                  special_tokens=["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))])
    made.train_from_iterator([text.replace(" ", "▁") for text in TEXT[:2] * 3], trainer)
    # The bytes are ordinary entries in Llama's file.
    content = json.loads(made.to_str())
    content["added_tokens"] = content["added_tokens"][:3]
    made = tokenizers.Tokenizer.from_str(json.dumps(content))
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return made


def joined():
    return decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def llama2():
    return characters(normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None, joined())


def metaspace(scheme):
    return characters(None, pre_tokenizers.Metaspace("▁", prepend_scheme=scheme, split=False), joined())


KINDS = {"gpt2": lambda: byte_level(GPT2), "llama3": llama3, "qwen2": lambda: byte_level(QWEN2), "gpt2, a space first": prefixed,
         "llama2": llama2, "metaspace first": lambda: metaspace("first"), "metaspace always": lambda: metaspace("always"),
         "metaspace never": lambda: metaspace("never")}


@pytest.fixture(scope="module", params=list(KINDS))
def both(request, tmp_path_factory):
    theirs = KINDS[request.param]()
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    theirs.save(str(path))
    return theirs, training.PublishedTokenizer.load(str(path))


def random_texts(count):
    dice = random.Random(5)
    kinds = {}
    for code in range(0x20, 0x30000):
        kinds.setdefault(unicodedata.category(chr(code))[0], []).append(chr(code))
    del kinds["C"]  # unassigned characters differ between versions of Unicode
    pieces = [lambda: " " * dice.randint(1, 3), lambda: dice.choice("\n\r\t'.,-"),
              lambda: dice.choice(["'s", "'LL", "don't", "12", "345678", "<|end|>", "<s>", "▁"]),
              lambda: "".join(dice.choice("abcXYZ") for _ in range(dice.randint(1, 6))),
              lambda: dice.choice(kinds[dice.choice(list(kinds))])]
    return ["".join(dice.choice(pieces)() for _ in range(dice.randint(1, 20))) for _ in range(count)]


def test_tokens_are_those_of_the_library(both):
    theirs, ours = both
    for text in [*TEXT, *HARD, *random_texts(400)]:
        assert ours.encode(text) == theirs.encode(text).ids, ascii(text)
        assert ours.encode(text, add_special=False) == theirs.encode(text, add_special_tokens=False).ids, ascii(text)


def test_texts_are_those_of_the_library(both):
    theirs, ours = both
    for text in [*TEXT, *HARD, *random_texts(100)]:
        ids = theirs.encode(text).ids
        assert ours.decode(ids).decode(errors="replace") == theirs.decode(ids), ascii(text)


def test_special_tokens_are_found(both):
    theirs, ours = both
    assert ours.vocabulary == theirs.get_vocab_size()
    for token in ("<|end|>", "<s>", "</s>", "no such"):
        assert ours.find(token) == theirs.token_to_id(token)


def refused(tmp_path, change):
    path = tmp_path / "tokenizer.json"
    byte_level(GPT2).save(str(path))
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError) as caught:
        training.PublishedTokenizer.load(str(path))
    return str(caught.value)


@pytest.mark.parametrize("change, words", [
    (lambda c: c["model"].update(type="Unigram"), "Unigram"),
    (lambda c: c.pop("model"), "'model'"),
    (lambda c: c["model"].update(vocab=[1]), "'vocab'"),
    (lambda c: c["model"].update(merges=["a"]), "merge 0 is not two tokens"),
    (lambda c: c["model"].update(merges=["a qqq"]), "merge 0 names 'qqq'"),
    (lambda c: c["model"]["vocab"].update(huge=10**12), "expected the number of a token"),
    (lambda c: c["model"]["vocab"].update(huge=16_000_000), "is beyond"),
    (lambda c: c["model"]["vocab"].update(bad=-1), "expected the number of a token"),
    (lambda c: c["model"].update(dropout=0.1), "'dropout' is not implemented"),
    (lambda c: c.update(normalizer={"type": "NFC"}), "the normalizer 'NFC'"),
    (lambda c: c.update(pre_tokenizer={"type": "Whitespace"}), "the pre_tokenizer 'Whitespace'"),
    (lambda c: c["pre_tokenizer"].update(type="Split", pattern={"Regex": "x+"}, behavior="Isolated"), "the pattern 'x+'"),
    (lambda c: c.update(decoder={"type": "WordPiece"}), "the decoder 'WordPiece'"),
    (lambda c: c.update(added_tokens=[{"id": 0, "content": ""}]), "an added token is empty"),
])
def test_what_is_not_implemented_is_refused_by_name(tmp_path, change, words):
    assert words in refused(tmp_path, change)


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "tokenizer.json"
    llama2().save(str(path))
    whole = path.read_bytes()
    dice = random.Random(1)
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(3):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        path.write_bytes(damaged[:dice.randrange(len(damaged))] if dice.random() < 0.5 else damaged)
        try:
            training.PublishedTokenizer.load(str(path)).encode("The heron's apples \xff")
        except (ValueError, UnicodeDecodeError):
            pass
    with pytest.raises(ValueError, match="cannot be read"):
        training.PublishedTokenizer.load(str(tmp_path / "none"))


def chat_model(folder):
    """A Llama of random weights with a ChatML tokenizer."""
    np = pytest.importorskip("numpy")
    peer = pytest.importorskip("safetensors.numpy", reason="the reference package is not installed")
    made = byte_level(QWEN2)
    made.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    made.save(str(folder / "tokenizer.json"))
    size, width, hidden = made.get_vocab_size(), 32, 40
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "vocab_size": size, "hidden_size": width, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": hidden, "num_hidden_layers": 1, "rms_norm_eps": 1e-6, "tie_word_embeddings": True}))
    random_numbers = np.random.default_rng(2)
    shapes = {"model.embed_tokens": (size, width), "model.norm": (width,), **{f"model.layers.0.{name}": shape for name, shape in (
        ("input_layernorm", (width,)), ("post_attention_layernorm", (width,)), ("self_attn.q_proj", (width, width)),
        ("self_attn.k_proj", (16, width)), ("self_attn.v_proj", (16, width)), ("self_attn.o_proj", (width, width)),
        ("mlp.gate_proj", (hidden, width)), ("mlp.up_proj", (hidden, width)), ("mlp.down_proj", (width, hidden)))}}
    peer.save_file({name + ".weight": random_numbers.standard_normal(shape).astype("float32") for name, shape in shapes.items()},
                   str(folder / "model.safetensors"))
    return made


def test_a_published_model_is_served_with_its_tokenizer(tmp_path):
    theirs = chat_model(tmp_path)
    model, params = training.load_pretrained(str(tmp_path))
    generator = training.Generator(model, params, 256)

    def expected(prompt, count):
        tokens = generator.generate(theirs.encode(prompt).ids, count, temperature=0)
        return theirs.decode(tokens), len(theirs.encode(prompt).ids)

    command = os.environ.get("CAPIBARA_COMMAND", "build/capibara")
    server = subprocess.Popen([command, "serve", str(tmp_path), "--port", "0", "--capacity", "256", "--name", "chatty"],
                              stdout=subprocess.PIPE, text=True)
    try:
        url = re.search(r"http://\S+/v1", server.stdout.readline())[0]

        def ask(path, **body):
            request = urllib.request.Request(url + path, json.dumps({"temperature": 0, "max_tokens": 20, **body}).encode(),
                                             {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)

        for prompt in ("The heron's 12 apples", "Größe 日本"):
            answer = ask("/completions", prompt=prompt, model="chatty")
            text, length = expected(prompt, 20)
            assert (answer["choices"][0]["text"], answer["usage"]["prompt_tokens"]) == (text, length)
        answer = ask("/chat/completions", messages=[{"role": "user", "content": "Count apples."}])
        text, length = expected("<|im_start|>user\nCount apples.<|im_end|>\n<|im_start|>assistant\n", 20)
        assert (answer["choices"][0]["message"]["content"], answer["usage"]["prompt_tokens"]) == (text, length)
    finally:
        server.kill()
        server.wait()
