"""What differs between the three dialects."""

from dataclasses import dataclass
from typing import Any

import msgspec

from jobwheel.wire.codec import decode
from jobwheel.wire.errors import MalformedMessageError
from jobwheel.wire.items import judge_each
from jobwheel.wire.mend import without_surrogates
from jobwheel.wire.messages import Dialect, Int32, Int64, LogQuery, Result

RUN_PATH = {Dialect.A: "/run", Dialect.B: "/run", Dialect.C: "/trigger"}


class _ExecuteResult(msgspec.Struct):
    code: Int32
    msg: str | None = None


class _CallbackItem(msgspec.Struct, rename="camel"):
    """A callback of any dialect."""

    log_id: Int64
    log_date_tim: Int64 | None = None
    log_date_time: Int64 | None = None
    execute_result: _ExecuteResult | None = None
    handle_code: Int32 | None = None
    handle_msg: str | None = None

    def to_result(self) -> Result:
        log_date_time = self.log_date_time if self.log_date_time is not None else self.log_date_tim
        if self.execute_result is not None:
            code, message = self.execute_result.code, self.execute_result.msg
        elif self.handle_code is not None:
            code, message = self.handle_code, self.handle_msg
        else:
            raise MalformedMessageError("is missing", field="handleCode")
        return Result(log_id=self.log_id, log_date_time=log_date_time or 0, code=code, message=message)


class _CallbackObject(msgspec.Struct, rename="camel"):
    callback_list: list[msgspec.Raw]


@dataclass(frozen=True, slots=True)
class CallbackBatch:
    """The good items of a callback, and what was wrong with the others, in words that name item and field."""

    results: list[Result]
    rejected: list[str]


def decode_callbacks(body: bytes) -> CallbackBatch:
    """The results that a callback of any dialect carries. Each item is judged alone.

    Raises:
        MalformedMessageError: the body as a whole is neither a list of callbacks nor a `callbackList`, or more than
            10,000 of its items are bad.
    """
    results, rejected = judge_each(_callback_items(body), lambda item: decode(item, _CallbackItem).to_result())
    return CallbackBatch(results, rejected)


def _callback_items(body: bytes) -> list[msgspec.Raw]:
    if body.lstrip()[:1] == b"{":
        return decode(body, _CallbackObject).callback_list
    return decode(body, list[msgspec.Raw])


def encode_callbacks(results: list[Result], dialect: Dialect) -> bytes:
    """A callback in the given dialect."""
    if dialect is Dialect.C:
        return msgspec.json.encode({"callbackList": [_callback(result, "logDateTime") for result in results]})
    if dialect is Dialect.B:
        return msgspec.json.encode([_callback(result, "logDateTim") for result in results])
    return msgspec.json.encode([_callback_a(result) for result in results])


def encode_callbacks_for_a_and_b(results: list[Result]) -> bytes:
    """A callback that admins of A and of B both understand.

    Each takes the fields that it knows and ignores the others. It matters, since neither refuses what it does not
    understand: an admin of B acknowledges a callback of A, and stores nothing.
    """
    return msgspec.json.encode([{**_callback(result, "logDateTim"), **_callback_a(result)} for result in results])


def _callback(result: Result, date_name: str) -> dict[str, Any]:
    return {
        "logId": result.log_id,
        date_name: result.log_date_time,
        "handleCode": result.code,
        "handleMsg": _message(result),
    }


def _callback_a(result: Result) -> dict[str, Any]:
    return {
        "logId": result.log_id,
        "logDateTim": result.log_date_time,
        "executeResult": {"code": result.code, "msg": _message(result)},
    }


def _message(result: Result) -> str | None:
    return None if result.message is None else without_surrogates(result.message)


class _LogQueryBody(msgspec.Struct, rename="camel"):
    log_id: Int64
    log_date_tim: Int64 | None = None
    log_date_time: Int64 | None = None
    from_line_num: Int64 = 1


def decode_log_query(body: bytes) -> LogQuery:
    """A log request of any dialect. A line below 1 means 1.

    Raises:
        MalformedMessageError: names the field.
    """
    query = decode(body, _LogQueryBody)
    log_date_time = query.log_date_time if query.log_date_time is not None else query.log_date_tim
    return LogQuery(query.log_id, log_date_time or 0, max(1, query.from_line_num))


def encode_log_query(query: LogQuery, dialect: Dialect) -> bytes:
    """A log request in the given dialect."""
    date_name = "logDateTime" if dialect is Dialect.C else "logDateTim"
    return msgspec.json.encode({date_name: query.log_date_time, "logId": query.log_id, "fromLineNum": query.from_line})
