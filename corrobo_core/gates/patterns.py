r"""Patterns of JSON Schema are ECMA-262 regular expressions, and Python's let wrong answers through:
``$`` also matches before a last newline, ``\d`` and ``\w`` match every script's digits and letters.

Source: semantics G6; JSON Schema 2020-12, section 6.4; ECMA-262, section 22.2.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["translate"]

# White space and line ends, as ECMA-262 has them, and everything else.
_SPACE = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_NO_SPACE = (
    r"\x00-\x08\x0e-\x1f!-\u009f\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e"
    r"\u2060-\u2fff\u3001-\ufefe\uff00-\U0010ffff"
)
_CONTROL = frozenset("fnrtv")
_QUANTIFIERS = frozenset("*+?}")
_GROUPS = re.compile(r"\(\?(?::|=|!|<=|<!|<([A-Za-z_$][\w$]*)>)", re.ASCII)
_NAMED = re.compile(r"<([A-Za-z_$][\w$]*)>", re.ASCII)
_HEX = re.compile(r"x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]{1,6}\}")
_BACK = re.compile(r"[1-9][0-9]?")


@lru_cache(maxsize=512)
def translate(pattern: str) -> str:
    r"""The Python pattern that matches what an ECMA-262 pattern matches.

    Args:
        pattern: without slashes and flags.

    Raises:
        ValueError: not ECMA-262, or not expressible in Python (``\p{…}``, look-behind of no fixed width).
    """
    try:
        translated = f"(?a:{_Translation(pattern).run()})"
        re.compile(translated)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"the pattern does not compile: {error}") from None
    return translated


class _Translation:
    """One walk through a pattern."""

    def __init__(self, pattern: str) -> None:
        self.text, self.at = pattern, 0
        self.in_class = False

    def run(self) -> str:
        parts: list[str] = []
        while self.at < len(self.text):
            parts.append(self._class_part() if self.in_class else self._part())
        if self.in_class:
            raise ValueError("the pattern has a [ without ]")
        return "".join(parts)

    def _take(self, length: int = 1) -> str:
        taken = self.text[self.at : self.at + length]
        self.at += length
        return taken

    def _part(self) -> str:
        char = self._take()
        match char:
            case "\\":
                return self._escape()
            case "[":
                self.in_class = True
                return "[" + (self._take() if self.text.startswith("^", self.at) else "")
            case "$":
                return r"\Z"
            case ".":
                return r"[^\n\r\u2028\u2029]"
            case "(":
                return self._group()
            case "*" | "+" | "?" | "}" if self.text.startswith("+", self.at):
                raise ValueError(f"the pattern has {char}+, which ECMA-262 does not know")
            case "{" if self.text.startswith(",", self.at):
                raise ValueError("the pattern has {, with no lower bound, which ECMA-262 does not know")
            case _:
                return char

    def _group(self) -> str:
        if not self.text.startswith("?", self.at):
            return "("
        found = _GROUPS.match(self.text, self.at - 1)
        if found is None:
            raise ValueError("the pattern has a group (?… that ECMA-262 does not know")
        self.at = found.end()
        return f"(?P<{found[1]}>" if found[1] else found[0]

    def _class_part(self) -> str:
        char = self._take()
        match char:
            case "\\":
                return self._escape()
            case "]":
                self.in_class = False
                return "]"
            case "[" | "&" | "~" | "|":
                return "\\" + char
            case "-" if self.text.startswith("-", self.at):
                return r"\-"
            case _:
                return char

    def _escape(self) -> str:
        char = self._take()
        if char == "s":
            return _SPACE if self.in_class else f"[{_SPACE}]"
        if char == "S":
            return _NO_SPACE if self.in_class else f"[{_NO_SPACE}]"
        if char in "dDwW" or char in _CONTROL or (char == "b") or (char == "B" and not self.in_class):
            return "\\" + char if char else self._bad()
        if char == "0" and not self.text[self.at : self.at + 1].isdigit():
            return r"\x00"
        if char == "c" and (letter := self._take()).isascii() and letter.isalpha():
            return rf"\x{ord(letter) % 32:02x}"
        self.at -= 1
        if found := _HEX.match(self.text, self.at):
            return self._code_point(found)
        return self._reference_or_self()

    def _code_point(self, found: re.Match[str]) -> str:
        self.at = found.end()
        number = int(found[0].strip("xu{}"), 16)
        if number > 0x10FFFF:
            raise ValueError("the pattern has a code point beyond U+10FFFF")
        return f"\\U{number:08x}"

    def _reference_or_self(self) -> str:
        if not self.in_class and (found := _BACK.match(self.text, self.at)):
            self.at = found.end()
            return f"(?:\\{found[0]})"
        if self.text.startswith("k", self.at) and (found := _NAMED.match(self.text, self.at + 1)):
            self.at = found.end()
            return f"(?P={found[1]})"
        char = self._take()
        if char.isascii() and not char.isalnum() and char != "_":
            return re.escape(char)
        return self._bad()

    def _bad(self) -> str:
        raise ValueError("the pattern has an escape that ECMA-262 does not know, or that Python cannot express")
