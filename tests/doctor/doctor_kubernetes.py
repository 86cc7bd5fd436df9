"""What Kubernetes says of a cluster that is healthy: nodes, pods, their events and logs, and the workloads of Kueue."""

from datetime import timedelta

from doctor_cluster import Node, SimulatedCluster, Tree

_DAEMONS = {
    "aws-node": "amazon-k8s-cni:v1.21.1",
    "kube-proxy": "eks/kube-proxy:v1.34.1",
    "eks-pod-identity-agent": "eks/eks-pod-identity-agent:v0.1.33",
    "health-monitoring-agent": "hyperpod-health-monitoring-agent:1.0.1012",
}
_DEPLOYMENTS = (
    ("kube-system", "coredns", 2),
    ("kueue-system", "kueue-controller-manager", 1),
    ("cert-manager", "cert-manager-webhook", 1),
    ("aws-hyperpod", "hp-training-operator-hp-training-controller-manager", 1),
)
_GATED = "Scheduling is blocked due to non-empty scheduling gates"


class SimulatedEksCluster(SimulatedCluster):
    """A cluster that is healthy, with its Kubernetes side where EKS runs it."""

    def __init__(self, seed: str, orchestrator: str = "eks", size: int = 4, scripts: str = "") -> None:
        super().__init__(seed, orchestrator, size, scripts)
        if orchestrator == "eks":
            self._kubernetes()

    def _kubernetes(self) -> None:
        self.files["kubernetes/nodes.json"] = {
            "kind": "NodeList",
            "items": [self._kube_node(node) for node in self.nodes],
        }
        for source, kind in (("pods", "PodList"), ("events", "EventList"), ("workloads", "WorkloadList")):
            self.files[f"kubernetes/{source}.json"] = {"kind": kind, "items": []}
        for node in self.nodes:
            for name, image in _DAEMONS.items():
                self.pod({"namespace": "kube-system", "name": f"{name}-{self.letters(5)}", "image": image}, node)
        for namespace, name, count in _DEPLOYMENTS:
            for _ in range(count):
                node = self.random.choice(self.members("system"))
                pod = {"namespace": namespace, "name": f"{name}-{self.hex(9)}-{self.letters(5)}", "image": name}
                self.pod(pod, node)
        job = f"{self.random.choice(('pretrain', 'sft', 'llama'))}-{self.letters(4)}"
        for number, node in enumerate(self.members(self.group)[:2]):
            pod = {"namespace": "hyperpod-ns-research", "name": f"{job}-pod-{number}", "image": "llm-train:2.9.1"}
            self.pod({**pod, "gpu": 8, "log": "\n".join(self.some("job_log", 6, 12))}, node)
        self.workload({"namespace": "hyperpod-ns-research", "name": f"pytorchjob-{job}-{self.hex(5)}"})
        for item in self.some("kube_events", 3, 8):
            self.kube_event(item, self.random.choice(self.nodes), self.random.randrange(3, 58))

    def _kube_node(self, node: Node) -> Tree:
        accelerated = node.group == self.group
        labels = {
            "kubernetes.io/hostname": node.name,
            "node.kubernetes.io/instance-type": node.type,
            "sagemaker.amazonaws.com/compute-type": "hyperpod",
            "sagemaker.amazonaws.com/instance-group-name": node.group,
            "sagemaker.amazonaws.com/node-health-status": "Schedulable",
            "topology.k8s.aws/zone-id": self.zone,
        }
        capacity = {"cpu": "192" if accelerated else "16", "pods": "100"}
        if accelerated:
            capacity |= {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
        }
        pressure = {"type": "DiskPressure", "status": "False", "reason": "KubeletHasNoDiskPressure"}
        return {
            "metadata": {"name": node.name, "labels": labels, "creationTimestamp": node.launched},
            "spec": {"taints": []},
            "status": {
                "capacity": capacity,
                "allocatable": dict(capacity),
                "conditions": [pressure, {**ready, "lastTransitionTime": node.launched}],
                "nodeInfo": {"kubeletVersion": "v1.34.1-eks-113cf36", "containerRuntimeVersion": "containerd://2.1.4"},
            },
        }

    def pod(self, item: Tree, node: Node | None) -> Tree:
        """Add a pod; one of a case says what is wrong with it."""
        since = self.ago(item.get("minutes", self.random.randrange(900, 3_000)))
        phase = item.get("phase", "Running")
        name = self.fill(item["name"], node)
        state: Tree = {"running": {"startedAt": since}}
        if "waiting" in item:
            state = {
                "waiting": {"reason": item["waiting"], "message": self.fill(item.get("waiting_message", ""), node)}
            }
        elif "terminated" in item:
            ended = self.ago(item.get("ended", 12))
            state = {"terminated": {"finishedAt": ended, **item["terminated"]}}
        status: Tree = {
            "name": "main",
            "image": self.fill(item.get("image", "app")),
            "ready": "running" in state,
            "state": state,
        }
        status["restartCount"] = item.get("restarts", 0)
        if "last" in item:
            status["lastState"] = {"terminated": {"finishedAt": self.ago(item.get("ended", 4)), **item["last"]}}
        conditions = [{"type": "PodScheduled", "status": "True" if node else "False"}]
        conditions.append({"type": "Ready", "status": str("running" in state and phase == "Running")})
        if "unschedulable" in item:
            conditions[0] |= {"reason": "Unschedulable", "message": self.fill(item["unschedulable"], node)}
        if "gated" in item:
            conditions[0] |= {"reason": "SchedulingGated", "message": _GATED}
        resources = {"limits": {"nvidia.com/gpu": str(item["gpu"])}} if "gpu" in item else {}
        container = {"name": "main", "image": self.fill(item.get("image", "app")), "resources": resources}
        pod: Tree = {
            "metadata": {"name": name, "namespace": item["namespace"], "creationTimestamp": since},
            "spec": {"containers": [container]} | ({"nodeName": node.name} if node else {}),
            "status": {"phase": phase, "conditions": conditions, "startTime": since},
        }
        if "gated" in item:
            pod["spec"]["schedulingGates"] = [{"name": item["gated"]}]
        if node:
            pod["status"]["containerStatuses"] = [status]
        if "reason" in item:
            pod["status"] |= {"reason": item["reason"], "message": self.fill(item.get("message", ""), node)}
        self.files["kubernetes/pods.json"]["items"].append(pod)
        for key, file in (("log", "main.log"), ("previous_log", "main.previous.log")):
            if key in item:
                log = self.logs.setdefault(f"kubernetes/logs/{item['namespace']}/{name}/{file}", [])
                self.write(log, item[key].splitlines(), self.ago(item.get("ended", 20)), node or self.nodes[0])
        for event in item.get("events", ()):
            self.kube_event({"kind": "Pod", "object": name, "namespace": item["namespace"], **event}, node, 6)
        return pod

    def kube_event(self, item: Tree, node: Node | None, minutes: float) -> None:
        """Add an event of Kubernetes."""
        last = self.ago(item.get("minutes", minutes))
        known = {"kind": item.get("kind", "Node"), "name": self.fill(item.get("object", "{node}"), node)}
        known["namespace"] = item.get("namespace", "default")
        event = {
            "metadata": {"name": f"{known['name']}.{self.hex(16)}", "namespace": known["namespace"]},
            "involvedObject": known,
            "type": item.get("type", "Warning"),
            "reason": item["reason"],
            "message": self.fill(item["message"], node),
            "count": item.get("count", 1),
            "firstTimestamp": last - timedelta(minutes=item.get("span", 0)),
            "lastTimestamp": last,
        }
        self.files["kubernetes/events.json"]["items"].append(event)

    def workload(self, item: Tree) -> None:
        """Add a workload of Kueue, admitted unless it says why not."""
        since = self.ago(item.get("minutes", 2_000))
        if "message" in item:
            state = {"type": item.get("type", "QuotaReserved"), "status": item.get("status", "False")}
            conditions = [state | {"reason": item.get("reason", "Pending"), "message": self.fill(item["message"])}]
        else:
            conditions = [{"type": kind, "status": "True", "reason": kind} for kind in ("QuotaReserved", "Admitted")]
        self.files["kubernetes/workloads.json"]["items"].append(
            {
                "metadata": {
                    "name": self.fill(item["name"]),
                    "namespace": item["namespace"],
                    "creationTimestamp": since,
                },
                "spec": {"queueName": item.get("queue", f"{item['namespace']}-localqueue"), "active": True},
                "status": {"conditions": [{**state, "lastTransitionTime": since} for state in conditions]},
            }
        )
