"""Kinds of channels that others bring."""

from importlib.metadata import EntryPoint

import pytest

from jobwheel.admin.alarms.kinds import ENTRY_POINTS, all_kinds, own_kinds
from tests.support.alarms import Recorded


def plug(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, ENTRY_POINTS)


def test_a_plug_in_is_a_kind_beside_ours() -> None:
    kinds = all_kinds([plug("pager", "tests.support.alarms:Recorded")])
    assert isinstance(kinds["pager"], Recorded)
    assert set(kinds) == {"pager", *own_kinds()}


def test_one_that_fails_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    plugged = [plug("gone", "no.such.module:Kind"), plug("broken", "tests.support.alarms:refused.code")]
    assert set(all_kinds(plugged)) == set(own_kinds())
    assert caplog.text.count("alarms.plug_in_failed") == 2


def test_none_takes_the_place_of_ours() -> None:
    assert not isinstance(all_kinds([plug("mail", "tests.support.alarms:Recorded")])["mail"], Recorded)
