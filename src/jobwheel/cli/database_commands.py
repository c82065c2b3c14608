"""`jobwheel db …`, `jobwheel token …`, `jobwheel users …`: they work on the database, without a running admin."""

from typing import Annotated

import typer

from jobwheel.cli.options import DatabaseUrlOption, DataDirOption
from jobwheel.cli.output import tell
from jobwheel.cli.session_commands import read_password

# The work is imported when one of these is called: the admin's packages take most of a second.


def upgrade(data_dir: DataDirOption = None, database_url: DatabaseUrlOption = None) -> None:
    """Bring the database's schema to this version's; make the database if there is none."""
    from jobwheel.cli import database_work as work  # noqa: PLC0415 - see above

    done = work.upgrade(work.settings_of(data_dir, database_url))
    if done.before == done.after:
        print(f"the schema is {done.after} already, nothing to do")
    else:
        print(f"upgraded the schema from {done.before or 'nothing'} to {done.after}")


def current(data_dir: DataDirOption = None, database_url: DatabaseUrlOption = None) -> None:
    """Print the version of the database's schema."""
    from jobwheel.cli import database_work as work  # noqa: PLC0415 - see above

    found, newest = work.current(work.settings_of(data_dir, database_url))
    print(found or "nothing")
    if found != newest:
        tell(f"this program needs {newest}: run `jobwheel db upgrade`")


def show_token(data_dir: DataDirOption = None, database_url: DatabaseUrlOption = None) -> None:
    """Print the access token that executors must carry."""
    from jobwheel.cli import database_work as work  # noqa: PLC0415 - see above

    print(work.access_token(work.settings_of(data_dir, database_url)).reveal())


def set_password(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose password.")],
    stdin: Annotated[bool, typer.Option("--stdin", help="Read the password from standard input.")] = False,
    data_dir: DataDirOption = None,
    database_url: DatabaseUrlOption = None,
) -> None:
    """Give a user a new password, and end his sessions."""
    from jobwheel.cli import database_work as work  # noqa: PLC0415 - see above

    settings = work.settings_of(data_dir, database_url)
    work.check_database(settings)
    work.set_password(settings, name, read_password(f"New password of {name}", from_stdin=stdin, twice=True))
    tell(f"the password of {name} is changed; sessions that were open are ended")
