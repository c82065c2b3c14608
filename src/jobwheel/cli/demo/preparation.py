"""What a demo does on the database before its admin runs."""

from dataclasses import dataclass

from jobwheel.admin.services.installation import FIRST_USER, host_zone, prepare_installation
from jobwheel.admin.services.passwords import Passwords
from jobwheel.admin.services.sign_in import Client, SignIn
from jobwheel.admin.services.users import OPERATOR
from jobwheel.admin.settings import make_data_dir
from jobwheel.admin.store import schema
from jobwheel.admin.store.database import Database, open_database
from jobwheel.cli.demo.places import Places
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.secret import Secret


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the demo needs of its installation.

    Attributes:
        zone: of jobs that name none.
        access_token: what the executor must carry.
        session: a session of the first user.
        first_password: his password, if it was made just now.
    """

    zone: str
    access_token: Secret
    session: Secret
    first_password: Secret | None


async def prepare(places: Places, clock: Clock) -> Prepared:
    """Make the data directory and the installation, or bring them up to date.

    Raises:
        JobwheelError: the directory or the database cannot be used, or another admin uses it.
    """
    make_data_dir(places.settings)
    database = open_database(places.settings.database_url, clock)
    passwords = Passwords()
    await database.start()
    try:
        await database.write(schema.upgrade, database.where)
        made = await prepare_installation(database, clock, places.settings, passwords, host_zone(places.environ))
        session = await _session(database, clock, passwords)
    finally:
        passwords.close()
        await database.stop()
    _make_folder(places)
    return Prepared(made.zone.name, made.access_token, session, made.first_password)


async def new_session(places: Places, clock: Clock) -> Secret:
    """Another session, beside the running admin: the one before is over."""
    database = open_database(places.settings.database_url, clock, exclusive=False)
    passwords = Passwords()
    await database.start()
    try:
        return await _session(database, clock, passwords)
    finally:
        passwords.close()
        await database.stop()


async def _session(database: Database, clock: Clock, passwords: Passwords) -> Secret:
    signed_in = await SignIn(database, clock, passwords).open_session(FIRST_USER, Client(OPERATOR, "jobwheel demo"))
    return signed_in.token


def _make_folder(places: Places) -> None:
    places.folder.mkdir(mode=0o700, exist_ok=True)
    # What earlier demos noted is not this one's.
    places.executions.write_bytes(b"")
    for name in ("admin", "executor"):
        places.log_of(name).write_bytes(b"")
