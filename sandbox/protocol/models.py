"""botocore's models of AWS's services, read once for everything in the process."""

from functools import cache

from botocore.session import Session


@cache
def shared_session() -> Session:
    """The session that everybody asks for models and clients: each session keeps some 5 MB of endpoints, and models."""
    return Session()
