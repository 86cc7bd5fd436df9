"""Secrets by their names and by their forms: taking keys, tokens and passwords out of what is collected.

It is better to take out too much than too little: a bundle is sent to other people. What is taken out leaves a mark
with its kind behind, so that a reader sees that something was there.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_SECRET_WORDS: Final = (
    r"passw(?:or)?d|passphrase|passwd|pwd|secret|token|api[_-]?key|apikey|access[_-]?key|private[_-]?key|"
    r"credential|auth[_-]?key|account[_-]?key|encryption[_-]?key|signing[_-]?key|cookie|munge[_-]?key"
)
_HARMLESS: Final = re.compile(
    r"tokeni[sz]|tokens|(secret|token|credential|key)s?[_-]?(name|arn|ref|id|path|file|length|count|size|type|ttl|"
    r"expir\w*|limit|namespace|version|provider|url|endpoint)s?$|(max|num|new|eos|bos|pad|unk|mask|next)[_-]?token|"
    r"automountserviceaccounttoken|clienttoken|requesttoken",
    re.IGNORECASE,
)
"""Names that have such a word in them and hold no secret."""
_SECRET_NAME: Final = re.compile(
    rf"(?:{_SECRET_WORDS})|^auth$|^authorization$|_pat$|^\.?dockerconfigjson$", re.IGNORECASE
)
_PLAIN_VALUE: Final = re.compile(
    r"(?:[\d.,:_-]*|true|false|none|null|yes|no|on|off|arn:\S*|\$[({]?\w+[)}]?|<\w+>|\*+|\[redacted: .*)", re.IGNORECASE
)
"""Values that are no secret, whatever their name: numbers, switches, ARNs, names of variables."""
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class _Form:
    """A form in which secrets appear in text; what stands in its group `keep` is left.

    A text, which `re` compiles when it is first used and remembers: every command imports this, few need it.
    """

    kind: str
    pattern: str
    flags: re.RegexFlag = re.NOFLAG


# Names of variables are written in all cases.
_I: Final = re.IGNORECASE
_NAMED: Final = (
    rf"(?P<name>(?:{_SECRET_WORDS})[\w.-]*)(?P<between>\\?[\"']?\s*(?:[:=]|=>|\sis\s)\s*\\?[\"']?)"
    # What is marked already is passed by: marks of one form must not be taken for a value of another.
    r"(?P<value>(?!\[redacted)[^\s\"'\\,;&<>{}\[\]()]{3,})"
)
_NAME_BEFORE: Final = re.compile(r"[\w.-]*$")
# A digest in hexadecimal has no capital letters beside small ones; a key has both, and digits.
_MIXED: Final = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])")
_OPTION: Final = rf"(?P<keep>--?[\w-]*(?:{_SECRET_WORDS})[\w-]*[ =][\"']?)(?P<value>(?!\[redacted)[^\s\"'-][^\s\"']*)"
_FORMS: Final = (
    _Form(
        "private key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|\Z)",
        re.S,
    ),
    _Form("request signature", r"(?P<keep>X-Amz-(?:Signature|Credential|Security-Token)(?:=|%3D|: ?))[^&\s\"'\\]+", _I),
    _Form("request signature", r"(?P<keep>AWS4-HMAC-SHA256 )Credential=[^\n\"]*?Signature=[0-9a-f]+", _I),
    _Form("request signature", r"(?P<keep>[?&](?:Signature|sig|AWSAccessKeyId|Policy|Key-Pair-Id)=)[^&\s\"'\\]+", _I),
    _Form(
        "header",
        r"(?P<keep>\b(?:Authorization|Proxy-Authorization|X-Api-Key|X-Auth-Token|Cookie|Set-Cookie)"
        r"\\?[\"']? ?[:=] ?\\?[\"']?)(?!\[redacted)[^\n\"'\\]+",
        _I,
    ),
    _Form("bearer token", r"(?P<keep>\b(?:Bearer|Basic) )[A-Za-z0-9._~+/=-]{8,}", _I),
    _Form("password in a URL", r"(?P<keep>\b[a-z][a-z0-9+.-]*://[^\s/:@\"']*:)(?!\[redacted)[^\s/@\"']+(?=@)", _I),
    _Form("password of a command", r"(?P<keep>\bdocker login\b[^\n]*? -p ?)[^\s\"']+", _I),
    _Form("password of a command", r"(?P<keep>\b(?:mysql|mysqldump|mariadb|mysqladmin)\b[^\n]*? -p)[^\s\"']+", _I),
    _Form("password of a command", r"(?P<keep>\bcurl\b[^\n]*? (?:-u|--user) ?[\"']?[^\s:\"']+:)[^\s\"']+", _I),
    _Form("registry login", r"(?P<keep>\\?\"auth\\?\" ?: ?\\?\")(?!\[redacted)[^\"\\]+"),
    # `bypass=` and `compass=` end like a password's name.
    _Form("password", r"(?P<keep>\b\w*(?<!by)(?<!com)pass=[\"']?)(?!\[redacted)[^\s\"']+", _I),
    _Form("password of a command", r"(?P<keep>\bsshpass -p ?)[^\s]+", _I),
    _Form("password of a command", r"(?P<keep>\bwandb login (?:--relogin )?)[A-Za-z0-9]{16,}", _I),
    _Form(
        "password of a command",
        r"(?P<keep>\b(?:echo|printf) [\"']?[^\s:\"']+:)[^\n\"']+(?=[\"']? ?\| ?(?:sudo )?chpasswd)",
    ),
    _Form(
        "key of a command",
        r"(?P<keep>\b(?:echo|printf) (?:-n )?[\"']?)[^\s\"']{8,}(?=[\"']? ?\| ?base64 (?:-d|--decode))",
    ),
    _Form("password of .netrc", r"(?P<keep>\blogin \S+ password )(?!\[redacted)\S+", _I),
    _Form("password of a database", r"(?P<keep>\bIDENTIFIED BY ')[^']+", _I),
    _Form("AWS access key id", r"(?<![A-Z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Z0-9])"),
    _Form("web token", r"\beyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+){1,4}"),
    _Form("EKS token", r"\bk8s-aws-v1\.[A-Za-z0-9_-]+"),
    _Form(
        "token",
        r"\b(?:hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{20,}|glpat-[\w-]{16,}|npm_[A-Za-z0-9]{20,})",
    ),
    _Form(
        "token",
        r"\b(?:sk-[A-Za-z0-9_-]{20,}|nvapi-[\w-]{20,}|xox[abeoprs]-[\w-]{10,}|dckr_pat_[\w-]{16,}|AIza[\w-]{30,}|ya29\.[\w-]{20,})",
    ),
    _Form(
        "token",
        r"\b(?:pypi-[\w-]{30,}|dop_v1_[0-9a-f]{40,}|SG\.[\w-]{16,}\.[\w-]{16,}|glsa_\w{20,}|glc_[\w=]{20,}|dapi[0-9a-f]{32})",
    ),
    _Form("webhook", r"(?P<keep>hooks\.slack\.com/(?:services|workflows|triggers)/)[\w/-]+", _I),
    _Form("webhook", r"(?P<keep>(?:discord(?:app)?\.com/api/webhooks/|webhook\.office\.com/webhookb2/))[\w/@.-]+", _I),
    # Base64 of such a length is a certificate, a key or a state, and never something that doctor reads.
    _Form("long encoded text", r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{120,}={0,2}"),
)


_KEY: Final = re.compile(r"(?<![A-Za-z0-9/+=._-])[A-Za-z0-9+][A-Za-z0-9/+]{39}(?![A-Za-z0-9/+=])")
"""The form of a secret access key: 40 characters of base64."""


def redact(files: Mapping[str, str]) -> tuple[dict[str, str], Counter[str]]:
    """The files without secrets, and how many of each kind were taken out. JSON stays JSON."""
    counts: Counter[str] = Counter()
    return {path: _redacted(path, text, counts) for path, text in files.items()}, counts


def _redacted(path: str, text: str, counts: Counter[str]) -> str:
    if path.endswith(".json"):
        try:
            value = json.loads(text)
        except ValueError:
            return redact_text(text, counts)
        # An answer is walked through with its names, which are lost once it is one text.
        return json.dumps(_walk(value, counts), indent=1, ensure_ascii=False) + "\n"
    return redact_text(text, counts)


def is_secret(name: str, value: str) -> bool:
    """Whether a variable of this name and value holds a secret, by its name or by its form."""
    return _walk({"name": name, "value": value}, Counter())["value"] != value


def redact_text(text: str, counts: Counter[str]) -> str:
    """A text without secrets; `counts` is told what was taken out."""
    # Forms first, as they are sure; names come after, and last what only looks like a key.
    for form in _FORMS:
        text = re.sub(
            form.pattern,
            lambda match, kind=form.kind: _mark(match.groupdict().get("keep") or "", kind, counts),
            text,
            flags=form.flags,
        )
    text = re.sub(_OPTION, lambda match: _option(match, counts), text, flags=_I)
    text = re.sub(_NAMED, lambda match: _named(match, counts), text, flags=_I)
    return _KEY.sub(lambda match: _key(match, counts), text)


def _mark(retained: str, kind: str, counts: Counter[str]) -> str:
    counts[kind] += 1
    return f"{retained}[redacted: {kind}]"


def _named(match: re.Match[str], counts: Counter[str]) -> str:
    # The name may begin before the match: MY_DB_PASSWORD matches from PASSWORD on.
    before = _NAME_BEFORE.search(match.string, max(0, match.start() - 64), match.start())
    name = (before[0] if before else "") + match["name"]
    if _HARMLESS.search(name) or _PLAIN_VALUE.fullmatch(match["value"]):
        return match[0]
    return _mark(f"{match['name']}{match['between']}", "named secret", counts)


def _key(match: re.Match[str], counts: Counter[str]) -> str:
    return _mark("", "secret access key", counts) if _MIXED.match(match[0]) else match[0]


def _option(match: re.Match[str], counts: Counter[str]) -> str:
    name = match["keep"].strip("-= \"'")
    if _HARMLESS.search(name) or _PLAIN_VALUE.fullmatch(match["value"]):
        return match[0]
    return _mark(match["keep"], "named secret", counts)


def _walk(value: Any, counts: Counter[str]) -> Any:
    if isinstance(value, dict):
        # Kubernetes writes variables, and AWS parameters and tags, as pairs of a name and a value.
        name = next(
            (value[key] for key in ("name", "Name", "Key", "ParameterKey") if isinstance(value.get(key), str)), ""
        )
        return {key: _field(key, item, name, counts) for key, item in value.items()}
    if isinstance(value, list):
        return [_walk(item, counts) for item in value]
    return redact_text(value, counts) if isinstance(value, str) else value


def _field(key: str, item: Any, name: str, counts: Counter[str]) -> Any:
    if not isinstance(item, str):
        return _walk(item, counts)
    # The annotation repeats the whole manifest as text, variables included.
    if key == _LAST_APPLIED:
        return _mark("", "copy of a manifest", counts)
    owner = name if key in ("value", "Value", "ParameterValue") else key
    secret = _SECRET_NAME.search(owner) and not _HARMLESS.search(owner)
    if secret and item and not _PLAIN_VALUE.fullmatch(item):
        return _mark("", "named secret", counts)
    return redact_text(item, counts)
