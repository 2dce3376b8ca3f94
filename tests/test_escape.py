"""Text from outside, as a terminal, a Markdown file and a spreadsheet get it."""

from __future__ import annotations

import pytest

from rkcnn.escape import escape_code, escape_formula, escape_markdown, escape_text, is_unicode


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("RKCNN-I-2_2_2@k=120 ± – é 中 \u200d", "RKCNN-I-2_2_2@k=120 ± – é 中 \u200d"),
        ("a\x1b[31mb\x1b]0;title\x07", r"a\x1b[31mb\x1b]0;title\x07"),
        ("one\ntwo\r\tthree\u2028four\x85", r"one\ntwo\r\tthree\u2028four\x85"),
        ("cl\udcff\udcfe \ud800", r"cl\udcff\udcfe \ud800"),
        ("gnp.\u202etxt\u2066", r"gnp.\u202etxt\u2066"),
        ("\x9b31m\x7f", r"\x9b31m\x7f"),
    ],
)
def test_what_a_terminal_would_obey_is_spelled_out(text: str, shown: str) -> None:
    assert escape_text(text) == shown
    assert escape_text(shown) == shown
    escape_text(text).encode()


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("p < 0.05, [-0.1, +0.2] of RKCNN-I-2_2_2@k=120, `norms`", None),
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("<!-- <https://x.org>", "&lt;!-- &lt;https://x.org>"),
        ("# title", r"\# title"),
        ("a\n# title", r"a\\n# title"),
        ("a | b ~c~ *d*", r"a \| b \~c\~ \*d\*"),
        ("a \\| b", r"a \\\| b"),
        ("`a|b` `<i>` ``", r"\`a\|b\` \`&lt;i>\` \`\`"),
        ("![x](http://x.org/y.png) [a][b]", r"![x]\(http://x.org/y.png) [a]\[b]"),
        ("[a]: http://x.org", r"[a]\: http://x.org"),
        ("&lt;i> R&D", "&amp;lt;i> R&D"),
    ],
)
def test_markdown_shows_text_as_it_is(text: str, written: str | None) -> None:
    assert escape_markdown(text) == (written or text)


def test_code_holds_what_would_end_it() -> None:
    assert escape_code("a`b|c\n<i>") == r"`a'b\|c\n<i>`"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_a_spreadsheet_computes_nothing(text: str) -> None:
    assert escape_formula(text) == f"'{text}"
    assert escape_formula(f"ResNet{text}") == f"ResNet{text}"


def test_bytes_that_are_no_utf_8() -> None:
    assert is_unicode("é 中")
    assert not is_unicode("cl\udcff")
