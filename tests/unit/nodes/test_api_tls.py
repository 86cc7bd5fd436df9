"""Trust in the certificate authority of a cluster, also in one of before key identifiers were asked for."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from podwright.planning.kubernetes.api_tls import api_tls


class OldAuthority:
    """An authority whose certificates have no key identifiers."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kubernetes")])
        basic = x509.BasicConstraints(ca=True, path_length=None)
        made = self._builder(self.name, self.key).add_extension(basic, critical=True).sign(self.key, hashes.SHA256())
        self.pem = made.public_bytes(serialization.Encoding.PEM).decode()

    def server(self, host: str, folder: Path) -> ssl.SSLContext:
        """A server's side with a certificate of `host`."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kube-apiserver")])
        alternative = x509.SubjectAlternativeName([x509.DNSName(host)])
        made = self._builder(subject, key).add_extension(alternative, critical=False).sign(self.key, hashes.SHA256())
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file = folder / "server.pem"
        file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now, day = datetime.now(UTC), timedelta(days=1)
        number = x509.random_serial_number()
        return x509.CertificateBuilder(self.name, subject, key.public_key(), number, now - day, now + day)


def shake_hands(asking: ssl.SSLContext, serving: ssl.SSLContext, host: str) -> ssl.SSLObject:
    """The client's end after a handshake in memory. Raises SSLCertVerificationError as a connection would."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = asking.wrap_bio(to_client, to_server, server_hostname=host)
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    for end in (client, server, client, server):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return client


@pytest.fixture(autouse=True)
def strict_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contexts as Python makes them from 3.13 on, whichever Python runs."""
    made = ssl.create_default_context

    def strict(*, cadata: str) -> ssl.SSLContext:
        context = made(cadata=cadata)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)


def refused(asking: ssl.SSLContext, serving: ssl.SSLContext, host: str) -> str:
    """Why a handshake fails; empty when it does not."""
    try:
        shake_hands(asking, serving, host)
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    return ""


def test_an_authority_without_key_identifiers_is_trusted(tmp_path: Path) -> None:
    authority = OldAuthority()
    server = authority.server("api.eks.test", tmp_path)
    assert refused(api_tls(authority.pem), server, "api.eks.test") == ""
    # What the standard library would say.
    strict = ssl.create_default_context(cadata=authority.pem)
    assert "Key Identifier" in refused(strict, server, "api.eks.test")


def test_name_and_chain_are_verified_all_the_same(tmp_path: Path) -> None:
    authority = OldAuthority()
    server = authority.server("api.eks.test", tmp_path)
    assert "Hostname mismatch" in refused(api_tls(authority.pem), server, "other.eks.test")
    assert refused(api_tls(OldAuthority().pem), server, "api.eks.test")
