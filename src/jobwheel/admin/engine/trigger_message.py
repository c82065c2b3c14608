"""A run's trigger message: how it was dispatched, line by line, in the installation's language."""

from collections.abc import Sequence
from typing import Final

from jobwheel.admin.domain.ids import GroupId, NodeId
from jobwheel.admin.domain.job import DispatchJob
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.domain.writes import cut_message
from jobwheel.admin.engine.executor_answers import Answer
from jobwheel.admin.engine.routing import UnknownStrategyError
from jobwheel.admin.engine.rules import IDLE_ANSWERS, KILL_END_MS, RESENDS_END_MS, UNHEARD_END_MS
from jobwheel.admin.engine.trigger_words import WORDS
from jobwheel.admin.engine.why_words import WHY_WORDS
from jobwheel.schedule import Language

_MOST_ADDRESSES: Final = 20
_MOST_ANSWER_BYTES: Final = 4_000
_MOST_REMEMBERED: Final = 100_000
"""How many addresses the remembered headings' keys hold in all."""

_MINUTE_MS: Final = 60_000

_Kind = tuple[NodeId, str, int, int, bool]
_Key = tuple[_Kind, str, str, int, bool, tuple[str, ...]]


class TriggerMessages:
    """Writes the lines of trigger messages; each ends with a line feed, so that they can be put one after the other.

    What executors and the system say, the names of strategies and types stay as they are in every language.
    """

    def __init__(self, language: Language = Language.EN) -> None:
        self.language = language
        self._words = WORDS[language]
        self._why = WHY_WORDS[language]
        self._headings: dict[_Key, str] = {}
        self._remembered = 0

    def heading(
        self,
        node_id: NodeId,
        run: PendingRun,
        job: DispatchJob,
        addresses: tuple[str, ...],
        *,
        fixed: bool,
        retries_left: int = 0,
    ) -> str:
        """The facts of the dispatch, before any address was asked.

        Called for each run. Headings are remembered: those of most runs of equal jobs to the same addresses are equal.
        """
        named = bool(run.named_addresses)
        kind = (node_id, run.trigger_type.value, run.attempt, retries_left, named)
        key = (kind, job.route_strategy, job.block_strategy, job.timeout_s, fixed, addresses)
        return self._headings.get(key) or self._remember(key)

    def shard(self, index: int, total: int) -> str:
        """Which part of a broadcast the run is; `index` counts from 0."""
        return f"{self._words.shard.format(index, total)}\n"

    def asked(self, address: str, answer: Answer) -> str:
        """One address that the run was sent to, with what it said."""
        return self._told(self._words.answers[answer.kind], address, answer)

    def asked_first(self, address: str, answer: Answer) -> str:
        """One address that was asked before one was chosen, with what it said."""
        return self._told(self._words.answers_first[answer.kind], address, answer)

    def sent_again(self, address: str, answer: Answer) -> str:
        """The address that an unconfirmed run was sent to again, with what it said."""
        return f"{self._words.sent_again}{self.asked(address, answer)}"

    def left(self, address: str) -> str:
        """A candidate that left the registry before it was its turn."""
        return f"{self._words.left.format(address)}\n"

    def drained(self, addresses: Sequence[str]) -> str:
        """Addresses that get no new runs, since an operator drains them."""
        return cut_message(f"{self._words.drained.format(self._listed(addresses))}\n")

    def out(self, address: str) -> str:
        """A candidate that somebody else found unreachable before it was its turn."""
        return f"{self._words.out.format(address)}\n"

    def just_out(self) -> str:
        """Why an address is not asked: somebody else found it unreachable."""
        return self._words.just_out

    def no_address(self) -> str:
        """No executor of the group beats."""
        return f"{self._words.no_address}\n"

    def no_group(self, group_id: GroupId) -> str:
        """The job's group is gone."""
        return f"{self._words.no_group.format(group_id)}\n"

    def list_empty(self) -> str:
        """The group's fixed list has no address."""
        return f"{self._words.list_empty}\n"

    def all_out(self, addresses: Sequence[str], *, fixed: bool) -> str:
        """Each of the group's addresses was unreachable, and has not had its time or its beat since."""
        sentence = self._words.all_out_fixed if fixed else self._words.all_out
        return cut_message(f"{sentence.format(self._listed(addresses))}\n")

    def named_not_live(self, addresses: Sequence[str]) -> str:
        """None of the addresses that a person named for the run is live."""
        return cut_message(f"{self._words.named_not_live.format(self._listed(addresses))}\n")

    def none_said_yes(self, not_asked: int, within_s: float) -> str:
        """The strategy asked, and nobody will have it; so many were not asked before the time was up."""
        if not_asked:
            return f"{self._words.none_in_time.format(f'{within_s:g}', not_asked)}\n"
        return f"{self._words.none_said_yes}\n"

    def none_reached(self) -> str:
        """Every candidate was tried in vain."""
        return f"{self._words.none_reached}\n"

    def none_in_time(self, not_tried: int, within_s: float) -> str:
        """The time was up before every candidate was tried."""
        return f"{self._words.none_reached_in_time.format(f'{within_s:g}', not_tried)}\n"

    def unknown_strategy(self, error: UnknownStrategyError) -> str:
        """The job's strategy does not exist."""
        return cut_message(f"{self._words.unknown_strategy.format(repr(error.strategy), ', '.join(error.known))}\n")

    def damaged(self, damage: str) -> str:
        """The job's row holds what its columns cannot, so that nobody knows what to send."""
        return cut_message(f"{self._words.damaged.format(damage)}\n")

    def over_limit(self, limit: int) -> str:
        """As many runs of the job as may be at once are under way, and further ones do not wait."""
        return f"{self._words.over_limit.format(limit)}\n"

    def broken_off(self) -> str:
        """The database has it as being sent, and nobody is sending it."""
        return f"{self._words.broken_off}\n"

    def no_answer(self) -> str:
        """It was sent again in vain until the time was up."""
        return f"{self._words.no_answer.format(RESENDS_END_MS // _MINUTE_MS)}\n"

    def not_readable(self) -> str:
        """The executor was asked in vain until the time was up."""
        return f"{self._words.not_readable.format(UNHEARD_END_MS // _MINUTE_MS)}\n"

    def replaced(self) -> str:
        """The process that it was sent to is gone, and another has its address."""
        return f"{self._words.replaced}\n"

    def called_idle(self, address: str, times: int) -> str:
        """The executor does not know it any more."""
        return f"{self._words.called_idle.format(address, times)}\n"

    def lost_unknown(self, address: str) -> str:
        """The process that took the run does not know it."""
        return self._words.lost_unknown.format(address)

    def lost_replaced(self, address: str) -> str:
        """Another process is at the address, and has no result of the run."""
        return self._words.lost_replaced.format(address)

    def lost_gone(self, address: str, silent_ms: int) -> str:
        """Nobody beats or answers there."""
        return self._words.lost_gone.format(address, silent_ms // _MINUTE_MS)

    def lost_idle(self, address: str) -> str:
        """The executor does not run the job, and gave no result."""
        return self._words.lost_idle.format(address, IDLE_ANSWERS)

    def kill_asked(self, actor: str) -> str:
        """Somebody wants the run to end."""
        return f"{self._words.kill_asked.format(actor)}\n"

    def kill_told(self, address: str, answer: Answer) -> str:
        """What the executor said when it was told to end the run."""
        return self._told(self._words.kill_told, address, answer)

    def killed_unsent(self) -> str:
        """Nothing of the run was sent."""
        return self._words.killed_unsent

    def killed_silent(self, address: str) -> str:
        """The executor gave no result after it was to end the run."""
        return self._words.killed_silent.format(address, KILL_END_MS // 1000)

    def _told(self, sentence: str, address: str, answer: Answer) -> str:
        told = sentence.format(address, answer.code)
        cause = answer.cause
        message = answer.message if cause is None else self._why[cause.why].format(*cause.facts)
        if not message:
            return f"{told}\n"
        return cut_message(f"{told}{self._words.colon}{message}\n", _MOST_ANSWER_BYTES)

    def _listed(self, addresses: Sequence[str]) -> str:
        words, more = self._words, len(addresses) - _MOST_ADDRESSES
        shown = words.comma.join(addresses[:_MOST_ADDRESSES])
        return shown + words.and_more.format(more) if more > 0 else shown

    def _remember(self, key: _Key) -> str:
        size = 1 + len(key[-1])
        self._remembered += size
        if self._remembered > _MOST_REMEMBERED:
            self._headings.clear()
            self._remembered = size
        heading = self._headings[key] = self._describe(key)
        return heading

    def _describe(self, key: _Key) -> str:
        (node_id, trigger_type, attempt, retries_left, named), route, block, timeout_s, fixed, addresses = key
        words = self._words
        lines = (
            words.trigger_type.format(trigger_type),
            words.node.format(node_id),
            words.fixed_list if fixed else words.registered,
            words.addresses.format(self._listed(addresses) or words.none_live),
            words.route_strategy.format(route) + (words.by_hand if named else ""),
            words.block_strategy.format(block),
            words.timeout.format(timeout_s) if timeout_s else words.no_timeout,
            words.attempt.format(attempt, retries_left),
        )
        return "".join(f"{line}\n" for line in lines)
