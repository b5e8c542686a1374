"""The values of ``format`` that are asserted, each as a regular language written from its specification.

A format that is not in the tables is an annotation, as the specification says of unknown formats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from grammask.constraints.json_schema import regex_format

if TYPE_CHECKING:
    from grammask._core import Builder, Expr, Spelling

FormatAssertion = bool | Literal["all"]
"""Which formats are enforced: none, those of PATTERNS, or LOOSE_PATTERNS as well."""

# RFC 3339 section 5.6, with the calendar of its appendix C (leap years).
_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
DATE = (
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_HOUR = "(?:[01][0-9]|2[0-3])"
_FRACTION = "(?:\\.[0-9]+)?"
_OFFSET = f"(?:[Zz]|[+-]{_HOUR}:[0-5][0-9])"
# A leap second is 23:59:60 in UTC. At +hh:mm the local time is hh:(mm-1) for mm > 0, else (hh-1):59; at -hh:mm it is
# (23-hh):(59-mm). A look-ahead relates the hours, the rest the minutes.
_TO_SIGN = f"[0-9]{{2}}:60{_FRACTION}"


def _leap_second(hours: list[tuple[int, int]], minutes: list[tuple[int, int]], sign: str) -> str:
    """Leap seconds whose (local, offset) hours and minutes are among the pairs."""
    related_hours = "|".join(f"{local:02}:{_TO_SIGN}{sign}{offset:02}:" for local, offset in hours)
    related_minutes = "|".join(f"{local:02}:60{_FRACTION}{sign}[0-9]{{2}}:{offset:02}" for local, offset in minutes)
    return f"(?={related_hours})[0-9]{{2}}:(?:{related_minutes})"


_LEAP_SECOND = "|".join(
    [
        f"23:59:60{_FRACTION}[Zz]",
        _leap_second([((hour - 1) % 24, hour) for hour in range(24)], [(59, 0)], "\\+"),
        _leap_second([(hour, hour) for hour in range(24)], [(minute - 1, minute) for minute in range(1, 60)], "\\+"),
        _leap_second([(23 - hour, hour) for hour in range(24)], [(59 - minute, minute) for minute in range(60)], "-"),
    ]
)
TIME = f"(?:{_HOUR}:[0-5][0-9]:[0-5][0-9]{_FRACTION}{_OFFSET}|{_LEAP_SECOND})"

# RFC 3339 appendix A (ISO 8601 durations).
_SECOND = "[0-9]+S"
_MINUTE = f"[0-9]+M(?:{_SECOND})?"
_TIME_PART = f"T(?:[0-9]+H(?:{_MINUTE})?|{_MINUTE}|{_SECOND})"
_MONTH = "[0-9]+M(?:[0-9]+D)?"
DURATION = f"P(?:(?:[0-9]+D|{_MONTH}|[0-9]+Y(?:{_MONTH})?)(?:{_TIME_PART})?|{_TIME_PART}|[0-9]+W)"

# RFC 2673 section 3.2 / RFC 3986 section 3.2.2.
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = f"{_OCTET}(?:\\.{_OCTET}){{3}}"
_H16 = "[0-9A-Fa-f]{1,4}"
_LS32 = f"(?:{_H16}:{_H16}|{IPV4})"
IPV6 = (
    f"(?:(?:{_H16}:){{6}}{_LS32}|::(?:{_H16}:){{5}}{_LS32}|(?:{_H16})?::(?:{_H16}:){{4}}{_LS32}"
    f"|(?:(?:{_H16}:)?{_H16})?::(?:{_H16}:){{3}}{_LS32}|(?:(?:{_H16}:){{0,2}}{_H16})?::(?:{_H16}:){{2}}{_LS32}"
    f"|(?:(?:{_H16}:){{0,3}}{_H16})?::{_H16}:{_LS32}|(?:(?:{_H16}:){{0,4}}{_H16})?::{_LS32}"
    f"|(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}|(?:(?:{_H16}:){{0,6}}{_H16})?::)"
)

# RFC 1123 section 2.1: labels of letters, digits and inner hyphens, 63 octets a label, 253 in all.
_LABEL = "[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?"
HOSTNAME = f"(?=.{{1,253}}$){_LABEL}(?:\\.{_LABEL})*"

# RFC 5321 section 4.1.2; RFC 6531 adds every character beyond ASCII.
_ATEXT = "0-9A-Za-z!#$%&'*+/=?^_`{|}~\\-"
_DOMAIN_LABEL = "[0-9A-Za-z](?:[0-9A-Za-z-]*[0-9A-Za-z])?"
_ADDRESS_LITERAL = f"\\[(?:{IPV4}|IPv6:{IPV6}|[0-9A-Za-z-]*[0-9A-Za-z]:[!-Z^-~]+)\\]"
EMAIL = (
    f'(?:[{_ATEXT}]+(?:\\.[{_ATEXT}]+)*|"(?:[ !#-\\[\\]-~]|\\\\[ -~])*")'
    f"@(?:{_DOMAIN_LABEL}(?:\\.{_DOMAIN_LABEL})*|{_ADDRESS_LITERAL})"
)
_BEYOND = "\u0080-\U0010ffff"
_IDN_LABEL = f"[0-9A-Za-z{_BEYOND}](?:[0-9A-Za-z{_BEYOND}-]*[0-9A-Za-z{_BEYOND}])?"
IDN_EMAIL = (
    f'(?:[{_ATEXT}{_BEYOND}]+(?:\\.[{_ATEXT}{_BEYOND}]+)*|"(?:[ !#-\\[\\]-~{_BEYOND}]|\\\\[ -~])*")'
    f"@(?:{_IDN_LABEL}(?:\\.{_IDN_LABEL})*|{_ADDRESS_LITERAL})"
)

# RFC 3986 appendix A and RFC 3987 section 2.2.
_PERCENT = "%[0-9A-Fa-f]{2}"
_UNRESERVED = "0-9A-Za-z._~\\-"
_SUBDELIMS = "!$&'()*+,;="
_PLANES = "".join(f"{chr(plane << 16)}-{chr((plane << 16) + 0xFFFD)}" for plane in range(1, 14))
_UCSCHAR = f"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef{_PLANES}\U000e1000-\U000efffd"
_IPRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_IPVFUTURE = f"[vV][0-9A-Fa-f]+\\.[{_UNRESERVED}{_SUBDELIMS}:]+"


def _uri_patterns(extra: str, private: str) -> tuple[str, str]:
    """(absolute with optional fragment, also relative) references, with more unreserved characters."""
    unreserved = _UNRESERVED + extra
    pchar = f"(?:[{unreserved}{_SUBDELIMS}:@]|{_PERCENT})"
    segment_no_colon = f"(?:[{unreserved}{_SUBDELIMS}@]|{_PERCENT})+"
    userinfo = f"(?:[{unreserved}{_SUBDELIMS}:]|{_PERCENT})*"
    name = f"(?:[{unreserved}{_SUBDELIMS}]|{_PERCENT})*"
    authority = f"(?:{userinfo}@)?(?:\\[(?:{IPV6}|{_IPVFUTURE})\\]|{name})(?::[0-9]*)?"
    after_authority = f"(?:/{pchar}*)*"
    absolute_path = f"/(?:{pchar}+(?:/{pchar}*)*)?"
    query = f"(?:\\?(?:[{unreserved}{_SUBDELIMS}:@/?{private}]|{_PERCENT})*)?"
    fragment = f"(?:#(?:[{unreserved}{_SUBDELIMS}:@/?]|{_PERCENT})*)?"
    scheme = "[A-Za-z][0-9A-Za-z+.-]*:"
    hierarchical = f"(?://{authority}{after_authority}|{absolute_path}|{pchar}+(?:/{pchar}*)*|)"
    relative = f"(?://{authority}{after_authority}|{absolute_path}|{segment_no_colon}(?:/{pchar}*)*|)"
    absolute = f"{scheme}{hierarchical}{query}{fragment}"
    return absolute, f"(?:{absolute}|{relative}{query}{fragment})"


URI, URI_REFERENCE = _uri_patterns("", "")
IRI, IRI_REFERENCE = _uri_patterns(_UCSCHAR, _IPRIVATE)

# RFC 6570 section 2.
_VARCHAR = f"(?:[0-9A-Za-z_]|{_PERCENT})"
_VARSPEC = f"{_VARCHAR}(?:\\.?{_VARCHAR})*(?::[1-9][0-9]{{0,3}}|\\*)?"
_EXPRESSION = f"\\{{[+#./;?&=,!@|]?{_VARSPEC}(?:,{_VARSPEC})*\\}}"
_TEMPLATE_LITERAL = f"!#$&-;=?-\\[\\]_a-z~{_UCSCHAR}{_IPRIVATE}"
URI_TEMPLATE = f"(?:[{_TEMPLATE_LITERAL}]|{_PERCENT}|{_EXPRESSION})*"

# RFC 6901 section 3, and draft-bhutton-relative-json-pointer-00 section 3.
JSON_POINTER = "(?:/(?:[^/~]|~[01])*)*"
RELATIVE_JSON_POINTER = f"(?:0|[1-9][0-9]*)(?:[+-][1-9][0-9]*)?(?:#|{JSON_POINTER})"

# RFC 4122 section 3 (the form only: every variant and version).
UUID = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"

# RFC 4648 section 4.
BASE64 = "(?:[0-9A-Za-z+/]{4})*(?:[0-9A-Za-z+/]{2}==|[0-9A-Za-z+/]{3}=)?"

PATTERNS: dict[str, str] = {
    "date": DATE,
    "time": TIME,
    "date-time": f"{DATE}[Tt]{TIME}",
    "duration": DURATION,
    "email": EMAIL,
    "idn-email": IDN_EMAIL,
    "hostname": HOSTNAME,
    "ipv4": IPV4,
    "ipv6": IPV6,
    "uri": URI,
    "uri-reference": URI_REFERENCE,
    "iri": IRI,
    "iri-reference": IRI_REFERENCE,
    "uri-template": URI_TEMPLATE,
    "uuid": UUID,
    "json-pointer": JSON_POINTER,
    "relative-json-pointer": RELATIVE_JSON_POINTER,
}
"""Format name -> pattern that the whole string matches."""

LOOSE_PATTERNS: dict[str, str] = {"byte": BASE64}
"""Formats asserted only on request (``format_assertion="all"``): schemas in use name them for texts that break them."""

ALIASES = {"host-name": "hostname", "ip-address": "ipv4"}
"""Names that earlier drafts used."""

INTEGER_RANGES: dict[str, tuple[int, int]] = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint8": (0, 2**8 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
"""Formats of numbers (OpenAPI and its registry): whole numbers in a range."""


def is_known(name: object, assertion: FormatAssertion) -> bool:
    """Whether a format constrains strings."""
    if not assertion or not isinstance(name, str):
        return False
    return name in PATTERNS or name in ALIASES or name == "regex" or (assertion == "all" and name in LOOSE_PATTERNS)


def lower(name: str, builder: Builder, spelling: Spelling) -> Expr:
    """The texts of a format, without quotes; kept for the other constraints over the same vocabulary."""
    from grammask.constraints.regex import lower_pattern

    key = f"format/{spelling}/{name}"
    found = builder.memo_get(key)
    if found is None:
        if name == "regex":
            found = regex_format.lower(builder, spelling)
        else:
            pattern = PATTERNS.get(ALIASES.get(name, name)) or LOOSE_PATTERNS[name]
            found = lower_pattern(pattern, builder, spelling=spelling, search=False)
        builder.memo_set(key, found)
    return found
