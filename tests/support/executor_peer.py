"""Calls an executor's HTTP API, as an admin does."""

import http.client
import itertools
import json
from dataclasses import dataclass, field
from typing import Any

DATE_MS = 1_795_651_200_000


@dataclass
class ExecutorPeer:
    port: int
    token: str | None = None
    base: str = ""
    """The path that it is mounted under."""
    _ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1001))

    def post_raw(self, path: str, body: bytes, headers: dict[str, str] | None = None, method: str = "POST") -> Any:
        sent = {"Content-Type": "application/json;charset=UTF-8"}
        if self.token is not None:
            sent["XXL-JOB-ACCESS-TOKEN"] = self.token
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=8)
        try:
            connection.request(method, self.base + path, body, {**sent, **(headers or {})})
            reply = connection.getresponse()
            assert reply.status == 200
            return json.loads(reply.read())
        finally:
            connection.close()

    def post(self, path: str, body: object) -> Any:
        return self.post_raw(path, json.dumps(body).encode())

    def trigger(self, handler: str, parameter: str = "", **more: object) -> dict[str, Any]:
        """A trigger request with a log id of its own."""
        request: dict[str, Any] = {
            "jobId": 7,
            "executorHandler": handler,
            "executorParams": parameter,
            "executorBlockStrategy": "SERIAL_EXECUTION",
            "executorTimeout": 0,
            "logId": next(self._ids),
            "logDateTime": DATE_MS,
            "glueType": "BEAN",
            "glueSource": "",
            "glueUpdatetime": 1_795_000_000_000,
            "broadcastIndex": 0,
            "broadcastTotal": 1,
        }
        return {**request, **more}

    def run(self, handler: str, parameter: str = "", **more: object) -> int:
        """Run a handler, which must be accepted; returns the log id."""
        request = self.trigger(handler, parameter, **more)
        reply = self.post("/run", request)
        assert reply["code"] == 200, reply
        return int(request["logId"])

    def log(self, log_id: int, from_line: int = 1, date: int = DATE_MS) -> dict[str, Any]:
        reply = self.post("/log", {"logId": log_id, "logDateTim": date, "fromLineNum": from_line})
        assert reply["code"] == 200, reply
        assert reply["data"] == reply["content"]
        page: dict[str, Any] = reply["data"]
        return page
