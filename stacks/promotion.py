"""What the app holds beside the environments of a project that promotes them: roles, and CodePipeline's pipeline."""

from collections.abc import Sequence
from typing import cast

import aws_cdk as cdk

from ..config.loading.project import Project
from ..config.settings.environment import Environment
from ..planning.delivery.pipeline_steps import drift_steps, stages, steps
from ..planning.delivery.promotable import source_of


def add_promotion(app: cdk.App, project: Project, environments: Sequence[Environment]) -> None:
    """Add the roles of each environment and, unless GitHub Actions promotes, the pipeline.

    The environments' own stages are in the app already. They stay where they are, so their templates are the same with
    a pipeline and without.
    """
    from .pipeline.access import PipelineAccess
    from .pipeline.stack import PipelineStack

    settings, source = source_of(project)
    accounts: set[str] = set()
    access: dict[str, PipelineAccess] = {}
    for environment in environments:
        provider = source.on_github and source.oidc_provider == "create" and environment.account not in accounts
        accounts.add(environment.account)
        access[environment.name] = PipelineAccess(
            app,
            f"{settings.name}-{environment.name}",
            pipeline=settings,
            source=source,
            environment=environment,
            provider=provider,
        )
    if source.on_github:
        return
    PipelineStack(
        app,
        "pipeline",
        settings=settings,
        source=source,
        stages=stages(project.settings, project.names),
        steps=steps(project.settings, project.names),
        drift=drift_steps(project.settings, project.names),
        environments={environment.name: environment for environment in environments},
        deployed={name: cast(cdk.Stage, app.node.find_child(name)) for name in access},
        access=access,
    )
