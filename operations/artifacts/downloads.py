"""Downloads of large files, and of Python wheels for other machines than this one."""

import subprocess
import sys
import tempfile
from pathlib import Path

from ...config.errors import CommandError
from .http import request, save


def download(address: str, into: Path) -> None:
    """Write what `address` serves into a file.

    Raises:
        CommandError: it cannot be had, or ends before its announced length, at the last attempt too.
    """
    try:
        with into.open("wb") as file:
            save(lambda retries: request("GET", address, retries=retries, stream=True), file)
    except OSError as error:
        raise CommandError(f"{address} cannot be downloaded: {error}", "check the network and HTTPS_PROXY") from None


def download_wheel(requirement: str, platform: str, into: Path) -> None:
    """Write a wheel for `platform` (such as manylinux_2_18_aarch64) into a file.

    pip fetches it, so its settings hold: an index of your own, a proxy, certificates.

    Raises:
        CommandError: pip is missing or has no such wheel.
    """
    with tempfile.TemporaryDirectory(prefix="podwright-wheel-", dir=into.parent) as folder:
        # The wheel alone, and never from source: building a source archive runs its code on this machine.
        command = ["download", "--no-deps", "--only-binary=:all:", "--platform", platform, "--dest", folder]
        result = subprocess.run(
            [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *command, requirement],
            capture_output=True,
            text=True,
        )
        results = list(Path(folder).glob("*.whl"))
        if result.returncode or len(results) != 1:
            message = (result.stderr or result.stdout).strip().splitlines()
            raise CommandError(
                f"pip has no wheel {requirement} for {platform}: {message[-1] if message else 'it says nothing'}",
                "check the version and the package index; without pip, install it into podwright's environment",
            )
        results[0].replace(into)
