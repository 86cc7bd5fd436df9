"""The ARNs that an environment names."""

from collections.abc import Iterator
from typing import NamedTuple

from ....config.findings import Path
from ....config.settings.base import Settings
from ..framework.rule import nested


class Arn(NamedTuple):
    """An ARN, taken apart as far as rules need it."""

    text: str
    partition: str
    region: str
    """Empty for IAM, which has no regions."""
    account: str
    """`aws` for policies that AWS manages; empty where the resource has none."""

    @classmethod
    def parse(cls, text: str) -> "Arn":
        """Source: AWS General Reference, Amazon Resource Names: arn:partition:service:region:account:resource."""
        _, partition, _, region, account, _ = text.split(":", 5)
        return cls(text, partition, region, account)

    def __str__(self) -> str:
        return self.text


def arns(settings: Settings) -> Iterator[tuple[Path, Arn]]:
    """Every ARN in `settings`, with its path."""
    for path, model in nested(settings):
        for name, field in type(model).model_fields.items():
            value, key = getattr(model, name), field.alias or name
            for inner, text in enumerate(value) if isinstance(value, tuple) else [(None, value)]:
                if isinstance(text, str) and text.startswith("arn:"):
                    yield (*path, key) if inner is None else (*path, key, inner), Arn.parse(text)
