"""What a server's error asks for."""

import pytest
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from jobwheel.admin.store.errors import DatabaseAwayError, UnknownCommitError
from jobwheel.admin.store.trouble import Trouble, code_of, is_outage, trouble_of


class PostgresqlError(Exception):
    def __init__(self, sqlstate: str) -> None:
        super().__init__("words")
        self.sqlstate = sqlstate


class MysqlError(Exception):
    sqlstate = "HY000"


def wrapped(error: Exception, *, lost: bool = False) -> DBAPIError:
    return DBAPIError("UPDATE", {}, error, connection_invalidated=lost)


@pytest.mark.parametrize(
    ("code", "trouble"),
    [
        ("40P01", Trouble.CONFLICT),
        ("40001", Trouble.CONFLICT),
        ("55P03", Trouble.CONFLICT),
        (1213, Trouble.CONFLICT),
        (1205, Trouble.CONFLICT),
        ("08006", Trouble.LOST),
        ("57P01", Trouble.LOST),
        ("57P03", Trouble.LOST),
        ("53300", Trouble.LOST),
        (2013, Trouble.LOST),
        (2003, Trouble.LOST),
        (1040, Trouble.LOST),
        ("53100", Trouble.OUTAGE),
        ("58030", Trouble.OUTAGE),
        ("25006", Trouble.OUTAGE),
        (1290, Trouble.OUTAGE),
        (1114, Trouble.OUTAGE),
        ("23505", None),
        ("22001", None),
        ("42P01", None),
        (1062, None),
        (1406, None),
        (1146, None),
    ],
)
def test_each_kind_of_error(code: str | int, trouble: Trouble | None) -> None:
    error = PostgresqlError(code) if isinstance(code, str) else MysqlError(code, "words")
    for each in (error, wrapped(error)):
        assert code_of(each) == code
        assert trouble_of(each) is trouble
        assert is_outage(each) is (trouble is not None)


def test_a_connection_that_is_gone_is_lost_whatever_the_error_says() -> None:
    assert trouble_of(wrapped(ValueError("connection is closed"), lost=True)) is Trouble.LOST


def test_what_is_no_error_of_a_statement() -> None:
    assert trouble_of(DatabaseAwayError("here", "refused")) is Trouble.LOST
    assert trouble_of(PoolTimeoutError()) is Trouble.LOST
    unknown = UnknownCommitError("here")
    assert trouble_of(unknown) is None
    assert is_outage(unknown)


@pytest.mark.parametrize("error", [OSError(2013, "no such thing of a database"), KeyError("40001")])
def test_other_errors_are_not_the_databases(error: Exception) -> None:
    assert not is_outage(error)
