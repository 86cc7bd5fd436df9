"""What API servers need to ask the sandbox who their users are: the options, and kubeconfigs with a secret.

Source: Kubernetes documentation, "Webhook Token Authentication" and "Webhook Mode", v1.34.
"""

import json
import secrets
from pathlib import Path
from typing import Final

PREFIX: Final = "/podwright/eks/"
# EKS's changes take several seconds, too.
_TRUSTED_FOR: Final = "5s"
_REFUSED_FOR: Final = "1s"


def bearer_in(folder: Path) -> str:
    """The secret of the webhooks, made on the first call, in a file for its owner alone."""
    file = folder / "webhooks.secret"
    if not file.exists():
        new = file.with_suffix(".new")
        new.touch(0o600)
        new.write_text(secrets.token_hex(32), encoding="ascii")
        new.replace(file)
    return file.read_text(encoding="ascii")


def api_server_options(folder: Path, server: str, trusted: Path, bearer: str, cluster: str) -> dict[str, str]:
    """The options by which kube-apiserver asks these webhooks. Their kubeconfigs are written into the folder.

    Args:
        folder: For the kubeconfigs, which hold the secret.
        server: URL of the sandbox's HTTPS server, without a path.
        trusted: The authority that signed that server's certificate.
        bearer: The secret, as `bearer_in` gives it.
        cluster: Account, region and name with slashes between them.
    """
    files = {
        kind: _kubeconfig(folder / f"{kind}.kubeconfig", f"{server}{PREFIX}{kind}/{cluster}", trusted, bearer)
        for kind in ("token-review", "access-review")
    }
    return {
        "authentication-token-webhook-config-file": str(files["token-review"]),
        "authentication-token-webhook-version": "v1",
        "authentication-token-webhook-cache-ttl": _TRUSTED_FOR,
        "authorization-mode": "Node,RBAC,Webhook",
        "authorization-webhook-config-file": str(files["access-review"]),
        "authorization-webhook-version": "v1",
        "authorization-webhook-cache-authorized-ttl": _TRUSTED_FOR,
        "authorization-webhook-cache-unauthorized-ttl": _REFUSED_FOR,
    }


def _kubeconfig(file: Path, url: str, trusted: Path, bearer: str) -> Path:
    """Write the kubeconfig of a webhook, for its owner alone. JSON is YAML, too."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "webhook",
        "clusters": [{"name": "webhook", "cluster": {"server": url, "certificate-authority": str(trusted)}}],
        "users": [{"name": "kube-apiserver", "user": {"token": bearer}}],
        "contexts": [{"name": "webhook", "context": {"cluster": "webhook", "user": "kube-apiserver"}}],
    }
    file.touch(0o600)
    file.write_text(json.dumps(config), encoding="utf-8")
    return file
