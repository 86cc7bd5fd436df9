"""Certificates of a Kubernetes API: an authority, servers on loopback, and users with their groups."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class Pair:
    """The files of a certificate and its key."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs certificates and stores them next to its own. Each is created once."""

    folder: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def open(cls, folder: Path) -> "Authority":
        """Return the authority of a folder, which the first call creates."""
        files = _files(folder, "authority")
        if not files.key.exists():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)
            _write_authority(files)
        key = serialization.load_pem_private_key(files.key.read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return cls(folder, x509.load_pem_x509_certificate(files.certificate.read_bytes()), key)

    @property
    def file(self) -> Path:
        """The authority's certificate."""
        return _files(self.folder, "authority").certificate

    def server(self, name: str, names: Sequence[str] = (), address: str = "") -> Pair:
        """Return the certificate of a server on loopback, with its names and its address in the cluster."""
        alternatives: list[x509.GeneralName] = [x509.DNSName(alternative) for alternative in ("localhost", *names)]
        addresses = ["127.0.0.1", *([address] if address else [])]
        alternatives += (x509.IPAddress(ipaddress.ip_address(item)) for item in addresses)
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._sign(name, _name(name), purposes, x509.SubjectAlternativeName(alternatives))

    def client(self, name: str, user: str, groups: Sequence[str] = ()) -> Pair:
        """Return the certificate of a user, which contains the user's name and groups."""
        return self._sign(name, _name(user, groups), [ExtendedKeyUsageOID.CLIENT_AUTH])

    def _sign(
        self, name: str, subject: x509.Name, purposes: list[x509.ObjectIdentifier], *extensions: x509.ExtensionType
    ) -> Pair:
        files = _files(self.folder, name)
        if not files.key.exists():
            key = ec.generate_private_key(ec.SECP256R1())
            builder = _builder(subject, self.certificate.subject, key, self.key)
            builder = builder.add_extension(_usage(is_authority=False), critical=True)
            for extension in (x509.ExtendedKeyUsage(purposes), *extensions):
                builder = builder.add_extension(extension, critical=False)
            _write(files, builder.sign(self.key, hashes.SHA256()), key)
        return files


def _write_authority(files: Pair) -> None:
    key, subject = ec.generate_private_key(ec.SECP256R1()), _name("podwright sandbox")
    builder = _builder(subject, subject, key, key).add_extension(_usage(is_authority=True), critical=True)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    _write(files, builder.sign(key, hashes.SHA256()), key)


def _files(folder: Path, name: str) -> Pair:
    return Pair(folder / f"{name}.crt", folder / f"{name}.key")


def _write(files: Pair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    """Write both files. The key is written last, as the sign that both exist, and only its owner may read it."""
    pem = serialization.Encoding.PEM
    files.certificate.write_bytes(certificate.public_bytes(pem))
    new = files.key.with_suffix(".new")
    new.touch(0o600)
    # The format that Kubernetes reads.
    form = serialization.PrivateFormat.TraditionalOpenSSL
    new.write_bytes(key.private_bytes(pem, form, serialization.NoEncryption()))
    new.replace(files.key)


def _name(common_name: str, groups: Sequence[str] = ()) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    start = datetime.now(UTC) - timedelta(minutes=5)
    number = x509.random_serial_number()
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), number, start, start + _VALID)
    # Python 3.13 and later require these.
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    issued = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return builder.add_extension(own, critical=False).add_extension(issued, critical=False)


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
