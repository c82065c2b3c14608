"""Where an executor's settings come from: arguments before `JOBWHEEL_EXECUTOR_*` before a TOML file."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from jobwheel.executor.errors import SettingError, UnknownSettingError
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

PREFIX: Final = "JOBWHEEL_EXECUTOR_"
CONFIG: Final = "config"


class Given(NamedTuple):
    """A setting that is given somewhere: its name, what a message calls it, its value, yet to be checked.

    `rank` says where: 0 among the arguments, 1 in the environment, 2 in the file.
    """

    name: str
    source: str
    value: object
    rank: int


def given_settings(
    names: Sequence[str], arguments: Mapping[str, object], environ: Mapping[str, str]
) -> Iterator[Given]:
    """Each setting that is given somewhere, once: what it is where it counts most.

    An argument of None and an empty variable count as not given. The file is the one that the argument `config` or
    `JOBWHEEL_EXECUTOR_CONFIG` names.

    Raises:
        SettingError: the file cannot be read, or a name in it or among the arguments is no setting.
    """
    _refuse_unknown(arguments, "Executor(…)", (*names, CONFIG))
    _warn_of_unknown(environ, (*names, CONFIG))
    where, content = _file(names, arguments, environ)
    for name in names:
        variable = PREFIX + name.upper()
        places = (
            (name, arguments.get(name)),
            (variable, _from_environment(variable, environ)),
            (f"{name} in {where}", content.get(name)),
        )
        for rank, (source, value) in enumerate(places):
            if value is not None:
                yield Given(name, source, value, rank)
                break


def _file(
    names: Sequence[str], arguments: Mapping[str, object], environ: Mapping[str, str]
) -> tuple[str, Mapping[str, object]]:
    """The file's name and what it says."""
    setting, path = CONFIG, arguments.get(CONFIG)
    if path is None:
        setting = PREFIX + CONFIG.upper()
        path = _from_environment(setting, environ)
    if path is None:
        return "", {}
    if not isinstance(path, str | Path):
        raise SettingError(setting, path, "the path of a TOML file")
    content = _read(setting, Path(path).expanduser())
    _refuse_unknown(content, str(path), names)
    return str(path), content


def _read(setting: str, path: Path) -> Mapping[str, object]:
    # Imported late: most executors have no such file.
    import tomllib  # noqa: PLC0415 - see above

    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SettingError(setting, str(path), f"a file that can be read ({error.strerror or error})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(setting, str(path), f"a TOML file ({error})") from error


def _refuse_unknown(given: Mapping[str, object], where: str, names: Sequence[str]) -> None:
    for name in given:
        if name not in names:
            raise UnknownSettingError(name, where, names)


def _from_environment(variable: str, environ: Mapping[str, str]) -> str | None:
    value = environ.get(variable, "").strip() or None
    if value and variable == PREFIX + "PORT" and "://" in value:
        # A cluster injects an address of this form for a service that happens to bear our name.
        log.warning("executor.setting_ignored", setting=variable, value=value, reason="not a port but an address")
        return None
    return value


def _warn_of_unknown(environ: Mapping[str, str], names: Sequence[str]) -> None:
    known = {PREFIX + name.upper() for name in names}
    unknown = sorted(name for name in environ if name.startswith(PREFIX) and name not in known)
    if unknown:
        log.warning("executor.settings_unknown", names=",".join(unknown))
