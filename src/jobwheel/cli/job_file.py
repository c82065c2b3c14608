"""Files of jobs, in YAML or JSON: what they say, and in which line."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from jobwheel.cli.errors import JobFileError
from jobwheel.cli.output import json_text

_OTHER_LINE_ENDS: Final = frozenset("\r\x85\u2028\u2029")
_MOST_NODES: Final = 500_000
# Plain texts to our reader, whose YAML is 1.1; numbers and truth values to readers of 1.2, and to some of 1.1.
_NO_TEXT_ELSEWHERE: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+|[yYnN]")


class JobFile:
    """A file that was read: its document, and the lines of what is in it."""

    def __init__(self, path: Path, document: dict[str, Any], lines: Mapping[str, int]) -> None:
        self.path = path
        self.document = document
        self._lines = lines

    def line_of(self, field: str) -> int:
        """The line of a field such as `jobs[3].schedule_conf`, or of the nearest thing around it."""
        while field and field not in self._lines:
            field = field[: max(field.rfind("."), field.rfind("["), 0)]
        return self._lines.get(field, 1)


class _Loader(yaml.SafeLoader):
    """The safe loader, without dates: instants are texts to us."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, KeyError) as error:
            # What a tag makes of its text (`!!int x`, `!!bool x`), or a number of thousands of digits.
            problem = f"{str(node.value)[:50]!r} is no value of {node.tag}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_job_file(path: Path) -> JobFile:
    """A file of jobs; one whose name ends in `.json` is JSON, every other one is YAML.

    Raises:
        JobFileError: it is neither, says a thing twice, or is no mapping; names the line.
        OSError: it cannot be read.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise JobFileError(path, 1, f"is not UTF-8: {error}") from error
    try:
        return _read(path, text)
    except RecursionError as error:
        raise JobFileError(path, 1, "is nested too deeply") from error


def _read(path: Path, text: str) -> JobFile:
    document = _from_json(path, text) if path.suffix.lower() == ".json" else None
    lines: dict[str, int] = {}
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None:
            _Walk(path, lines).enter(node, "")
        if document is None:
            document = loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(part for part in (error.context, error.problem) if part)
        if document is None:
            raise JobFileError(path, 1 if mark is None else mark.line + 1, f"is not YAML: {problem}") from error
    except yaml.YAMLError as error:
        if document is None:
            raise JobFileError(path, 1, f"is not YAML: {error}") from error
    if not isinstance(document, dict):
        raise JobFileError(path, 1, "holds no mapping with `groups` and `jobs`")
    _check_sendable(path, document)
    return JobFile(path, document, lines)


def job_file_text(document: Mapping[str, Any], form: str) -> str:
    """A document as the text of a file; `form` is yaml or json."""
    if form == "json":
        return json_text(document) + "\n"
    return yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


class _Dumper(yaml.SafeDumper):
    """The safe dumper, with texts of several lines as people would write them."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the signature is the library's
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - as above
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    if _NO_TEXT_ELSEWHERE.fullmatch(text):
        style = "'"
    if _OTHER_LINE_ENDS & set(text):
        # Elsewhere than between quotes they would be read as another one.
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


class _Walk:
    """Notes the lines of everything in a document; finds what is said twice, and what would grow without bounds."""

    def __init__(self, path: Path, lines: dict[str, int]) -> None:
        self._path = path
        self._lines = lines
        self._sizes: dict[int, int] = {}
        self._within: set[int] = set()

    def enter(self, node: yaml.Node, place: str) -> int:
        """Note a node and all below; return how many values it stands for, with each alias written out."""
        self._lines.setdefault(place, node.start_mark.line + 1)
        if id(node) in self._within:
            raise self._error(node, "an alias stands within what it stands for")
        if id(node) not in self._sizes:
            self._within.add(id(node))
            self._sizes[id(node)] = 1 + self._below(node, place)
            self._within.discard(id(node))
        if self._sizes[id(node)] > _MOST_NODES:
            raise self._error(node, f"stands for more than {_MOST_NODES} values")
        return self._sizes[id(node)]

    def _below(self, node: yaml.Node, place: str) -> int:
        if isinstance(node, yaml.SequenceNode):
            return sum(self.enter(each, f"{place}[{at}]") for at, each in enumerate(node.value))
        if not isinstance(node, yaml.MappingNode):
            return 0
        size, seen = 0, set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                # To write one out takes as long as its aliases wish.
                raise self._error(key, "is a name that is no text")
            name = str(key.value)
            if name in seen and name != "<<":
                raise self._error(key, f"{name[:50]!r} is there already")
            seen.add(name)
            size += self.enter(value, f"{place}.{name}" if place else name)
            if isinstance(value, yaml.ScalarNode):
                # A text of several lines begins behind its name.
                self._lines[f"{place}.{name}" if place else name] = key.start_mark.line + 1
        return size

    def _error(self, node: yaml.Node, problem: str) -> JobFileError:
        return JobFileError(self._path, node.start_mark.line + 1, problem)


def _from_json(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise JobFileError(path, error.lineno, f"is not JSON: {error.msg}") from error
    except ValueError as error:
        raise JobFileError(path, 1, f"is not JSON: {error}") from error


def _check_sendable(path: Path, document: dict[Any, Any]) -> None:
    """Refuse what YAML can say and JSON cannot: sets, bytes and dates by their tags, infinity, half a character."""
    try:
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as error:
        raise JobFileError(path, 1, "holds half of a surrogate pair, which is no character") from error
    except (TypeError, ValueError) as error:
        raise JobFileError(path, 1, f"holds what JSON has no value for: {error}") from error
