"""The evaluation-order checker finds calls that depend on it, and no others."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"  # libclang's module is Debian's

SAMPLE = """
#include <capibara/lax.h>

namespace capibara::jax::lax {
Array two(const Array& x) { return add(sin(x), cos(x)); }           // found
Array operators(const Array& x) { return x * x + sin(x); }          // found
Array local(const Array& x) {
  auto twice = [](const Array& y) { return add(y, y); };
  return mul(twice(x), twice(sin(x)));                              // found
}
Array chained(const Array& x) { return mul(x, sin(cos(x))); }
Array named(const Array& x) {
  Array sine = sin(x), cosine = cos(x);
  return add(sine, cosine);
}
Arrays braced(const Array& x) { return {sin(x), cos(x)}; }
Array both(Array a, Array b) { return a; }
Array moved(Array x) { return both(std::move(x), x); }              // found

struct Reader {
  int next();
  int peek() const;
  int first, second;
  std::vector<int> numbers;
};
int pair(int a, int b);
int taken(Reader& reader);
int kept(Reader& reader, int last);
int copied(Reader reader, int last);
int sum(std::vector<int> numbers, int start);
int twice(Reader& reader) { return pair(reader.next(), reader.next()); }             // found
int changed(Reader& reader) { return pair(taken(reader), reader.peek()); }           // found
int counted(int i) { return pair(i++, i); }                                          // found
int by_value(Reader& reader) { return copied(reader, reader.next()); }               // found
int given(Reader reader) { return sum(std::move(reader.numbers), reader.numbers[0]); }  // found
int looked(Reader& reader) { return pair(reader.peek(), reader.peek()); }
int by_reference(Reader& reader) { return kept(reader, reader.next()); }
int members(Reader& reader) { return pair(reader.first++, reader.second); }
int parts(Reader reader) { return sum(std::move(reader.numbers), reader.first); }
}  // namespace capibara::jax::lax
"""


def has_libclang():
    return Path(PYTHON).exists() and subprocess.run([PYTHON, "-c", "import clang.cindex"], capture_output=True).returncode == 0


@pytest.mark.skipif(not has_libclang(), reason="no libclang (python3-clang-19): ./run emulate order installs it")
def test_finds_calls_that_depend_on_the_order_of_their_operands(tmp_path):
    sample = tmp_path / "sample.cpp"
    sample.write_text(SAMPLE)
    command = [PYTHON, ROOT / "tools/check/evaluation_order.py", "--jobs", "1", sample]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    lines = sorted({int(line.split(":")[1]) for line in done.stdout.splitlines()})
    assert lines == [number for number, line in enumerate(SAMPLE.splitlines(), 1) if "// found" in line], done.stdout
