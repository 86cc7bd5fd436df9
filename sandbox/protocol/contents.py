"""Large contents (archives, objects of buckets) in files named by their SHA-256 digest."""

import hashlib
import uuid
from pathlib import Path


class Contents:
    """The contents in a directory, which is created with the first one. Equal contents share a file."""

    def __init__(self, directory: Path):
        self.directory = directory

    def keep(self, content: bytes) -> str:
        """Write a content unless its file exists. Returns its digest."""
        digest = hashlib.sha256(content).hexdigest()
        file = self.file(digest)
        if not file.exists():
            self.directory.mkdir(parents=True, exist_ok=True)
            # A rename, since another thread may read the file meanwhile.
            partial = self.directory / f"{digest}.{uuid.uuid4().hex}"
            partial.write_bytes(content)
            partial.rename(file)
        return digest

    def file(self, digest: str) -> Path:
        """Return the file of a content."""
        return self.directory / digest
