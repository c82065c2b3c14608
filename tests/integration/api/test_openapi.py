"""The API describes itself."""

import pytest

from jobwheel.admin.domain.policies import RouteStrategy
from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import Json, answer


@pytest.fixture
async def described(admin: AdminHarness) -> Json:
    return answer(await admin.client.get("/api/v1/openapi.json"))


async def test_a_patch_has_no_defaults_that_a_client_could_send(described: Json) -> None:
    schemas = described["components"]["schemas"]
    for name in ("JobPatch", "GroupPatch"):
        assert len(schemas[name]["properties"]) > 4
        assert not [field for field, schema in schemas[name]["properties"].items() if "default" in schema]
        assert "required" not in schemas[name]


async def test_what_is_needed_and_what_may_be_said(described: Json) -> None:
    job = described["components"]["schemas"]["JobCreate"]
    assert sorted(job["required"]) == ["group_id", "name", "schedule_type"]
    assert job["additionalProperties"] is False
    assert job["properties"]["route_strategy"]["enum"] == list(RouteStrategy)
    assert job["properties"]["schedule_type"]["enum"] == ["NONE", "CRON", "FIX_RATE", "FIX_DELAY", "ONCE"]


async def test_errors_have_the_shape_that_is_described(described: Json) -> None:
    for path, methods in described["paths"].items():
        if not path.startswith("/api/v1"):
            continue
        for operation in methods.values():
            schema = operation["responses"]["4XX"]["content"]["application/json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/ErrorReply"}
            assert "422" not in operation["responses"]


async def test_pages_and_monitors_are_not_part_of_it(described: Json) -> None:
    assert {path for path in described["paths"] if not path.startswith("/api/v1/")} == {"/health"}
