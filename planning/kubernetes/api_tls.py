"""How a connection to a Kubernetes API is verified.

Standard library only: the module travels into the Lambda functions that ask Kubernetes. The command line uses it too.
"""

import ssl
from typing import Final

SHIPPED: Final = "planning/kubernetes/api_tls.py"
"""This module, for functions that ship it, by its path in the package."""


def api_tls(authority: str) -> ssl.SSLContext:
    """Trust in one cluster's certificate authority: chain and name of the API's certificate are verified.

    Since Python 3.13 the standard library also demands what RFC 5280 asks of certificates, such as key identifiers. A
    cluster that EKS made long ago may have an authority without them, which is made once for a cluster and which other
    clients take.
    Source: Python documentation, ssl.create_default_context, "Changed in version 3.13".

    Args:
        authority: Certificate of the authority in PEM, as EKS describes the cluster.
    """
    context = ssl.create_default_context(cadata=authority)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
