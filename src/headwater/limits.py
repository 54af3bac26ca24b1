"""Every bound of the house, each with its unit in its name.

A limit that is reached ends in a named refusal or a named run outcome, never in a wait without end
or in memory without end.
"""

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# A message is one line. A record of 20 MB fits; a line of 64 MB ends the run (CP-101).
LINE_BYTES: Final = 32 * MIB
# JSON deeper than this is receipted (a record) or refused (any other message).
NESTING_LEVELS: Final = 190

# What the host holds before the store has it. The child waits while a batch is written.
READ_BYTES: Final = 256 * KIB
BATCH_BYTES: Final = 2 * MIB
BATCH_EFFECTS: Final = 4_000
BATCH_WAIT_SECONDS: Final = 0.25

# A connector's stderr is evidence of a failure, not a log: only its end is kept.
STDERR_TAIL_BYTES: Final = 16 * KIB
# Free text that a connector sends for people (PROGRESS, SKIP_RESULT, DONE.error).
TEXT_CHARACTERS: Final = 2_000
# Gaps that one run may report, and the skips it may explain, before it is taken for broken.
GAPS_PER_RUN: Final = 250_000
SKIPS_PER_RUN: Final = 10_000
KEY_BYTES: Final = 4 * KIB
# Gaps that one retry takes, how long a gap waits for its first one, and when it is given up.
GAPS_PER_RETRY: Final = 500
GAPS_PER_RETRY_BYTES: Final = 256 * KIB
GAP_WAIT_SECONDS: Final = 15 * 60.0
GAP_WAIT_MAX_SECONDS: Final = 24 * 3600.0
GAP_TRIES: Final = 20

# Answers of the owner that are looked for in what a connector sends: any text so long, and a secret in a cursor.
ANSWER_CHARACTERS: Final = 4
SECRET_CHARACTERS: Final = 8

# Waits, and who they are for.
IDLE_SECONDS: Final = 900.0
RUN_SECONDS: Final = 24 * 3600.0
STOP_SECONDS: Final = 5.0
LEAVE_SECONDS: Final = 4.0
EXIT_SECONDS: Final = 15.0
INTERACTION_SECONDS: Final = 300.0
INTERACTION_MAX_SECONDS: Final = 3600.0
# How long a new run waits for the store of a host that was killed to end.
LOCK_SECONDS: Final = 30.0
LOCK_LOOK_SECONDS: Final = 0.02
LINK_SECONDS: Final = 10.0
BUSY_SECONDS: Final = 30.0
CONFINEMENT_TRY_SECONDS: Final = 10.0
# A browser's start, and how often it is looked for meanwhile; the pages it keeps on disk.
BROWSER_START_SECONDS: Final = 30.0
BROWSER_LOOK_SECONDS: Final = 0.02
BROWSER_CACHE_BYTES: Final = 64 * MIB

# A check of a connector: its runs, what it may write in each, and how hard it is tried.
CHECK_IDLE_SECONDS: Final = 30.0
CHECK_RUN_SECONDS: Final = 300.0
CHECK_PACK_SECONDS: Final = 900.0
CHECK_LINES: Final = 200_000
CHECK_QUESTIONS: Final = 50
CHECK_KILLS: Final = 4
CHECK_STREAMS: Final = 3
CHECK_SLOW_SECONDS: Final = 2.0
CHECK_PIPE_BYTES: Final = 4 * KIB

# Schedules: what they may ask for, the delays after failures, and how often the scheduler looks at the clock.
SCHEDULE_EVERY_SECONDS: Final = 60
SCHEDULE_EVERY_MAX_SECONDS: Final = 366 * 24 * 3600
SCHEDULE_JITTER_MAX_SECONDS: Final = 24 * 3600
SCHEDULE_RETRY_SECONDS: Final = 300.0
SCHEDULE_RETRY_MAX_SECONDS: Final = 24 * 3600.0
SCHEDULE_CLOCK_SECONDS: Final = 24 * 3600.0
SCHEDULE_TICK_SECONDS: Final = 10.0
SCHEDULE_BUSY_SECONDS: Final = 60.0
SCHEDULE_PAST_RUNS: Final = 32
SCHEDULE_AT_ONCE: Final = 2
SCHEDULE_AT_ONCE_MAX: Final = 16

# A question or an answer between two processes of ours.
LINK_BYTES: Final = 1 * MIB
# The same of an operation: its input and its result go as text of JSON, in which every quote may be escaped.
LINK_INPUT_BYTES: Final = 3 * MIB
LINK_RESULT_BYTES: Final = 17 * MIB

# The server: a request's head and body, who is served at once, and how long one may take to ask and to be answered.
SERVER_HEAD_BYTES: Final = 16 * KIB
SERVER_BODY_BYTES: Final = 8 * MIB
SERVER_CONNECTIONS: Final = 32
SERVER_ASK_SECONDS: Final = 15.0
SERVER_ANSWER_SECONDS: Final = 120.0
SERVER_STOP_SECONDS: Final = 10.0
SERVER_SYNCS: Final = 4  # runs that requests started, at once
SERVER_PAGE_DEFAULT: Final = 100
SERVER_PAGE_MAX: Final = 500
SERVER_LOG_BYTES: Final = 4 * MIB  # then a new file is begun, and one old one kept
GRANT_ID_CHARACTERS: Final = 256

# Files that a person writes.
CERTIFICATES_BYTES: Final = 1 * MIB
MANIFEST_BYTES: Final = 4 * MIB
DOCUMENT_BYTES: Final = 1 * MIB
CONFIG_BYTES: Final = 1 * MIB
STREAMS_PER_MANIFEST: Final = 1_000
FAULTS_PER_DOCUMENT: Final = 500
BLOB_BYTES: Final = 2 * 1024 * MIB

# A connector that is added: what is copied of it, and how long its packages take to install.
CONNECTOR_FILES: Final = 20_000
CONNECTOR_BYTES: Final = 512 * MIB
INSTALL_SECONDS: Final = 900.0

# Full-text search: fields of a stream, characters of one that are indexed, what a query may hold, and how far one goes.
SEARCH_FIELDS: Final = 16
SEARCH_CHARACTERS: Final = 1_000_000
SEARCH_WORDS: Final = 32
SEARCH_QUERY_CHARACTERS: Final = 1_000
SEARCH_MATCHES: Final = 50_000
SEARCH_SECONDS: Final = 10.0

# Pages of a list.
PAGE_DEFAULT: Final = 25
PAGE_MAX: Final = 1_000

MAX_SAFE_INTEGER: Final = 9_007_199_254_740_991

# Integrations.
LABEL_CHARACTERS: Final = 200  # a name, a label or a sentence that a form shows
DESCRIPTION_CHARACTERS: Final = 2_000
AUTH_METHODS: Final = 64  # an integration
AUTH_FIELDS: Final = 16  # a method (facts-cli 3.2)
AUTH_FIELD_CHARACTERS: Final = 8_192  # what is entered in one field
TOKEN_CHARACTERS: Final = 16_384
ACCOUNT_CHARACTERS: Final = 1_024
URL_CHARACTERS: Final = 4_096
SCOPES: Final = 256  # of one credential
METADATA_BYTES: Final = 4 * KIB
UPSTREAM_BYTES: Final = 2 * KIB  # what a challenge keeps of the provider's; the whole state is 4 KiB (INT-228)
HOOK_SECONDS: Final = 30.0  # one call of a hook, from its line to its answer
HOOK_START_SECONDS: Final = 10.0  # until an integration's process says which hooks it has
HOOK_REQUESTS: Final = 100  # that one call may have the host send
EVIDENCE_LIFETIME_MAX_MS: Final = 300_000

# Custody: one version, one call to a keyring, how long a sealed file's lock is waited for, and how large it is.
CUSTODY_BYTES: Final = 64 * KIB
KEYRING_CALL_SECONDS: Final = 2.0
SEALED_LOCK_SECONDS: Final = 5.0
SEALED_LOOK_SECONDS: Final = 0.02
SEALED_BYTES: Final = 16 * MIB
KEY_FILE_BYTES: Final = 4 * KIB

# Connections: how long one may take to be entered, and a turn at its instance; what is kept of it, and for how long.
ACQUISITION_SECONDS: Final = 300
CONNECTION_TURN_SECONDS: Final = 60.0
CONNECTIONS_PER_INSTANCE: Final = 1_000
ACQUISITIONS_PER_INSTANCE: Final = 1_000
COPY_SECONDS: Final = 30  # for a credential to be copied to another instance, its check included
COPY_OFFERS: Final = 16  # connections whose credential is offered for that
CREDENTIAL_VERSIONS: Final = 8
CREDENTIAL_RETENTION_SECONDS: Final = 24 * 3600
CONNECTION_PAGE_DEFAULT: Final = 100
CONNECTION_PAGE_MAX: Final = 500
CONNECTION_CURSOR_SECONDS: Final = 300
VALIDATION_SECONDS: Final = 30.0
VALIDATION_ATTEMPTS: Final = 3
VALIDATION_PAUSE_SECONDS: Final = 0.2
VALIDATION_LAST_PAUSE_SECONDS: Final = 1.0
VALIDATION_MARGIN_SECONDS: Final = 0.5

# Requests to a provider: until connected and in all, what an answer may hold, addresses of a name that are tried, and
# how long a provider can ask us to wait.
OUTBOUND_CONNECT_SECONDS: Final = 5.0
OUTBOUND_SECONDS: Final = 30.0
OUTBOUND_ANSWER_BYTES: Final = 1 * MIB
OUTBOUND_ADDRESSES: Final = 4
RETRY_AFTER_SECONDS: Final = 24 * 3600

# Signing in: a protected document and how long it may be entered; then what consent may take.
ENTRY_BYTES: Final = 64 * KIB
ENTRY_SECONDS: Final = 300.0
TOKEN_BYTES: Final = 8 * KIB
SHOWN_CHARACTERS: Final = 2_048
# Consent in a browser: in all, the head of a request to the loopback address, its silence, and requests at once.
CONSENT_SECONDS: Final = 240.0
LOOPBACK_HEAD_BYTES: Final = 64 * KIB
LOOPBACK_IDLE_SECONDS: Final = 2.0
LOOPBACK_CONNECTIONS: Final = 64
# Consent on another device: how often it is asked for, and how much less often where that is too often.
DEVICE_INTERVAL_SECONDS: Final = 5
DEVICE_SLOWER_SECONDS: Final = 5
# Tokens: what one may live, one of a client itself where nothing is said, and how old an ID token may be.
TOKEN_LIFETIME_SECONDS: Final = 10 * 366 * 24 * 3600
CLIENT_TOKEN_SECONDS: Final = 24 * 3600
ID_TOKEN_SECONDS: Final = 300
# An unfinished sign-in: how long, how large, wrong answers, and challenges one after the other.
AUTH_STATE_SECONDS: Final = 600
AUTH_STATE_BYTES: Final = 4 * KIB
AUTH_STATE_ANSWERS: Final = 5
SIGN_IN_CHALLENGES: Final = 5
SIGN_INS_AT_ONCE: Final = 1_000
STATE_KEY_SECONDS: Final = 30 * 24 * 3600
# Attempts to sign in: of an owner, by a method and from an address in an hour, at a target in a quarter of one; and the
# wait where that cannot be counted.
ATTEMPTS_PER_OWNER: Final = 30
ATTEMPTS_PER_METHOD: Final = 30
ATTEMPTS_PER_ADDRESS: Final = 20
ATTEMPTS_PER_TARGET: Final = 5
THROTTLE_UNKNOWN_SECONDS: Final = 60
# Before it expires, a token is refreshed.
REFRESH_LEAD_SECONDS: Final = 60

# The configuration: what it may hold, and how long its names are.
PATH_BYTES: Final = 4 * KIB
ENDPOINT_BYTES: Final = 2_048
CONFIGURED_ENTRIES: Final = 64
CONSUMERS: Final = 64
CONSUMER_ALIASES: Final = 64
CONSUMER_PREFIXES: Final = 64
PREFIX_BYTES: Final = 256
PERMITTED_PROFILES: Final = 64
PERMITTED_OPERATIONS: Final = 256
ARGUMENTS: Final = 256
ARGUMENT_BYTES: Final = 4 * KIB
PROGRAM_BYTES: Final = 512 * MIB

# Notes of what went wrong inside: how many are kept, and what one holds of an exception.
CRASH_NOTES: Final = 20
CRASH_EXCEPTIONS: Final = 8
CRASH_FRAMES: Final = 50

# The owner.
OWNER_IDLE_SECONDS: Final = 600.0  # without a client, before it ends by itself
OWNER_START_SECONDS: Final = 10.0  # until one that was started answers
OWNER_STOP_SECONDS: Final = 20.0  # until one that was asked to end has ended
OWNER_ANSWER_SECONDS: Final = 60.0  # for one question, but for an operation, which has its own deadline
OWNER_MARGIN_SECONDS: Final = 2.0  # after that deadline, until its answer is given up
OWNER_TICK_SECONDS: Final = 1.0
OWNER_LOOK_SECONDS: Final = 0.05  # between two looks at whether one answers, or has ended
OWNER_CLIENTS: Final = 32
ADAPTERS_STARTING: Final = 4  # at once
START_LOG_BYTES: Final = 64 * KIB

# Disconnecting.
DISCONNECT_SECONDS: Final = 10.0  # for the provider to be told
DISCONNECT_RUN_SECONDS: Final = 30.0  # until a run of the instance has ended

# Handing out credentials.
TOKEN_SECONDS: Final = 30.0  # for an access token to be issued, a renewal included
TOKEN_ISSUES_PER_INSTANCE: Final = 1_000  # that are kept of tokens handed out, the newest
CONSUMERS_STARTING: Final = 4  # programs copied at once

# Listing by an integration's hooks.
LIST_PAGES: Final = 10_000  # of one list in one run
LIST_PAGE_ITEMS: Final = 10_000
LIST_CURSOR_CHARACTERS: Final = 4_096
LIST_KNOWN_CHARACTERS: Final = 4 * MIB  # the keys that a list's cursor keeps, to tell what is gone
LIST_ASIDE_CHARACTERS: Final = 4_096  # of an item that is no object, kept with its receipt

# Operations: what a definition and its operations may hold, what is sent and answered, and how long a request may take.
OPERATIONS: Final = 256  # of one definition
PARAMETERS: Final = 256  # of one operation
INPUT_BYTES: Final = 1 * MIB
INPUT_LEVELS: Final = 64  # what an operation takes; a document of twice as many is not read at all
TARGET_CHARACTERS: Final = 60_000  # a path with its query: the longest position of a walk takes 48 KiB of it
RESULT_BYTES: Final = 8 * MIB
REQUEST_SECONDS: Final = 30.0
REQUEST_MAX_SECONDS: Final = 120.0
RESEND_MARGIN_SECONDS: Final = 0.5
DEFINED_CONNECTORS: Final = 64  # of definitions that were named on the command line
INVOCATIONS_KEPT: Final = 10_000  # reads of one instance, in the journal
# The guard of a write: the reads before it, and what is checked in all.
GUARD_LOOKS: Final = 4
GUARD_CHECKS: Final = 16

# Approvals: what a policy names, keys that are kept, and what a subject, a proof and its parts may hold.
POLICY_BYTES: Final = 1 * MIB
SIGNING_KEYS: Final = 128
SUBJECT_BYTES: Final = 8 * KIB
PROOF_BYTES: Final = 20 * KIB
PROOF_HEADER_BYTES: Final = 512
PROOF_CLAIMS_BYTES: Final = 12 * KIB
PROOF_TOKEN_BYTES: Final = 18 * KIB
# How long a proof counts, how much before its issue it does already, and how far the clock may go back unnoticed.
PROOF_SECONDS: Final = 295
PROOF_EARLY_SECONDS: Final = 5
CLOCK_SLACK_SECONDS: Final = 2
# Writes: a key that makes one the same, how long its answer is told again, and attempts of one instance that are kept.
IDEMPOTENCY_KEY_BYTES: Final = 256
REPLAY_SECONDS: Final = 24 * 3600
ATTEMPTS_KEPT: Final = 100_000
# What a result is reduced to: paths of one list, steps of one path.
SHAPING_PATHS: Final = 256
SHAPING_STEPS: Final = 64

# A walk: the pages of one, what a position may hold, and the ends that it may have.
WALK_PAGES: Final = 10_000
WALK_PAGES_DEFAULT: Final = 20
WALK_POSITION_BYTES: Final = 16 * KIB
WALK_ENDS: Final = 16

# A release of definitions: what is read of it, what it may hold, and how it is unpacked.
RELEASE_INDEX_BYTES: Final = 4 * MIB
RELEASE_ASSET_BYTES: Final = 64 * MIB
RELEASE_FILES: Final = 16_384
RELEASE_BYTES: Final = 512 * MIB  # of its files, in all
RELEASE_TAG_BYTES: Final = 128
RELEASE_FEATURE_BYTES: Final = 64
RELEASE_SEGMENT_BYTES: Final = 255  # of a path
RELEASE_FOLDERS: Final = 128  # around a file that can be kept
RELEASE_FILE_ROOM_BYTES: Final = 8 * KIB  # what an archive may hold beside a file
RELEASE_ROOM_BYTES: Final = 1 * MIB  # and beside all of them; one header is no larger either
RELEASE_PIECE_BYTES: Final = 64 * KIB  # inflated at once
RELEASE_SECONDS: Final = 600.0  # for one file to come from a repository
RELEASE_REDIRECTS: Final = 5
# Why a provider refused, as it says itself: what is told of it, its start that is looked at, and the longest that is.
REASON_BYTES: Final = 256
REASON_LOOKED_AT_BYTES: Final = 4 * KIB
REASON_TAKEN_BYTES: Final = 64 * KIB
# What it may not hold: a run or a word that looks like a token, and a piece of a credential.
REASON_RUN_BYTES: Final = 32
REASON_WORD_BYTES: Final = 16
REASON_PIECE_BYTES: Final = 8

# Webhooks: what one may hold, how far its timestamp may be from now, how many are verified at once, and how long a run
# of somebody else is waited for before the one that a webhook asked for is tried again.
WEBHOOK_BYTES: Final = 256 * KIB
WEBHOOK_WINDOW_SECONDS: Final = 300
WEBHOOK_ID_CHARACTERS: Final = 256
WEBHOOK_TIMESTAMP_CHARACTERS: Final = 12
WEBHOOK_SIGNATURES: Final = 8
WEBHOOK_SECRET_BYTES: Final = 16  # at least
WEBHOOK_SECRET_MAX_BYTES: Final = 512
WEBHOOKS_AT_ONCE: Final = 4
WEBHOOK_BUSY_SECONDS: Final = 5.0
