"""A bundle while it is being collected: its files, and what could not be seen."""

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from ...config.errors import CommandError
from ..aws.calls import Reader
from ..aws.questions import ask_all
from ..aws.unseen import Unseen, code_of
from ..output.moving import under_way
from .bundle import SOURCES

_CALLS_AT_ONCE: Final = 8


class Collection:
    """The files of a bundle that is being collected, and what could not be seen."""

    def __init__(self, reader: Reader, now: datetime) -> None:
        self.aws = reader
        self.now = now
        self.files: dict[str, str] = {}
        self.unseen: dict[str, str] = {}

    def take(self, source: str, read: Callable[[], Any]) -> Any:
        """The answer of a source, kept as its file; None where there is no such thing, or nobody lets us see it."""
        from botocore.exceptions import BotoCoreError, ClientError

        under_way(f"reading {source.replace('_', ' ')}")
        try:
            answer = read()
        except Unseen as error:
            self.unseen[source] = str(error)
            return None
        except ClientError as error:
            self.unseen[source] = f"{SOURCES[source].about}: {error.response['Error'].get('Message') or code_of(error)}"
            return None
        except (BotoCoreError, CommandError) as error:
            self.unseen[source] = " ".join(str(error).split())
            return None
        if answer is not None:
            self.files[SOURCES[source].file] = json.dumps(answer, default=_plain, indent=1)
        return answer

    def each(self, source: str, ids: Iterable[str], read: Callable[[str], Any]) -> dict[str, Any]:
        """The answers of a source that is asked once for each name or id, several at once."""

        def asked() -> dict[str, Any]:
            answers = ask_all({id: partial(read, id) for id in ids}, at_once=_CALLS_AT_ONCE)
            if unseen := next((answer for answer in answers.values() if isinstance(answer, Unseen)), None):
                raise unseen
            return {id: answer for id, answer in answers.items() if answer}

        result = self.take(source, asked)
        if result == {}:
            del self.files[SOURCES[source].file]
        return result or {}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value)
