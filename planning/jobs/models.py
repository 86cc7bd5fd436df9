"""Where model endpoints read their weights."""

from ...config.settings.environment import Environment
from ...config.settings.jobs.services import InferenceEndpoint


def model_buckets(environment: Environment) -> list[str]:
    """The buckets of an environment's endpoints and those that the file names for others, each once."""
    operator = environment.platform.inference
    endpoints = [job for job in environment.jobs.values() if isinstance(job, InferenceEndpoint)]
    named = {endpoint.model.bucket for endpoint in endpoints if endpoint.model.bucket}
    return sorted(named | {*operator.model_buckets}) if operator else []
