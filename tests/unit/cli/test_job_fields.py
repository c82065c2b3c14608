"""What `jobwheel jobs create` and `set` make of FIELD=VALUE."""

from pathlib import Path
from typing import Any

import pytest
import typer

from jobwheel.admin.api.job_models import JobCreate, JobPatch
from jobwheel.cli.job_edit_commands import JSON_FIELDS, NULL_FIELDS, read_fields


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("retry_count=3", ("retry_count", 3)),
        ("retry_count=many", ("retry_count", "many")),
        ("retention_days=", ("retention_days", None)),
        ("parameter=5", ("parameter", "5")),
        ("parameter=a=b", ("parameter", "a=b")),
        ("parameter=", ("parameter", "")),
        ("time_zone=", ("time_zone", None)),
        ("tags=night, 7", ("tags", ["night", "7"])),
        ('tags=["a,b"]', ("tags", ["a,b"])),
        ("tags=2026", ("tags", ["2026"])),
        ("tags=", ("tags", [])),
        ("child_job_ids=8,9", ("child_job_ids", [8, 9])),
        ("child_job_ids=8", ("child_job_ids", [8])),
    ],
)
def test_a_value_has_the_type_of_its_field(text: str, field: tuple[str, Any]) -> None:
    assert read_fields([text]) == dict([field])


def test_a_value_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "parameter.json").write_text('{"day": 1}\n')
    assert read_fields([f"parameter=@{tmp_path}/parameter.json"]) == {"parameter": '{"day": 1}'}
    (tmp_path / "script.sh").write_text("echo 1\n")
    assert read_fields([f"glue_source=@{tmp_path}/script.sh"]) == {"glue_source": "echo 1\n"}
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(typer.BadParameter, match="is not UTF-8"):
        read_fields([f"parameter=@{tmp_path}/bytes"])


@pytest.mark.parametrize("texts", [["retry_count"], ["=3"], ["tags=a", "tags=b"]])
def test_what_is_no_field_is_a_wrong_call(texts: list[str]) -> None:
    with pytest.raises(typer.BadParameter):
        read_fields(texts)


@pytest.mark.parametrize("model", [JobCreate, JobPatch])
def test_every_field_of_a_job_is_known_to_be_a_text_or_not(model: type[JobCreate | JobPatch]) -> None:
    properties = model.model_json_schema(by_alias=True)["properties"]
    for name, schema in properties.items():
        kinds = {each.get("type") for each in schema.get("anyOf", [schema])}
        assert (name in JSON_FIELDS) == ("string" not in kinds), name
        assert (name in NULL_FIELDS) == ({"string", "null"} <= kinds and schema.get("default") is None), name
