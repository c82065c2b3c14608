"""Files of jobs: what is in them, in which line, and what is refused."""

import json
from pathlib import Path

import pytest

from jobwheel.cli.errors import JobFileError
from jobwheel.cli.job_file import job_file_text, read_job_file

TEXT = """\
groups:
  - {app_name: orders, title: Orders}
jobs:
  - app_name: orders
    key: a
    valid_from: 2026-12-01T00:00:00Z
    tags: [night,
           money]
    glue_source: |
      echo 1
  - app_name: orders
    key: b
    pause_windows:
      - from: x
        until: y
"""


def written(folder: Path, text: str, name: str = "jobs.yaml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_instants_are_texts(tmp_path: Path) -> None:
    job = read_job_file(written(tmp_path, TEXT)).document["jobs"][0]
    assert (job["valid_from"], job["glue_source"]) == ("2026-12-01T00:00:00Z", "echo 1\n")


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("jobs[0].valid_from", 6),
        ("jobs[0].tags[1]", 8),
        ("jobs[0].glue_source", 9),
        ("jobs[1].pause_windows[0].until", 15),
        ("jobs[1].name", 11),
        ("jobs[7].name", 4),
        ("groups[0].title", 2),
        ("odd", 1),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_lines(tmp_path: Path, field: str, line: int, as_json: bool) -> None:
    file = read_job_file(written(tmp_path, TEXT))
    assert file.line_of(field) == line
    if as_json:
        text = json.dumps(file.document, indent=1)
        read = read_job_file(written(tmp_path, text, "jobs.json"))
        assert read.document == file.document
        shown = text.splitlines()[read.line_of(field) - 1]
        assert field not in ("jobs[0].valid_from", "groups[0].title") or field.rpartition(".")[2] in shown


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("jobs: [", 1, "is not YAML"),
        ("jobs:\n  - key: a\n    key: b\n", 3, "'key' is there already"),
        ("- a\n", 1, "no mapping"),
        ("", 1, "no mapping"),
        ("jobs: &a [*a]\n", 1, "within what it stands for"),
        ("jobs: !!python/object/apply:os.system [id]\n", 1, "is not YAML"),
        ("a: \x00", 1, "is not YAML"),
        (
            "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
            + "".join(f"a{at}: &a{at} [{','.join([f'*a{at - 1}'] * 10)}]\n" for at in range(1, 9)),
            6,
            "more than 500000 values",
        ),
        # Written out, the name of this value would have 2^40 parts.
        (
            "jobs:\n  ? - &a0 [x, x]\n"
            + "".join(f"    - &a{at} [*a{at - 1}, *a{at - 1}]\n" for at in range(1, 40))
            + "  : 1\n",
            2,
            "is a name that is no text",
        ),
        ("a: 1\njobs: " + "[" * 2000 + "]" * 2000, 1, "nested too deeply"),
        ("a: 1\njobs: " + "9" * 5000, 2, "is no value of"),
        ("a: 1\njobs: !!int many", 2, "'many' is no value of"),
        ("a: 1\njobs: !!bool maybe", 2, "'maybe' is no value of"),
        ("a: 1\njobs: !!timestamp 2026-99-99", 2, "is no value of"),
        ("jobs: !!timestamp 2026-12-01", 1, "JSON has no value for"),
        ("jobs: !!binary aGVsbG8=", 1, "JSON has no value for"),
        ("jobs: !!set {a, b}", 1, "JSON has no value for"),
        ("jobs: .inf", 1, "JSON has no value for"),
        ('jobs: "\\ud800"', 1, "half of a surrogate pair"),
    ],
    ids=range(19),
)
def test_what_is_no_file_of_jobs(tmp_path: Path, text: str, line: int, words: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(JobFileError) as caught:
        read_job_file(path)
    assert caught.value.message.startswith(f"{path}:{line}: ")
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 200_000, "nested too deeply"),
        ('{"jobs": ' + "9" * 5000 + "}", "is not JSON"),
        ('{"jobs": NaN}', "JSON has no value for"),
        ('{"jobs": "\\ud800"}', "half of a surrogate pair"),
    ],
    ids=range(4),
)
def test_json_that_cannot_be_sent(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(JobFileError, match=rf"jobs.json:1: .*{words}"):
        read_job_file(written(tmp_path, text, "jobs.json"))


def test_bad_json_and_bad_characters(tmp_path: Path) -> None:
    with pytest.raises(JobFileError, match=r"jobs.json:2: is not JSON"):
        read_job_file(written(tmp_path, '{"jobs":\n ]}', "jobs.json"))
    path = tmp_path / "bad.yaml"
    path.write_bytes(b"a: \xff")
    with pytest.raises(JobFileError, match="is not UTF-8"):
        read_job_file(path)


def test_anchors_may_be_used(tmp_path: Path) -> None:
    text = "jobs:\n  - &usual {app_name: orders, timeout_s: 9}\n  - {<<: *usual, key: b}\n"
    assert read_job_file(written(tmp_path, text)).document["jobs"][1] == {
        "app_name": "orders",
        "timeout_s": 9,
        "key": "b",
    }


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_what_is_written_is_read_as_it_was(tmp_path: Path, form: str) -> None:
    odd = [
        "no",
        "1",
        "1e3",
        "0o7",
        "null",
        "~",
        " x ",
        "a: b",
        "#c",
        "2026-12-01",
        "账 \U0001f600",
        "'",
        '"',
        "a\nb",
        "\n",
    ]
    odd += [
        "#!/bin/bash\necho 1  \n\ttab\n",
        "\n\n lead",
        "end\n\n\n",
        "\u2028x\u0085y",
        "x\r\ny",
        "=",
        "<<",
        "*a",
        "&a",
    ]
    document = {"groups": [], "jobs": [{"key": each, "tags": [each], "timeout_s": 5} for each in odd]}
    path = written(tmp_path, "", f"jobs.{form}")
    path.write_bytes(job_file_text(document, form).encode())
    assert read_job_file(path).document == document


def test_scripts_are_written_as_people_write_them() -> None:
    text = job_file_text({"jobs": [{"key": "a", "glue_source": "#!/bin/bash\necho 账\n"}]}, "yaml")
    assert text == "jobs:\n  - key: a\n    glue_source: |\n      #!/bin/bash\n      echo 账\n"


@pytest.mark.parametrize("text", ["1e3", "-1E+3", ".5e1", "0o17", "y", "N", "7", "1.", "on", "null", "0x1F", "1:30"])
def test_what_other_readers_of_yaml_take_for_a_number_stands_between_quotes(text: str) -> None:
    assert job_file_text({"tags": [text]}, "yaml") == f"tags:\n  - '{text}'\n"


@pytest.mark.parametrize("text", ["1e3x", "e3", "yes, please", "0o18", "7 days"])
def test_other_texts_stand_without_quotes(text: str) -> None:
    assert job_file_text({"tags": [text]}, "yaml") == f"tags:\n  - {text}\n"
