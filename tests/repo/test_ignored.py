"""Nothing is ignored silently: every parameter is read, rejected, or listed with a reason in docs/ignored.md."""
import ignored


def test_every_parameter_is_read_or_listed_with_its_reason():
    unread = [*ignored.unread_of_python(), *ignored.unread_of_table()]
    assert [f"{function}({parameter}=)" for function, parameter in unread if not ignored.reason(function, parameter)] == []


def test_every_reason_is_still_needed():
    unread = [*ignored.unread_of_python(), *ignored.unread_of_table()]
    needed = {(key[0], key[1]) for key in unread} | {(key[0], "*") for key in unread} | {("*", key[1]) for key in unread}
    assert [key for entries in ignored.HINTS.values() for key in entries if key not in needed] == []


def test_the_page_lists_all_of_it():
    page = (ignored.ROOT / "docs" / "ignored.md").read_text()
    assert page == ignored.page(), "remake it: build/venv/bin/python tests/repo/ignored.py > docs/ignored.md"


def test_no_primitive_falls_back_to_the_reference_backend_anew():
    assert set(ignored.fallbacks()) - set(ignored.FALLBACKS) == set()


def test_a_parameter_that_nothing_reads_is_found(tmp_path):
    (tmp_path / "module.py").write_text("def f(x, flag=False):\n    return x\n")
    assert ignored.unread_of_python(tmp_path) == [("module.f", "flag")]
