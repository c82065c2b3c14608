"""A document of jobs, made true in one transaction."""

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from jobwheel.admin.domain.group import Group
from jobwheel.admin.domain.ids import ChannelId, GroupId, JobId
from jobwheel.admin.domain.job import Job, JobAddress
from jobwheel.admin.domain.policies import GlueType
from jobwheel.admin.domain.script import NewScript
from jobwheel.admin.services.blaming import blaming
from jobwheel.admin.services.errors import (
    AmbiguousGroupError,
    ForbiddenError,
    InvalidFieldError,
    NeverFiresError,
    NotFoundError,
    PlanChangedError,
)
from jobwheel.admin.services.job_channels import ChannelNames
from jobwheel.admin.services.job_checks import check_type
from jobwheel.admin.services.job_document_tools import Asker, Scope, Tools
from jobwheel.admin.services.job_input import read_changes, read_settings
from jobwheel.admin.services.job_plan import edited_settings, schedule_of
from jobwheel.admin.services.job_wishes import (
    Action,
    Changes,
    JobChange,
    JobDocument,
    JobState,
    JobWish,
    Names,
    children_first,
)
from jobwheel.admin.services.scripts import SCRIPT_FIELDS, first_script
from jobwheel.admin.store import Connection
from jobwheel.admin.store.groups import find_groups
from jobwheel.admin.store.job_children import jobs_elsewhere, lock_children
from jobwheel.admin.store.job_keys import hold_jobs, job_names, list_keys
from jobwheel.admin.store.jobs import find_job_by_key, get_job
from jobwheel.admin.store.scripts import get_script

_STAYS_STOPPED = "it stays stopped: its schedule has no next time any more"


class Application:
    """Makes one document true. For one use, within one writing transaction.

    Job rows are held in the order of their ids. New jobs are made with their children before them, so that each is
    written once.
    """

    def __init__(
        self, connection: Connection, tools: Tools, document: JobDocument, asker: Asker, *, scope: Scope
    ) -> None:
        self._connection = connection
        self._tools = tools
        self._document = document
        self._asker = asker
        self._actor = asker.name
        self._alone = scope is Scope.ALONE
        self._on_trial = scope is Scope.TRIAL
        self._group_ids: dict[str, GroupId] = {}
        self._stored: dict[JobAddress, JobId] = {}
        self._ids: dict[JobAddress, JobId] = {}
        self._places = {wish.address: f"jobs[{at}]" for at, wish in enumerate(document.jobs)}
        self._wishes = {wish.address: wish for wish in document.jobs}
        self._done: dict[JobAddress, JobChange] = {}
        self._children: dict[JobId, JobAddress] = {}
        self._channels = ChannelNames(connection)

    def run(self, fingerprint: str | None) -> Changes:
        """Write what differs, and tell what was written.

        Raises:
            PlanChangedError: the fingerprint is another one.
            JobwheelError: something cannot be as the document wants it; names the job and the field.
        """
        if any(wish.children for wish in self._document.jobs):
            # Before any job's row, as all who change children.
            lock_children(self._connection)
        new_groups = self._make_groups()
        self._find_jobs()
        states = {address: self._state(job_id) for address, job_id in self._stored.items()}
        found = self._fingerprint(states)
        if fingerprint is not None and fingerprint != found:
            raise PlanChangedError
        self._name_children(states.values())
        missing = self._handle_missing(states)
        for wish in children_first(self._document, self._stored):
            with self._blaming(wish):
                self._done[wish.address] = self._create(wish)
        for address, job_id in sorted(self._stored.items(), key=lambda each: each[1]):
            if address in self._wishes:
                with self._blaming(self._wishes[address]):
                    self._done[address] = self._change(self._wishes[address], states[address], job_id)
        self._finish_circles()
        changes = [self._done[wish.address] for wish in self._document.jobs] + missing
        self._name_children(each.after for each in changes if each.after is not None)
        return Changes(found, new_groups, changes, Names(self._children, self._channels.by_id))

    def _make_groups(self) -> list[str]:
        made = []
        for at, given in enumerate(self._document.groups):
            with blaming(f"groups[{at}]", str(given.get("app_name"))):
                found = self._find_groups(given["app_name"])
                if not found:
                    if self._tools.jobs.group_ids is not None:
                        # The same words for a group that others have.
                        raise ForbiddenError(f"{self._actor} may change the jobs of his own groups, and make no group")
                    found = [self._tools.groups.create_in(self._connection, given, self._actor).group]
                    made.append(given["app_name"])
                self._group_ids[given["app_name"]] = _only(found, given["app_name"])
        for wish in self._document.jobs:
            app_name = wish.address.app_name
            if app_name not in self._group_ids:
                with self._blaming(wish):
                    found = self._find_groups(app_name)
                    self._group_ids[app_name] = _only(found, app_name)
        return made

    def _find_groups(self, app_name: str) -> list[Group]:
        found = find_groups(self._connection, self._tools.zone, app_name)
        return [group for group in found if not self._tools.jobs.hides(group.id)]

    def _find_jobs(self) -> None:
        self._stored = self._stored_jobs()
        if not self._on_trial:
            # A plan holds nothing but what it would change: claims wait for nobody's question.
            hold_jobs(self._connection, self._stored.values())
            # Whoever held one may have moved it, renamed it or deleted it; one that came there is not held.
            found = self._stored_jobs()
            self._stored = {address: job_id for address, job_id in self._stored.items() if found.get(address) == job_id}
        self._ids = dict(self._stored)

    def _stored_jobs(self) -> dict[JobAddress, JobId]:
        stored: dict[JobAddress, JobId] = {}
        for app_name, group_id in self._group_ids.items():
            if self._alone:
                keys = [wish.address.key for wish in self._document.jobs]
                found = {key: find_job_by_key(self._connection, group_id, key) for key in keys}
            else:
                found = dict(list_keys(self._connection, group_id))
            stored |= {JobAddress(app_name, key): job_id for key, job_id in found.items() if job_id is not None}
        return stored

    def _state(self, job_id: JobId) -> JobState:
        job = get_job(self._connection, self._tools.zone, job_id)
        if job is None:
            raise NotFoundError("job", job_id)
        is_script = job.settings.glue_type is not GlueType.BEAN
        return JobState(job, get_script(self._connection, self._tools.zone, job_id) if is_script else None)

    def _fingerprint(self, states: Mapping[JobAddress, JobState]) -> str:
        stored = [
            [str(address), each.job.id, each.job.version, each.job.running] for address, each in sorted(states.items())
        ]
        document = json.dumps([asdict(self._document), stored], sort_keys=True, default=str)
        return hashlib.sha256(document.encode("utf-8", "surrogatepass")).hexdigest()

    def _handle_missing(self, states: Mapping[JobAddress, JobState]) -> list[JobChange]:
        """Jobs of the groups that are not in the document; deleted ones are nobody's child any more."""
        missing = []
        for address, job_id in sorted(self._stored.items(), key=lambda each: each[1]):
            if address in self._wishes:
                continue
            if not self._document.delete_missing:
                missing.append(JobChange(address, Action.MISSING, states[address], states[address]))
                continue
            self._tools.jobs.delete_in(self._connection, job_id, self._actor)
            del self._ids[address]
            missing.append(JobChange(address, Action.DELETE, states[address], None))
        return missing

    def _create(self, wish: JobWish) -> JobChange:
        zone = self._tools.zone
        given = {"key": wish.address.key, "group_id": self._group_ids[wish.address.app_name]}
        # Of a circle one child is not there yet: it is given in the end, and refused where all edits are.
        children = [child for child in wish.children if child in self._ids or child not in self._wishes]
        settings = read_settings({**given, **self._given(wish, ()), "child_job_ids": self._child_ids(children)})
        script = first_script(wish.given, settings.glue_type)
        if script is not None:
            self._check_may_script("this job would be one")
        schedule_of(settings, zone.name)
        job = self._tools.jobs.create_in(self._connection, settings, script, bool(wish.running), self._actor)
        self._ids[wish.address] = job.id
        return JobChange(wish.address, Action.CREATE, None, self._state(job.id))

    def _change(self, wish: JobWish, before: JobState, job_id: JobId) -> JobChange:
        jobs, connection, actor = self._tools.jobs, self._connection, self._actor
        given = self._given(wish, before.job.settings.alarms.channel_ids)
        changes = read_changes({**given, "child_job_ids": self._child_ids(wish.children)})
        # Before its script, which is judged by the type that is stored.
        check_type(changes.get("glue_type", before.job.settings.glue_type), before.job)
        script = self._new_script(wish, before)
        # The moment counts for a new interval alone, which is a difference anyway.
        same = edited_settings(before.job.settings, changes, 0) == before.job.settings
        if same and script is None and wish.running in (None, before.job.running):
            return JobChange(wish.address, Action.UNCHANGED, before, before)
        if script is not None:
            self._check_may_script("this one is not the same as what is stored")
        if wish.running is False and before.job.running:
            jobs.stop_in(connection, job_id, actor)
        job = jobs.update_in(connection, job_id, changes, None, actor)
        if script is not None:
            self._tools.scripts.save_in(connection, job_id, script, None, actor)
        note = self._start(job, before.job) if wish.running and not job.running else ""
        after = self._state(job_id)
        action = Action.UNCHANGED if after == before else Action.CHANGE
        return JobChange(wish.address, action, before, after, note)

    def _given(self, wish: JobWish, channels: tuple[ChannelId, ...]) -> dict[str, Any]:
        given = {name: value for name, value in wish.given.items() if name not in SCRIPT_FIELDS}
        if "alarms" in given:
            given["alarms"] = {**given["alarms"], "channel_ids": self._channels.ids(wish.channels, channels)}
        return given

    def _new_script(self, wish: JobWish, before: JobState) -> NewScript | None:
        """The script that is to be saved; None if there is none, or it is the same."""
        if not SCRIPT_FIELDS & wish.given.keys():
            return None
        # What is given for a job that runs a handler is refused, in the same words as for a new one.
        new = first_script(wish.given, before.job.settings.glue_type)
        if new is None or before.script is None or "glue_source" not in wish.given:
            return None
        return None if new.source == before.script.source else new

    def _check_may_script(self, why: str) -> None:
        if not self._asker.may_script:
            raise ForbiddenError(f"{self._actor} may not change scripts, and {why}")

    def _start(self, job: Job, before: Job) -> str:
        """A job that has had its last instant must not hold up all the others for ever."""
        try:
            self._tools.jobs.start_in(self._connection, job.id, self._actor)
        except NeverFiresError:
            if job.settings != before.settings:
                raise
            return _STAYS_STOPPED
        return ""

    def _finish_circles(self) -> None:
        """Give children that were left out because they lead back to their parents."""
        for wish in self._document.jobs:
            change = self._done[wish.address]
            if change.action is not Action.CREATE or change.after is None:
                continue
            with self._blaming(wish):
                children = tuple(self._child_ids(wish.children))
                if change.after.job.settings.child_job_ids != children:
                    changes = read_changes({"child_job_ids": children})
                    self._tools.jobs.update_in(self._connection, change.after.job.id, changes, None, self._actor)
                    after = self._state(change.after.job.id)
                    self._done[wish.address] = JobChange(wish.address, Action.CREATE, None, after)

    def _child_ids(self, children: list[JobAddress] | tuple[JobAddress, ...]) -> list[JobId]:
        ids = []
        for child in children:
            job_id = self._ids.get(child)
            if job_id is None and child not in self._stored:
                job_id = self._stored_id(child)
            if job_id is None:
                raise InvalidFieldError("children", f"there is no job {child}")
            ids.append(job_id)
        return ids

    def _stored_id(self, address: JobAddress) -> JobId | None:
        for group in self._find_groups(address.app_name):
            job_id = find_job_by_key(self._connection, group.id, address.key)
            if job_id is not None:
                return job_id
        return None

    def _name_children(self, states: Any) -> None:
        ids = {child for each in states for child in each.job.settings.child_job_ids}
        hidden = jobs_elsewhere(self._connection, ids, self._tools.jobs.group_ids)
        names = job_names(self._connection, ids - self._children.keys() - hidden)
        self._children |= {job_id: each.address for job_id, each in names.items() if each.address is not None}

    def _blaming(self, wish: JobWish) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self._alone else blaming(self._places[wish.address], str(wish.address))


def _only(groups: list[Group], app_name: str) -> GroupId:
    if not groups:
        raise NotFoundError("group", app_name)
    if len(groups) > 1:
        raise AmbiguousGroupError(app_name)
    return groups[0].id
