"""The clauses that a check looks at: what each asks of a connector, and the one thing to do where it fails.

Ids and levels are those of the clause ledger; a test holds them to it. The ledger has more clauses for hosts than for
connectors, so a row may name a promise of the host that a connector can break. CP-013 is a must of manifests, and
no more than advice here: a stream that begins again cannot be told from one that reads a little before its cursor.
"""

from typing import Final, Literal, NamedTuple

Level = Literal["must", "should", "may"]


class Clause(NamedTuple):
    """One row: the clause's level, what it asks, and what to do."""

    level: Level
    asks: str
    remedy: str


_SHAPE = "Compare the line with the shape of its message in the profile."

CLAUSES: Final[dict[str, Clause]] = {
    # Lines.
    "CP-100": Clause("must", "Each direction carries one JSON object a line.", _SHAPE),
    "CP-101": Clause("must", "Every line of stdout is JSON, in UTF-8.", "Print diagnostics to stderr, not to stdout."),
    "CP-102": Clause("must", "Every line is a message of the profile.", "Send only the types that the profile has."),
    "CP-105": Clause("must", "The last line is whole.", "Flush stdout and wait until it is written before you exit."),
    "CP-115": Clause("must", "A RECORD has a stream, an object as data and an ISO 8601 emitted_at.", _SHAPE),
    "CP-125": Clause("must", "A STATE has a stream and an object as cursor.", "Wrap the cursor in an object."),
    "CP-130": Clause("must", "A SKIP_RESULT has members of the right types.", _SHAPE),
    "CP-137": Clause("must", "A PROGRESS has a message; count and total are numbers.", _SHAPE),
    "CP-152": Clause("must", "DONE has a status, a count, and an error with message and retryable.", _SHAPE),
    "CP-700": Clause("must", "An INTERACTION has a request_id, a kind and a message.", _SHAPE),
    # The run.
    "CP-058": Clause("must", "A missing required binding is fatal.", "Look for each one in START.bindings; then fail."),
    "CP-059": Clause("must", "Unknown bindings are ignored.", "Read only the bindings that you know."),
    "CP-153": Clause("must", "DONE is the last message.", "Send nothing after DONE."),
    "CP-200": Clause("must", "Nothing is written before START.", "Read the first line of stdin before you write."),
    "CP-204": Clause("must", "DONE says how the run ended.", "Say `failed` where something could not be collected."),
    "CP-209": Clause("must", "DONE is sent before the exit.", "Send DONE on every way out, and flush it."),
    "CP-211": Clause("must", "The exit status agrees with DONE.", "Exit 0 after `succeeded`, non-zero otherwise."),
    "CP-214": Clause(
        "must", "DONE is sent on failure too.", "Catch what fails, and send DONE `failed` with the reason."
    ),
    "CP-216": Clause(
        "must", "A connector that is told to stop is soon gone.", "Leave on SIGTERM and on a closed stdin."
    ),
    "CP-219": Clause("should", "A slow reader loses nothing.", "Write stdout blockingly: wait while the pipe is full."),
    "CP-220": Clause("must", "DONE counts the records that were sent.", "Count every RECORD line, deletes too."),
    # Records.
    "CP-119": Clause(
        "must", "A record that is sent again has its key again.", "Make keys of what the source calls it."
    ),
    "CP-121": Clause(
        "must", "A record's key is its primary key.", "Make `key` of the fields of primary_key, in order."
    ),
    "CORE-016": Clause("must", "Records keep the schema of their stream.", "Change the record, or the schema."),
    "CORE-026": Clause(
        "must", "Bytes are named by a whole blob_ref.", "Write the bytes to the folder for blobs first."
    ),
    # Scope.
    "CP-311": Clause("must", "With `resources`, all that were named come.", "Compare with the record's key as text."),
    "CP-312": Clause("must", "`since` is inclusive and `until` exclusive.", "Send since ≤ time < until, all of it."),
    "CP-313": Clause("must", "No record comes from outside the scope.", "Compare with START.scope before you send."),
    "CP-315": Clause("must", "With `fields`, no other field comes.", "Leave out what START.scope does not name."),
    "CP-317": Clause(
        "must",
        "A constraint is kept, or refused aloud.",
        "Send SKIP_RESULT with reason scope_not_supported and no record, or fail.",
    ),
    # Cursors.
    "CP-013": Clause("should", "An incremental stream resumes.", "Send what is new since the cursor in START.state."),
    "CP-126": Clause("must", "STATE names only checkpoint streams of the run.", "Save the parent's cursor instead."),
    "CP-405": Clause("must", "A run goes on from the cursors of the one before.", "Read the cursor as you wrote it."),
    "CP-408": Clause("must", "A cursor holds no answer of the owner.", "Leave credentials and codes out of STATE."),
    "CP-409": Clause("should", "A cursor is saved during the walk.", "Send a STATE every thousand records."),
    "CP-410": Clause("must", "A cursor comes after its records.", "Send STATE behind all that it covers."),
    "CP-447": Clause("must", "What a crash cut off comes again.", "Keep no memory of your own of what was sent."),
    # Details and evidence.
    "CP-503": Clause("must", "A DETAIL_COVERAGE has its members.", _SHAPE),
    "CP-507": Clause("must", "Each key of a report is required, and has one outcome.", "Put a key in one list only."),
    "CP-515": Clause("must", "Every required key is fetched or a gap.", "Send a DETAIL_GAP for what is missing."),
    "CP-516": Clause("must", "Each parent of a detail lane gets its report.", "Send one DETAIL_COVERAGE a parent."),
    "CP-521": Clause("should", "A boundary reports its coverage once.", "Send it when the boundary is settled."),
    "CP-525": Clause(
        "must", "A state_stream child sends no DETAIL_COVERAGE.", "Send STREAM_EVIDENCE instead, or none."
    ),
    "CP-526": Clause("must", "DETAIL_COVERAGE names declared parents only.", "Name the parent in parent_streams."),
    "CP-535": Clause("must", "A DETAIL_GAP names a stream of the run.", _SHAPE),
    "CP-537": Clause("must", "A gap's locator carries no secret.", "Keep only what finds the detail again."),
    "CP-603": Clause("must", "STREAM_EVIDENCE is for state_stream children.", "Send it for no other stream."),
    "CP-609": Clause("must", "The counts of STREAM_EVIDENCE add up.", "Count each considered key in one outcome."),
    "CP-611": Clause("must", "A stream sends STREAM_EVIDENCE once a run.", "Send it when the walk has ended."),
    # Questions.
    "CP-701": Clause("must", "Nothing is written while a question is open.", "Wait for the answer on stdin."),
    "CP-704": Clause("must", "An answer is taken, and the run goes on.", "Read the line with the same request_id."),
    "CP-705": Clause("must", "A declined question ends in good order.", "Go on without, or send DONE `failed`."),
    "CP-706": Clause("must", "A question that nobody answers ends in good order.", "Treat `timeout` as `cancelled`."),
    "CP-711": Clause("must", "An answer is repeated nowhere.", "Never print, log or send what the owner answered."),
}
