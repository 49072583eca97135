"""docs/classes.md shows the classes as the public headers declare them."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools" / "check"))

import class_page  # noqa: E402

SOURCE = """// What a reader sees.
class Box {
 public:
  Box() = default;
  // Opens it: with a key.
  explicit Box(int key) : key_(key) {}
  Box(const Box&) = delete;
  template <class T>
  T read(const T& like = {}) const {
    if (key_) { return like; }
    return {};
  }
  int key() const { return key_; }  // never 0
  int key() const noexcept;

 private:
  int key_ = 1;
};
"""


def test_the_page_is_that_of_the_headers():
    assert class_page.PAGE.read_text() == class_page.page(), "remake it: tools/check/class_page.py --write"


def test_public_members_are_shown_without_their_bodies():
    above, body = class_page.body_of(SOURCE, "Box")
    assert above == "What a reader sees."
    assert class_page.of_users(class_page.declarations(class_page.public_part(body))) == """// Opens it: with a key.
explicit Box(int key);
template <class T> T read(const T& like = {}) const;
int key() const;  // never 0
int key() const noexcept;"""
