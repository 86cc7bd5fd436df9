import io

import pytest

from podwright.operations.cdk.progress import Progress

# As the CDK CLI 2.1146.1 prints them into a pipe.
LOG = """\
[WARNING] aws-cdk-lib.Stack#addDependency is deprecated.

✨  Synthesis time: 4.71s

prod-network: start: Building prod-network Template
prod/network (prod-network): deploying... [1/2]
prod-network: creating stack...
prod-network |  0/3 | 11:16:10 AM | CREATE_IN_PROGRESS      | AWS::CloudFormation::Stack | prod-network User Initiated
prod-network |  0/3 | 11:16:11 AM | CREATE_IN_PROGRESS      | AWS::EC2::VPC    | prod/network/Vpc (Vpc8378EB38)
prod-network |  1/3 | 11:16:12 AM | CREATE_COMPLETE         | AWS::EC2::VPC    | prod/network/Vpc (Vpc8378EB38)
prod-network |  2/3 | 11:16:12 AM | CREATE_COMPLETE         | Custom::A-B_c@d  | prod/network/Vpc (Custom8378EB38)
prod-network |  3/3 | 11:16:13 AM | CREATE_COMPLETE         | AWS::CloudFormation::Stack | prod-network

✅  prod/network (prod-network)

✨  Deployment time: 0.17s
prod/eks (prod-eks): deploying... [2/2]
"""
FAILED = """\
prod-eks |  0/9 | 11:20:01 AM | CREATE_IN_PROGRESS   | AWS::EKS::Cluster | prod/eks/Cluster (C9EE0)
prod-eks |  0/9 | 11:20:02 AM | CREATE_FAILED | AWS::IAM::Role | prod/eks/Role (RoleA) Resource creation cancelled
prod-eks |  0/9 | 11:20:02 AM | CREATE_FAILED | AWS::EKS::Cluster | prod/eks/Cluster (C9EE0) Unsupported version
1.19 is not supported
prod-eks |  0/9 | 11:20:03 AM | ROLLBACK_IN_PROGRESS | AWS::CloudFormation::Stack | prod-eks Failed: [C9EE0]

Failed resources:
prod-eks | 11:20:02 AM | CREATE_FAILED | AWS::EKS::Cluster | prod/eks/Cluster (C9EE0) Unsupported version
❌ prod-eks failed to deploy
ToolkitError: Resource updates failed
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def followed(text: str, stream: io.StringIO, clock: Clock) -> Progress:
    progress = Progress(stream, clock)
    for line in text.splitlines():
        clock.now += 0.5
        progress.line(line)
    return progress


def test_a_line_for_each_stack_that_is_done() -> None:
    followed(LOG, stream := io.StringIO(), Clock())
    assert [line.split() for line in stream.getvalue().splitlines()] == [
        ["synthesize", "4.7", "s"],
        ["prod-network", "2", "resources", "0:04"],
    ]


def test_a_stack_without_changes() -> None:
    followed("✅  prod/network (prod-network) (no changes)\n", stream := io.StringIO(), Clock())
    assert "no changes" in stream.getvalue()


def test_a_bootstrapped_account() -> None:
    followed("✅  Environment aws://111122223333/us-west-2 bootstrapped.\n", stream := io.StringIO(), Clock())
    assert stream.getvalue().split() == ["bootstrap", "done"]


def test_a_destroyed_stack() -> None:
    text = "prod/eks (prod-eks): destroying... [1/1]\n\n✅  prod/eks (prod-eks): destroyed\n"
    followed(text, stream := io.StringIO(), Clock())
    assert stream.getvalue().split() == ["prod-eks", "deleted", "0:01"]


def test_failures_are_the_causes_each_once() -> None:
    progress = followed(LOG + FAILED, stream := io.StringIO(), Clock())
    assert [(event.stack, event.path, event.reason) for event in progress.failures] == [
        ("prod-eks", "prod/eks/Cluster", "Unsupported version\n1.19 is not supported")
    ]
    assert "prod-eks                 failed" in stream.getvalue()
    assert progress.last[-1] == "ToolkitError: Resource updates failed"


def test_a_terminal_sees_what_is_at_work_now() -> None:
    clock = Clock()
    progress = followed(LOG + FAILED.splitlines()[0], stream := Terminal(), clock)
    progress.tick()
    assert stream.getvalue().rpartition("\x1b[K")[2].split() == ["0:09", "prod-eks", "0/9", "AWS::EKS::Cluster"]
    progress.close()
    assert stream.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(("seconds", "lines"), [(29, 0), (30, 1), (75, 2)])
def test_a_log_shows_that_it_lives_every_half_minute(seconds: int, lines: int) -> None:
    clock = Clock()
    progress = Progress(stream := io.StringIO(), clock)
    progress.line("prod/eks (prod-eks): deploying... [2/2]")
    for _ in range(seconds):
        clock.now += 1
        progress.tick()
    assert stream.getvalue().count("prod-eks") == lines
