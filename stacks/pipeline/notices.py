"""What people are told about a pipeline, and what they can do then."""

from collections.abc import Sequence

from ...constructs.delivery.promotion_notices import Notice

_FAILED = """\
Promotion <execution> stopped in stage <stage> of pipeline <pipeline>. Later stages are untouched.
What failed: CodePipeline, pipeline <pipeline>, stage <stage>; evidence of steps lies in the bucket under <execution>/.
Fix the cause and choose Retry stage: what has passed is not repeated, and a deployment resumes where it stopped.
To go back, revert the commit and push: the state before is deployed like any other change, with effects and gates.
CloudFormation has rolled back the stack that failed; the stacks before it keep the change until the revert.
Do not choose Rollback of a stage: it deploys old templates without looking at their effects."""
_WAITS = """\
Promotion <execution> of pipeline <pipeline> waits in stage <stage> for your consent, seven days at most.
The approval in CodePipeline links to what the stage changes, interrupts, costs and how long it takes."""
_DRIFT = """\
The look for drift found something, or could not look: build <build>.
The log says what was changed behind the files. Take the change over into the file, or promote again to undo it."""


def notices(pipeline: str, drift_projects: Sequence[str]) -> dict[str, Notice]:
    """What is told, by the id of its rule.

    Args:
        pipeline: Name of the pipeline.
        drift_projects: Names of the CodeBuild projects that look for drift.
    """
    messages = {name: f"$.detail.{key}" for name, key in (("stage", "stage"), ("execution", "execution-id"))}
    messages["pipeline"] = "$.detail.pipeline"
    results = {
        "Failed": Notice(
            {
                "source": ["aws.codepipeline"],
                "detail-type": ["CodePipeline Stage Execution State Change"],
                "detail": {"pipeline": [pipeline], "state": ["FAILED"]},
            },
            messages,
            _FAILED,
        ),
        "Waits": Notice(
            {
                "source": ["aws.codepipeline"],
                "detail-type": ["CodePipeline Action Execution State Change"],
                "detail": {"pipeline": [pipeline], "state": ["STARTED"], "type": {"category": ["Approval"]}},
            },
            messages,
            _WAITS,
        ),
    }
    if drift_projects:
        results["Drift"] = Notice(
            {
                "source": ["aws.codebuild"],
                "detail-type": ["CodeBuild Build State Change"],
                "detail": {"project-name": list(drift_projects), "build-status": ["FAILED", "FAULT", "TIMED_OUT"]},
            },
            {"build": "$.detail.build-id"},
            _DRIFT,
        )
    return results
