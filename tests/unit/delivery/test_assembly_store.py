"""The store of cloud assemblies: keys, reuse, the size limit, processes side by side and processes that are killed."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.config.errors import CommandError
from podwright.config.loading.project import Project
from podwright.operations import cli
from podwright.operations.aws.account import Account
from podwright.operations.cdk import inputs as inputs_module
from podwright.operations.cdk import store as store_module
from podwright.operations.cdk import synthesis
from podwright.operations.cdk.cli import Cdk
from podwright.operations.cdk.inputs import SynthesisInputs, digest
from podwright.operations.cdk.progress import Progress
from podwright.operations.cdk.store import FOLDER, VALIDATION_REPORT, AssemblyStore
from podwright.operations.cdk.synthesis import assembly_of

FILE = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
"""
CONTEXT = {"environment": "dev"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose environment `dev` extends `base`."""
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/base.yaml").write_text(FILE)
    (tmp_path / "environments/dev.yaml").write_text("extends: base.yaml\ntags: {owner: research}\n")
    return tmp_path


def inputs_of(project: Path, **context: str) -> SynthesisInputs:
    """The inputs of `dev` as its file is now."""
    return SynthesisInputs.of(project, Project.at(project).load("dev"), CONTEXT | context)


def key(project: Path, **context: str) -> str:
    return digest(inputs_of(project, **context).digests())


class App:
    """Writes a small assembly in place of the app, and counts."""

    def __init__(self, text: str = "{}", size: int = 0) -> None:
        self.text, self.size, self.runs = text, size, 0

    def __call__(self, folder: Path) -> None:
        self.runs += 1
        folder.mkdir()
        (folder / "manifest.json").write_text(self.text)
        (folder / "asset.zip").write_bytes(b"x" * self.size)


def entries(project: Path) -> set[str]:
    """Names of what the store holds."""
    return {path.name for path in (project / FOLDER).iterdir()}


# --- the key ---------------------------------------------------------------------------------------------------------


def write(name: str, text: str) -> Callable[[Path, pytest.MonkeyPatch], None]:
    def change(project: Path, _: pytest.MonkeyPatch) -> None:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)

    return change


def another_package(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "site/aws_cdk_lib-9.9.9.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [*sys.path, str(project / "site")])


def another_node(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("node", "#!/bin/sh")(project, monkeypatch)
    monkeypatch.setenv("JSII_NODE", str(project / "node"))


def another_podwright(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the package changes, which an upgrade, an edit or a checkout of another commit does."""
    for name in ("cdk.json", "stacks/stage.py", "lifecycle_scripts/on_create.sh"):
        write(f"package/{name}", "two")(project, monkeypatch)
    monkeypatch.setattr(inputs_module, "_PACKAGE", project / "package")


CHANGES = {
    "the environment's file": write("environments/dev.yaml", "extends: base.yaml\ntags: {owner: product}\n"),
    "a file that it extends": write("environments/base.yaml", FILE + "protection: destroy\n"),
    "podwright.yaml": write("podwright.yaml", "environments: [dev]\n"),
    "artifacts.lock": write("artifacts.lock", "{}"),
    "answers of the account": write("podwright.context.json", "{}"),
    "feature flags": write("cdk.json", json.dumps({"context": {"@aws-cdk/core:checkSecretUsage": False}})),
    "settings of the CDK CLI": write("cdk.json", json.dumps({"versionReporting": True})),
    "context of the CDK": write("cdk.context.json", json.dumps({"key": "value"})),
    "a fetched archive": write(".podwright/artifacts/chart.zip", "archive"),
    "the version of a package": another_package,
    "Node": another_node,
    "podwright's own files": another_podwright,
    "a variable of cdk8s": lambda _, monkeypatch: monkeypatch.setenv("CDK8S_LEGACY_HASH", "1"),
    "Python": lambda _, monkeypatch: monkeypatch.setattr(sys, "version", "3.99.0"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_input_changes_the_key(
    change: Callable[[Path, pytest.MonkeyPatch], None], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = key(project)
    assert key(project) == before
    change(project, monkeypatch)
    assert key(project) != before


@pytest.mark.parametrize("context", [{"at": "2027-01-04T08:00:00+00:00"}, {"counts": "h200=3"}, {"chart": "stand-in"}])
def test_what_the_app_is_told_changes_the_key(context: dict[str, str], project: Path) -> None:
    assert key(project, **context) != key(project)


def test_a_file_of_equal_size_and_time_changes_the_key(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that keeps the time of modification, as `cp -p` and archives make, has a new time of change."""
    write(".podwright/artifacts/chart.zip", "one")(project, monkeypatch)
    file = project / ".podwright/artifacts/chart.zip"
    before, status = key(project), file.stat()
    file.write_text("two")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert key(project) != before


def test_an_archive_below_a_linked_folder_changes_the_key(project: Path) -> None:
    """A link may also point upward, which would never end."""
    shared, artifacts = project / "shared", project / ".podwright/artifacts"
    shared.mkdir()
    artifacts.mkdir(parents=True)
    (artifacts / "charts").symlink_to(shared)
    (shared / "above").symlink_to(shared)
    before = key(project)
    (shared / "chart.zip").write_text("archive")
    assert key(project) != before


def test_a_link_to_nothing_is_an_input_like_any_other(project: Path) -> None:
    """Emacs makes one next to a file that is being edited."""
    artifacts = project / ".podwright/artifacts"
    artifacts.mkdir(parents=True)
    before = key(project)
    (artifacts / ".#chart.zip").symlink_to("user@host.1234")
    assert key(project) != before
    assert key(project) == key(project)


def test_files_that_no_synthesis_reads_keep_the_key(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(project)
    for name in ("environments/other.yaml", ".podwright/logs/dev.log", "README.md"):
        write(name, FILE)(project, monkeypatch)
    for name in ("CDK_VALIDATION", "CDK_OUTDIR", "CDK_CONTEXT_JSON", "PWD"):
        monkeypatch.setenv(name, "other")
    assert key(project) == before


# --- reuse -----------------------------------------------------------------------------------------------------------


def test_equal_inputs_are_synthesized_once(project: Path) -> None:
    store, app = AssemblyStore(project), App()
    for reused in (False, True):
        with store.open(inputs_of(project), app) as stored:
            assert stored.reused == reused
            assert (stored.folder / "manifest.json").read_text() == "{}"
    assert app.runs == 1
    write("environments/dev.yaml", FILE)(project, pytest.MonkeyPatch())
    with store.open(inputs_of(project), app) as stored:
        assert not stored.reused
    assert app.runs == len(entries(project)) == 2


def test_a_validated_assembly_serves_both_and_another_is_validated_once(project: Path) -> None:
    store, app = AssemblyStore(project), App()
    for validated, runs in ((False, 1), (True, 2), (True, 2), (False, 2)):
        with store.open(inputs_of(project), app, validated=validated):
            assert app.runs == runs
    assert len(entries(project)) == 1


def test_the_validators_report_is_no_part_of_an_assembly(project: Path) -> None:
    def app(folder: Path) -> None:
        App()(folder)
        (folder / VALIDATION_REPORT).write_text("{}")

    with AssemblyStore(project).open(inputs_of(project), app, validated=True) as stored:
        assert sorted(path.name for path in stored.folder.iterdir()) == ["asset.zip", "manifest.json"]


def test_a_synthesis_that_fails_leaves_nothing(project: Path) -> None:
    def failing(folder: Path) -> None:
        App()(folder)
        raise CommandError("the app failed")

    with pytest.raises(CommandError, match="the app failed"), AssemblyStore(project).open(inputs_of(project), failing):
        pass
    assert entries(project) == set()


def test_a_file_that_changes_meanwhile_is_named_and_nothing_is_stored(project: Path) -> None:
    """The app may have read either content, so the assembly belongs to neither key."""

    def app(folder: Path) -> None:
        App()(folder)
        (project / "environments/dev.yaml").write_text(FILE)

    message = r"environments/dev\.yaml changed while the environment was synthesized"
    with pytest.raises(CommandError, match=message), AssemblyStore(project).open(inputs_of(project), app):
        pass
    assert entries(project) == set()


def test_two_syntheses_of_one_key_have_to_be_equal(project: Path) -> None:
    store = AssemblyStore(project)
    with store.open(inputs_of(project), App()):
        pass
    message = r"two syntheses of the same inputs differ in manifest\.json"
    with pytest.raises(CommandError, match=message), store.open(inputs_of(project), App("[]"), validated=True):
        pass
    with store.open(inputs_of(project), App("[]")) as stored:
        assert stored.reused, "the first one stays"


def test_a_store_that_cannot_be_used_is_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(reason: str) -> None:
        app = App()
        with (
            pytest.raises(CommandError, match=rf"assemblies cannot be used: {reason}"),
            AssemblyStore(project).open(inputs_of(project), app),
        ):
            pass
        assert app.runs == 0

    (project / ".podwright").write_text("")
    refused("Not a directory")
    (project / ".podwright").unlink()

    def failing(number: int) -> Callable[..., None]:
        def fail(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        return fail

    with monkeypatch.context() as patched:
        patched.setattr(store_module, "_temporary", failing(errno.EACCES))
        refused("Permission denied")
    descriptors = len([*Path("/dev/fd").iterdir()])
    with monkeypatch.context() as patched:
        patched.setattr(store_module.fcntl, "flock", failing(errno.ENOSYS))
        refused("Function not implemented")
    assert len([*Path("/dev/fd").iterdir()]) == descriptors
    assert entries(project) == set()


@pytest.mark.parametrize("lose", [Path.unlink, lambda file: file.write_text("")], ids=["deleted", "empty"])
def test_an_entry_that_lost_files_is_named(lose: Callable[[Path], object], project: Path) -> None:
    store = AssemblyStore(project)
    with store.open(inputs_of(project), App()) as stored:
        lose(stored.folder / "manifest.json")
    message = rf"{stored.folder.parent.name} is incomplete"
    with pytest.raises(CommandError, match=message), store.open(inputs_of(project), App()):
        pass


def test_an_entry_of_another_user_is_reused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a project that several users share; its time of last use belongs to its owner."""
    store, before = AssemblyStore(project), os.umask(0o002)
    try:
        with store.open(inputs_of(project), App()) as stored:
            assert stored.folder.parent.stat().st_mode & 0o777 == 0o775, "the umask decides who may read it"
    finally:
        os.umask(before)

    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "utime", refused)
    with store.open(inputs_of(project), App()) as stored:
        assert stored.reused


def test_an_entry_that_may_not_be_deleted_is_left(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = AssemblyStore(project, limit_bytes=0)
    with store.open(inputs_of(project), App(size=10)) as first:
        pass
    rename = Path.rename

    def refused(path: Path, target: Path) -> Path:
        if path == first.folder.parent:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refused)
    with store.open(inputs_of(project, counts="h200=1"), App(size=10)) as stored:
        assert not stored.reused
    assert first.folder.exists()


@pytest.mark.parametrize("opened", [False, True], ids=["before it is opened", "before it is locked"])
def test_a_temporary_folder_that_another_process_deletes_is_made_again(
    opened: bool, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a lock it looks like that of a killed process."""
    lost, locked = list[Path](), store_module._locked

    def lose(folder: Path) -> None:
        if folder.name.startswith(".new-") and not lost:
            lost.append(folder)
            assert store_module._deleted(folder)

    def first_lose(entry: Path) -> int | None:
        lose(entry)
        return locked(entry)

    flock = fcntl.flock

    def flock_after_a_loss(lock: int, kind: int) -> None:
        if kind == fcntl.LOCK_SH:
            for folder in (project / FOLDER).glob(".new-*"):
                lose(folder)
        flock(lock, kind)

    if opened:
        monkeypatch.setattr(fcntl, "flock", flock_after_a_loss)
    else:
        monkeypatch.setattr(store_module, "_locked", first_lose)
    with AssemblyStore(project).open(inputs_of(project), App()) as stored:
        assert (stored.folder / "manifest.json").exists()
    assert len(lost) == len(entries(project)) == 1


# --- the size limit --------------------------------------------------------------------------------------------------


def test_the_entries_used_longest_ago_are_deleted_first(project: Path) -> None:
    store = AssemblyStore(project, limit_bytes=250_000)
    first, second, third = (inputs_of(project, counts=f"h200={count}") for count in (1, 2, 3))
    for age, inputs in ((300, first), (200, second)):
        with store.open(inputs, App(size=100_000)) as stored:
            pass
        os.utime(stored.folder.parent, (stored.folder.stat().st_mtime - age,) * 2)
    # The use of the older one makes it the younger.
    with store.open(first, App(size=100_000)) as stored:
        assert stored.reused
    with store.open(third, App(size=100_000)):
        pass
    assert entries(project) == {digest(inputs.digests()) for inputs in (first, third)}


def test_an_assembly_in_use_is_kept_whatever_the_limit(project: Path) -> None:
    store = AssemblyStore(project, limit_bytes=0)
    with store.open(inputs_of(project), App(size=100_000)) as used:
        with store.open(inputs_of(project, counts="h200=1"), App(size=100_000)):
            pass
        assert (used.folder / "asset.zip").exists()
    with store.open(inputs_of(project, counts="h200=2"), App(size=100_000)):
        pass
    assert not used.folder.exists()


# --- processes -------------------------------------------------------------------------------------------------------


def test_threads_that_begin_together_share_one_assembly(project: Path) -> None:
    """Each synthesizes, since none waits for another; the first to finish gives the assembly its name."""
    together, folders = threading.Barrier(4, timeout=300), list[Path]()

    def app(folder: Path) -> None:
        App()(folder)
        together.wait()

    def run() -> None:
        with AssemblyStore(project).open(inputs_of(project), app, validated=True) as stored:
            folders.append(stored.folder)
            assert (stored.folder / "manifest.json").read_text() == "{}"

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(folders) == 4
    assert len(entries(project)) == 1


def test_a_new_assembly_is_not_deleted_while_it_is_compared(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, compare = AssemblyStore(project), store_module._check_equal

    def shrunk_by_another_process(stored: Path, new: Path) -> None:
        store._shrink()
        compare(stored, new)

    with store.open(inputs_of(project), App()):
        pass
    monkeypatch.setattr(store_module, "_check_equal", shrunk_by_another_process)
    with store.open(inputs_of(project), App(), validated=True) as stored:
        assert not stored.reused


CHILD = """
import os, signal, sys
from pathlib import Path
from podwright.config.loading.project import Project
from podwright.operations.cdk import store
from podwright.operations.cdk.inputs import SynthesisInputs

project, point = Path(sys.argv[1]), sys.argv[2]

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def app(folder):
    folder.mkdir()
    (folder / "manifest.json").write_text("{}")
    if point == "synthesis":
        die()

if point == "rename":
    store._renamed = die
if point == "deletion":
    store.shutil.rmtree = die
inputs = SynthesisInputs.of(project, Project.at(project).load("dev"), {"environment": "dev"})
with store.AssemblyStore(project, limit_bytes=0).open(inputs, app):
    die()
"""


@pytest.mark.parametrize("point", ["synthesis", "rename", "deletion", "use"])
def test_a_process_that_is_killed_leaves_a_store_that_works(point: str, project: Path) -> None:
    """`deletion` is the first one: of the temporary folder, or of an entry over the limit."""
    with AssemblyStore(project).open(inputs_of(project, counts="h200=9"), App(size=10)):
        pass
    killed = subprocess.run([sys.executable, "-c", CHILD, str(project), point], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    app = App()
    with AssemblyStore(project).open(inputs_of(project), app) as stored:
        assert (stored.folder / "manifest.json").read_text() == "{}"
    with AssemblyStore(project).open(inputs_of(project, counts="h200=8"), app):
        pass
    assert not [name for name in entries(project) if name.startswith(".")], "the next synthesis clears up"


def test_a_child_that_inherits_the_lock_keeps_the_assembly(project: Path) -> None:
    """The CDK CLI keeps deploying when podwright is killed."""
    store = AssemblyStore(project, limit_bytes=0)
    with store.open(inputs_of(project), App(size=10)) as stored:
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(stored.lock,))
    with store.open(inputs_of(project, counts="h200=1"), App(size=10)):
        pass
    assert stored.folder.exists()
    child.communicate()
    with store.open(inputs_of(project, counts="h200=2"), App(size=10)):
        pass
    assert not stored.folder.exists()


# --- the app and its validator ---------------------------------------------------------------------------------------


def report_of(conclusion: str) -> dict[str, object]:
    """The validator's report on one bucket."""
    constructs = [{"constructPath": "dev/storage/Data", "constructFqn": "aws-cdk-lib.aws_s3.CfnBucket"}]
    violation = {"description": "no such property Colour", "severity": "error", "violatingConstructs": constructs}
    plugin = {"pluginName": "CloudFormation Validate", "conclusion": conclusion, "violations": [violation]}
    return {"pluginReports": [plugin]}


@pytest.fixture
def validator(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """An app whose validator reports what a test puts here; `runs` has the variables of each synthesis."""
    state: dict[str, object] = {"report": None, "runs": []}

    def synthesize(project: Path, context: object, folder: Path, *, variables: object, log: object) -> None:
        state["runs"] += [variables]  # pyrefly: ignore[unsupported-operation]
        App()(folder)
        if variables is None and state["report"]:
            (folder / VALIDATION_REPORT).write_text(json.dumps(state["report"]))

    monkeypatch.setattr(synthesis, "synthesize", synthesize)
    monkeypatch.delenv("CDK_VALIDATION")
    return state


def test_templates_are_validated_only_for_who_asks_and_once(project: Path, validator: dict[str, object]) -> None:
    for validated in (False, True, True, False):
        with assembly_of(inputs_of(project), Progress(), validated=validated):
            pass
    assert validator["runs"] == [{"CDK_VALIDATION": "false"}, None]


def test_refused_templates_are_not_stored(project: Path, validator: dict[str, object]) -> None:
    validator["report"] = report_of("failure")
    for _ in range(2):
        message = "the templates cannot be deployed:\n    dev/storage/Data: no such property Colour"
        with pytest.raises(CommandError, match=message), assembly_of(inputs_of(project), Progress(), validated=True):
            pass
    assert entries(project) == set()
    validator["report"] = report_of("success")
    with assembly_of(inputs_of(project), Progress(), validated=True) as stored:
        assert not stored.reused


def test_a_validator_that_could_not_run_refuses_the_templates(project: Path, validator: dict[str, object]) -> None:
    """aws-cdk-lib reports it as a failure without violations."""
    error = "Validation plugin 'CloudFormation Validate' failed: out of memory"
    failed = {"pluginName": "CloudFormation Validate", "conclusion": "failure", "violations": []}
    validator["report"] = {"pluginReports": [failed | {"metadata": {"error": error}}]}
    with (
        pytest.raises(CommandError, match="out of memory"),
        assembly_of(inputs_of(project), Progress(), validated=True),
    ):
        pass
    assert entries(project) == set()


def test_refusals_are_the_errors_of_a_failed_report(tmp_path: Path) -> None:
    constructs = [{"constructPath": "dev/storage/Data"}]
    violations = [
        {"description": "an old runtime", "severity": "warning", "violatingConstructs": constructs},
        {"description": "no such property Colour", "severity": "fatal", "violatingConstructs": constructs},
        {"description": "too many resources", "severity": "error", "violatingConstructs": []},
    ]
    report = {"pluginName": "Validator", "conclusion": "failure", "violations": violations}
    (tmp_path / VALIDATION_REPORT).write_text(json.dumps({"pluginReports": [report]}))
    assert synthesis.refusals(tmp_path) == [
        "dev/storage/Data: no such property Colour",
        "Validator: too many resources",
    ]


def test_check_full_says_what_the_validator_refuses(
    project: Path, validator: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["check", "--full", "dev", "--project", str(project)]
    validator["report"] = report_of("failure")
    assert cli.main(words) == 1
    assert "dev/storage/Data: no such property Colour" in capsys.readouterr().out
    assert cli.main([*words, "--json"]) == 1
    assert "no such property Colour" in json.loads(capsys.readouterr().out)["environments"][0]["refused"]
    validator["report"] = None
    assert cli.main(words) == 0
    assert "the templates pass the CDK's validator" in capsys.readouterr().out
    assert cli.main([*words[:1], *words[2:]]) == 0
    assert "validator" not in capsys.readouterr().out


def test_check_full_does_not_judge_an_app_of_the_users_own(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "cdk.json").write_text(json.dumps({"app": "python own.py"}))
    assert cli.main(["check", "--full", "dev", "--project", str(project)]) == 2
    assert "cdk.json has another app" in capsys.readouterr().err


def test_an_edit_after_the_plan_stops_the_deployment(project: Path, validator: dict[str, object]) -> None:
    """The validator would accept other templates than those that are deployed."""
    account = Account("111122223333", "us-west-2", None, {})
    cdk = Cdk(project, "dev", inputs_of(project), account, project / "dev.log")
    with cdk.synthesized(Progress()) as assembly:
        cdk.validate(assembly, Progress())
        write("environments/dev.yaml", FILE)(project, pytest.MonkeyPatch())
        with pytest.raises(CommandError, match=r"^nothing was deployed: the files of dev have changed"):
            cdk.validate(assembly, Progress())


def test_where_the_user_turned_the_validator_off_nothing_counts_as_validated(
    project: Path, validator: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDK_VALIDATION", "false")
    with assembly_of(inputs_of(project), Progress(), validated=True):
        pass
    monkeypatch.delenv("CDK_VALIDATION")
    with assembly_of(inputs_of(project), Progress(), validated=True) as stored:
        assert not stored.reused


def test_errors_that_constructs_attached_are_read_from_an_assembly(tmp_path: Path) -> None:
    entry = {"type": "aws:cdk:error", "data": "CHT001: no chart"}
    (tmp_path / "assembly-dev").mkdir()
    (tmp_path / "assembly-dev/eks.metadata.json").write_text(
        json.dumps({"/dev/eks": [entry, {"type": "aws:cdk:warning", "data": "b"}]})
    )
    assert synthesis.annotated_errors(tmp_path) == ["dev/eks: CHT001: no chart"]
