"""Errors as replies: one shape for all of them, one table of statuses."""

from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from jobwheel.admin.services import errors
from jobwheel.admin.store.database import is_outage
from jobwheel.kernel.errors import JobwheelError
from jobwheel.kernel.logging import get_logger
from jobwheel.schedule import ScheduleError

log = get_logger(__name__)

STATUSES: Final[Mapping[type[JobwheelError], int]] = {
    errors.NotSignedInError: 401,
    errors.SignInRefusedError: 401,
    errors.ForbiddenError: 403,
    errors.WrongPasswordError: 403,
    errors.NotFoundError: 404,
    errors.TakenError: 409,
    errors.VersionConflictError: 409,
    errors.AmbiguousGroupError: 409,
    errors.PlanChangedError: 409,
    errors.KeylessJobsError: 409,
    errors.OpenRunsError: 409,
    errors.NeverFiresError: 409,
    errors.GroupInUseError: 409,
    errors.RunEndedError: 409,
    errors.KillsWholeJobError: 409,
    errors.TooManyTokensError: 409,
    errors.InvalidFieldError: 422,
    ScheduleError: 422,
    errors.SignInThrottledError: 429,
    errors.TooManyGuessesError: 429,
    errors.ExecutorUnreachableError: 502,
    errors.TooManyWaitingError: 503,
}
"""The HTTP status of each error; what is not in it is a fault of ours: 500."""

_WORDS: Final[Mapping[str, str]] = {
    "missing": "is required",
    "string_type": "is not a text",
    "string_unicode": "holds half of a surrogate pair, which is no character",
    "int_type": "is not a whole number",
    "int_parsing": "is not a whole number",
    "int_from_float": "is not a whole number",
    "int_parsing_size": "is out of range",
    "bool_type": "is neither true nor false",
    "bool_parsing": "is neither true nor false",
    "list_type": "is not a list",
    "model_attributes_type": "is not a JSON object",
    "dict_type": "is not a JSON object",
    "extra_forbidden": "is not known here",
}
_PLACES: Final = ("body", "query", "path", "header", "cookie")


def error_response(
    status: int, code: str, message: str, field: str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """A reply that tells what is wrong."""
    content = {"error": {"code": code, "message": message, "field": field}}
    return JSONResponse(content, status, headers=dict(headers or {}))


def install_handlers(app: FastAPI) -> None:
    """Make every error of the app a reply of the one shape."""
    app.add_exception_handler(JobwheelError, _on_jobwheel_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_any_error)


def status_of(error: JobwheelError) -> int:
    """The HTTP status of an error."""
    return next((STATUSES[each] for each in type(error).__mro__ if each in STATUSES), 500)


def reply_to(error: JobwheelError) -> Response:
    """The reply to an error that has a status of its own."""
    headers = {}
    if isinstance(error, errors.SignInThrottledError | errors.TooManyGuessesError):
        headers["Retry-After"] = str(error.retry_after_s)
    return error_response(status_of(error), error.code, error.message, error.field, headers)


def reply_to_outage(path: str, error: Exception) -> Response:
    """The reply while the database is away."""
    log.warning("api.database_unavailable", path=path, error=repr(error))
    return error_response(503, "database_unavailable", "the database cannot be used at the moment; try again")


async def _on_jobwheel_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, JobwheelError)
    return await _on_any_error(request, error) if status_of(error) == 500 else reply_to(error)


async def _on_validation_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        # The position in the body stands where a field's name would be.
        reason = first.get("ctx", {}).get("error", "")
        return error_response(400, "malformed_json", f"the body is not JSON: {reason} at character {first['loc'][-1]}")
    field = _field(first)
    problem = _problem(first)
    message = f"{field}: {problem}" if field else f"the body {problem}"
    return error_response(422, errors.InvalidFieldError.code, message, field or None)


async def _on_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 400:
        return error_response(400, "malformed_json", "the body is not JSON in UTF-8")
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "http_error")
    return error_response(error.status_code, code, str(error.detail), None, error.headers)


async def _on_any_error(request: Request, error: Exception) -> Response:
    if is_outage(error):
        return reply_to_outage(request.url.path, error)
    log.error("api.request_failed", exc_info=error, method=request.method, path=request.url.path)
    return error_response(500, "internal", "the request failed by a fault of the server; its log says more")


def _field(problem: Mapping[str, Any]) -> str:
    location = list(problem["loc"])
    if location and location[0] in _PLACES:
        location = location[1:]
    # `pause_windows[2].until`: the third entry's field.
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def _problem(problem: Mapping[str, Any]) -> str:
    words = _WORDS.get(problem["type"])
    if words is None:
        message = str(problem["msg"]).removeprefix("Input ").removeprefix("Value ")
        words = message[:1].lower() + message[1:]
    return words
