"""Secrets as logs, pods and answers show them, and what looks like a secret and is none.

The forms are the services' published ones; the values are made here, so that no scanner finds a secret in this file.
"""

import base64
import json
from random import Random
from string import ascii_letters, digits, hexdigits

_RANDOM = Random("secrets")


def _drawn(length: int, letters: str = ascii_letters + digits) -> str:
    return "".join(_RANDOM.choices(letters, k=length))


def _token(*parts: object) -> str:
    packed = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return ".".join((*packed, _drawn(43)))


_KEY_ID = "AKIA" + _drawn(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
_TEMPORARY_ID = "ASIA" + _drawn(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
_KEY = _drawn(40, ascii_letters + digits + "/+")
_SESSION = "IQoJb3JpZ2luX2Vj" + _drawn(280, ascii_letters + digits + "/+")
_PASSWORD = "s3cr3t-" + _drawn(14)
_PEM = "\n".join(_drawn(64) for _ in range(4))
_JWT = _token({"alg": "RS256", "kid": "1"}, {"sub": "system:serviceaccount:default:x", "aud": ["sts"]})
_SIGNATURE = _drawn(64, hexdigits.lower()[:16])
_HUGGING_FACE, _GITHUB, _WANDB = "hf_" + _drawn(34), "ghp_" + _drawn(36), _drawn(40, "0123456789abcdef")
_NGC, _SLACK = "nvapi-" + _drawn(64), f"T{_drawn(10)}/B{_drawn(10)}/{_drawn(24)}"
_DOCKER = base64.b64encode(f"AWS:{_drawn(60)}".encode()).decode()

SECRETS: tuple[tuple[str, str, str], ...] = (
    ("access key id", f"aws_access_key_id = {_KEY_ID}", _KEY_ID),
    ("secret key", f"aws_secret_access_key = {_KEY}", _KEY),
    ("secret key exported", f"+ export AWS_SECRET_ACCESS_KEY={_KEY}", _KEY),
    ("temporary credentials", json.dumps({"AccessKeyId": _TEMPORARY_ID, "SecretAccessKey": _KEY}), _KEY),
    ("temporary key id", json.dumps({"AccessKeyId": _TEMPORARY_ID}), _TEMPORARY_ID),
    ("session token", f"AWS_SESSION_TOKEN={_SESSION}", _SESSION),
    ("session token in JSON", json.dumps({"SessionToken": _SESSION}), _SESSION),
    ("signed link", f"GET https://b.s3.amazonaws.com/k?X-Amz-Credential=x&X-Amz-Signature={_SIGNATURE}", _SIGNATURE),
    ("bearer token", f"Authorization: Bearer {_JWT}", _JWT),
    ("service account token", f'"token": "{_JWT}"', _JWT),
    ("password", f"StoragePass={_PASSWORD}", _PASSWORD),
    ("password as argument", f"+ mysql -u slurm --password={_PASSWORD} -h db.internal", _PASSWORD),
    ("password in JSON", json.dumps({"username": "slurm", "password": _PASSWORD}), _PASSWORD),
    ("password in a link", f"pip install -i https://deploy:{_PASSWORD}@pypi.acme.example/simple", _PASSWORD),
    ("password in a database link", f"postgresql://mlflow:{_PASSWORD}@db.internal:5432/mlflow", _PASSWORD),
    (
        "private key",
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{_PEM}\n-----END OPENSSH PRIVATE KEY-----",
        _PEM.split("\n")[1],
    ),
    ("Hugging Face token", f"HF_TOKEN={_HUGGING_FACE}", _HUGGING_FACE),
    ("Hugging Face token in a message", f"login failed for {_HUGGING_FACE}", _HUGGING_FACE),
    ("GitHub token", f"git clone https://x-access-token:{_GITHUB}@github.com/acme/train.git", _GITHUB),
    ("Weights & Biases key", f"WANDB_API_KEY={_WANDB}", _WANDB),
    ("NGC key", f"NGC_API_KEY={_NGC}", _NGC),
    ("Slack webhook", f"posting to https://hooks.slack.com/services/{_SLACK}", _SLACK),
    ("registry login", json.dumps({"auths": {"x.dkr.ecr.us-west-2.amazonaws.com": {"auth": _DOCKER}}}), _DOCKER),
    ("password for chpasswd", f"+ echo 'ubuntu:{_PASSWORD}' | chpasswd", _PASSWORD),
    ("munge key", f"+ echo {_DOCKER} | base64 -d > /etc/munge/munge.key", _DOCKER),
    (".netrc", f"machine github.com login bot password {_PASSWORD}", _PASSWORD),
    ("credentials as a table", f"CREDENTIALS\t{_TEMPORARY_ID}\t2026-11-21T11:00:00+00:00\t{_KEY}\t{_SESSION}", _KEY),
    ("basic authorization", f"Authorization: Basic {_DOCKER}", _DOCKER),
)
"""What it is, a line with it, and what of the line may be in no bundle."""

HARMLESS = (
    "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghij12",
    "i-0b66516c4a8bfcea4",
    "sha256:7031c1b283388d2c2e09b57badb803c05ebed362dc88d84b480cc47f72a21097",
    "Request ID: 6b8cf3d3-1afc-40de-91d7-4ac4c55bfc32",
    "NVRM: Xid (PCI:0000:b9:00): 74, pid=4113, name=python3",
    "botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the GetSecretValue operation",
    "Password authentication is disabled",
    "tokens/s/gpu 3811",
    "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com@tcp:/jxlwlxxv",
)
"""What doctor needs to read, and what is no secret."""
