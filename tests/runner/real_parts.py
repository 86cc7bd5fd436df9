"""Test files that only `bin/test --all` runs, each with the real part that it is about.

A file is listed if most of its tests start a program that `.ci/run` installs, build what users install, have everything
judged by a program of others, kill processes at many points, or follow a documented procedure in processes. Tests of
podwright's own behaviour stay out of the list: `bin/test` has to notice an ordinary mistake in every folder.
"""

from collections.abc import Iterable

REAL_PARTS = {
    "tests/kubernetes": "Kubernetes control plane",
    "tests/stories": "Kubernetes control plane",
    "tests/browser": "Chromium, and the site that bin/docs builds",
    "tests/contract/code/test_types.py": "pyrefly, on all sources",
    "tests/contract/test_lambda_sdk.py": "an older AWS SDK, with which the tests of handlers run again",
    "tests/contract/test_packaging.py": "the packages that bin/release builds",
    "tests/contract/test_pipeline_validation.py": "cfn-lint and cdk-nag, on the pipeline",
    "tests/contract/test_validation.py": "cfn-lint, cdk-nag and CloudFormation's validator, on environments",
    "tests/evolution/test_deployed_edits.py": "CloudFormation, in edits of a deployed environment",
    "tests/node/slurm/test_slurm_cluster.py": "Slurm, MariaDB and munge",
    "tests/node/slurm/test_slurm_database.py": "Slurm, MariaDB and munge",
    "tests/node/slurm/test_slurm_killed.py": "Slurm, MariaDB and munge",
    "tests/node/software/test_repositories.py": "dnf, rpmbuild and apt",
    "tests/node/software/test_software.py": "compilers and make",
    "tests/node/test_kernels.py": "compilers",
    "tests/node/test_killed.py": "the set-up of nodes in processes, killed at every step",
    "tests/sandbox/cloudformation/test_cdk_cli.py": "CDK CLI",
    "tests/sandbox/commands/test_benchmark_bucket.py": "AWS CLI",
    "tests/sandbox/commands/test_canary.py": "CDK CLI, in canaries of both orchestrators",
    "tests/sandbox/commands/test_deploy.py": "CDK CLI, in the whole life of a project",
    "tests/sandbox/commands/test_promote_in_sandbox.py": "CDK CLI, in a promotion over three accounts",
    "tests/sandbox/commands/test_tutorial.py": "CDK CLI, in the whole tutorial",
    "tests/sandbox/test_python_examples.py": "apps of the documentation in processes",
    "tests/sandbox/test_real_slurm.py": "Slurm, MariaDB and munge",
}
"""Real part by test file or folder, relative to the checkout."""


def needs_all(path: str, named: Iterable[str] = ()) -> bool:
    """Return whether a test file or folder runs with `--all` only.

    Args:
        path: Relative to the checkout.
        named: Paths that the user names, with which `path` runs: itself, a file in it or a listed folder around it.
    """
    part = next((part for part in REAL_PARTS if _is_below(path, part)), None)
    return part is not None and not any(_is_below(each, part) for each in named)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
