"""Options and kubeconfigs by which API servers call the sandbox's webhooks.

Source: Kubernetes documentation, "Webhook Token Authentication" and "Webhook Mode", v1.34.
"""

import json
import secrets
from pathlib import Path
from typing import Final

PREFIX: Final = "/podwright/eks/"
# In EKS, changes also take several seconds.
_TRUSTED_FOR: Final = "5s"
_REFUSED_FOR: Final = "1s"


def bearer_in(folder: Path) -> str:
    """Return the secret of the webhooks. The first call creates it, in a file that only its owner can read."""
    file = folder / "webhooks.secret"
    if not file.exists():
        new = file.with_suffix(".new")
        new.touch(0o600)
        new.write_text(secrets.token_hex(32), encoding="ascii")
        new.replace(file)
    return file.read_text(encoding="ascii")


def api_server_options(folder: Path, server: str, trusted: Path, bearer: str, cluster: str) -> dict[str, str]:
    """Return kube-apiserver's options for these webhooks, and write their kubeconfigs.

    Args:
        folder: Folder for the kubeconfigs, which contain the secret.
        server: URL of the sandbox's HTTPS server, without a path.
        trusted: Certificate of that server's authority.
        bearer: The secret from `bearer_in`.
        cluster: Account, region and name, separated by slashes.
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
    """Write the kubeconfig of a webhook, readable only by its owner, in JSON, which is valid YAML."""
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
