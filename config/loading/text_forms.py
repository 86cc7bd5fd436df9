"""What texts of a form are called, with an example: a person reads these where a machine reads a regular expression."""

from typing import Final

_NAME = "letters, digits and hyphens between them, such as train-1"
_LOWER = "lower-case letters, digits and hyphens between them, such as llm-1"

TEXT_FORMS: Final = {
    r"^[a-z]([a-z0-9-]*[a-z0-9])?$": "lower-case letters, digits and hyphens, a letter first, such as prod-2",
    r"^[a-z]([-a-z0-9]*[a-z0-9])?$": "lower-case letters, digits and hyphens, a letter first, such as pretrain-2",
    r"^[a-z0-9](-*[a-z0-9])*$": _LOWER,
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$": _LOWER,
    r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$": "lower-case letters, digits, dots and hyphens, such as hf-token",
    r"^[a-z][a-z0-9-]{0,30}$": "lower-case letters, digits and hyphens, a letter first, 31 at most, such as scratch",
    r"^[a-z_][a-z0-9_-]*$": "a name of Linux: lower-case letters, digits, _ and -, such as jdoe",
    r"^[a-zA-Z0-9](-*[a-zA-Z0-9])*$": _NAME,
    r"^[0-9A-Za-z][A-Za-z0-9_-]*$": "letters, digits, _ and -, such as my-cluster",
    r"^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?$": "letters, digits, _ and - between them, such as nightly-1",
    r"^[a-zA-Z0-9][a-zA-Z0-9_.-]*$": "letters, digits, _, dots and hyphens, such as h200",
    r"^[a-zA-Z0-9_-]{1,64}$": "letters, digits, _ and -, 64 at most, such as default",
    r"^[A-Za-z0-9_-]{1,8}$": "letters, digits, _ and -, eight at most, such as abcdefgh",
    r"^[A-Za-z0-9._-]+$": "letters, digits, dots, _ and -, such as train",
    r"^[-._a-zA-Z0-9]+$": "letters, digits, dots, _ and -, such as config.json",
    r"^[A-Za-z0-9_.-]+$": "letters, digits, dots, _ and -, such as admin",
    r"^[a-zA-Z0-9$_]+$": "letters, digits, $ and _, such as slurm_acct_db",
    r"^[a-zA-Z_][a-zA-Z0-9_]*$": "letters, digits and _, such as instance_group",
    r"^[A-Z][A-Z0-9_]*$": "the name of a variable: capital letters, digits and _, such as NCCL_DEBUG",
    r"^[A-Z][A-Z_]+$": "a capability of Linux, such as IPC_LOCK",
    r"^[A-Z][A-Za-z0-9]*$": "the name of an alert, such as NodeUnhealthy",
    r"^[A-Z]{3}[0-9]{3}$": "the id of a finding, such as NET003",
    r"^[0-9]{12}$": 'twelve digits in quotes, such as "111122223333"',
    r"^[a-z]{2}(-[a-z]+){1,2}-[0-9]$": "a region, such as us-west-2",
    r"^[a-z]{3,5}[0-9](-[a-z]{3}[0-9])?-az[0-9]{1,2}$": "the id of a zone, such as usw2-az2",
    r"^([0-9]{1,3}\.){3}[0-9]{1,3}/[0-9]{1,2}$": "an IPv4 range, such as 10.16.0.0/16",
    r"^[\w\s.:/=+\-@]*$": "letters, digits, spaces and . : / = + - @ _, such as llm training",
    r"^[\w\s.:/=+\-@]+$": "letters, digits, spaces and . : / = + - @ _, such as cost-center",
    r"^ml\.[a-z0-9-]+\.[a-z0-9]+$": "an instance type of SageMaker, such as ml.p5.48xlarge",
    r"^ml\.u-[a-z0-9-]+$": "a type of UltraServer, such as ml.u-p6e-gb200x72",
    r"^([a-zA-Z0-9](-*[a-zA-Z0-9])*|ml\.[a-z0-9-]+\.[a-z0-9]+)$": "an instance group or a type, such as h200",
    r"^(ml\.[a-z0-9-]+\.[a-z0-9]+|[a-z0-9_]+)$": "an instance type or the key of a price, such as ml.p5.48xlarge",
    r"^mig-[1-7]g\.[1-9][0-9]{0,2}gb$": "a profile of MIG, such as mig-1g.18gb",
    r"^[0-9a-f]{32}$": "the digest that `podwright diff` prints, such as 0123456789abcdef0123456789abcdef",
    r"^8\.[0-9]+\.mysql_aurora\.[0-9]+\.[0-9]+\.[0-9]+$": "a version of Aurora MySQL, such as 8.0.mysql_aurora.3.10.0",
    r"^1\.[0-9]{2}$": "a minor version of Kubernetes, such as 1.34",
    r"^v[0-9]+\.[0-9]+\.[0-9]+-eksbuild\.[0-9]+$": "a version of an add-on, such as v1.20.1-eksbuild.1",
    r"^[0-9]+\.[0-9]+$": "a version of two numbers, such as 10.4",
    r"^[0-9]+\.[0-9]+\.[0-9]+$": "a version of three numbers, such as 1.2.3",
    r"^\d{1,4}\.\d{1,4}\.\d{1,4}$": "a version of three numbers, such as 1.2.3",
    r"^[0-9]+(\.[0-9]+){1,3}$": "a version of two to four numbers, such as 1.43.2",
    r"^[0-9]+\.[0-9]+\.[0-9]+[-.+~_A-Za-z0-9]*$": "a version of a kernel, such as 6.8.0-1021-aws",
    r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$": (
        "the ARN of a role, such as arn:aws:iam::111122223333:role/MlPlatform"
    ),
    r"^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[A-Za-z0-9+=,.@_/-]+$": (
        "the ARN of a policy, such as arn:aws:iam::111122223333:policy/Boundary"
    ),
    r"^arn:aws[a-z-]*:iam::[0-9]{12}:oidc-provider/oidc\.eks\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/id/[A-Za-z0-9]+$": (
        "the ARN of an OIDC provider, such as "
        "arn:aws:iam::111122223333:oidc-provider/oidc.eks.us-west-2.amazonaws.com/id/EXAMPLE"
    ),
    r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/"
    r"([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})$": (
        "the ARN of a KMS key, not of an alias, such as "
        "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
    ),
    r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:.+$": (
        "the ARN of a secret, such as arn:aws:secretsmanager:us-west-2:111122223333:secret:slurm-AbCdEf"
    ),
    r"^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:training-plan/.+$": (
        "the ARN of a training plan, such as arn:aws:sagemaker:us-west-2:111122223333:training-plan/prod-q1"
    ),
    r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+$": (
        "the ARN of an SNS topic, such as arn:aws:sns:us-west-2:111122223333:slurm"
    ),
    r"^arn:aws[a-z-]*:acm:[a-z0-9-]+:[0-9]{12}:certificate/[a-fA-F0-9-]+$": (
        "the ARN of a certificate, such as "
        "arn:aws:acm:us-west-2:111122223333:certificate/01234567-89ab-cdef-0123-456789abcdef"
    ),
    r"^arn:aws[a-z-]*:sso:::instance/(ssoins|sso-ins)-[0-9a-z]{16}$": (
        "the ARN of an instance of IAM Identity Center, such as arn:aws:sso:::instance/ssoins-0123456789abcdef"
    ),
    r"^([0-9a-f]{10}-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$": (
        "the id of a group or user of IAM Identity Center, such as 01234567-89ab-cdef-0123-456789abcdef"
    ),
    r"^([0-9a-f]{10}-)?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$": (
        "the id of a group or user of IAM Identity Center, such as 01234567-89ab-cdef-0123-456789abcdef"
    ),
    r"^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$": "a UUID, such as 01234567-89ab-cdef-0123-456789abcdef",
    r"^sg-[0-9a-f]{8,17}$": "the id of a security group, such as sg-0123456789abcdef0",
    r"^fs-[0-9a-f]{8,17}$": "the id of a file system, such as fs-0123456789abcdef0",
    r"^subnet-[0-9a-f]{8,17}$": "the id of a subnet, such as subnet-0123456789abcdef0",
    r"^vpc-[0-9a-f]{8,17}$": "the id of a VPC, such as vpc-0123456789abcdef0",
    r"^vpce-[0-9a-f]{8,17}$": "the id of an endpoint of a VPC, such as vpce-0123456789abcdef0",
    r"^rtb-[0-9a-f]{8,17}$": "the id of a route table, such as rtb-0123456789abcdef0",
    r"^ami-[0-9a-f]{8,17}$": "the id of an image, such as ami-0123456789abcdef0",
    r"^g-[0-9a-f]{10}$": "the id of a Grafana workspace, such as g-0123456789",
    r"^ws-[a-f0-9-]{36}$": "the id of a Prometheus workspace, such as ws-01234567-89ab-cdef-0123-456789abcdef",
    r"^Z[A-Z0-9]+$": "the id of a hosted zone, such as Z0123456789ABCDEFGHIJ",
    r"^[0-9A-Z]{1,255}$": "the id of a Slack workspace, such as T07EA123LEP",
    r"^[A-Za-z0-9]+$": "the id of a Slack channel, such as C0123456789",
    r"^[^@\s,;<>]+@[^@\s,;<>]+\.[A-Za-z]{2,}$": "a mail address, such as ml-platform@example.com",
    r"^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$": (
        "the name of a host, such as db.example.com"
    ),
    r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$": (
        "the name of a domain, such as models.example.com"
    ),
    r"^https://[^\s]+$": "an address, such as https://example.com/metadata.xml",
    r"^https?://[^\s]+$": "an address, such as https://prometheus.example.com",
    r"^rediss?://[^\s]+$": "an address of Redis, such as redis://cache.example.com:6379",
    r"^https://[^\s?#]+\.(deb|rpm)$": "the address of a package, such as https://example.com/efa.deb",
    r"^[0-9]{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$": (
        "a registry of ECR, such as 111122223333.dkr.ecr.us-west-2.amazonaws.com"
    ),
    r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$": "the name of a bucket, such as my-checkpoints",
    r"^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$": "the name of a bucket without dots, such as my-models",
    r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?$": "a folder of a bucket, such as s3://my-data/train",
    r"^/[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$": "an absolute path without / at its end, such as /fsx/data",
    r"^/[A-Za-z0-9._/-]+$": "an absolute path, such as /fsx/checkpoints",
    r"^/([A-Za-z0-9._-]+/)*$": "a path with / at both ends, such as /ml/",
    r"^/[^\s]*$": "a path that begins with /, such as /health",
    r"^[^\s/][^\s]*$": "a path that does not begin with /, such as v1/chat/completions",
    r"^[^/\s][^\s]*$": "a path that does not begin with /, such as models/llama",
    r"^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$": "a folder in the claim, such as data/train",
    r"^[A-Za-z0-9_-]+(/[A-Za-z0-9_.-]+)+$": "the path of a recipe, such as training/llama/hf_llama3_8b",
    r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$": "a model of Hugging Face, such as meta-llama/Llama-3.1-8B",
    r"^[A-Za-z0-9%._/-]+$": "a file of sbatch's output, such as %x-%j.out",
    r"^[^\s]+$": "an image without spaces, such as 111122223333.dkr.ecr.us-west-2.amazonaws.com/train:1",
    r"^[0-9a-f]{40}$": "a commit of 40 digits, such as 0123456789abcdef0123456789abcdef01234567",
    r"^[A-Za-z0-9/_+=.@:-]+$": "the name or ARN of a secret, such as hf/token",
    r"^[a-zA-Z0-9:/_-]+$": "a KMS key, such as alias/models",
    r"^[+]{0,2}[A-Za-z0-9_.]+$": "a key of a recipe, such as trainer.max_epochs",
    r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$": "the value of a label, such as v1.2",
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$": (
        "the key of a label, such as example.com/pool"
    ),
    r"^[a-z0-9]([-a-zA-Z0-9./]*[a-z0-9])?$": "a key of a ResourceQuota, such as count/jobs.batch",
    r"^[a-z0-9]([a-z0-9./-]*[a-z0-9])?$": "the name of a resource, such as nvidia.com/gpu",
    r"^[0-9]+(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$": "a quantity of Kubernetes, such as 64Gi",
    r"^[1-9][0-9]*[KMG]?$": "a size in bytes, such as 8G",
    r"^[1-9][0-9]{0,3}%?$": "a number of nodes or a percentage, such as 20%",
    r"^[^\x00-\x1f\x7f]+$": "a text of one line, such as GPUs of the research teams",
    r"\S": "a name, such as nodes-unhealthy",
    r'^[^"\\$`\x00-\x1f]*$': 'a text without " \\ $ and `, such as eth0',
    r"^([01][0-9]|2[0-3]):[0-5][0-9]$": "a time of the day in UTC, such as 05:00",
    r"^[1-7]:([01][0-9]|2[0-3]):[0-5][0-9]$": "a day of the week, 1 is Monday, and a time in UTC, such as 7:04:00",
    r"^(Mon|Tue|Wed|Thu|Fri|Sat|Sun):([01][0-9]|2[0-3]):[0-5][0-9]$": "a day and a time in UTC, such as Sun:04:00",
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?(Z|[+-][0-9]{2}:[0-9]{2})?)?$": (
        "a date, with or without a time, such as 2027-01-04T06:00Z"
    ),
    r"^cron\([^()]+\)$": "a schedule of EventBridge, such as cron(0 4 ? * SUN *)",
    r"^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com) "
    r"[A-Za-z0-9+/]+={0,2}( [^\r\n]*)?$": "a public key of ssh-keygen, such as ssh-ed25519 AAAAC3NzaC1lZDI1 me",
}
"""By regular expression, as the settings have them. What follows `such as` is of the form."""

ZONE_NAME: Final = r"[a-z]{2}(-[a-z]+)+-[0-9][a-z]"
"""As EC2 names a zone, of which every account has names of its own."""
