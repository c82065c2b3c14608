"""What the parameter of `httpJobHandler` says: a JSON object, or the older lines `name: value`."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_WITHOUT_BODY: Final = ("GET", "DELETE", "OPTIONS")
_USUAL_TIMEOUT_MS: Final = 3000
_MOST_TIMEOUT_MS: Final = 3_600_000
_LINES: Final = ("url", "method", "data")
_JSON: Final = "application/json;charset=UTF-8"
_FORM: Final = "application/x-www-form-urlencoded;charset=UTF-8"


class HttpJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A request. `timeout` is in milliseconds, `auth` the value of the header Authorization."""

    url: str
    method: str = ""
    content_type: str = ""
    headers: Mapping[str, str] = {}
    cookies: Mapping[str, str] = {}
    timeout: int = _USUAL_TIMEOUT_MS
    data: str = ""
    form: Mapping[str, str] = {}
    auth: str = ""

    @property
    def timeout_s(self) -> float:
        return self.timeout / 1000

    @property
    def body(self) -> bytes:
        """What is sent: the data, or the form unless that stands in the URL."""
        return (self.data or ("" if self.method in _WITHOUT_BODY else urlencode(self.form))).encode()

    @property
    def all_headers(self) -> dict[str, str]:
        """The job's own headers, and those that its other fields stand for."""
        implied = {
            "Accept": "*/*",
            "User-Agent": "jobwheel",
            "Content-Type": self.content_type or (self.body and (_JSON if self.data else _FORM)),
            "Authorization": self.auth,
            "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
        }
        given = {name.lower() for name in self.headers}
        return {
            **{name: value for name, value in implied.items() if value and name.lower() not in given},
            **self.headers,
        }


def read_job(parameter: str) -> HttpJob:
    """The request that a job's parameter describes.

    Raises:
        ValueError: it describes none; says what is wrong.
    """
    text = parameter.strip()
    if not text:
        raise ValueError('the parameter is empty; give a request, such as {"url": "https://api.example.com/daily"}')
    job = _of_json(text) if text.startswith("{") else _of_lines(text)
    method = job.method.strip().upper() or ("POST" if job.data or job.form else "GET")
    if method not in _METHODS:
        raise ValueError(f"method {job.method!r} is not one of {', '.join(_METHODS)}")
    if not 1 <= job.timeout <= _MOST_TIMEOUT_MS:
        raise ValueError(f"timeout {job.timeout} is not from 1 to {_MOST_TIMEOUT_MS} (milliseconds)")
    if job.data and job.form:
        raise ValueError("data and form are both given: one of them is the body")
    return msgspec.structs.replace(job, method=method, url=_with_query(job, method))


def _of_json(text: str) -> HttpJob:
    try:
        given = msgspec.json.decode(text, type=dict[str, Any])
        # Programs that make such objects write null for what is not given.
        return msgspec.convert({name: value for name, value in given.items() if value is not None}, HttpJob)
    except msgspec.DecodeError as error:
        raise ValueError(f"the parameter is no request in JSON: {error}") from error


def _of_lines(text: str) -> HttpJob:
    given: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower() in _LINES:
            given[name.strip().lower()] = value.strip()
        elif line.strip():
            begun = ", ".join(f"{each}:" for each in _LINES)
            raise ValueError(f"the line {line[:50]!r} begins with none of {begun}; or give a JSON object")
    if not given.get("url"):
        raise ValueError("there is no line url:")
    return msgspec.convert(given, HttpJob)


def _with_query(job: HttpJob, method: str) -> str:
    url = job.url.strip().partition("#")[0]
    if not job.form or method not in _WITHOUT_BODY:
        return url
    return f"{url}{'&' if '?' in url else '?'}{urlencode(job.form)}"
