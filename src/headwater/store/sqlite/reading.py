"""Looking at what is stored. Plain calls on a read-only connection; rows come back as dictionaries.

A record's data comes back as the bytes that came in, to be spliced and not decoded. Lists are pages: a page
has `items` and, where there is more, `next_cursor`.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import msgspec

from headwater import clock, limits
from headwater.errors import refuse
from headwater.store.sqlite.database import queries

if TYPE_CHECKING:
    from headwater.collect.schedules import PastRun

Row = dict[str, Any]


class RecordFilter(NamedTuple):
    """Which records of a stream, newest first. `fields` pairs top-level field names with the text they hold."""

    since: str | None = None
    until: str | None = None
    fields: Sequence[tuple[str, str]] = ()


class Reader:
    """Answers every question about the store that a person or a face may ask."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._sql = queries()

    def instances(self) -> list[Row]:
        """List the instances that have collected something."""
        return self._rows("list_instances")

    def streams(self, instance: str | None = None, stream: str | None = None) -> list[Row]:
        """List the streams, with how many records each holds and when its cursor was last committed."""
        return [_without(row, "stream_id", "time_field") for row in self._rows("list_streams", instance, stream)]

    def runs(self, instance: str | None, status: str | None, limit: int, cursor: str | None) -> Row:
        """List runs, newest first."""
        position = _position(cursor)
        rows = self._rows("list_runs", instance, status, position[0] if position else None, limit + 1)
        return _page(rows, limit, "position")

    def run(self, run_id: str, instance: str | None = None) -> Row:
        """Return one run with its streams, checkpoints, facts and events; `last` names the newest one."""
        rows = self._rows("find_run", run_id, instance)
        if not rows:
            raise refuse("not_found", "There is no such run.", command="headwater runs list")
        run = rows[0]
        position = run.pop("position")
        run["facts"] = msgspec.json.decode(run["facts"]) if run["facts"] else {}
        run["streams"] = self._rows("streams_of_run", position)
        decisions = self._rows("decisions_of_run", position)
        run["checkpoints"] = {
            "committed": [row["stream"] for row in decisions if row["committed"]],
            "withheld": [_withheld(row) for row in decisions if not row["committed"]],
            "covered": list(_covered(run.pop("graph"), run["streams"], decisions)),
        }
        run["healed"] = int(self._connection.execute(self._sql["gaps_healed_by"], (position,)).get)
        run["gaps"] = [_flagged(row) for row in self._rows("gaps_of_run", position, limits.PAGE_MAX)]
        run["events"] = [
            {**row, "data": msgspec.Raw(row["data"].encode())} for row in self._rows("events_of_run", position)
        ]
        return run

    def past_runs(self, connector_id: str, instance: str, streams: Sequence[str]) -> "list[PastRun]":
        """Return an instance's latest runs, newest first: those over at least these streams, and not narrowed."""
        wanted = msgspec.json.encode(streams).decode()
        connector, _, name = instance.partition("/")
        rows = self._rows("past_runs", connector_id, connector, name, wanted, limits.SCHEDULE_PAST_RUNS)
        return [_past_run(row) for row in rows]

    def gaps(self, instance: str | None, limit: int, cursor: str | None, *, healed: bool) -> Row:
        """List gaps, newest first: those still open, or all of them."""
        position = _position(cursor)
        after = position[0] if position else None
        rows = self._rows("list_gaps", instance, healed, after, limit + 1, limits.GAP_TRIES, None)
        return _page([_flagged(row) for row in rows], limit, "gap", keep=True)

    def gap(self, number: int) -> Row:
        """Return one gap with all that its connector said of it."""
        rows = self._rows("list_gaps", None, True, None, 1, limits.GAP_TRIES, number)
        if not rows:
            raise refuse("not_found", "There is no such gap.", command="headwater gaps list")
        words = self._rows("words_of_gap", number)[0]
        return {**_flagged(rows[0]), **{name: _raw(text) for name, text in words.items()}}

    def instances_with_gaps(self) -> list[str]:
        """Return the instances that have a gap which can be tried again by its key."""
        return [row["instance"] for row in self._rows("instances_with_gaps")]

    def rejections(
        self, instance: str | None, run_id: str | None, stream: str | None, limit: int, cursor: str | None
    ) -> Row:
        """List receipts of refused records, newest first."""
        position = _position(cursor)
        rows = self._rows("list_receipts", instance, run_id, stream, position[0] if position else None, limit + 1)
        return _page(rows, limit, "receipt", keep=True)

    def rejection(self, receipt: int) -> Row:
        """Return one receipt with the refused line as bytes, None where it was not kept."""
        rows = self._rows("find_receipt", receipt)
        if not rows:
            raise refuse("not_found", "There is no such receipt.", command="headwater rejections list")
        return rows[0]

    def state(self, instance: str) -> list[Row]:
        """Return the committed cursors of an instance, in every namespace."""
        return [{**row, "cursor": msgspec.Raw(row["cursor"].encode())} for row in self._rows("list_state", instance)]

    def records(self, instance: str, stream: str, asked: RecordFilter, limit: int, cursor: str | None) -> Row:
        """Return a page of a stream's records, newest first."""
        known = self._stream(instance, stream)
        rows = list(self._newest(known, asked, limit + 1, _position(cursor)))
        page: Row = {"items": [_record(row, instance, stream) for row in rows[:limit]]}
        if known["inactive_since_ms"] is not None:
            page["inactive_since_ms"] = known["inactive_since_ms"]
        if len(rows) > limit:
            last = rows[limit - 1]
            page["next_cursor"] = _token([last["seq"], last["time"]])
        return page

    def every_record(self, instance: str, stream: str, asked: RecordFilter) -> Iterator[Row]:
        """Yield all of a stream's records, newest first, without holding them."""
        known = self._stream(instance, stream)
        for row in self._newest(known, asked, -1, None):
            yield _record(row, instance, stream)

    def record(self, instance: str, stream: str, key: str) -> Row:
        """Return the current version of one record."""
        rows = self._rows("find_record", self._stream(instance, stream)["stream_id"], key)
        if not rows or rows[0]["data"] is None:
            raise refuse("not_found", "There is no record with this key.", command="headwater streams list")
        return {**_record(rows[0], instance, stream), "run_id": rows[0]["run_id"]}

    def search(self, typed: str, instance: str | None, stream: str | None, limit: int, cursor: str | None) -> Row:
        """Return a page of the records that hold every word that was typed, the best first.

        `complete` is false where only the newest of too many matches were ranked, or records are not indexed yet.
        """
        from headwater.store.sqlite.searching import after, expression, place, search

        match, within = expression(typed), None
        if (instance, stream) != (None, None):
            if not self._rows("list_streams", instance, stream):
                raise refuse("not_found", "There is no such stream.", command="headwater streams list")
            within = [row["id"] for row in self._rows("searched_streams", instance, stream)]
        found = search(self._connection, match, within, limit, after(cursor, match))
        page: Row = {"items": [vars(hit) for hit in found.hits], "complete": found.complete}
        page["searched"] = len(self._rows("searched_streams", instance, stream))
        if found.last is not None:
            page["next_cursor"] = place(found.last, match)
        return page

    def history(self, instance: str, stream: str, key: str, limit: int) -> list[Row]:
        """Return every version of one record, newest first; a delete has no data."""
        rows = self._rows("history_of_record", self._stream(instance, stream)["stream_id"], key, limit)
        if not rows:
            raise refuse("not_found", "There is no record with this key.", command="headwater streams list")
        return [{**row, "deleted": row["data"] is None, "data": _raw(row["data"])} for row in rows]

    def repeated_versions(self, instance: str, stream: str) -> int:
        """Count the versions that repeat the one before them: a sound store has none."""
        stream_id = self._stream(instance, stream)["stream_id"]
        return int(self._connection.execute(self._sql["repeated_versions"], (stream_id,)).get)

    # Inside.

    def _stream(self, instance: str, stream: str) -> Row:
        rows = self._rows("list_streams", instance, stream)
        if not rows:
            raise refuse("not_found", "There is no such stream.", command="headwater streams list")
        return rows[0]

    def _newest(self, known: Row, asked: RecordFilter, limit: int, after: list[Any] | None) -> Iterator[Row]:
        """Yield rows newest first: by consent time where the stream has one, then those without, else by arrival."""
        since, until = _micros(asked.since), _micros(asked.until)
        seq, time = after or (None, None)
        timed = known["time_field"] is not None
        sent = 0
        if timed and (after is None or time is not None):
            for row in self._stored("records_by_time", asked, known["stream_id"], seq, since, until, limit, time):
                sent += 1
                yield row
            seq = None
        if timed and (since, until) != (None, None):
            return
        if limit < 0 or sent < limit:
            query = "records_without_time" if timed else "records_by_arrival"
            yield from self._stored(
                query, asked, known["stream_id"], seq, since, until, limit - sent if limit > 0 else -1
            )

    def _stored(self, query: str, asked: RecordFilter, *values: Any) -> Iterator[Row]:
        """Run a query over records; conditions on fields take the places that the query leaves for them."""
        first = 7
        condition, more = "1", []
        for index, (field, text) in enumerate(asked.fields):
            path, value = f"?{first + 2 * index}", f"?{first + 2 * index + 1}"
            condition += f" AND (v.data ->> {path} = {value} OR v.data -> {path} = {value})"
            more += [f'$."{field}"', text]
        padded = [*values, *([None] * (first - 1 - len(values)))]
        sql = self._sql[query].replace("{fields}", condition)
        if "?6" not in sql and not more:
            padded = padded[:5]
        elif "?6" not in sql:
            sql = sql.replace("LIMIT ?5", "LIMIT ?5 + coalesce(?6, 0)")
        yield from self._fetch(sql, [*padded, *more])

    def _rows(self, query: str, *values: Any) -> list[Row]:
        return list(self._fetch(self._sql[query], values))

    def _fetch(self, sql: str, values: Sequence[Any]) -> Iterator[Row]:
        cursor = self._connection.execute(sql, values)
        names: list[str] | None = None
        for row in cursor:
            if names is None:
                names = [column[0] for column in cursor.description]
            yield dict(zip(names, row, strict=True))


def _micros(value: str | None) -> int | None:
    if value is None:
        return None
    moment = clock.parse(value)
    if moment is None:
        raise refuse("invalid_input", "A time must be a date or an RFC 3339 time, such as 2026-11-30.")
    return clock.micros(moment)


def _record(row: Row, instance: str, stream: str) -> Row:
    record = {"instance": instance, "stream": stream, "key": row["key"], "version": row["seq"]}
    if row["time"] is not None:
        record["time"] = clock.from_micros(row["time"])
    return {**record, "emitted_at": row["emitted_at"], "data": _raw(row["data"])}


def _raw(text: str | None) -> msgspec.Raw | None:
    return None if text is None else msgspec.Raw(text.encode())


def _past_run(row: Row) -> "PastRun":
    from headwater.collect.schedules import PastRun

    started_at, ended_at = clock.parse(row["started_at"]), clock.parse(row["ended_at"])
    assert started_at is not None
    return PastRun(started_at, ended_at, row["status"], row["hint"] == "refresh_credentials")


def _withheld(row: Row) -> Row:
    held = {"stream": row["stream"], "reason": row["reason"], "message": row["message"]}
    return {**held, "keys": msgspec.json.decode(row["keys"])} if row["keys"] else held


def _covered(graph: str, streams: Sequence[Row], decisions: Sequence[Row]) -> Iterator[Row]:
    """Yield how each stream without a cursor of its own stands: as the cursor does that covers it (CP-416)."""
    fates = {row["stream"]: "committed" if row["committed"] else "withheld" for row in decisions}
    edges: dict[str, tuple[str | None, list[str]]] = msgspec.json.decode(graph)
    for stream in (row["stream"] for row in streams):
        rides_on, parents = edges.get(stream, (None, []))
        for parent in [rides_on] if rides_on is not None else parents:
            yield {"stream": stream, "by": parent, "status": fates.get(parent, "not_sent")}


def _flagged(row: Row) -> Row:
    return {**row, "retryable": bool(row["retryable"])}


def _without(row: Mapping[str, Any], *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}


def _page(rows: list[Row], limit: int, position: str, *, keep: bool = False) -> Row:
    page: Row = {"items": [row if keep else _without(row, position) for row in rows[:limit]]}
    if len(rows) > limit:
        page["next_cursor"] = _token([rows[limit - 1][position]])
    return page


def _token(position: list[Any]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def _position(cursor: str | None) -> list[Any] | None:
    if cursor is None:
        return None
    try:
        position = msgspec.json.decode(
            base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)), type=list[int | None]
        )
    except (ValueError, binascii.Error):
        position = []
    if not 1 <= len(position) <= 2 or any(abs(one or 0) >> 63 for one in position):
        raise refuse("invalid_input", "The cursor is not one of ours; leave it out to begin with the newest.")
    return list(position)
