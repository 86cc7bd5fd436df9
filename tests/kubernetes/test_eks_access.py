"""EKS's access entries and policies on a real API server, by the tokens that `aws eks get-token` makes."""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from boto3.session import Session
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from access_cluster import NAME, REGION, ROLE, ROOT, AccessCluster, root_session, session_of, token
from control_plane_parts import needs_parts
from podwright.config.catalog.sandbox_account import SANDBOX_ACCOUNT
from podwright.operations.programs.helm import tool
from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.pins import pins
from podwright.sandbox.eks.authentication import AccessWebhooks
from podwright.sandbox.eks.webhook_files import api_server_options, bearer_in
from podwright.sandbox.kubernetes.certificates import Authority
from podwright.sandbox.kubernetes.secure_server import secure_server
from waiting import becomes

CACHE = Cache.of_user()
pytestmark = needs_parts()

ADMIN, EDITOR, READER, VIEWER = (f"{ROLE}{name}" for name in ("Admin", "Editor", "Reader", "Viewer"))
POLICIES = {
    ADMIN: ("AmazonEKSClusterAdminPolicy",),
    EDITOR: ("AmazonEKSEditPolicy", "llm", "dev-*"),
    VIEWER: ("AmazonEKSViewPolicy",),
}
# An answer is trusted for five seconds; the rest is for a slow machine.
SECONDS = 20


@contextmanager
def webhooks(access: AccessCluster, folder: Path) -> Iterator[dict[str, str]]:
    """The webhooks on a server of their own; the options by which an API server asks them."""
    authority, bearer = Authority.open(folder), bearer_in(folder)
    server = secure_server(AccessWebhooks(lambda _: access.eks, bearer), authority.server("webhooks"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"https://127.0.0.1:{server.server_port}"
        yield api_server_options(folder, url, authority.file, bearer, f"{SANDBOX_ACCOUNT}/{REGION}/{NAME}")
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def access() -> AccessCluster:
    cluster = AccessCluster()
    for principal, policy in POLICIES.items():
        cluster.add_entry(principal)
        cluster.associate(principal, *policy)
    cluster.add_entry(READER, kubernetesGroups=["readers"])
    return cluster


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("access")


@pytest.fixture(scope="module")
def plane(access: AccessCluster, folder: Path) -> Iterator[ControlPlane]:
    """A control plane whose API server asks the webhooks and writes down who did what."""
    rules = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
    (folder / "audit.json").write_text(json.dumps(rules))
    audit = {"audit-policy-file": str(folder / "audit.json"), "audit-log-path": str(folder / "audit.log")}
    control_plane = ControlPlane(folder / "plane", pins(), CACHE)
    with webhooks(access, folder) as options:
        control_plane.start(options=options | audit)
        try:
            core: Any = client.CoreV1Api(config.new_client_from_config(str(control_plane.kubeconfig)))
            for name in ("llm", "dev-a", "other"):
                core.create_namespace({"metadata": {"name": name}})
            yield control_plane
        finally:
            control_plane.stop()


@pytest.fixture(scope="module")
def kubeconfig(plane: ControlPlane, folder: Path) -> Callable[[Session], Path]:
    """The kubeconfig of a caller, with a token in it instead of the command that makes one."""

    def write(session: Session) -> Path:
        content = json.loads(plane.kubeconfig.read_text())
        content["users"][0]["user"] = {"token": token(session)}
        file = folder / "caller.kubeconfig"
        file.write_text(json.dumps(content))
        return file

    return write


@pytest.fixture(scope="module")
def kubectl(kubeconfig: Callable[[Session], Path]) -> Callable[..., str]:
    """Runs kubectl as somebody; gives its output, or its complaint."""

    def run(session: Session, *arguments: str) -> str:
        command = [str(tool("kubectl")), "--kubeconfig", str(kubeconfig(session)), *arguments]
        result = subprocess.run(command, capture_output=True, text=True)
        return result.stdout or result.stderr

    return run


@pytest.fixture(scope="module")
def core(kubeconfig: Callable[[Session], Path]) -> Callable[[Session], Any]:
    return lambda session: client.CoreV1Api(config.new_client_from_config(str(kubeconfig(session))))


def code(call: Callable[..., Any], *arguments: Any) -> int:
    """The HTTP status of a call."""
    try:
        call(*arguments)
    except ApiException as error:
        return error.status or 0
    return 200


def pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "example.com/train"}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "automountServiceAccountToken": False}}


def make_service_account(core: Any, namespace: str) -> None:
    """A pod needs its namespace's default account, which a controller makes."""
    becomes(200, lambda: code(core.read_namespaced_service_account, "default", namespace))


def test_an_admin_may_do_everything(core: Callable[[Session], Any], kubectl: Callable[..., str]) -> None:
    admin = core(session_of(ADMIN))
    assert code(admin.create_namespace, {"metadata": {"name": "of-admin"}}) == 200
    assert code(admin.list_node) == 200
    assert code(admin.list_secret_for_all_namespaces) == 200
    assert code(client.RbacAuthorizationV1Api(admin.api_client).list_cluster_role) == 200
    assert "apiserver_request_total" in kubectl(session_of(ADMIN), "get", "--raw", "/metrics")


def test_an_admin_may_give_rights_that_rbac_does_not_give_it(core: Callable[[Session], Any]) -> None:
    rbac: Any = client.RbacAuthorizationV1Api(core(session_of(ADMIN)).api_client)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "readers"}
    binding = {"metadata": {"name": "readers"}, "roleRef": role, "subjects": [subject]}
    assert code(rbac.create_namespaced_role_binding, "llm", binding) == 200
    reader = core(session_of(READER))
    # A controller gathers the rules of `view` after the start.
    becomes(200, lambda: code(reader.list_namespaced_pod, "llm"))
    assert code(reader.list_namespaced_pod, "other") == 403


def test_a_viewer_lists_pods_and_changes_nothing(core: Callable[[Session], Any]) -> None:
    viewer = core(session_of(VIEWER))
    make_service_account(viewer, "llm")
    assert code(viewer.list_pod_for_all_namespaces) == 200
    assert code(viewer.create_namespaced_pod, "llm", pod("viewers")) == 403
    assert code(viewer.list_namespaced_secret, "llm") == 403
    assert code(viewer.list_node) == 403


def test_an_editor_works_in_its_namespaces_alone(core: Callable[[Session], Any]) -> None:
    editor, root = core(session_of(EDITOR)), core(root_session())
    for name in ("llm", "dev-a", "other"):
        make_service_account(root, name)
    assert code(editor.create_namespaced_pod, "llm", pod("one")) == 200
    assert code(editor.create_namespaced_pod, "dev-a", pod("one")) == 200
    assert code(editor.create_namespaced_pod, "other", pod("one")) == 403
    assert code(editor.list_pod_for_all_namespaces) == 403
    root.create_namespace({"metadata": {"name": "dev-new"}})
    assert code(editor.list_namespaced_pod, "dev-new") == 200, "a new namespace that a pattern matches"


def test_whoever_has_no_entry_is_unauthorized(core: Callable[[Session], Any], kubectl: Callable[..., str]) -> None:
    stranger = session_of(f"{ROLE}Stranger")
    assert code(core(stranger).list_namespaced_pod, "llm") == 401
    assert "must be logged in" in kubectl(stranger, "get", "pods", "-n", "llm")


def test_changes_take_effect_within_seconds(access: AccessCluster, core: Callable[[Session], Any]) -> None:
    role = f"{ROLE}Changing"
    caller = core(session_of(role))
    assert code(caller.list_namespaced_pod, "llm") == 401
    access.add_entry(role)
    becomes(403, lambda: code(caller.list_namespaced_pod, "llm"))
    access.associate(role, "AmazonEKSViewPolicy")
    becomes(200, lambda: code(caller.list_namespaced_pod, "llm"))
    access.cluster.policies[role].clear()
    becomes(403, lambda: code(caller.list_namespaced_pod, "llm"))
    del access.cluster.entries[role]
    becomes(401, lambda: code(caller.list_namespaced_pod, "llm"))


def test_a_policy_without_known_rules_says_so_to_the_caller(access: AccessCluster, kubectl: Callable[..., str]) -> None:
    role = f"{ROLE}Studio"
    access.add_entry(role)
    access.associate(role, "AmazonSagemakerHyperpodTrainingPolicy")
    complaint = kubectl(session_of(role), "get", "pods", "-n", "llm")
    assert "the sandbox does not know what AmazonSagemakerHyperpodTrainingPolicy allows" in complaint


def test_kubectl_says_who_one_is(kubectl: Callable[..., str]) -> None:
    session = session_of(VIEWER, "ana@example.com")
    status = json.loads(kubectl(session, "auth", "whoami", "-o", "json"))["status"]["userInfo"]
    assert status["username"] == f"arn:aws:sts::{SANDBOX_ACCOUNT}:assumed-role/Viewer/ana-example.com"
    assert status["groups"] == ["system:authenticated"]
    assert status["extra"]["canonicalArn"] == [VIEWER]
    assert status["extra"]["sessionName"] == ["ana@example.com"]
    root = json.loads(kubectl(root_session(), "auth", "whoami", "-o", "json"))["status"]["userInfo"]
    assert (root["username"], root["groups"]) == (ROOT, ["system:masters", "system:authenticated"])


def test_kubectl_asks_for_rights_as_on_eks(kubectl: Callable[..., str]) -> None:
    """What a policy allows is allowed, and is not in the list, which is RBAC's."""
    editor = session_of(EDITOR)
    assert kubectl(editor, "auth", "can-i", "create", "pods", "-n", "llm") == "yes\n"
    assert kubectl(editor, "auth", "can-i", "create", "pods", "-n", "other") == "no\n"
    assert "pods" not in kubectl(editor, "auth", "can-i", "--list", "-n", "llm")


def test_whoever_is_impersonated_has_no_policies(core: Callable[[Session], Any]) -> None:
    """Not even by the extra that its policies go by."""
    itself = f"arn:aws:sts::{SANDBOX_ACCOUNT}:assumed-role/Editor/ana"
    assert code(core(session_of(EDITOR)).list_namespaced_pod, "llm") == 200
    impersonating = core(session_of(ADMIN))
    impersonating.api_client.set_default_header("Impersonate-User", itself)
    assert code(impersonating.list_namespaced_pod, "llm") == 403
    impersonating.api_client.set_default_header("Impersonate-Extra-canonicalArn", EDITOR)
    assert code(impersonating.list_namespaced_pod, "llm") == 403
    review = {"spec": {}, "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    actual: Any = client.AuthenticationV1Api(impersonating.api_client).create_self_subject_review(review)
    assert actual.status.user_info.extra == {"canonicalarn": [EDITOR]}


def test_the_audit_log_names_users_as_eks_does(core: Callable[[Session], Any], folder: Path) -> None:
    core(session_of(ADMIN, "audited")).create_namespaced_config_map("llm", {"metadata": {"name": "audited"}})
    lines = [json.loads(line) for line in (folder / "audit.log").read_text().splitlines()]
    (event,) = [line for line in lines if line["stage"] == "ResponseComplete" and "audited" in line["user"]["username"]]
    assert event["user"]["username"] == f"arn:aws:sts::{SANDBOX_ACCOUNT}:assumed-role/Admin/audited"
    assert event["user"]["uid"].startswith(f"aws-iam-authenticator:{SANDBOX_ACCOUNT}:AROA")
    reason = event["annotations"]["authorization.k8s.io/reason"]
    assert reason == f"EKS Access Policy: allowed by AmazonEKSClusterAdminPolicy of {ADMIN}"


def test_tokens_of_service_accounts_are_kubernetes_own(kubectl: Callable[..., str]) -> None:
    issued = kubectl(root_session(), "create", "token", "default", "-n", "llm").strip()
    answer = kubectl(root_session(), "--token", issued, "auth", "whoami", "-o", "json")
    assert json.loads(answer)["status"]["userInfo"]["username"] == "system:serviceaccount:llm:default"
