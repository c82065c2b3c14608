"""Why a server cannot be used, in words for the operator."""

from sqlalchemy.engine import URL

from jobwheel.admin.store.trouble import code_of


def reason_of(error: BaseException, url: URL) -> str:
    """What is wrong and what to do. The password is in none of it."""
    user, name = url.username or "", url.database or ""
    words: dict[str | int, str] = {
        "28P01": f"the password of {user!r} is wrong",
        "28000": f"the server does not let {user!r} in from here (pg_hba.conf says who may)",
        "3D000": f"there is no database {name!r}: create it, empty, and start again",
        "42501": f"{user!r} has too few rights; it needs CONNECT, and CREATE on the schema for the first start",
        "53300": "the server has no free connection: raise its max_connections or lower JOBWHEEL_DATABASE_CONNECTIONS",
        "57P03": "the server is starting or stopping: try again",
        1040: "the server has no free connection: raise its max_connections or lower JOBWHEEL_DATABASE_CONNECTIONS",
        1044: f"{user!r} has no rights on the database {name!r}",
        1045: f"the password of {user!r} is wrong, or it may not come from here",
        1049: f"there is no database {name!r}: create it, empty, and start again",
        1142: f"{user!r} has too few rights on {name!r}; it needs ALL PRIVILEGES on it",
        1698: f"the server does not let {user!r} in with a password",
    }
    known = words.get(code_of(error) or 0)
    return f"{known} ({_said(error)})" if known else _said(error)


def _said(error: BaseException) -> str:
    cause = getattr(error, "orig", None) or error.__cause__ or error
    text = str(cause.args[-1]) if cause.args else type(cause).__name__
    return text.partition("\n")[0].removeprefix("<class ")
