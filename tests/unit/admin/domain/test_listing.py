from jobwheel.admin.domain.listing import listed


def test_of_many_names_the_first_twenty_are_listed() -> None:
    assert listed([]) == ""
    assert listed(["a", "b"]) == "a, b"
    assert listed(range(20)) == ", ".join(map(str, range(20)))
    assert listed(range(23)) == ", ".join(map(str, range(20))) + " and 3 more"
