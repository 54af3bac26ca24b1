"""Begins well, and then behaves in a way that no line can show."""

import os
import signal
import subprocess
import sys
import time

RECORD = '{"type":"RECORD","stream":"alpha","key":"a1","data":{"id":"a1"},"emitted_at":"2026-04-01T10:00:00Z"}\n'
STATE = '{"type":"STATE","stream":"alpha","cursor":{"at":1}}\n'
DONE = '{"type":"DONE","status":"succeeded","records_emitted":1}\n'


def say(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def for_ever(text, pause=0.0):
    while True:
        say(text)
        time.sleep(pause)


def leaves_a_crowd():
    """Start many processes that hold every pipe open and do not hear SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for _ in range(40):
        subprocess.Popen(["sleep", "600"])
    say(DONE)


def tells_secrets():
    for n in range(200_000):
        sys.stderr.write(f"{n} the token is sk-live-hunter2\n")
    say(DONE)


def closes_its_input():
    os.close(0)
    say(DONE)


def stops_itself():
    os.kill(os.getpid(), signal.SIGSTOP)


WAYS = {
    "blank lines": lambda: for_ever("\n" * 10_000),
    "a blank line now and then": lambda: for_ever("\n", 0.05),
    "a byte now and then": lambda: for_ever("x", 0.05),
    "a line without end": lambda: for_ever("x" * 1_000_000),
    "progress without end": lambda: for_ever('{"type":"PROGRESS","message":"on and on"}\n' * 1_000),
    "poison without end": lambda: for_ever(RECORD.replace("alpha", "nonsuch") * 500),
    "leaves a crowd": leaves_a_crowd,
    "tells secrets": tells_secrets,
    "closes its input": closes_its_input,
    "stops itself": stops_itself,
}  # fmt: skip
sys.stdin.readline()
say(RECORD + STATE)
WAYS[sys.argv[1]]()
