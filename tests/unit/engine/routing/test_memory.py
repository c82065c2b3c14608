from jobwheel.admin.engine.routing.memory import Memory

DAY_MS = 24 * 3600 * 1000


def test_what_is_put_is_got_and_replaced() -> None:
    memory = Memory[str, int]()
    assert memory.get("a", 0) is None
    memory.put("a", 1, 1, 0)
    memory.put("a", 2, 1, 0)
    assert (memory.get("a", 0), len(memory)) == (2, 1)


def test_what_was_not_used_for_longest_goes_first_when_there_is_too_much() -> None:
    memory = Memory[str, int](most=3)
    for key in ("a", "b", "c"):
        memory.put(key, 0, 1, 0)
    memory.get("a", 0)
    memory.put("d", 0, 1, 0)
    assert [key for key in "abcd" if key in memory] == ["a", "c", "d"]
    memory.put("c", 0, 2, 0)
    assert [key for key in "abcd" if key in memory] == ["c", "d"]


def test_sizes_of_what_is_replaced_or_dropped_do_not_count_any_more() -> None:
    memory = Memory[str, int](most=4)
    for _ in range(10):
        memory.put("a", 0, 2, 0)
    memory.put("b", 0, 2, 0)
    assert len(memory) == 2
    memory.forget_unused(DAY_MS + 1)
    assert len(memory) == 0
    for key in ("c", "d"):
        memory.put(key, 0, 2, DAY_MS)
    assert len(memory) == 2


def test_one_value_that_is_larger_than_all_is_held_alone() -> None:
    memory = Memory[str, int](most=3)
    memory.put("a", 0, 1, 0)
    memory.put("b", 0, 10, 0)
    assert ("a" in memory, "b" in memory) == (False, True)


def test_what_was_not_used_for_a_day_is_forgotten() -> None:
    memory = Memory[str, int]()
    memory.put("a", 0, 1, 0)
    memory.put("b", 0, 1, 0)
    memory.get("a", 1)
    memory.forget_unused(DAY_MS)
    assert len(memory) == 2
    memory.forget_unused(DAY_MS + 1)
    assert ("a" in memory, "b" in memory) == (True, False)
