"""Alarms in words, and templates that are filled with them."""

import functools
import json
from dataclasses import fields as fields_of
from typing import Any

import pytest

from jobwheel.admin.alarms.settings import SettingRefusedError
from jobwheel.admin.alarms.template import FIELD_NAMES, check_template, render
from jobwheel.admin.alarms.text import AlarmTexts
from jobwheel.admin.alarms.words import WORDS
from jobwheel.admin.domain.alarm import AlarmFacts, AlarmFailures, AlarmKind, JobAlarms, merged
from jobwheel.admin.domain.run import Outcome
from jobwheel.schedule import Language

AT_MS = 1_795_746_600_250
FACTS = AlarmFacts(
    AlarmKind.FAILED,
    AT_MS,
    AT_MS,
    "Asia/Shanghai",
    group="orders",
    job_id=7,
    job="settle accounts",
    owner="Lin",
    run_id=41,
    planned_ms=AT_MS - 250,
    attempt=3,
    words="LookupError: no account",
)
TEXTS = AlarmTexts(Language.EN, "https://jobs.example.com/")


def changed(**changes: Any) -> AlarmFacts:
    return AlarmFacts(**{**{name: getattr(FACTS, name) for name in FACTS.__struct_fields__}, **changes})


def test_a_message_holds_what_people_need() -> None:
    alarm = TEXTS.write(FACTS)
    assert alarm.title == "[Jobwheel] settle accounts failed"
    assert dict(alarm.lines) == {
        "Group": "orders",
        "Job": "settle accounts (7)",
        "Owner": "Lin",
        "Run": "41",
        "Planned": "2026-11-27 10:30:00 +0800",
        "At": "2026-11-27 10:30:00 +0800",
        "Attempts": "3",
        "Message": "LookupError: no account",
    }
    assert alarm.link == "https://jobs.example.com/runs/41"
    assert alarm.fields["state"] == "alarm"
    assert set(alarm.fields) == set(FIELD_NAMES)


def test_merged_ones_tell_how_many_and_between_when() -> None:
    alarm = TEXTS.write(changed(count=500, last_ms=AT_MS + 60_000))
    assert alarm.title == "[Jobwheel] settle accounts failed (500 times)"
    assert dict(alarm.lines)["Between"] == "2026-11-27 10:30:00 +0800 - 2026-11-27 10:31:00 +0800"


def test_without_an_address_of_ours_there_is_no_link() -> None:
    assert AlarmTexts(Language.EN, None).write(FACTS).link is None


def test_a_name_cannot_break_the_title() -> None:
    assert "\n" not in TEXTS.write(changed(job="a\nBcc: x@example.com")).title


def test_a_zone_that_is_none_is_utc() -> None:
    assert TEXTS.write(changed(zone="Nowhere/At_all")).fields["planned"].endswith("+0000")


@pytest.mark.parametrize("language", list(Language))
def test_every_language_has_words_for_everything(language: Language) -> None:
    words = WORDS[language]
    assert set(words.titles) == set(AlarmKind)
    assert all(getattr(words, each.name) for each in fields_of(words))
    for kind in AlarmKind:
        assert "{}" not in AlarmTexts(language, None).write(changed(kind=kind)).title


def test_the_languages_differ() -> None:
    titles = {AlarmTexts(each, None).write(FACTS).title for each in Language}
    assert len(titles) == len(Language)


class TestTemplate:
    def test_fields_are_made_safe_for_json(self) -> None:
        template = '{"text": "{{ title }}: {{message}}", "n": {{ count }}}'
        check_template("body", template, as_json=True)
        given = {"title": 'a "b"', "message": "line\n\\", "count": "3"}
        assert json.loads(render(template, given, as_json=True)) == {"text": 'a "b": line\n\\', "n": 3}

    def test_other_texts_are_filled_as_they_are(self) -> None:
        assert render("{{ title }}!", {"title": '"'}, as_json=False) == '"!'

    def test_what_a_field_holds_is_not_read_as_a_template(self) -> None:
        assert render("{{ title }}", {"title": "{{ message }}", "message": "x"}, as_json=False) == "{{ message }}"

    @pytest.mark.parametrize(
        ("template", "words"),
        [
            ("{{ password }}", "no field 'password'; the fields are title"),
            ("{{ title.__class__ }}", "no field"),
            ("{{ 7 * 7 }}", "no field"),
            ("{{ title ", "written {{ name }}"),
            ("{% for x in y %}", "nothing else"),
        ],
    )
    def test_nothing_but_fields_is_taken(self, template: str, words: str) -> None:
        with pytest.raises(SettingRefusedError, match=words):
            check_template("body", template, as_json=False)

    def test_what_would_make_no_json_is_refused(self) -> None:
        with pytest.raises(SettingRefusedError, match="no JSON"):
            check_template("body", '{"a": "{{ title }}"', as_json=True)


class TestWishes:
    @pytest.mark.parametrize(
        ("failures", "final", "wanted"),
        [
            (AlarmFailures.FINAL, True, True),
            (AlarmFailures.FINAL, False, False),
            (AlarmFailures.EVERY, False, True),
            (AlarmFailures.NONE, True, False),
        ],
    )
    def test_failures(self, failures: AlarmFailures, final: bool, wanted: bool) -> None:
        for kind in (AlarmKind.FAILED, AlarmKind.TIMED_OUT, AlarmKind.LOST):
            assert JobAlarms(failures=failures).wants(kind, is_final=final) == wanted

    def test_what_is_no_failure_is_told_by_wish_alone(self) -> None:
        for kind in (AlarmKind.KILLED, AlarmKind.COVERED, AlarmKind.DISCARDED):
            assert not JobAlarms().wants(kind, is_final=True)
            assert JobAlarms(also=(Outcome(kind.value),)).wants(kind, is_final=True)
        assert JobAlarms(failures=AlarmFailures.NONE).wants(AlarmKind.LATE_START, is_final=True)


def test_merging_counts_and_keeps_the_newest_words() -> None:
    both = merged(changed(run_ids=(1,), emails=("a@b.c",)), changed(last_ms=AT_MS + 5, words="new", run_ids=(2,)))
    assert (both.count, both.words, both.first_ms, both.last_ms) == (2, "new", AT_MS, AT_MS + 5)
    assert (both.run_ids, both.emails) == ((1, 2), ("a@b.c",))


@pytest.mark.parametrize("kind", [AlarmKind.EXECUTOR_GONE, AlarmKind.EXECUTOR_BACK])
def test_merging_names_every_executor_once(kind: AlarmKind) -> None:
    gone = [changed(kind=kind, words=f"http://10.0.0.{each}:9999/") for each in (7, 8, 7, 9)]
    all_gone = functools.reduce(merged, gone)
    assert (all_gone.count, all_gone.words) == (
        4,
        "http://10.0.0.7:9999/, http://10.0.0.8:9999/, http://10.0.0.9:9999/",
    )
    many = functools.reduce(merged, [changed(kind=kind, words=f"http://10.0.0.7:{each}/") for each in range(200)])
    assert (len(many.words), many.words[-1]) == (1000, "…")


def test_merging_names_every_node_once() -> None:
    off = [changed(kind=AlarmKind.CLOCK_OFF, node=node, words=f"{node} s") for node in ("one", "two", "one")]
    both = functools.reduce(merged, off)
    assert (both.count, both.node, both.words) == (3, "one, two", "one s")
    assert merged(changed(), changed()).node == changed().node


def test_of_very_many_runs_not_all_are_kept() -> None:
    many = changed(run_ids=tuple(range(400)))
    assert len(merged(many, many).run_ids) == 500
