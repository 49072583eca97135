"""DataLoader: the same batches for any number of workers, from arrays, files, datasets and iterators."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")

from capibara import training

X, Y = np.arange(60, dtype="float32").reshape(20, 3), np.arange(20, dtype="int32")


class Squares:
  def __len__(self):
    return 20

  def __getitem__(self, number):
    return X[number], Y[number]


def take(source, count=7, **options):
  loader = training.DataLoader(source, 6, **options)
  return [[np.asarray(array) for array in (batch if isinstance(batch, (tuple, list)) else batch.values())]
          for batch in (loader.next() for _ in range(count))]


def equal(a, b):
  assert len(a) == len(b) and all(np.array_equal(x, y) for one, other in zip(a, b) for x, y in zip(one, other))


def test_workers_and_sources_change_no_batch(tmp_path):
  want = take((X, Y))
  np.save(tmp_path / "x.npy", X), np.save(tmp_path / "y.npy", Y)
  equal(take((X, Y), num_workers=3, prefetch=2), want)
  equal(take([str(tmp_path / "x.npy"), tmp_path / "y.npy"], num_workers=2), want)
  equal(take(Squares(), num_workers=2), want)
  equal(take({"x": X, "y": Y}), want)
  equal(take((X, Y), count=4, start=3), want[3:])
  # Each epoch has every example once, and rows stay together.
  numbers = np.concatenate([batch[1] for batch in want])
  assert sorted(numbers[:20]) == sorted(numbers[20:40]) == list(range(20)) and list(numbers[:20]) != list(numbers[20:40])
  assert all(np.array_equal(batch[0], X[batch[1]]) for batch in want)
  assert np.array_equal(take((X, Y), count=1, shuffle=False)[0][1], np.arange(6))
  assert len(training.DataLoader(Squares(), 6)) == 4


def test_a_stream_ends_where_it_ends():
  made = training.DataLoader(((X[i:i + 2], Y[i:i + 2]) for i in range(0, 6, 2)))
  assert [list(np.asarray(y)) for _, y in made] == [[0, 1], [2, 3], [4, 5]]
  assert made.position == 3
  later = training.DataLoader(iter([X, X + 1]), start=1)
  assert np.array_equal(next(later), X + 1)


def test_errors_of_a_source_arrive():
  class Broken(Squares):
    def __getitem__(self, number):
      raise KeyError("row is gone")
  with pytest.raises(KeyError, match="row is gone"):
    training.DataLoader(Broken(), 4, num_workers=2).next()


def test_processes_read_datasets():
  program = ("import numpy as np\nfrom capibara import training\n"
             "class Rows:\n  def __len__(self): return 8\n  def __getitem__(self, i): return np.full(2, i)\n"
             "if __name__ == '__main__':\n  with training.DataLoader(Rows(), 4, shuffle=False, num_workers=2, processes=True) as loader:\n"
             "    print([np.asarray(x).tolist() for x in loader.next()])\n")
  import tempfile
  with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
    file.write(program)
    file.flush()
    done = subprocess.run([sys.executable, file.name], capture_output=True, text=True, timeout=300)
  assert done.stdout.strip() == "[[0, 0], [1, 1], [2, 2], [3, 3]]", done.stderr


WRONG = [
    (lambda: training.DataLoader(3), TypeError, "(argument 'source'), got 3"),
    (lambda: training.DataLoader("book.txt"), ValueError, "expected .npy files or one .safetensors file (argument 'source'), got book.txt"),
    (lambda: training.DataLoader("none.npy"), ValueError, "none.npy"),
    (lambda: training.DataLoader((X, Y[:5])), ValueError, "number of rows, got int32[5] (array 1) beside float32[20,3] (array 0)"),
    (lambda: training.DataLoader(np.float32(3)), ValueError, "number of rows, got float32[] (array 0)"),
    (lambda: training.DataLoader(X, 0), ValueError, "1 or more (argument 'batch_size'), got 0"),
    (lambda: training.DataLoader(X, 2.5), TypeError, "expected a whole number (argument 'batch_size'), got 2.5"),
    (lambda: training.DataLoader(X, num_workers=0), ValueError, "1 or more (argument 'num_workers'), got 0"),
    (lambda: training.DataLoader(X, prefetch=-1), ValueError, "1 or more (argument 'prefetch'), got -1"),
    (lambda: training.DataLoader(X, seed=-1), ValueError, "(argument 'seed'), got -1"),
    (lambda: training.DataLoader(X, start=-1), ValueError, "0 or more (argument 'start'), got -1"),
    (lambda: training.DataLoader(iter([X]), num_workers=2), ValueError, "a stream is read by one worker, since its batches"),
    (lambda: training.DataLoader(X, processes=True), ValueError, "(argument 'processes'), the source is arrays"),
    (lambda: training.DataLoader([]), ValueError, "expected a source of at least one example, got 0"),
    (lambda: len(training.DataLoader(iter([X]))), TypeError, "an iterable of batches has no length"),
]


@pytest.mark.parametrize("call, kind, words", WRONG)
def test_wrong_uses(call, kind, words):
  with pytest.raises(kind) as caught:
    call()
  assert words in str(caught.value)
