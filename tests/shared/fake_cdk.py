"""A CDK CLI that records its calls, and an assembly that no app has synthesized."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podwright.operations.aws.account import Account
from podwright.operations.cdk.cli import Cdk, Synthesized
from podwright.operations.cdk.inputs import SynthesisInputs
from podwright.operations.cdk.progress import Progress


class FakeCdk(Cdk):
    """Records `synth`, `validate` and the arguments of the CLI; a test writes templates into `assembly`."""

    calls: list[tuple[str, ...]]
    codes: list[int]
    """Exit codes of the next calls of the CLI; 0 after the last one."""

    @classmethod
    def of(cls, project: Path, name: str, account: Account) -> "FakeCdk":
        """The CLI of an environment, with nothing called so far."""
        cls.calls, cls.codes = [], []
        return cls(project, name, SynthesisInputs(project, {}, {}), account, project / f"{name}.log")

    @property
    def commands(self) -> list[tuple[str, ...]]:
        """The calls without those that synthesize or validate."""
        return [call for call in self.calls if call[0] not in ("synth", "validate")]

    @property
    def assembly(self) -> Path:
        """Folder of the assembly."""
        return self.project / "assembly"

    @contextmanager
    def synthesized(
        self, progress: Progress, *, validated: bool = False, incomplete: bool = False
    ) -> Iterator[Synthesized]:
        options = [word for word, value in (("validated", validated), ("incomplete", incomplete)) if value]
        self.calls.append(("synth", *options))
        self.assembly.mkdir(exist_ok=True)
        yield Synthesized(self.assembly)

    def validate(self, assembly: Synthesized, progress: Progress) -> None:
        assert assembly.folder == self.assembly
        self.calls.append(("validate",))

    def follow(self, progress: Progress, *arguments: str, assembly: Synthesized | None = None) -> int:
        assert assembly is None or assembly.folder == self.assembly
        self.calls.append(arguments)
        return self.codes.pop(0) if self.codes else 0

    def run(self, assembly: Synthesized, *arguments: str) -> int:
        self.calls.append(arguments)
        return self.codes.pop(0) if self.codes else 0
