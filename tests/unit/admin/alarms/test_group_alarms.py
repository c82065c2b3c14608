"""What is told of a group, from one look to the next."""

from jobwheel.admin.domain.alarm import AlarmKind
from jobwheel.admin.domain.group import LIVE_FOR_MS
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.services.group_alarms import EMPTY_FOR_MS, GroupState, judge
from jobwheel.admin.store.group_alarms import GroupBeats

NOW_MS = 1_795_746_600_250
A, B = "http://10.0.0.7:9999/", "http://10.0.0.8:9999/"


def group(*, needed: bool = True, **ages_ms: int) -> GroupBeats:
    addresses = {"a": A, "b": B}
    beats = {addresses[name]: NOW_MS - age_ms for name, age_ms in ages_ms.items()}
    return GroupBeats(GroupId(1), "orders", beats, needed)


def test_the_first_look_tells_nothing() -> None:
    seen = judge(None, group(a=0, b=LIVE_FOR_MS), NOW_MS)
    assert seen.told == ()
    assert seen.state == GroupState(live=(A,))


def test_who_falls_silent_is_gone_and_back_when_it_beats() -> None:
    gone = judge(GroupState(live=(A, B)), group(a=0, b=LIVE_FOR_MS), NOW_MS)
    assert gone.told == ((AlarmKind.EXECUTOR_GONE, B),)
    assert judge(gone.state, group(a=0, b=LIVE_FOR_MS), NOW_MS).told == ()
    back = judge(gone.state, group(a=0, b=0), NOW_MS)
    assert back.told == ((AlarmKind.EXECUTOR_BACK, B),)
    assert back.state == GroupState(live=(A, B))


def test_who_leaves_gracefully_is_not_told_of() -> None:
    assert judge(GroupState(live=(A, B)), group(a=0), NOW_MS).told == ()


def test_who_was_gone_and_was_removed_is_forgotten() -> None:
    left = judge(GroupState(live=(A,), gone=(B,)), group(a=0), NOW_MS)
    assert (left.told, left.state) == ((), GroupState(live=(A,)))


def test_nobody_is_there_after_a_restart_could_have_been_through() -> None:
    empty = judge(GroupState(live=(A,)), group(), NOW_MS)
    assert empty.told == ()
    assert judge(empty.state, group(), NOW_MS + EMPTY_FOR_MS - 1).told == ()
    offline = judge(empty.state, group(), NOW_MS + EMPTY_FOR_MS)
    assert offline.told == ((AlarmKind.GROUP_OFFLINE, ""),)
    assert judge(offline.state, group(), NOW_MS + 10 * EMPTY_FOR_MS).told == ()
    online = judge(offline.state, group(a=0), NOW_MS)
    assert online.told == ((AlarmKind.GROUP_ONLINE, ""),)
    assert judge(online.state, group(a=0), NOW_MS).told == ()


def test_a_restart_is_not_told() -> None:
    empty = judge(GroupState(live=(A,)), group(), NOW_MS)
    assert judge(empty.state, group(a=0), NOW_MS + EMPTY_FOR_MS - 1).told == ()


def test_a_group_without_a_running_job_needs_nobody() -> None:
    state = GroupState(empty_since_ms=NOW_MS - 10 * EMPTY_FOR_MS)
    assert judge(state, group(needed=False), NOW_MS).told == ()
    assert judge(state, group(needed=True), NOW_MS).told == ((AlarmKind.GROUP_OFFLINE, ""),)
