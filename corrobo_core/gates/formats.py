"""The formats of JSON Schema 2020-12, each checked strictly, whatever else is installed.

The ``jsonschema`` library checks a format only where optional packages are present. These checks are always the
same; a format that is not among them is refused when a gate is defined.

Source: semantics G6; JSON Schema 2020-12 Validation, section 7.3, and the RFCs named there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from types import MappingProxyType

import idna
from jsonschema import FormatChecker

from corrobo_core.gates.patterns import translate

__all__ = ["CHECKER", "FORMATS"]


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII | re.VERBOSE)
    return lambda text: compiled.fullmatch(text) is not None


# -- times (RFC 3339) ----------------------------------------------------------------------------------------

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(
    r"([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\.[0-9]+)?(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)


def _date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _time(text: str) -> bool:
    found = _TIME.fullmatch(text)
    if found is None:
        return False
    if found[3] != "60":
        return True
    offset = 0 if found[4] is None else int(found[4] + "1") * (60 * int(found[5]) + int(found[6]))
    return (60 * int(found[1]) + int(found[2]) - offset) % (24 * 60) == 23 * 60 + 59  # leap seconds are in UTC


def _date_time(text: str) -> bool:
    return text[10:11] in ("T", "t") and _date(text[:10]) and _time(text[11:])


_duration = _matches(
    r"P(?: [0-9]+W"
    r" | (?: [0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)? | [0-9]+M(?:[0-9]+D)? | [0-9]+D )"
    r"   (?: T(?: [0-9]+H(?:[0-9]+M(?:[0-9]+S)?)? | [0-9]+M(?:[0-9]+S)? | [0-9]+S ) )?"
    r" | T(?: [0-9]+H(?:[0-9]+M(?:[0-9]+S)?)? | [0-9]+M(?:[0-9]+S)? | [0-9]+S ) )"
)

# -- addresses -----------------------------------------------------------------------------------------------

_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_DOTS = re.compile("[.\u3002\uff0e\uff61]")


def _hostname(text: str) -> bool:
    labels = text.split(".")
    return len(text) <= 253 and all(_LABEL.fullmatch(label) and _real_label(label) for label in labels)


def _real_label(label: str) -> bool:
    """Hyphens in third and fourth place are for encoded labels, which must decode."""
    if label[2:4] != "--":
        return True
    try:
        idna.ulabel(label)
    except (idna.IDNAError, UnicodeError):
        return False
    return label[:2].lower() == "xn"


def _idn_hostname(text: str) -> bool:
    if text.isascii():
        return _hostname(text)
    try:
        return all(_DOTS.split(text)) and len(idna.encode(text)) <= 253
    except (idna.IDNAError, UnicodeError):
        return False


_QUOTED = r'"(?:[\x20-\x21\x23-\x5b\x5d-\x7e{wide}]|\\[\x20-\x7e])*"'
_ATOM = r"[A-Za-z0-9!\#$%&'*+/=?^_`{{|}}~{wide}-]+"
_WIDE = "\u0080-\U0010ffff"


def _local_part(wide: str) -> Callable[[str], bool]:
    atom = _ATOM.format(wide=wide)
    return _matches(rf"{atom}(?:\.{atom})* | {_QUOTED.format(wide=wide)}")


def _email_with(local: Callable[[str], bool], host: Callable[[str], bool]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        name, at, domain = text.rpartition("@")
        if not at or len(name.encode("utf-8", "replace")) > 64 or not local(name):
            return False
        if domain.startswith("[") and domain.endswith("]"):
            literal = domain[1:-1]
            return _ipv6(literal[5:]) if literal[:5].upper() == "IPV6:" else _ipv4(literal)
        return host(domain)

    return check


def _ipv4(text: str) -> bool:
    try:
        return text.isascii() and bool(IPv4Address(text))
    except AddressValueError:
        return False


def _ipv6(text: str) -> bool:
    try:
        return text.isascii() and "%" not in text and IPv6Address(text) is not None
    except AddressValueError:
        return False


# -- identifiers (RFC 3986, 3987, 6570, 9562) ----------------------------------------------------------------

_UCS = "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    f"{chr(plane << 16)}-{chr((plane << 16) + 0xFFFD)}" for plane in range(1, 15)
)
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"


def _reference(ucs: str, private: str) -> tuple[str, str]:
    """Patterns of an absolute identifier with an optional fragment, and of a relative one."""
    hexes = "%[0-9A-Fa-f]{2}"
    open_ = rf"[A-Za-z0-9._~!$&'()*+,;={ucs}-]"
    pchar = rf"(?:{open_}|[:@]|{hexes})"
    no_colon = rf"(?:{open_}|@|{hexes})"
    host = rf"(?:\[(?P<ip>[^\[\]]*)\]|(?:{open_}|{hexes})*)"
    authority = rf"//(?:(?:{open_}|:|{hexes})*@)?{host}(?::[0-9]*)?"
    after = rf"(?:/{pchar}*)*"
    rooted = rf"/(?:{pchar}+{after})?"
    query = rf"(?:\?(?:{pchar}|[/?]|[{private or '/'}])*)?"
    fragment = rf"(?:\#(?:{pchar}|[/?])*)?"
    absolute = rf"[A-Za-z][A-Za-z0-9+.-]*:(?:{authority}{after}|{rooted}|{pchar}+{after}|){query}{fragment}"
    relative = rf"(?:{authority}{after}|{rooted}|{no_colon}+{after}|){query}{fragment}"
    return absolute, relative


_IP_FUTURE = re.compile(r"v[0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+", re.ASCII)


def _identifier(*patterns: str) -> Callable[[str], bool]:
    compiled = [re.compile(pattern, re.ASCII) for pattern in patterns]

    def check(text: str) -> bool:
        found = next((m for pattern in compiled if (m := pattern.fullmatch(text))), None)
        if found is None:
            return False
        ip = found["ip"]
        return ip is None or _ipv6(ip) or _IP_FUTURE.fullmatch(ip) is not None

    return check


_URI, _URI_RELATIVE = _reference("", "")
_IRI, _IRI_RELATIVE = _reference(_UCS, _PRIVATE)
_VARNAME = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*"
_VARSPEC = rf"{_VARNAME}(?::[1-9][0-9]{{0,3}}|\*)?"
_uri_template = re.compile(
    rf"(?:[!\#$&()*+,./0-9:;=?@A-Z\[\]_a-z~{_UCS}{_PRIVATE}-]|%[0-9A-Fa-f]{{2}}"
    rf"|\{{[+\#./;?&=,!@|]?{_VARSPEC}(?:,{_VARSPEC})*\}})*"
)
_uuid = _matches(r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
_POINTER = r"(?:/(?:[^~/]|~[01])*)*"


def _regex(text: str) -> bool:
    try:
        translate(text)
    except ValueError:
        return False
    return True


FORMATS = MappingProxyType(
    {
        "date": _date,
        "date-time": _date_time,
        "duration": _duration,
        "email": _email_with(_local_part(""), _hostname),
        "hostname": _hostname,
        "idn-email": _email_with(_local_part(_WIDE), _idn_hostname),
        "idn-hostname": _idn_hostname,
        "ipv4": _ipv4,
        "ipv6": _ipv6,
        "iri": _identifier(_IRI),
        "iri-reference": _identifier(_IRI, _IRI_RELATIVE),
        "json-pointer": _matches(_POINTER),
        "regex": _regex,
        "relative-json-pointer": _matches(rf"(?:0|[1-9][0-9]*)(?:\#|{_POINTER})"),
        "time": _time,
        "uri": _identifier(_URI),
        "uri-reference": _identifier(_URI, _URI_RELATIVE),
        "uri-template": lambda text: _uri_template.fullmatch(text) is not None,
        "uuid": _uuid,
    }
)


def _on_text(check: Callable[[str], bool]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or check(value)


CHECKER = FormatChecker(formats=())
"""Asserts the formats above, and knows no others."""
CHECKER.checkers = {name: (_on_text(check), ()) for name, check in FORMATS.items()}
