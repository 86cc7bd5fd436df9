"""Reading which APIs a Kubernetes cluster serves, where its endpoint can be reached from here."""

import base64
import json
import urllib.error
import urllib.request
from typing import Any, Final

from ...planning.kubernetes.api_tls import api_tls
from ...planning.kubernetes.eks_token import eks_token
from ..aws.account import Account
from ..aws.unseen import Unseen

_SECONDS: Final = 3.0


def api_groups(account: Account, cluster: dict[str, Any]) -> list[str]:
    """Names of the API groups of an EKS cluster, as DescribeCluster gives it, such as `kueue.x-k8s.io`.

    Raises:
        Unseen: the endpoint is out of reach, or lets the caller not in.
    """
    api = f"the Kubernetes API of {cluster['name']}"
    certificate = base64.b64decode(cluster["certificateAuthority"]["data"]).decode()
    token = eks_token(account.session(), cluster["name"])
    request = urllib.request.Request(f"{cluster['endpoint']}/apis", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS, context=api_tls(certificate)) as answer:
            return [group["name"] for group in json.load(answer)["groups"]]
    except urllib.error.HTTPError as error:
        raise Unseen(api, f"it does not let you in ({error.code})") from None
    except (urllib.error.URLError, TimeoutError) as error:
        raise Unseen(api, f"it cannot be reached from here ({error})") from None
