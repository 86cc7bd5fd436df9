"""The stand-in for the driver of FSx for Lustre on a real node: messages, and the folder behind a volume."""

from pathlib import Path

import pytest

from podwright.sandbox.nodes.volumes import MountError, fields_of, is_read_only, message_of, source_of


def test_messages_are_read_as_they_were_written() -> None:
    text = "a" * 300
    assert fields_of(message_of((1, "fsx.csi.aws.com"), (2, text), (3, 1), (2, "b"))) == {
        1: [b"fsx.csi.aws.com"],
        2: [text.encode(), b"b"],
        3: [b"\x01"],
    }
    # A number of more than one byte, as protoc writes it.
    assert fields_of(b"\x08\x96\x01\x12\x01x") == {1: [bytes([150])], 2: [b"x"]}


def request(**attributes: str) -> bytes:
    """A request to mount a volume with these attributes."""
    entries = (message_of((1, name), (2, value)).decode() for name, value in attributes.items())
    return message_of(*((8, entry) for entry in entries))


def test_a_volume_is_a_folder_of_its_file_system() -> None:
    stated = fields_of(request(dnsname="fs.fsx.us-east-1.amazonaws.com", mountname="abcdefgh/team/work"))
    assert source_of(stated) == Path("/fsx/fs.fsx.us-east-1.amazonaws.com/abcdefgh/team/work")


@pytest.mark.parametrize("mount_name", ["../other", "abcdefgh/../../other", "abcdefgh//x"])
def test_a_volume_leads_out_of_no_file_system(mount_name: str) -> None:
    with pytest.raises(MountError, match="no path below a file system"):
        source_of(fields_of(request(dnsname="fs.example.com", mountname=mount_name)))
    with pytest.raises(MountError, match="no path below a file system"):
        source_of(fields_of(request(dnsname="..", mountname="abcdefgh")))


def test_a_volume_without_its_file_system() -> None:
    with pytest.raises(MountError, match="the volume lacks dnsname and mountname of its file system"):
        source_of({})


@pytest.mark.parametrize(
    ("options", "read_only", "expected"), [(["flock"], 0, False), (["flock", "ro"], 0, True), ([], 1, True)]
)
def test_a_volume_or_a_pod_may_be_read_only(options: list[str], read_only: int, *, expected: bool) -> None:
    mount = message_of((1, "lustre"), *((2, option) for option in options)).decode()
    capability = message_of((2, mount)).decode()
    assert is_read_only(fields_of(message_of((5, capability), (6, read_only)))) == expected
