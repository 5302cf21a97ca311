"""Owns how a text that an agent wrote is put into Markdown without leaving the place where it was put.

Must not change what a reader sees. What is prevented: a heading that forges a turn, a closing tag that ends a fold, a
comment that hides the rest, a control character that a terminal would obey.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

_HIDDEN = ("Cc", "Cf", "Zl", "Zp", "Cs")
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}(?=[^`]*$)|~{3,})")
_CODE_OR_TAG = re.compile(
    r"(?P<code>(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`))|<(?=[A-Za-z/!?])(?!https?://)"
)
_REACHING_OUT = re.compile(
    r"<(?=!|\?|/?(?:details|summary|blockquote|script|style|textarea|title|xmp|iframe|noscript|noembed|noframes|"
    r"plaintext|template|svg|math)\b)",
    re.IGNORECASE,
)
"""Tags that could end or hide what stands outside the quote; shown as text even in what looks like code, since only a
whole Markdown parser could be sure that it is."""
_MARKUP = re.compile(r"([\\`*_\[\]|#])")
_ADDRESS = re.compile(r"https?://[^\s<>\\]+", re.IGNORECASE)
_TROUBLE_IN_ADDRESS = {"(": "%28", ")": "%29", '"': "%22", "`": "%60"}


def one_line(text: str) -> str:
    """A text as one line without markup, for a heading, a link or the like."""
    return _MARKUP.sub(r"\\\1", in_html(text))


def in_html(text: str) -> str:
    """A text as one line, for HTML."""
    line = "".join(" " if unicodedata.category(c) in _HIDDEN and c != "\u200d" else c for c in text)
    return " ".join(line.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def quoted(text: str) -> list[str]:
    """Markdown from outside as lines of a block quote: it stays Markdown, and ends where the quote ends."""
    return [f"> {line}" if line else ">" for line in _harmless(text.strip("\n"))]


def code(text: str) -> str:
    """A word as inline code; no backtick in it can end it."""
    line = " ".join("".join(map(_plain, text)).split())
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", line)), default=0))
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}"


def fenced(value: Any) -> list[str]:
    """A JSON value as a code block, whole."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return [f"{fence}json", *text.split("\n"), fence]


def link(name: str, url: str) -> str:
    """A link; only the name when the address is none that a browser may follow harmlessly."""
    if not _ADDRESS.fullmatch(url):
        return one_line(name) + (f" ({one_line(url)})" if url and url != name else "")
    address = "".join(_TROUBLE_IN_ADDRESS.get(c, c) for c in url)
    return f"[{one_line(name)}]({address})"


def _harmless(text: str) -> Iterator[str]:
    """Lines with the tags outside of code made visible instead of obeyed."""
    fence = ""
    for line in _broken(text):
        found = _FENCE.match(line)
        mark = found["fence"] if found else ""
        if mark and not fence:
            fence = mark
        elif fence and mark.startswith(fence) and not line.strip(f" {mark[0]}"):
            fence = ""
        yield _REACHING_OUT.sub("&lt;", line) if fence else _CODE_OR_TAG.sub(_visible, line)


def _visible(found: re.Match[str]) -> str:
    return _REACHING_OUT.sub("&lt;", found["code"]) if found["code"] else "&lt;"


def _broken(text: str) -> list[str]:
    clean = "".join(_plain(c) for c in text.replace("\r\n", "\n").replace("\r", "\n"))
    return clean.split("\n")


def _plain(c: str) -> str:
    """Tabs and line breaks stay, and so does what joins or shapes letters; what steers a terminal goes."""
    if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs", "Zl", "Zp"):
        return "" if c in _DIRECTION else c
    return " "


_DIRECTION = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the writing direction of what follows, beyond their own text."""
