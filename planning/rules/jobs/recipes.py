"""Rules on recipes: that AWS's collection has them, and at which sizes."""

from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.jobs.pytorch import RecipeJob
from ...jobs.recipes import Recipe, known_recipes, nearest
from ..framework.rule import ERROR, Problem, Problems, rule


@rule("JOB060", ERROR, on=Environment, source="hyperpod-recipes")
def recipe_exists(environment: Environment) -> Problems:
    """Unknown HyperPod recipe."""
    for name, job in environment.jobs.items():
        if isinstance(job, RecipeJob) and job.path not in known_recipes():
            close = listed([_described(recipe) for recipe in nearest(job.path)])
            yield Problem(
                ("jobs", name, "path"),
                f"the collection has no recipe {job.path} that podwright knows",
                (
                    f"use one of these: {close}"
                    if close
                    else "correct the path; docs/user/jobs.md says where recipes are listed"
                )
                + "; if your checkout has it, accept this finding",
            )


def _described(recipe: Recipe) -> str:
    return f"{recipe.path} ({' '.join(filter(None, (recipe.model, recipe.size)))}, {recipe.technique})"


@rule("JOB061", ERROR, on=Environment, source="hyperpod-recipes hyperpod-elastic")
def recipe_has_settings_for_its_sizes(environment: Environment) -> Problems:
    """Elastic recipe without settings for a size."""
    for name, job in environment.jobs.items():
        if not isinstance(job, RecipeJob) or job.elastic is None or job.path not in known_recipes():
            continue
        recipe = known_recipes()[job.path]
        if not recipe.elastic:
            yield Problem(
                ("jobs", name, "elastic"),
                f"{recipe.path} has no elastic policy",
                "use `nodes`; of llmft recipes those called sft_lora and dpo grow and shrink",
            )
        elif recipe.scales and (absent := sorted(set(job.sizes) - set(recipe.scales))):
            yield Problem(
                ("jobs", name, "elastic"),
                f"it may have {listed(absent)} nodes, and the recipe sets batch sizes for {listed(recipe.scales)}",
                f"say which with values, such as {[size for size in recipe.scales if size <= job.sizes[-1]]}",
            )
