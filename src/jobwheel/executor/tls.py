"""Certificates: the executor's own, and those of admins."""

import ssl

from jobwheel.executor.errors import SettingError
from jobwheel.executor.settings import ExecutorSettings


def client_context(settings: ExecutorSettings) -> ssl.SSLContext | None:
    """How admins on https are checked; None: by the system's authorities.

    Raises:
        SettingError: the file holds no certificate.
    """
    if settings.ca_file is None:
        return None
    try:
        return ssl.create_default_context(cafile=str(settings.ca_file))
    except (ssl.SSLError, OSError) as error:
        raise SettingError("ca_file", str(settings.ca_file), f"a file of certificates in PEM ({error})") from error


def check_certificate(settings: ExecutorSettings) -> None:
    """Look at the server's certificate before anything is started.

    Raises:
        SettingError: certificate and key cannot be read or do not belong together.
    """
    if settings.tls_certificate is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_certificate, settings.tls_key)
    except (ssl.SSLError, OSError) as error:
        valid = f"a certificate in PEM that belongs to tls_key ({error})"
        raise SettingError("tls_certificate", str(settings.tls_certificate), valid) from error
