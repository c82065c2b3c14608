"""Alarms in words."""

from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from jobwheel.admin.alarms.channel import Alarm
from jobwheel.admin.alarms.words import WORDS
from jobwheel.admin.domain.alarm import AlarmFacts, AlarmKind
from jobwheel.schedule import Language

_NAME: Final = "Jobwheel"


class AlarmTexts:
    """Writes alarms in the installation's language.

    Args:
        language: the installation's.
        public_url: where people reach the admin; None = alarms have no link.
    """

    def __init__(self, language: Language, public_url: str | None) -> None:
        self._words = WORDS[language]
        self._public_url = None if public_url is None else public_url.rstrip("/")

    def write(self, facts: AlarmFacts) -> Alarm:
        """An alarm for its channel."""
        title, link = self._title(facts), self._link(facts)
        lines = [(name, value) for name, value in self._lines(facts) if value]
        alarm = Alarm(title, lines, link, facts.kind.is_good, facts.emails, {})
        fields = {
            "title": title,
            "text": alarm.text,
            "kind": facts.kind.value,
            "state": "resolved" if facts.kind.is_good else "alarm",
            "count": str(facts.count),
            "group": facts.group,
            "job": facts.job,
            "job_id": "" if facts.job_id is None else str(facts.job_id),
            "owner": facts.owner,
            "run_id": "" if facts.run_id is None else str(facts.run_id),
            "planned": "" if facts.planned_ms is None else _time(facts.planned_ms, facts.zone),
            "at": _time(facts.last_ms, facts.zone),
            "attempts": str(facts.attempt),
            "message": facts.words,
            "node": facts.node,
            "link": link or "",
        }
        return Alarm(title, lines, link, facts.kind.is_good, facts.emails, fields)

    def _title(self, facts: AlarmFacts) -> str:
        words = self._words
        title = words.titles[facts.kind].replace("{}", facts.job or facts.group)
        if facts.count > 1:
            title += words.times.replace("{}", str(facts.count))
        # Of one line, whatever a name holds: it becomes the subject of a mail.
        return "".join(each if each.isprintable() else " " for each in f"[{_NAME}] {title}")

    def _lines(self, facts: AlarmFacts) -> list[tuple[str, str]]:
        words = self._words
        job = f"{facts.job} ({facts.job_id})" if facts.job_id is not None else ""
        at = _time(facts.last_ms, facts.zone)
        when = (words.at, at)
        if facts.count > 1:
            when = (words.between, f"{_time(facts.first_ms, facts.zone)} - {at}")
        return [
            (words.group, facts.group),
            (words.job, job),
            (words.owner, facts.owner),
            (words.run, "" if facts.run_id is None else str(facts.run_id)),
            (words.planned, "" if facts.planned_ms is None else _time(facts.planned_ms, facts.zone)),
            when,
            (words.attempts, str(facts.attempt) if facts.attempt > 1 else ""),
            (words.node, facts.node),
            (words.message, facts.words),
        ]

    def _link(self, facts: AlarmFacts) -> str | None:
        if self._public_url is None or facts.kind is AlarmKind.TEST:
            return self._public_url
        if facts.run_id is not None:
            return f"{self._public_url}/runs/{facts.run_id}"
        if facts.job_id is not None:
            return f"{self._public_url}/jobs/{facts.job_id}"
        return self._public_url


def _time(instant_ms: int, zone: str) -> str:
    try:
        known = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        known = ZoneInfo("UTC")
    return datetime.fromtimestamp(instant_ms / 1000, known).strftime("%Y-%m-%d %H:%M:%S %z")
