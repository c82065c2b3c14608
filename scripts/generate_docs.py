"""Write the reference pages that the code determines; with --check only say whether they are up to date."""

import contextlib
import importlib
import io
import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast, get_args, get_origin

import jobwheel
from jobwheel.admin.api.access import RULES, Who
from jobwheel.admin.api.app import create_routes
from jobwheel.admin.api.errors import status_of
from jobwheel.admin.api.services import Services
from jobwheel.admin.settings import Settings
from jobwheel.cli.app import command_paths, run
from jobwheel.executor.settings import ExecutorSettings
from jobwheel.kernel.errors import JobwheelError

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
NOTE = "<!-- Written by `make docs` from the code; change it there. -->\n\n"

ADMIN_MEANINGS: Mapping[str, str] = {
    "data_dir": "Where the database and everything else is kept; made with mode 0700.",
    "database_url": "The database: `sqlite:////file.db`, `postgresql://user:password@host/name`, `mysql://…`, `mariadb://…`.",
    "database_connections": "How many connections to a database server are held at most.",
    "database_timeout_s": "How long a database server may take for a transaction before its connection is given up.",
    "host": "What to listen on.",
    "port": "Where to listen; 0 = any free port.",
    "access_token": "What executors must carry, and what is sent to them. Not set: one is made at the first start.",
    "allow_weak_token": "Accept a token that everybody knows, while taking over an installation.",
    "admin_password": "The password of the user `admin`, at the first start alone. Not set: a random one, shown once.",
    "metrics_token": "What a program may carry to read `/metrics`. Not set: people who are signed in alone.",
    "timezone": "The zone of jobs that name none, at the first start alone. Not set: the host's.",
    "language": "What alarms, and the messages of runs that this admin dispatches, are written in.",
    "log_level": "How much is logged, to standard error.",
    "log_format": "One line of text or one JSON object for each event.",
    "auto_create_groups": "Make a group for an app name that registers and has none.",
    "public_url": "Where people reach the admin, for links in alarms. Not set: alarms have no link.",
    "trusted_proxies": "Proxies before the admin, addresses and networks with commas between them: from these "
    "`X-Forwarded-For` and `X-Forwarded-Proto` are taken. Not set: from nobody.",
    "alarms_to_private_addresses": "Let alarms be posted to private, loopback and link-local addresses.",
    "tls_certificate": "Serve https with this certificate (PEM); needs `tls_key`.",
    "tls_key": "The key of `tls_certificate` (PEM).",
    "ca_file": "Whom https executors must be vouched for by (PEM). Not set: the system's authorities.",
    "look_ahead_s": "How long before it is due a run is written.",
    "claim_batch": "How many runs one transaction writes at most.",
    "misfire_most": "How many missed instants of a job run with `FIRE_ALL`: the newest ones.",
    "fast_lane": "How many runs are being sent at once.",
    "slow_lane": "The same for jobs whose sends were slow lately.",
    "slow_send_ms": "A send that takes longer is slow, the questions of `FAILOVER` and `BUSYOVER` included.",
    "slow_sends": "A job with more slow sends than this in a minute is in the slow lane until the minute ends.",
    "address_limit": "How many requests an executor gets at once: runs, and a router's questions.",
    "send_timeout_s": "How long connecting to an executor may take, and then its answer to a run or a question.",
    "wheel_capacity": "How many runs wait in memory; more of them wait in the database.",
    "run_retention_days": "Runs are removed after so many days if they are done; 0 = never. A job may say otherwise.",
    "event_retention_days": "Events are removed after so many days; 0 = kept for ever.",
    "session_retention_days": "Sessions are removed so many days after their end; 0 = kept for ever.",
}
EXECUTOR_MEANINGS: Mapping[str, str] = {
    "app_name": "The group's name. Empty: nothing is registered.",
    "admin": "The admins' addresses, with commas between them; every one is told of this executor.",
    "access_token": "What the admins must carry, and what is sent to them; several with commas during a rotation.",
    "access_token_file": "A file with such tokens, on lines of their own, instead.",
    "address": "What to register, if it cannot be found out.",
    "ip": "What to register, with the port.",
    "network": "The interface (`eth1`) or subnet (`10.0.0.0/8`) to register the address of, with `host` `0.0.0.0`.",
    "host": "What to listen on; without a token only loopback is allowed.",
    "port": "Where to listen; 0 or less = the next free port from 9999 up.",
    "log_path": "The folder of run logs and unsent results. Not set: `.jobwheel/executor/{app name}`.",
    "log_retention_days": "How many days the log of a run is kept; 0 = for ever.",
    "log_limit_mb": "How many mebibytes of run logs are kept, the newest; 0 = no limit.",
    "dialect": "What admins speak: `A` (2.2), `B` (2.3 to 3.4), `C` (3.5 and later). Not set or `auto`: learnt.",
    "heartbeat_s": "How often it tells the admins that it lives.",
    "queue_limit": "How many runs of a job may wait; more are refused.",
    "timeout_s": "How long an admin may take to answer.",
    "stop_deadline_s": "How long runs under way may take when it stops.",
    "grace_s": "How long a run that is to end may take; then it is reported, and its job goes on without it.",
    "idle_s": "After how long without a run a job's thread ends.",
    "embedded_server": "Off: its HTTP API is mounted elsewhere (`Executor.asgi_app`), at `address`.",
    "enabled": "Off: starting it does nothing.",
    "tls_certificate": "Serve https with this certificate (PEM); needs `tls_key`.",
    "tls_key": "The key of `tls_certificate` (PEM).",
    "ca_file": "Whom https admins must be vouched for by (PEM). Not set: the system's authorities.",
    "scripts_enabled": "Run scripts: whoever may edit jobs can then run anything as the executor's user.",
    "http_job_hosts": "The hosts that `httpJobHandler` may call, with commas, each with or without a port.",
    "command_job_programs": "The programs that `commandJobHandler` may run, with commas: names or absolute paths.",
    "sample_handlers": "Register `demoJobHandler` and `shardingJobHandler`.",
}
# Settings that the dataclass keeps under another name than the one that people type.
EXECUTOR_NAMES: Mapping[str, str] = {"admins": "admin", "access_tokens": "access_token"}

WHO: Mapping[Who, str] = {
    Who.OPEN: "anybody",
    Who.ANYBODY: "anybody",
    Who.SIGNED_IN: "signed in",
    Who.CALLER: "signed in, or an API token",
    Who.READ: "read",
    Who.WRITE: "write",
    Who.SCRIPTS: "scripts",
    Who.ALL_GROUPS: "write, all groups",
    Who.ADMIN: "role admin",
    Who.METRICS: "role admin, or the metrics token",
}
ADMIN_TEXT = """\
Arguments of `jobwheel admin` go before the environment, the environment before the TOML file that `JOBWHEEL_CONFIG`
names (there the names are those of the first column). A bad value, or an unknown name in the file, stops the program;
an unknown name in the environment is a warning.
"""
EXECUTOR_TEXT = """\
Arguments of `Executor(…)`, by the names of the first column, go before the environment, the environment before the TOML
file that `config=` or `JOBWHEEL_EXECUTOR_CONFIG` names (with the same names). A bad value, or an unknown name among the
arguments or in the file, is a `SettingError`; an unknown name in the environment is a warning.
"""
REST_TEXT = """\
JSON in snake_case; ids are numbers; instants are RFC 3339 in UTC with milliseconds. Lists are
`{"items": […], "next": cursor}`: pass `next` as `after` to read on. Errors are
`{"error": {"code", "message", "field"}}`; the codes stand in [errors.md](errors.md). A session is a cookie, an API
token stands in the header `Authorization: Bearer …`; the whole description is at `/api/v1/openapi.json` for both.

The role admin may do everything. An API token may read, write, or write scripts as well, in all groups or in one: what
is in another group is answered as if it did not exist, and lists leave it out
([how to](../how-to/call-the-api.md)).
"""
ERRORS_TEXT = """\
An error has a stable code and a message for people. The status is the one that REST replies with; errors without one
belong to the start of a program, to the command line or to the executor.
"""


def main() -> int:
    """Write the pages, or compare them."""
    if "--check" in sys.argv[1:]:
        stale = [name for name, text in pages().items() if _stored(name) != text]
        for name in stale:
            print(f"docs/reference/{name} is not what the code says: run `make docs`")
        return 1 if stale else 0
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, "utf-8")
    return 0


def _stored(name: str) -> str | None:
    path = REFERENCE / name
    return path.read_text("utf-8") if path.exists() else None


def pages() -> dict[str, str]:
    """The text of each page by its file's name."""
    return {"settings.md": settings_page(), "cli.md": cli_page(), "rest.md": rest_page(), "errors.md": errors_page()}


def settings_page() -> str:
    """Both programs' settings."""
    lines = [
        "# Settings\n",
        "## Admin\n",
        ADMIN_TEXT,
        *_table("JOBWHEEL_", Settings, ADMIN_MEANINGS, {}),
        "",
        "## Executor\n",
        EXECUTOR_TEXT,
        *_table("JOBWHEEL_EXECUTOR_", ExecutorSettings, EXECUTOR_MEANINGS, EXECUTOR_NAMES),
        "",
        "## Command line\n",
        "| variable | meaning |",
        "|---|---|",
        "| `JOBWHEEL_URL` | the admin that commands speak to |",
        "| `JOBWHEEL_TOKEN` | an API token that commands carry instead of a session |",
        "| `JOBWHEEL_CA_FILE` | whom an https admin must be vouched for by (PEM) |",
    ]
    return NOTE + "\n".join(lines) + "\n"


def _table(prefix: str, settings: type, meanings: Mapping[str, str], names: Mapping[str, str]) -> Iterator[str]:
    yield "| name | variable | default | values | meaning |"
    yield "|---|---|---|---|---|"
    every = {names.get(each.name, each.name): each for each in fields(settings)}
    if set(every) != set(meanings):
        raise SystemExit(f"these settings have no meaning here, or no longer exist: {set(every) ^ set(meanings)}")
    for name, each in every.items():
        row = (f"`{name}`", f"`{prefix}{name.upper()}`", _default(each), _values(each), meanings[name])
        yield f"| {' | '.join(row)} |"


def _default(setting: Field[Any]) -> str:
    if setting.default in (None, (), "", Path()):
        return ""
    text = str(setting.default).lower() if isinstance(setting.default, bool) else str(setting.default)
    return f"`{text}`"


def _values(setting: Field[Any]) -> str:
    if "least" in setting.metadata:
        return f"{setting.metadata['least']} to {setting.metadata['most']}"
    if get_origin(setting.type) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(setting.type))
    return "`true`, `false`" if setting.type is bool else ""


def cli_page() -> str:
    """The help of every command."""
    parts = ["# Commands\n", "Exit codes: 0 success, 1 an error (one line on standard error), 2 a wrong call.\n"]
    parts += [f"## jobwheel {' '.join(each)}\n\n```text\n{_help(each)}```\n" for each in command_paths()]
    return NOTE + "\n".join(parts)


def _help(command: tuple[str, ...]) -> str:
    output = io.StringIO()
    os.environ["COLUMNS"] = "100"
    with contextlib.redirect_stdout(output):
        run([*command, "--help"])
    return "\n".join(line.rstrip() for line in output.getvalue().strip().splitlines()) + "\n"


def rest_page() -> str:
    """Every route: who may call it, what it takes and gives."""
    nobody = cast("Services", SimpleNamespace(**dict.fromkeys(each.name for each in fields(Services))))
    api = create_routes(nobody).openapi()
    lines = [
        "# REST\n",
        REST_TEXT,
        "| method | path | for | takes | gives |",
        "|---|---|---|---|---|",
    ]
    for rule in RULES:
        operation = api["paths"].get(rule.path, {}).get(rule.method.lower(), {})
        row = (rule.method, f"`{rule.path}`", WHO[rule.who], _takes(operation), _gives(operation))
        lines.append(f"| {' | '.join(row)} |")
    lines += ["", "## Bodies and replies\n"]
    for name, schema in sorted(api["components"]["schemas"].items()):
        if schema.get("type") == "object":
            lines += _schema(name, schema)
    return NOTE + "\n".join(lines) + "\n"


def _takes(operation: Mapping[str, Any]) -> str:
    query = [f"`{each['name']}`" for each in operation.get("parameters", ()) if each["in"] == "query"]
    content = operation.get("requestBody", {}).get("content", {})
    bodies = [_type(each.get("schema", {})) for kind, each in content.items() if kind == "application/json"]
    return ", ".join([*bodies, *query])


def _gives(operation: Mapping[str, Any]) -> str:
    for status, reply in operation.get("responses", {}).items():
        if status.startswith("2"):
            schema = reply.get("content", {}).get("application/json", {}).get("schema", {})
            return f"{status} {_type(schema)}".strip()
    return ""


def _schema(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {name}\n"
    if "description" in schema:
        yield " ".join(schema["description"].split()) + "\n"
    required = set(schema.get("required", ()))
    for field, each in schema.get("properties", {}).items():
        must = ", required" if field in required else ""
        yield f"- `{field}`: {_type(each)}{must}"
    yield ""


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for choice in ("anyOf", "allOf", "oneOf"):
        if choice in schema:
            return " or ".join(dict.fromkeys(_type(each) for each in schema[choice]))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "")) if schema else ""


def errors_page() -> str:
    """Every error code."""
    for module in pkgutil.walk_packages(jobwheel.__path__, "jobwheel."):
        if not module.name.startswith("jobwheel.admin.store.migrations") and module.name != "jobwheel.__main__":
            importlib.import_module(module.name)
    rows = sorted({(each.code, _status(each), _first_line(each)) for each in _all_errors(JobwheelError)})
    lines = [
        "# Error codes\n",
        ERRORS_TEXT,
        "| code | status | meaning |",
        "|---|---|---|",
        *(f"| `{code}` | {status} | {meaning} |" for code, status, meaning in rows),
    ]
    return NOTE + "\n".join(lines) + "\n"


def _all_errors(base: type[JobwheelError]) -> Iterator[type[JobwheelError]]:
    for each in base.__subclasses__():
        if each.code != JobwheelError.code:
            yield each
        yield from _all_errors(each)


def _status(error: type[JobwheelError]) -> str:
    status = status_of(error.__new__(error))
    return "" if status == 500 else str(status)


def _first_line(error: type[JobwheelError]) -> str:
    return (error.__doc__ or "").strip().splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
