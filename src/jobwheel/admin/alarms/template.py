"""Templates of webhook bodies: texts with `{{ name }}` for named fields, and nothing that is run."""

import json
import re
from collections.abc import Mapping
from typing import Final

from jobwheel.admin.alarms.settings import SettingRefusedError

FIELD_NAMES: Final = (
    *("title", "text", "kind", "state", "count", "group", "job", "job_id", "owner", "run_id", "planned", "at"),
    *("attempts", "message", "node", "link"),
)
"""What a template may name. `state` is `alarm` or `resolved`; `text` is everything as plain text."""

_PLACE: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def check_template(setting: str, template: str, *, as_json: bool) -> None:
    """Check a template before it is stored.

    Raises:
        SettingRefusedError: it names a field that there is none of, or would make a body that is no JSON.
    """
    for place in _PLACE.finditer(template):
        name = place.group(1).strip()
        if name not in FIELD_NAMES:
            raise SettingRefusedError(
                setting, f"there is no field {name[:50]!r}; the fields are {', '.join(FIELD_NAMES)}"
            )
    rest = _PLACE.sub("", template)
    if "{{" in rest or "{%" in rest:
        raise SettingRefusedError(setting, "a field is written {{ name }}; nothing else can stand in braces")
    if as_json:
        try:
            # Digits fit where a number stands, and into a text.
            json.loads(render(template, dict.fromkeys(FIELD_NAMES, "1"), as_json=True))
        except ValueError as error:
            raise SettingRefusedError(setting, f"it makes no JSON: {error}") from error


def render(template: str, fields: Mapping[str, str], *, as_json: bool) -> str:
    """Fill a template; in JSON each value is made safe for standing inside of a text."""

    def value(place: re.Match[str]) -> str:
        text = fields.get(place.group(1).strip(), "")
        return json.dumps(text, ensure_ascii=False)[1:-1] if as_json else text

    return _PLACE.sub(value, template)
