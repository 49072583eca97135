"""Tokenizers, memory-mapped tokens and batches of capibara.training, against plain Python and the definition of BPE."""

import collections
import math
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")

from capibara import _core, training

BOOK = (Path(__file__).resolve().parents[3] / "examples" / "data" / "pride_and_prejudice.txt").read_bytes()
TEXTS = [b"", b"a", b"  two  spaces ", b"It's 12 o'clock.\n\n\tIndented: caf\xc3\xa9\xff\x00!", BOOK[:3000]]


def words_of(text):
    """The rule as one expression: a word with the space before it, or white space without the space of the next word."""
    return re.findall(rb" ?[A-Za-z\x80-\xff]+| ?[0-9]+| ?[^A-Za-z0-9\s\x80-\xff]+|[\s]+(?= [^\s])|\s+", text)


def merged(tokens, pair, new):
    out, i = [], 0
    while i < len(tokens):
        if tuple(tokens[i:i + 2]) == pair:
            out.append(new)
            i += 2
        else:
            out.append(tokens[i])
            i += 1
    return out


def plain_merges(text, count):
    """BPE by its definition: recounts all pairs before each merge."""
    words = collections.Counter(tuple(word) for word in words_of(text))
    merges = []
    while len(merges) < count:
        pairs = collections.Counter()
        for word, times in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += times
        if not pairs or max(pairs.values()) < 2:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        words = collections.Counter({tuple(merged(word, best, 255 + len(merges))): times for word, times in words.items()})
    return merges


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_words_join_to_the_text(text):
    assert _core.training.split_words(text) == words_of(text)


def test_merges_are_those_of_the_definition():
    text = BOOK[:6000]
    assert [tuple(pair) for pair in training.Tokenizer.train(text, 256 + 60).merges] == plain_merges(text, 60)


def test_training_ends_where_no_pair_occurs_twice():
    assert training.Tokenizer.train("abcd", 300).vocabulary == 256


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_decoding_gives_the_bytes_back(text):
    tokenizer = training.Tokenizer.train(BOOK[:20000], 400)
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text and len(tokens) <= len(text)
    assert training.Tokenizer().encode(text) == list(text)


def test_tokenizers_are_saved_and_hostile_files_refused(tmp_path):
    tokenizer = training.Tokenizer.train(BOOK[:20000], 300)
    path = str(tmp_path / "tokenizer.txt")
    tokenizer.save(path)
    assert training.Tokenizer.load(path).merges == tokenizer.merges
    for content, message in (("", "not a tokenizer's file"), ("capibara tokenizer 1\n1 x\n", "line 2 of .* is not two numbers"),
                             ("capibara tokenizer 1\n97 300\n", "merge 0 names token 300"),
                             ("capibara tokenizer 1\n99999999999999 1\n", "not two numbers")):
        Path(path).write_text(content)
        with pytest.raises(ValueError, match=message):
            training.Tokenizer.load(path)
    with pytest.raises(ValueError, match="token 300 does not exist; there are 256"):
        training.Tokenizer().decode([300])
    with pytest.raises(ValueError, match="vocabulary must be at least 256, got 10"):
        training.Tokenizer.train("text", 10)


@pytest.fixture
def tokens(tmp_path):
    for name, text in (("b.txt", "second " * 30), ("a.txt", "first " * 30)):
        (tmp_path / "texts").mkdir(exist_ok=True)
        (tmp_path / "texts" / name).write_text(text)
    width = training.write_tokens(str(tmp_path / "texts"), training.Tokenizer(), str(tmp_path / "tokens.bin"))
    return training.TokenFile(str(tmp_path / "tokens.bin"), width)


def test_folders_are_read_by_name(tokens):
    assert bytes(tokens[i] for i in range(len(tokens))).decode() == "first " * 30 + "second " * 30


def test_two_bytes_hold_larger_vocabularies(tmp_path):
    text = tmp_path / "text.txt"
    text.write_bytes(BOOK[:5000])
    tokenizer = training.Tokenizer.train(BOOK[:5000], 400)
    width = training.write_tokens(str(text), tokenizer, str(tmp_path / "tokens.bin"))
    tokens = training.TokenFile(str(tmp_path / "tokens.bin"), width)
    assert width == 2 and [tokens[i] for i in range(len(tokens))] == tokenizer.encode(BOOK[:5000])


def test_a_loader_goes_on_at_any_batch(tokens):
    first = training.Loader(tokens, batch=3, length=8, seed=5)
    batches = [np.asarray(first.next()) for _ in range(40)]
    assert batches[0].shape == (3, 9) and batches[0].dtype == np.int32
    for start in (0, 1, 17):
        later = training.Loader(tokens, batch=3, length=8, seed=5, next=start)
        for number in range(start, start + 5):
            np.testing.assert_array_equal(later.next(), batches[number])
            np.testing.assert_array_equal(first.batch(number), batches[number])
    assert not np.array_equal(training.Loader(tokens, batch=3, length=8, seed=6).next(), batches[0])


def test_a_pass_shows_every_window_once(tmp_path):
    path = tmp_path / "tokens.bin"
    path.write_bytes(np.arange(1000, dtype="<u2").tobytes())
    tokens = training.TokenFile(str(path), 2)
    loader = training.Loader(tokens, batch=1, length=10)
    for number in range(2):
        rows = [np.asarray(loader.next())[0] for _ in range(loader.windows)]
        starts = sorted(int(row[0]) for row in rows)
        assert all(np.array_equal(row, np.arange(row[0], row[0] + 11)) for row in rows)
        assert np.array_equal(np.diff(starts), np.full(loader.windows - 1, 10))
    inner = training.Loader(tokens, batch=4, length=10, first=200, last=300)
    seen = np.concatenate([np.asarray(inner.next()).ravel() for _ in range(30)])
    assert seen.min() >= 200 and seen.max() < 300


def test_bigrams_are_counted_with_one_added():
    counts = np.ones((256, 256))
    training_text, held_out = BOOK[:5000], BOOK[5000:6000]
    np.add.at(counts, (list(training_text[:-1]), list(training_text[1:])), 1)
    probabilities = counts / counts.sum(1, keepdims=True)
    want = -np.mean([math.log2(probabilities[a, b]) for a, b in zip(held_out, held_out[1:])])
    assert abs(training.bigram_bits_per_byte(training_text, held_out) - want) < 1e-9


def test_errors_say_what_is_wrong(tokens, tmp_path):
    with pytest.raises(ValueError, match="shorter than one window of 5000"):
        training.Loader(tokens, length=5000)
    with pytest.raises(ValueError, match="cannot be opened"):
        training.TokenFile(str(tmp_path / "absent"), 1)
    with pytest.raises(ValueError, match="no multiple of 2"):
        (tmp_path / "odd").write_bytes(b"123")
        training.TokenFile(str(tmp_path / "odd"), 2)
    with pytest.raises(ValueError, match="files, folders and gs://"):
        training.write_tokens("s3://bucket/data/", training.Tokenizer(), str(tmp_path / "x"))
