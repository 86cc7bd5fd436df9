"""Sentences as services, logs and Kubernetes write them, by cause: those that no bundle of the corpus has."""

from podwright.operations.doctor.evidence import Kind

NVML = "could not load NVML library: libnvidia-ml.so.1: cannot open shared object file: No such file or directory"
NOT_PAID = "training plan h200-q1 is Pending, the payment of the plan is not through"

EXAMPLES: tuple[tuple[str, Kind, str], ...] = (
    (
        "own-efa",
        "lifecycle",
        "podwright: error step=efa error='ml.p5.48xlarge has 32 EFA devices, the kernel shows 31'",
    ),
    (
        "own-image",
        "lifecycle",
        "podwright: error step=imex error='needs nvidia-imex, and the image has none; use an image'",
    ),
    (
        "own-network",
        "lifecycle",
        "podwright: error step=network error='no default route: not so after 120 s; see DHCP'",
    ),
    ("own-degraded", "state", "node i-0123 joined degraded by its set-up: clock: no answer from 169.254.169.123"),
    ("own-quarantine", "state", "node i-0123 is in quarantine since 2026-11-21T10:00:00+00:00: ECC errors (role/ada)"),
    ("spot-interrupted", "message", "Instance i-0123 was terminated because of a Spot interruption"),
    (
        "efa-across-zones",
        "state",
        "group h200 uses EFA and has subnets in the zones usw2-az1, usw2-az2; EFA's check failed",
    ),
    ("quota-below-target", "state", 'the quota "ml.p5.48xlarge for cluster usage" is 2, and the cluster asks for 4'),
    (
        "security-group-rules",
        "state",
        "security group sg-1 of group h200 does not allow all traffic from and to itself",
    ),
    (
        "efa-error-4126",
        "pod_log",
        "libfabric:efa:cq:efa_rdm_cq_handle_error(): err: 113, prov_errno: 4126 Unresponsive receiver",
    ),
    ("pod-identity", "kubernetes", "Unable to verify AWS SageMaker auth, please verify Pod Identity configuration"),
    ("pod-identity", "pod_log", "botocore.exceptions.NoCredentialsError: Unable to locate credentials"),
    ("plan-exhausted", "state", "training plan h200-q1 has 1 instances available and group h200 wants 3 more"),
    ("plan-not-active", "state", NOT_PAID),
    (
        "plan-refused",
        "stack",
        "The training plan arn:aws:sagemaker:…:training-plan/q1 has expired (Service: SageMaker)",
    ),
    (
        "budget-action",
        "stack",
        "not authorized to perform: sagemaker:UpdateCluster with an explicit deny, policy BudgetExceededDeny",
    ),
    ("plan-too-dear", "stack", "Message returned: offering tpo-1 costs 1,200,000.00 USD, above the limit of 900,000"),
    (
        "kueue-preempted",
        "kubernetes",
        "Preempted: Preempted to accommodate a workload (UID: 5f1c) due to prioritization in the ClusterQueue",
    ),
    ("quota-refused", "message", "compute quota CreateFailed: the total of all quotas exceeds the cluster's capacity"),
    (
        "namespace-quota",
        "kubernetes",
        'FailedCreate: pods "llama-0" is forbidden: exceeded quota: team, requested: limits.cpu=96',
    ),
    ("volume-claim", "kubernetes", "0/6 nodes are available: pod has unbound immediate PersistentVolumeClaims."),
    (
        "neuron-fault",
        "health",
        "NeuronHardwareFailure Node condition NeuronErrorTerminate is now: True, Neuron HBM uncorrectable error",
    ),
    (
        "addon-conflict",
        "message",
        "ConfigurationConflict: Conflicts found when trying to apply. Will not continue due to resolve conflicts mode",
    ),
    (
        "network-plugin",
        "kubernetes",
        "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady",
    ),
    ("device-plugin", "pod_log", NVML),
    ("no-room", "kubernetes", "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."),
    (
        "image-rate-limit",
        "kubernetes",
        "Failed to pull image: toomanyrequests: You have reached your unauthenticated pull rate limit",
    ),
    ("machine-image", "stack", "The image id '[ami-0123]' does not exist (Service: Ec2, Status Code: 400)"),
    ("image-pull", "kubernetes", "Failed: Error: ImagePullBackOff"),
    # What several causes could claim, and one has to win.
    (
        "image-not-found",
        "kubernetes",
        'failed to resolve reference "x.dkr.ecr.us-west-2.amazonaws.com/train:1": not found',
    ),
    (
        "ecr-denied",
        "kubernetes",
        "failed to pull image: unexpected status from HEAD request to https://x/v2/: 403 Forbidden",
    ),
    (
        "name-not-resolved",
        "kubernetes",
        "failed to pull image: dial tcp: lookup x.dkr.ecr.us-west-2.amazonaws.com: no such host",
    ),
    ("lustre-mount", "lifecycle", "mount.lustre: mount fs-1@tcp:/x at /fsx failed: Connection timed out"),
    (
        "file-system-bad",
        "stack",
        "The file system cannot be created because the provided security groups do not permit Lustre LNET traffic",
    ),
    (
        "webhook",
        "kubernetes",
        'failed calling webhook "mpod.kb.io": Post "https://kueue.svc:443/?timeout=10s": connect: connection refused',
    ),
    (
        "subnet-full",
        "kubernetes",
        'plugin type="aws-cni" failed (add): add cmd: failed to assign an IP address to container',
    ),
    (
        "organization-policy",
        "stack",
        "is not authorized to perform: ec2:CreateVpc with an explicit deny in a service control policy",
    ),
    (
        "key-unusable",
        "message",
        "User: arn:aws:sts::111122223333:assumed-role/x is not authorized to perform: kms:CreateGrant",
    ),
    (
        "role-not-assumable",
        "stack",
        "User is not authorized to perform: sts:AssumeRole on resource: arn:aws:iam::111122223333:role/x",
    ),
    (
        "service-quota",
        "stack",
        "The maximum number of addresses has been reached. (Service: Ec2, Error Code: AddressLimitExceeded)",
    ),
    (
        "deletion-blocked",
        "stack",
        "The subnet 'subnet-1' has dependencies and cannot be deleted. Error Code: DependencyViolation",
    ),
)
"""Cause, kind of signal, and what it says."""

NOISE: tuple[tuple[Kind, str], ...] = (
    ("lifecycle", "sudo: unable to resolve host ip-10-0-0-1: Name or service not known"),
    ("pod_log", "NCCL INFO NET/Plugin: Failed to find ncclCollNetPlugin_v8 symbol."),
    ("health", "XidUserAppError NVRM: Xid (PCI:0000:b9:00): 31, pid=1, name=python3"),
    ("health", "NoEccErrors volatile uncorrectable ECC errors: 0"),
    ("stack", "Resource creation cancelled"),
    ("message", "3 node(s) lost orchestration-ready status. Current: 5/8 orchestration-ready"),
    ("lifecycle", "The lifecycle scripts succeeded"),
    ("pod_log", "INFO iteration 41200 loss 2.0613 grad_norm 0.41 tokens/s/gpu 3811"),
)
"""What shows no cause."""
