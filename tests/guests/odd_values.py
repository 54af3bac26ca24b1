"""Sends what JSON allows and few programs bear: 30 digits, NUL, separators, half a surrogate pair, 20 MB."""

import sys

DATA = {
    "digits": '{"id":"digits","n":123456789012345678901234567890,"f":0.1000000000000000055511151231257827}',
    "nul": '{"id":"nul","text":"a\\u0000b"}',
    "separators": '{"id":"separators","text":"\u2028\u2029\u0085"}',
    "escapes": '{"id":"escapes", "text" : "\\u00e9\\/\\ud83d\\ude00" }',
    "large": '{"id":"large","text":"' + "x" * 20_000_000 + '"}',
    "surrogate": '{"id":"surrogate","text":"\\ud800"}',
}
LINE = '{"type":"RECORD","stream":"alpha","key":"%s","data":%s,"emitted_at":"2026-04-01T10:00:00Z"}\n'
sys.stdin.readline()
for key, data in DATA.items():
    sys.stdout.buffer.write((LINE % (key, data)).encode())
print('{"type":"STATE","stream":"alpha","cursor":{"at":1}}')
print('{"type":"DONE","status":"succeeded","records_emitted":' + str(len(DATA)) + "}")
