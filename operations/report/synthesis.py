"""Synthesizing an environment without an account: the CDK app as a process of its own."""

import tempfile
from pathlib import Path

from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ..cdk.app import environment_context, synthesize
from .assembly import Assembly, read_assembly


def synthesized(project: Path, name: str, loaded: LoadedEnvironment) -> Assembly:
    """The templates of an environment, made in a folder that is gone afterwards.

    Args:
        project: The project's folder.
        name: The environment as the command line has it: a name, or a file.
        loaded: The environment.

    Raises:
        CommandError: the app failed; with its last words.
    """
    # A report needs no chart, so it needs none fetched: templates hold of them a digest that it does not show.
    context = environment_context(project, name) | {"chart": "stand-in"}
    with tempfile.TemporaryDirectory(prefix="podwright-report-") as folder:
        # The validation looks at resources that the deployment looks at again, and takes two seconds.
        problem = synthesize(project, context, Path(folder), variables={"CDK_VALIDATION": "false"})
        if problem is not None:
            raise CommandError(
                f"{loaded.environment.name} cannot be synthesized:\n{problem}", "`cdk synth` shows the whole output"
            )
        return read_assembly(Path(folder), loaded.environment.name)
