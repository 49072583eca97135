"""The site's page of classes shows them as the public headers declare them."""

import re
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


def test_the_page_has_every_class_with_members_of_its_header():
    page = class_page.page()
    for classes in class_page.CLASSES.values():
        for name, header in classes.items():
            shown = page.partition(f"### {name}\n")[2].partition("\n### ")[0].partition("```c++\n")[2].partition("```")[0]
            declared = (ROOT / "include" / "capibara" / header).read_text()
            members = re.findall(r"\b(\w+)\(", re.sub(r"//.*", "", shown))
            assert len(members) > 1, name
            assert all(re.search(rf"\b{member}\b", declared) for member in members), name


def test_public_members_are_shown_without_their_bodies():
    above, body = class_page.body_of(SOURCE, "Box")
    assert above == "What a reader sees."
    assert class_page.of_users(class_page.declarations(class_page.public_part(body))) == """// Opens it: with a key.
explicit Box(int key);
template <class T> T read(const T& like = {}) const;
int key() const;  // never 0
int key() const noexcept;"""
